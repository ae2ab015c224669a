// Resize as ONNX defines it in full: any number of dims, sizes and scales known only in a run, all kinds of coordinates, and
// filters that widen with the step. Each axis is one product with a matrix of weights.
#include "frontends/onnx/resample.h"

#include <algorithm>
#include <cmath>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

struct Axis {
  size_t axis;
  Value *in, *out;     // i64[]
  Value* scale;        // f64[]
  Value *begin, *end;  // of the region, f64[]; null: the whole
};

class Resampler {
 public:
  explicit Resampler(OpContext& c)
      : c_(c), b_(c.b), old_(c.node().op == "Upsample" || c.opset < 11), mode_(c.text("mode", "nearest")),
        coordinates_(c.text("coordinate_transformation_mode", old_ ? "asymmetric" : "half_pixel")) {
    if (mode_ == "bilinear") mode_ = "linear";
    if (mode_ != "nearest" && mode_ != "linear" && mode_ != "cubic")
      c.refuse("mode {} is not supported", printable(mode_));
  }

  Value* run() {
    Value* x = c_.in[0];
    const DType dtype = x->type.dtype;
    const bool integers = mode_ != "nearest" && dtype.is_integer(), smooth = c_.integer("antialias", 0) != 0;
    if (integers) x = cast_to(x, kF32, b_);
    std::vector<Axis> all = axes();
    std::reverse(all.begin(), all.end());  // ONNX Runtime rounds integers after each axis, the last one first
    for (const Axis& axis : all) {
      const Tensor *scale = constant_of(axis.scale), *in = constant_of(axis.in), *out = constant_of(axis.out);
      const bool same_size = in && out ? in->as_i64() == out->as_i64() : out == nullptr && in == nullptr;
      if (scale && scale->as_f64()[0] == 1 && same_size && !axis.begin) continue;
      x = along(x, axis);
      if (integers && smooth) x = whole_numbers(x, dtype, true, b_);
    }
    if (integers && !smooth) x = whole_numbers(x, dtype, false, b_);
    return cast_to(x, dtype, b_);
  }

 private:
  Value* op(const char* name, std::vector<Value*> inputs) { return folded(b_.add(name, std::move(inputs)), b_); }
  Value* f64(double x) { return b_.number(x, kF64); }
  Value* i64(int64_t x) { return b_.constant(Tensor::scalar_i64(x)); }
  Value* counted(Value* begin, Value* end) {
    return folded(b_.add("iota", {begin, end, i64(1)}, {{"dtype", kI64}}), b_);
  }
  Value* element(Value* list, size_t i) {
    const auto at = static_cast<int64_t>(i);
    return reshape_to(part_of(list, at, at + 1, b_), {}, b_);
  }

  std::vector<Axis> axes() {
    const size_t rank = c_.rank(0);
    std::vector<int64_t> named = c_.integers("axes");
    if (named.empty())
      for (size_t i = 0; i < rank; ++i) named.push_back(static_cast<int64_t>(i));
    for (int64_t& axis : named) axis = normal_axis(axis, rank);
    const size_t at = old_ ? 1 : 2;
    Value *scales = nullptr, *sizes = nullptr;
    if (c_.opset < 9 && c_.has("scales")) {
      const std::vector<float> list = c_.reals("scales");
      scales = b_.constant(Tensor::of(kF32, {static_cast<int64_t>(list.size())}, list));
    } else if (c_.given(at) && c_.in[at]->type.shape != Shape::of({0})) {
      scales = c_.in[at];
    } else if (!old_ && c_.given(3)) {
      sizes = cast_to(c_.in[3], kI64, b_);
    } else {
      fail(ErrorKind::invalid_model, "", "has neither scales nor sizes");
    }
    const Shape& length = (scales ? scales : sizes)->type.shape;
    if (length.known() && length != Shape::of({static_cast<int64_t>(named.size())}))
      fail(ErrorKind::invalid_model, "", "has scales or sizes {}, expected {}", to_string(length), named.size());
    std::vector<Axis> axes;
    for (size_t i = 0; i < named.size(); ++i) {
      Axis one{static_cast<size_t>(named[i]), nullptr, nullptr, nullptr, nullptr, nullptr};
      one.in = scalar_dim(c_.in[0], one.axis, b_);
      Value* in = cast_to(one.in, kF64, b_);
      if (scales) {
        // The product of f32 decides, which may be the next whole number.
        Value *scale = cast_to(element(scales, i), kF32, b_), *size = cast_to(one.in, kF32, b_);
        one.scale = cast_to(scale, kF64, b_);
        one.out = cast_to(op("floor", {op("mul", {scale, size})}), kI64, b_);
      } else {
        one.out = element(sizes, i);
        one.scale = op("div", {cast_to(one.out, kF64, b_), in});
      }
      if (coordinates_ == "tf_crop_and_resize") {
        one.begin = cast_to(element(c_.in[1], i), kF64, b_);
        one.end = cast_to(element(c_.in[1], named.size() + i), kF64, b_);
      }
      axes.push_back(one);
    }
    if (sizes) keep_ratio(axes);
    return axes;
  }

  void keep_ratio(std::vector<Axis>& axes) {
    const std::string policy = c_.text("keep_aspect_ratio_policy", "stretch");
    if (policy == "stretch" || axes.empty()) return;
    if (policy != "not_larger" && policy != "not_smaller")
      fail(ErrorKind::invalid_model, "", "keep_aspect_ratio_policy '{}' is unknown", printable(policy));
    Value* scale = axes[0].scale;
    for (const Axis& axis : axes) scale = op(policy == "not_larger" ? "minimum" : "maximum", {scale, axis.scale});
    for (Axis& axis : axes) {
      axis.scale = scale;
      axis.out =
          cast_to(op("floor", {op("add", {op("mul", {scale, cast_to(axis.in, kF64, b_)}), f64(0.5)})}), kI64, b_);
    }
  }

  /// Where in the input each element of the result lies. The nearest one is chosen by numbers of f32, as ONNX Runtime does: between two
  /// elements their rounding decides.
  Var places(const Axis& axis) {
    const DType dtype = mode_ == "nearest" ? kF32 : kF64;
    const Var i = cast(Var(b_, counted(i64(0), axis.out)), dtype), scale = cast(Var(b_, axis.scale), dtype);
    const Var in = cast(Var(b_, axis.in), dtype), width = scale * in;
    const Var one = width.apply("equal", {width.number(1)}), half = (i + 0.5) / scale - 0.5;
    if (coordinates_ == "half_pixel") return half;
    if (coordinates_ == "asymmetric") return i / scale;
    if (coordinates_ == "tf_half_pixel_for_nn") return (i + 0.5) / scale;
    if (coordinates_ == "align_corners") return select(one, i * 0.0, i * (in - 1.0) / (width - 1.0));
    if (coordinates_ == "pytorch_half_pixel") return select(one, i * 0.0 - 0.5, half);
    if (coordinates_ == "half_pixel_symmetric") return half + in / 2.0 * (1.0 - cast(Var(b_, axis.out), dtype) / width);
    if (coordinates_ != "tf_crop_and_resize")
      c_.refuse("coordinates of kind {} are not supported", printable(coordinates_));
    const Var begin = cast(Var(b_, axis.begin), dtype), region = cast(Var(b_, axis.end), dtype) - begin;
    return select(one, i * 0.0 + region * (in - 1.0) / 2.0, i * region * (in - 1.0) / (width - 1.0)) +
           begin * (in - 1.0);
  }

  Value* along(Value* x, const Axis& axis) {
    const Var place = places(axis);
    Value* y = mode_ == "nearest" ? nearest(x, axis, place) : weighted(x, axis, place);
    if (coordinates_ != "tf_crop_and_resize") return y;
    const Var last = cast(Var(b_, axis.in), place.dtype()) - 1.0;
    Value* outside = b_.add("or", {(place < 0).value, (place > last).value});
    std::vector<NewDim> dims(c_.rank(0), NewDim{1, -1});
    dims[axis.axis] = {-1, 0};
    return b_.add("select", {reshape_to(outside, dims, b_), b_.scalar_like(y, c_.real("extrapolation_value", 0)), y});
  }

  Value* nearest(Value* x, const Axis& axis, Var place) {
    const std::string rounding = c_.text("nearest_mode", old_ ? "floor" : "round_prefer_floor");
    if (rounding == "round_prefer_floor")
      place = (place - 0.5).apply("ceil");
    else if (rounding == "round_prefer_ceil")
      place = (place + 0.5).apply("floor");
    else if (rounding == "floor" || rounding == "ceil")
      place = place.apply(rounding);
    else
      fail(ErrorKind::invalid_model, "", "nearest_mode '{}' is unknown", printable(rounding));
    const Var last = cast(Var(b_, axis.in), place.dtype()) - 1.0;
    const Var at = cast(minimum(maximum(place, place.number(0)), last), kI64);
    return b_.add("gather", {x, at.value}, {{"axis", static_cast<int64_t>(axis.axis)}});
  }

  Value* weighted(Value* x, const Axis& axis, Var place) {
    // The edge counts as repeated: as far as the filter reaches.
    const Var scale(b_, axis.scale), one = scale.number(1);
    const Var narrow = c_.integer("antialias", 0) != 0 ? minimum(scale, one) : one;
    const Var reach = cast((narrow.number(mode_ == "cubic" ? 2 : 1) / narrow).apply("ceil"), kI64) + 1.0;
    const Var in(b_, axis.in), from(b_, counted((-reach).value, (in + reach).value));
    const Var inside = minimum(maximum(from, from.number(0)), in - 1.0);
    x = b_.add("gather", {x, inside.value}, {{"axis", static_cast<int64_t>(axis.axis)}});
    const Var centre(b_, expand_dims(place.value, {1}, b_));
    Var weight = filter(abs((cast(from, kF64) - centre) * narrow));
    if (c_.integer("exclude_outside", 0) != 0) weight = select(from.apply("equal", {inside}), weight, weight.number(0));
    const Var sum = reduce_sum(weight, {1}, true);
    weight = weight / select(sum.apply("equal", {sum.number(0)}), sum.number(1), sum);
    const std::vector<int64_t> order = swapped_axes(c_.rank(0), axis.axis, c_.rank(0) - 1);
    const bool vector = order.size() == 1;
    Value* rows = vector ? expand_dims(x, {0}, b_) : transposed(x, order, b_);
    Value* y = b_.add("matmul", {rows, cast(weight, x->type.dtype).value}, {{"transpose_b", true}});
    return vector ? squeeze(y, {0}, b_) : transposed(y, order, b_);
  }

  /// The weight of an element at a distance: a triangle, or Keys' cubic.
  Var filter(Var d) {
    if (mode_ == "linear") return maximum(1.0 - d, d.number(0));
    const double a = c_.real("cubic_coeff_a", -0.75);
    const Var near = ((d * (a + 2)) - (a + 3)) * d * d + 1.0, far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a;
    return select(d > 1, select(d < 2, far, d.number(0)), near);
  }

  OpContext& c_;
  Builder& b_;
  bool old_;
  std::string mode_, coordinates_;
};

}  // namespace

Value* whole_numbers(Value* x, DType dtype, bool nearest, Builder& b) {
  constexpr double kSlack = 1.0 / 4096;  // sums of f32 fall short of whole numbers by less
  const Var y(b, x);
  Var whole = nearest ? (y + 0.5).apply("floor") : sign(y) * (abs(y) + kSlack).apply("floor");
  if (dtype.bits > 16) return whole.value;
  const double low = dtype.kind == DType::Kind::signed_int ? -std::exp2(dtype.bits - 1) : 0,
               high = low + std::exp2(dtype.bits) - 1;
  return whole.apply("clip", {}, {{"low", low}, {"high", high}}).value;
}

Value* resampled(OpContext& c) { return Resampler(c).run(); }

}  // namespace cairn::onnx
