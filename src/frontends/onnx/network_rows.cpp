// ONNX's convolutions, pooling, normalisation and matrix products. ONNX images are NCHW and the module's NHWC: each
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
  const auto size = [&](size_t axis) { return Var(c.b, reshape_to(dim_of(c.in[0], axis, c.b), {}, c.b)); };
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

void global_pool(OpContext& c) {
  c.expect_inputs(1, 1);
  std::vector<int64_t> axes;
  for (size_t i = 2; i < c.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
  c.out = {c.b.add(c.target, {c.in[0]}, {{"axes", axes}, {"keep_dims", true}})};
}

/// Vectors along dim 1, as NCHW values broadcast them.
Value* per_channel(OpContext& c, Value* vector) {
  if (c.rank(0) < 2) fail(ErrorKind::invalid_model, "", "input 0 has {} dims, expected 2 or more", c.rank(0));
  std::vector<int64_t> shape(c.rank(0) - 1, 1);
  shape[0] = -1;
  return c.b.add("reshape", {vector, c.b.ints(shape)});
}

/// In training mode normalises by the statistics of x; results two and three are the updated running statistics.
void batch_normalization(OpContext& c) {
  c.expect_inputs(5, 5);
  if (c.opset < 9 && c.integer("spatial", 1) == 0) c.refuse("statistics for each element are not supported");
  Attributes attributes{{"epsilon", c.real("epsilon", 1e-5f)}, {"axis", int64_t{c.rank(0) > 1 ? 1 : 0}}};
  if (c.integer("training_mode", 0) == 0) {
    c.out = {c.b.add("batch_norm", c.in, attributes)};
    return;
  }
  const double momentum = c.real("momentum", 0.9f);
  const auto* made = c.b.add_node(op_named("batch_norm_training"), {c.in[0], c.in[1], c.in[2]}, attributes);
  c.out = {made->result(0)};
  for (size_t i : {1, 2}) {
    const Var kept(c.b, c.in[i + 2]), batch(c.b, made->result(i));
    c.out.push_back((kept * momentum + cast(batch, kept.dtype()) * (1 - momentum)).value);
  }
}

/// x divided by its root mean square along the axes.
Value* of_mean_square_one(Value* x, const std::vector<int64_t>& axes, double epsilon, Builder& b) {
  Value* mean = b.add("reduce_mean", {b.add("square", {x})}, {{"axes", axes}, {"keep_dims", true}});
  return b.add("mul", {x, b.add("rsqrt", {b.add("add", {mean, b.scalar_like(x, epsilon)})})});
}

/// x normalised to mean 0 and variance 1 along the axes.
Value* normalized(Value* x, const std::vector<int64_t>& axes, double epsilon, Builder& b) {
  Value* mean = b.add("reduce_mean", {x}, {{"axes", axes}, {"keep_dims", true}});
  return of_mean_square_one(b.add("sub", {x, mean}), axes, epsilon, b);
}

std::vector<int64_t> axes_from(int64_t first, size_t rank) {
  std::vector<int64_t> axes;
  for (; first < static_cast<int64_t>(rank); ++first) axes.push_back(first);
  return axes;
}

/// What torch joins to one channel, as it writes group norms of one group, before that: layouts may change there. Or null.
Value* before_joined(Value* x) {
  const cairn::Node* reshape = x->producer;
  if (!x->type.is_static() || x->type.shape.rank() != 3 || x->type.shape.dims[1] != Dim(1)) return nullptr;
  if (!reshape || !reshape->is("reshape") || !reshape->inputs[0]->type.is_static()) return nullptr;
  const Shape& whole = reshape->inputs[0]->type.shape;
  return whole.rank() > 1 && whole.dims[0] == x->type.shape.dims[0] ? reshape->inputs[0] : nullptr;
}

void instance_normalization(OpContext& c) {
  c.expect_inputs(3, 3);
  const double epsilon = c.real("epsilon", 1e-5f);
  Value* x = before_joined(c.in[0]);
  if (x) {
    x = normalized(x, axes_from(1, x->type.shape.rank()), epsilon, c.b);
    x = c.b.add("reshape", {x, c.b.ints(c.in[0]->type.shape.sizes())});
  } else {
    x = normalized(c.in[0], axes_from(2, c.rank(0)), epsilon, c.b);
  }
  c.out = {c.b.add("add", {c.b.add("mul", {x, per_channel(c, c.in[1])}), per_channel(c, c.in[2])})};
}

/// Group normalisation; the scale has one number per group up to operator set 20, one per channel from 21 on.
void group_normalization(OpContext& c) {
  c.expect_inputs(3, 3);
  const size_t rank = c.rank(0);
  const int64_t groups = c.integer("num_groups");
  const Dim channels = rank < 2 ? Dim() : c.in[0]->type.shape.dims[1];
  if (!channels.known() || groups < 1 || channels.size % groups != 0)
    c.refuse("the channels must be known, and divide into {} groups", groups);
  std::vector<NewDim> split{{-1, 0}, {groups}, {channels.size / groups}}, whole{{-1, 0}, {channels.size}};
  for (int axis = 2; axis < static_cast<int>(rank); ++axis)
    split.push_back({-1, axis}), whole.push_back({-1, axis + 1});
  Value* x = normalized(reshape_to(c.in[0], split, c.b), axes_from(2, rank + 1), c.real("epsilon", 1e-5f), c.b);
  const bool grouped = c.opset < 21;
  if (!grouped) x = reshape_to(x, whole, c.b);
  auto spread = [&](Value* each) {
    std::vector<int64_t> shape(grouped ? rank : rank - 1, 1);
    shape[0] = -1;
    return c.b.add("reshape", {each, c.b.ints(shape)});
  };
  x = c.b.add("add", {c.b.add("mul", {x, spread(c.in[1])}), spread(c.in[2])});
  c.out = {grouped ? reshape_to(x, whole, c.b) : x};
}

void rms_normalization(OpContext& c) {
  c.expect_inputs(2, 2);
  if (c.integer("stash_type", 1) != 1) c.refuse("only stash_type 1 is supported");
  const std::vector<int64_t> axes = axes_from(normal_axis(c.integer("axis", -1), c.rank(0)), c.rank(0));
  Value* x = of_mean_square_one(cast_to(c.in[0], kF32, c.b), axes, c.real("epsilon", 1e-5f), c.b);
  c.out = {c.b.add("mul", {cast_to(x, c.in[0]->type.dtype, c.b), c.in[1]})};
}

/// x / (bias + alpha / size * sum of the squares of `size` neighbouring channels) ^ beta.
void local_response(OpContext& c) {
  c.expect_inputs(1, 1);
  constexpr int64_t kMost = 1024;
  const int64_t size = c.integer("size");
  if (c.rank(0) < 2 || size < 1 || size > kMost) c.refuse("needs channels and a size of 1 to {}", kMost);
  Value* sum = sum_of_neighbours(c.b.add("square", {c.in[0]}), 1, (size - 1) / 2, size / 2, c.b);
  const double alpha = c.real("alpha", 1e-4f) / static_cast<double>(size);
  Value* level =
      c.b.add("add", {c.b.add("mul", {sum, c.b.scalar_like(sum, alpha)}), c.b.scalar_like(sum, c.real("bias", 1))});
  c.out = {c.b.add("mul", {c.in[0], c.b.add("pow", {level, c.b.scalar_like(sum, -c.real("beta", 0.75))})})};
}

/// 1 at the first largest element along an axis; up to operator set 12 the dims from the axis on are one.
void hardmax(OpContext& c) {
  c.expect_inputs(1, 1);
  const auto rank = static_cast<int64_t>(c.rank(0));
  const int64_t axis = normal_axis(c.integer("axis", c.opset >= 13 ? -1 : 1), c.rank(0));
  const Dim size = c.in[0]->type.shape.dims[static_cast<size_t>(axis)];
  if (!size.known() || (c.opset < 13 && axis != rank - 1))
    c.refuse("over several dims, or unknown ones, is not supported");
  Value* first = c.b.add("arg_max", {c.in[0]}, {{"axis", axis}, {"keep_dims", false}});
  auto number = [&](double value) { return c.b.scalar_like(c.in[0], value); };
  Value* depth = c.b.constant(Tensor::scalar_i64(size.size));
  c.out = {c.b.add("one_hot", {first, depth, number(1), number(0)}, {{"axis", axis}})};
}

/// x divided by its L2 or L1 norm along an axis; 0 if that is 0.
void length_normalization(OpContext& c) {
  c.expect_inputs(1, 1);
  const int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) c.refuse("p = {} is not supported", p);
  const Attributes over{{"axes", std::vector<int64_t>{normal_axis(c.integer("axis", -1), c.rank(0))}},
                        {"keep_dims", true}};
  Value* length = c.b.add("reduce_sum", {c.b.add(p == 1 ? "abs" : "square", {c.in[0]})}, over);
  if (p == 2) length = c.b.add("sqrt", {length});
  Value* none = c.b.add("equal", {length, c.b.scalar_like(length, 0)});
  c.out = {c.b.add("div", {c.in[0], c.b.add("add", {length, cast_to(none, length->type.dtype, c.b)})})};
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

/// Up to operator set 12 all dims from `axis` on are one group, from 13 on only the axis.
void softmax(OpContext& c) {
  c.expect_inputs(1, 1);
  if (c.opset >= 13) {
    c.out = {c.b.add(c.target, c.in, {{"axis", c.integer("axis", -1)}})};
    return;
  }
  int64_t rank = static_cast<int64_t>(c.rank(0));
  int64_t axis = c.integer("axis", 1);
  if (axis != rank) axis = normal_axis(axis, c.rank(0));
  if (axis == rank - 1) {
    c.out = {c.b.add(c.target, c.in, {{"axis", int64_t{-1}}})};
    return;
  }
  if (!c.in[0]->type.is_static()) c.refuse("softmax over several dims needs an input of known shape");
  std::vector<int64_t> dims = c.in[0]->type.shape.sizes();
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= dims[static_cast<size_t>(i)];
  Value* rows = c.b.add("reshape", {c.in[0], c.b.ints({outer, -1})});
  c.out = {c.b.add("reshape", {c.b.add(c.target, {rows}, {{"axis", int64_t{-1}}}), c.b.ints(dims)})};
}

void layer_normalization(OpContext& c) {
  c.expect_inputs(2, 3);
  int64_t axis = normal_axis(c.integer("axis", -1), c.rank(0));
  const Shape& scale = c.in[1]->type.shape;
  Value* offset = c.given(2) ? c.in[2] : nullptr;
  if (offset == nullptr) {
    if (!scale.known()) c.refuse("the scale must have a known shape");
    Value* zero = cast_to(c.b.constant(Tensor::scalar_i64(0)), c.in[1]->type.dtype, c.b);
    offset = c.b.add("broadcast_to", {zero, c.b.ints(scale.sizes())});
  }
  c.out = {c.b.add("layer_norm", {c.in[0], c.in[1], offset}, {{"epsilon", c.real("epsilon", 1e-5f)}, {"axis", axis}})};
  if (c.node().outputs.size() < 2) return;
  const Attributes over{{"axes", axes_from(axis, c.rank(0))}, {"keep_dims", true}};
  const Var x(c.b, cast_to(c.in[0], c.in[0]->type.dtype == kF64 ? kF64 : kF32, c.b)),
      mean = x.apply("reduce_mean", {}, over);
  c.out.push_back(mean.value);
  c.out.push_back(rsqrt(square(x - mean).apply("reduce_mean", {}, over) + c.real("epsilon", 1e-5f)).value);
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
    {"BatchNormalization", batch_normalization},
    {"Conv", conv},
    {"Dropout", dropout},
    {"Gemm", gemm},
    {"GlobalAveragePool", global_pool, "reduce_mean"},
    {"GlobalMaxPool", global_pool, "reduce_max"},
    {"GroupNormalization", group_normalization},
    {"Hardmax", hardmax},
    {"InstanceNormalization", instance_normalization},
    {"LRN", local_response},
    {"LayerNormalization", layer_normalization},
    {"LogSoftmax", softmax, "log_softmax"},
    {"LpPool", lp_pool},
    {"LpNormalization", length_normalization},
    {"MatMul", matmul},
    {"MaxPool", pool<true>},
    {"MaxUnpool", max_unpool},
    {"RMSNormalization", rms_normalization},
    {"Softmax", softmax, "softmax"},
};

}  // namespace

std::span<const Row> network_rows() { return kNetworkRows; }

}  // namespace cairn::onnx
