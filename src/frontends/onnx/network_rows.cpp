// ONNX's convolutions, pooling and matrix products. ONNX images are NCHW and the module's NHWC: each
// node transposes its input and result; the layout pass removes these transposes.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/neighbours.h"
#include "frontends/onnx/convolution.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "frontends/values.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

/// Images with one to three spatial dims; those with one get a height of 1, between the transposes and the convolution, so
/// that the layout pass meets transposes of three dims only.
class Image {
 public:
  explicit Image(OpContext& c) : c_(c), flat_(c.rank(0) == 3), deep_(c.rank(0) == 5) {
    if (c.rank(0) < 3 || c.rank(0) > 5) c.refuse("images of {} dims are not supported, only 3 to 5", c.rank(0));
  }
  bool deep() const { return deep_; }
  Value* in(Value* x) {
    if (deep_) return transposed(x, {0, 2, 3, 4, 1}, c_.b);
    return flat_ ? expand_dims(transposed(x, {0, 2, 1}, c_.b), {1}, c_.b) : transposed(x, {0, 2, 3, 1}, c_.b);
  }
  Value* out(Value* y) {
    if (deep_) return transposed(y, {0, 4, 1, 2, 3}, c_.b);
    return flat_ ? transposed(squeeze(y, {1}, c_.b), {0, 2, 1}, c_.b) : transposed(y, {0, 3, 1, 2}, c_.b);
  }
  Value* kernel(Value* w) {
    if (deep_) return transposed(w, {2, 3, 4, 1, 0}, c_.b);
    return transposed(flat_ ? expand_dims(w, {2}, c_.b) : w, {2, 3, 1, 0}, c_.b);
  }

  std::vector<int64_t> spatial(std::string_view attribute) const {
    std::vector<int64_t> list = numbers(attribute);
    if (flat_) list.insert(list.begin(), 1);
    return list;
  }
  void set_padding(Attributes& attributes) const {
    const std::string mode = c_.text("auto_pad", "NOTSET");
    if (mode != "NOTSET" && mode != "SAME_UPPER" && mode != "SAME_LOWER" && mode != "VALID")
      fail(ErrorKind::invalid_model, "", "auto_pad '{}' is unknown", printable(mode));
    if (mode != "NOTSET") {
      attributes.set("padding", std::string(mode == "VALID" ? "valid" : mode == "SAME_UPPER" ? "same" : "same_lower"));
      return;
    }
    const std::vector<int64_t> all = numbers("pads", 2, 0);  // begins, then ends
    std::vector<int64_t> pairs(flat_ ? 2 : 0, 0);
    for (size_t i = 0; i < all.size() / 2; ++i) pairs.insert(pairs.end(), {all[i], all[i + all.size() / 2]});
    attributes.set("padding", std::string("explicit"));
    attributes.set("pads", std::move(pairs));
  }

 private:
  std::vector<int64_t> numbers(std::string_view attribute, size_t each = 1, int64_t fallback = 1) const {
    return c_.integers(attribute, each * (c_.rank(0) - 2), fallback);
  }

  OpContext& c_;
  bool flat_, deep_;
};

void conv(OpContext& c) {
  c.expect_inputs(2, 3);
  c.out = {convolved(c, c.in[0], c.in[1], c.given(2) ? c.in[2] : nullptr)};
}

/// [n * channels, 1] and the spatial dims of another tensor.
Value* plane_sizes(OpContext& c, Value* x, Value* spatial) {
  std::vector<Value*> sizes{c.b.add("mul", {dim_of(x, 0, c.b), dim_of(x, 1, c.b)}), c.b.ints({1})};
  for (size_t axis = 2; axis < c.rank(0); ++axis) sizes.push_back(dim_of(spatial, axis, c.b));
  return joined(sizes, c.b);
}

/// Places in images counted along rows, counted along columns instead.
Value* by_columns(OpContext& c, Value* at) {
  if (c.rank(0) != 4) c.refuse("storage_order takes images of two dims");
  const auto size = [&](size_t axis) { return Var(c.b, scalar_dim(c.in[0], axis, c.b)); };
  const Var place(c.b, at), height = size(2), width = size(3), whole = height * width;
  const Var inside = place.apply("mod", {whole}), row = inside.apply("floor_div", {width});
  return (place - inside + inside.apply("mod", {width}) * height + row).value;
}

/// Sums over the windows of a pooling node, whose image has a known size: what may lie outside of it is padded with zeros first.
class Windows {
 public:
  explicit Windows(OpContext& c) : c_(c), rank_(c.rank(0)) {
    if (rank_ < 3 || rank_ > 5) c.refuse("images of {} dims are not supported, only 3 to 5", rank_);
    const size_t count = rank_ - 2;
    window_ = c_.integers("kernel_shape", count, 0), strides_ = c_.integers("strides", count, 1);
    dilations_ = c_.integers("dilations", count, 1), pads_ = c_.integers("pads", 2 * count, 0);
    const std::string mode = c.text("auto_pad", "NOTSET");
    for (size_t i = 0; i < count; ++i) {
      const Dim size = c.in[0]->type.shape.dims[2 + i];
      constexpr int64_t kMost = 1 << 24;
      if (!size.known() || size.size > kMost) c.refuse("the size of the image must be known");
      for (int64_t number : {window_[i], strides_[i], dilations_[i]})
        if (number < 1 || number > kMost)
          fail(ErrorKind::invalid_model, "", "windows, strides or dilations have {}", number);
      int64_t &before = pads_[i], &after = pads_[count + i];
      if (before < 0 || after < 0 || before > kMost || after > kMost)
        fail(ErrorKind::invalid_model, "", "a pad is negative or too large");
      const int64_t reach = (window_[i] - 1) * dilations_[i] + 1, stride = strides_[i];
      if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
        const int64_t missing =
            std::max<int64_t>(((size.size + stride - 1) / stride - 1) * stride + reach - size.size, 0);
        before = mode == "SAME_UPPER" ? missing / 2 : missing - missing / 2;
        after = missing - before;
      } else if (mode == "VALID") {
        before = after = 0;
      }
      const int64_t free = size.size + before + after - reach;
      if (free < 0) fail(ErrorKind::invalid_model, "", "a window is larger than the image");
      int64_t steps = free / stride;
      if (c.integer("ceil_mode", 0) != 0) {
        steps = (free + stride - 1) / stride;
        if (steps * stride >= size.size + before) --steps;
      }
      beyond_.push_back(std::max<int64_t>(steps * stride - free, 0));
    }
  }

  /// Of x, which has the size of the input.
  Value* sums(Value* x) const { return summed(padded(x, true)); }
  /// How many elements each window has, with those of the padding or without; `one` is a scalar.
  Value* spread(Value* one, bool padding) const {
    std::vector<int64_t> sizes{1, 1};
    for (size_t i = 0; i < window_.size(); ++i)
      sizes.push_back(c_.in[0]->type.shape.dims[2 + i].size + (padding ? pads_[i] + pads_[window_.size() + i] : 0));
    return summed(padded(c_.b.add("broadcast_to", {one, c_.b.ints(sizes)}), !padding));
  }

 private:
  Value* padded(Value* x, bool sides) const {
    std::vector<int64_t> pairs(4, 0);
    const size_t count = window_.size();
    for (size_t i = 0; i < count; ++i)
      pairs.insert(pairs.end(), {sides ? pads_[i] : 0, (sides ? pads_[count + i] : 0) + beyond_[i]});
    return c_.b.add("pad", {x, c_.b.constant(Tensor::of<int64_t>(kI64, {static_cast<int64_t>(rank_), 2}, pairs))});
  }
  /// Each channel is an image of its own.
  Value* summed(Value* x) const {
    Builder& b = c_.b;
    Value* y = b.add("reshape", {x, plane_sizes(c_, x, x)});
    std::vector<int64_t> strides = strides_, dilations = dilations_, kernel = window_, order{0, 2, 3, 1},
                         back{0, 3, 1, 2};
    const bool deep = rank_ == 5, line = rank_ == 3;
    if (deep) order = {0, 2, 3, 4, 1}, back = {0, 4, 1, 2, 3};
    if (line) {
      y = expand_dims(y, {2}, b);
      for (auto* numbers : {&strides, &dilations, &kernel}) numbers->insert(numbers->begin(), 1);
    }
    kernel.insert(kernel.end(), {1, 1});
    Value* ones = b.add("broadcast_to", {b.scalar_like(x, 1), b.ints(kernel)});
    y = b.add(deep ? "conv3d" : "conv2d", {transposed(y, order, b), ones},
              {{"strides", strides}, {"dilations", dilations}});
    y = transposed(y, back, b);
    if (line) y = squeeze(y, {2}, b);
    std::vector<Value*> sizes{dim_of(x, 0, b), dim_of(x, 1, b)};
    for (size_t axis = 2; axis < rank_; ++axis) sizes.push_back(dim_of(y, axis, b));
    return b.add("reshape", {y, joined(sizes, b)});
  }

  OpContext& c_;
  size_t rank_;
  std::vector<int64_t> window_, strides_, dilations_, pads_, beyond_;
};

/// The root of the sum of the powers in each window.
void lp_pool(OpContext& c) {
  c.expect_inputs(1, 1);
  const auto p = static_cast<double>(c.integer("p", 2));
  if (p < 1) fail(ErrorKind::invalid_model, "", "p is {}", p);
  const Var x(c.b, c.in[0]), sum(c.b, Windows(c).sums(abs(x).apply("pow", {x.number(p)}).value));
  c.out = {sum.apply("pow", {sum.number(1 / p)}).value};
}

/// The elements put back to the places that MaxPool tells, zeros elsewhere.
void max_unpool(OpContext& c) {
  c.expect_inputs(2, 3);
  Builder& b = c.b;
  if (c.rank(0) < 3) fail(ErrorKind::invalid_model, "", "images of {} dims", c.rank(0));
  const size_t count = c.rank(0) - 2;
  const std::vector<int64_t> window = c.integers("kernel_shape", count, 1), strides = c.integers("strides", count, 1),
                             pads = c.integers("pads", 2 * count, 0);
  std::vector<Value*> sizes{dim_of(c.in[0], 0, b), dim_of(c.in[0], 1, b)};
  for (size_t i = 0; i < count; ++i) {
    const Var steps = Var(b, dim_of(c.in[0], 2 + i, b)) - 1.0;
    sizes.push_back(folded(
        (steps * static_cast<double>(strides[i]) + static_cast<double>(window[i] - pads[i] - pads[count + i])).value,
        b));
  }
  Value *shape = joined(sizes, b), *minus = b.ints({-1});
  Value* whole = b.add("reduce_prod", {shape}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}});
  Value* nothing = b.add("broadcast_to", {b.scalar_like(c.in[0], 0), whole});
  Value* y =
      b.add("scatter_elements", {nothing, b.add("reshape", {c.in[1], minus}), b.add("reshape", {c.in[0], minus})});
  y = b.add("reshape", {y, shape});
  if (c.given(2)) {  // more behind
    Value* after =
        b.add("maximum", {b.add("sub", {cast_to(c.in[2], kI64, b), shape}), b.constant(Tensor::scalar_i64(0))});
    Value* before = b.add("mul", {after, b.constant(Tensor::scalar_i64(0))});
    y = b.add("pad",
              {y, b.add("concat", {expand_dims(before, {1}, b), expand_dims(after, {1}, b)}, {{"axis", int64_t{1}}})});
  }
  c.out = {y};
}

template <bool kMaximum>
void pool(OpContext& c) {
  c.expect_inputs(1, 1);
  Image image(c);
  if (!c.has("kernel_shape")) fail(ErrorKind::invalid_model, "", "attribute kernel_shape is missing");
  Attributes attributes{{"window", image.spatial("kernel_shape")},
                        {"strides", image.spatial("strides")},
                        {"ceil_mode", c.integer("ceil_mode", 0) != 0}};
  image.set_padding(attributes);
  std::vector<int64_t> dilations = image.spatial("dilations");
  if (!kMaximum && std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; })) {
    const Windows windows(c);
    Value* ones = c.b.constant(Tensor::of<float>(kF32, {}, {1}));
    ones = windows.spread(cast_to(ones, c.in[0]->type.dtype, c.b), c.integer("count_include_pad", 0) != 0);
    c.out = {c.b.add("div", {windows.sums(c.in[0]), ones})};
    return;
  }
  if (kMaximum)
    attributes.set("dilations", dilations);
  else
    attributes.set("count_padding", c.integer("count_include_pad", 0) != 0);
  const char* op = kMaximum ? image.deep() ? "max_pool3d" : "max_pool2d" : image.deep() ? "avg_pool3d" : "avg_pool2d";
  c.out = {image.out(c.b.add(op, {image.in(c.in[0])}, attributes))};
  if (!kMaximum || c.node().outputs.size() < 2) return;
  // The places are counted over the whole input: each channel is an image of its own.
  Value* planes = c.b.add("reshape", {c.in[0], plane_sizes(c, c.in[0], c.in[0])});
  Value* at =
      image.out(c.b.add(image.deep() ? "max_pool3d_indices" : "max_pool2d_indices", {image.in(planes)}, attributes));
  if (c.integer("storage_order", 0) != 0) at = by_columns(c, at);
  c.out.push_back(c.b.add("reshape", {at, c.b.add("shape_of", {c.out[0]})}));
}

/// The dims of images behind the channels.
std::vector<int64_t> image_axes(OpContext& c) {
  std::vector<int64_t> axes;
  for (size_t i = 2; i < c.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

void global_lp_pool(OpContext& c) {
  c.expect_inputs(1, 1);
  const auto p = static_cast<double>(c.integer("p", 2));
  if (p < 1) fail(ErrorKind::invalid_model, "", "p is {}", p);
  const Var x(c.b, c.in[0]), sum = reduce_sum(abs(x).apply("pow", {x.number(p)}), image_axes(c), true);
  c.out = {sum.apply("pow", {sum.number(1 / p)}).value};
}

void global_pool(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.b.add(c.target, {c.in[0]}, {{"axes", image_axes(c)}, {"keep_dims", true}})};
}

void gemm(OpContext& c) {
  c.expect_inputs(2, 3);
  double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  auto scaled = [&](Value* x, double by) {
    if (by == 1) return x;
    return c.b.add("mul", {x, cast_to(c.b.constant(Tensor::of<double>(kF64, {}, {by})), x->type.dtype, c.b)});
  };
  Value* y = c.b.add("matmul", {c.in[0], c.in[1]},
                     {{"transpose_a", c.integer("transA", 0) != 0}, {"transpose_b", c.integer("transB", 0) != 0}});
  y = scaled(y, alpha);
  if (c.given(2) && beta != 0) y = c.b.add("add", {y, scaled(c.in[2], beta)});
  c.out = {y};
}

/// One-dimensional operands get a dim of 1, which is removed from the result.
void matmul(OpContext& c) {
  c.expect_inputs(2, 2);
  bool row = c.rank(0) == 1, column = c.rank(1) == 1;
  Value* a = row ? expand_dims(c.in[0], {0}, c.b) : c.in[0];
  Value* b = column ? expand_dims(c.in[1], {1}, c.b) : c.in[1];
  Value* y = c.b.add("matmul", {a, b});
  auto rank = static_cast<int64_t>(y->type.shape.rank());
  std::vector<int64_t> drop;
  if (row) drop.push_back(rank - 2);
  if (column) drop.push_back(rank - 1);
  c.out = {drop.empty() ? y : squeeze(y, drop, c.b)};
}

/// Whether the run trains, and perhaps the ratio, are inputs: the elements are drawn, and kept where it does not.
void dropout_in_a_run(OpContext& c) {
  Builder& b = c.b;
  Value* ratio = c.given(1) ? cast_to(reshape_to(c.in[1], {}, b), kF32, b) : b.scalar(0.5F);
  Value* shape = b.add("shape_of", {c.in[0]});
  Value* drawn = random_numbers(c, "random_uniform", {shape}, kF32);
  Value* idle = b.add("not", {reshape_to(c.in[2], {}, b)});
  Value* kept = b.add("or", {idle, b.add("greater_equal", {drawn, ratio})});
  Value* share = b.add("select", {idle, b.scalar(1), b.add("sub", {b.scalar(1), ratio})});
  Value* scaled = b.add("div", {c.in[0], cast_to(share, c.in[0]->type.dtype, b)});
  c.out = {b.add("select", {kept, scaled, b.scalar_like(c.in[0], 0)}), kept};
}

/// Up to operator set 11 the ratio is an attribute, and the graph cannot ask for training. The mask is what a run that trains
/// nothing keeps: everything.
void dropout(OpContext& c) {
  c.expect_inputs(1, 3);
  if (c.given(2) && !c.constant(2)) return dropout_in_a_run(c);
  double ratio = c.real("ratio", 0.5);
  c.out = {c.in[0]};
  const auto given = c.constant(1);
  if (given && given->count() != 1) fail(ErrorKind::invalid_model, "", "the ratio has {} elements", given->count());
  if (given) ratio = real_numbers(*given)[0];
  if (!(ratio >= 0 && ratio < 1)) fail(ErrorKind::invalid_model, "", "the ratio is {}, expected 0 to 1", ratio);
  if (!c.given(1) || given) c.out = {c.b.add("dropout", {c.in[0]}, {{"rate", ratio}})};
  if (c.node().outputs.size() < 2) return;
  Value* yes = c.opset < 10 ? c.b.scalar_like(c.in[0], 1) : c.b.constant(Tensor::of<uint8_t>(kBool, {}, {1}));
  c.out.push_back(c.b.add("broadcast_to", {yes, c.b.add("shape_of", {c.in[0]})}));
}

}  // namespace

Value* convolved(OpContext& c, Value* x, Value* kernel, Value* bias, const std::vector<Value*>& zeros) {
  Image image(c);
  if (kernel->type.shape.rank() != c.rank(0))
    fail(ErrorKind::invalid_model, "", "kernel has {} dims, image {}", kernel->type.shape.rank(), c.rank(0));
  Attributes attributes{{"strides", image.spatial("strides")},
                        {"dilations", image.spatial("dilations")},
                        {"groups", c.integer("group", 1)}};
  image.set_padding(attributes);
  std::vector<Value*> operands{image.in(x), image.kernel(kernel)};
  if (image.deep() && !zeros.empty()) return image.out(integer_volume(c, operands[0], operands[1], zeros, attributes));
  operands.insert(operands.end(), zeros.begin(), zeros.end());
  const char* op = image.deep() ? "conv3d" : zeros.empty() ? "conv2d" : "conv2d_integer";
  Value* y = c.b.add(op, operands, attributes);
  return image.out(bias ? c.b.add("add", {y, bias}) : y);
}

namespace {

constexpr Row kNetworkRows[] = {
    {"AveragePool", pool<false>},
    {"Conv", conv},
    {"Dropout", dropout},
    {"Gemm", gemm},
    {"GlobalAveragePool", global_pool, "reduce_mean"},
    {"GlobalMaxPool", global_pool, "reduce_max"},
    {"GlobalLpPool", global_lp_pool},
    {"LpPool", lp_pool},
    {"MatMul", matmul},
    {"MaxPool", pool<true>},
    {"MaxUnpool", max_unpool},
};

}  // namespace

std::span<const Row> network_rows() { return kNetworkRows; }

}  // namespace cairn::onnx
