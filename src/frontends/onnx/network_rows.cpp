// ONNX's convolutions, pooling, normalisation and matrix products. ONNX images are NCHW and the module's NHWC: each node
// transposes on the way in and out, which the layout pass takes out again.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "frontends/values.h"
#include "frontends/volume.h"

namespace cairn::onnx {
namespace {

Value* transpose(OpContext& c, Value* x, std::vector<int64_t> permutation) {
  return c.b.add("transpose", {x}, {{"permutation", std::move(permutation)}});
}

/// Images of one to three dims: those of one get a height of 1, of volumes the depth stands apart.
class Image {
 public:
  explicit Image(OpContext& c) : c_(c), flat_(c.rank(0) == 3), deep_(c.rank(0) == 5) {
    if (c.rank(0) < 3 || c.rank(0) > 5) c.refuse("images of {} dims are not supported, only 3 to 5", c.rank(0));
  }
  bool deep() const { return deep_; }
  Value* in(Value* x) {
    if (deep_) return transpose(c_, x, {0, 2, 3, 4, 1});
    return transpose(c_, flat_ ? expand_dims(x, {2}, c_.b) : x, {0, 2, 3, 1});
  }
  Value* out(Value* y) {
    if (deep_) return transpose(c_, y, {0, 4, 1, 2, 3});
    Value* back = transpose(c_, y, {0, 3, 1, 2});
    return flat_ ? squeeze(back, {2}, c_.b) : back;
  }
  Value* kernel(Value* w) {
    if (deep_) return transpose(c_, w, {2, 3, 4, 1, 0});
    return transpose(c_, flat_ ? expand_dims(w, {2}, c_.b) : w, {2, 3, 1, 0});
  }

  /// Height and width.
  std::vector<int64_t> spatial(std::string_view attribute) const {
    std::vector<int64_t> list = numbers(attribute);
    if (flat_) list.insert(list.begin(), 1);
    return {list.end() - 2, list.end()};
  }
  /// Windows of this depth along a volume.
  DepthWindow depth(int64_t size) const {
    DepthWindow window{size, numbers("strides")[0], numbers("dilations")[0]};
    const std::string mode = padding_mode();
    const Dim depth = c_.in[0]->type.shape.dims[2];
    if (mode == "NOTSET") {
      const std::vector<int64_t> all = pads();
      window.before = all[0], window.after = all[3];
    } else if (mode != "VALID" && depth.known() && window.stride > 0 && size > 0 && size < (1 << 16)) {
      const int64_t count = (depth.size + window.stride - 1) / window.stride;
      const int64_t missing = std::max<int64_t>(0, (count - 1) * window.stride + window.reach() - depth.size);
      window.before = mode == "SAME_UPPER" ? missing / 2 : missing - missing / 2;
      window.after = missing - window.before;
    }
    return window;
  }

  void set_padding(Attributes& attributes) const {
    const std::string mode = padding_mode();
    if (mode != "NOTSET") {
      attributes.set("padding", std::string(mode == "VALID" ? "valid" : mode == "SAME_UPPER" ? "same" : "same_lower"));
      return;
    }
    const std::vector<int64_t> all = pads();
    const size_t dims = all.size() / 2;
    const int64_t top = flat_ ? 0 : all[dims - 2], bottom = flat_ ? 0 : all[2 * dims - 2];
    attributes.set("padding", std::string("explicit"));
    attributes.set("pads", std::vector<int64_t>{top, bottom, all[dims - 1], all[2 * dims - 1]});
  }

 private:
  std::string padding_mode() const {
    const std::string mode = c_.text("auto_pad", "NOTSET");
    if (mode != "NOTSET" && mode != "SAME_UPPER" && mode != "SAME_LOWER" && mode != "VALID")
      fail(ErrorKind::invalid_model, "", "auto_pad '{}' is unknown", printable(mode));
    return mode;
  }
  std::vector<int64_t> numbers(std::string_view attribute, size_t each = 1, int64_t fallback = 1) const {
    const size_t length = each * (c_.rank(0) - 2);
    std::vector<int64_t> list = c_.integers(attribute, std::vector<int64_t>(length, fallback));
    if (list.size() != length)
      fail(ErrorKind::invalid_model, "", "attribute {} has {} numbers, expected {}", attribute, list.size(), length);
    return list;
  }
  std::vector<int64_t> pads() const { return numbers("pads", 2, 0); }  // begins, then ends

  OpContext& c_;
  bool flat_, deep_;
};

void conv(OpContext& c) {
  c.expect_inputs(2, 3);
  Image image(c);
  if (c.rank(1) != c.rank(0)) fail(ErrorKind::invalid_model, "", "kernel has {} dims, image {}", c.rank(1), c.rank(0));
  Attributes attributes{{"strides", image.spatial("strides")},
                        {"dilations", image.spatial("dilations")},
                        {"groups", c.integer("group", 1)}};
  image.set_padding(attributes);
  Value *x = image.in(c.in[0]), *kernel = image.kernel(c.in[1]), *y = nullptr;
  if (image.deep() && !kernel->type.shape.known()) c.refuse("the kernel must have a known shape");
  if (image.deep())
    y = conv3d(x, kernel, image.depth(kernel->type.shape.sizes()[0]), attributes, c.b);
  else
    y = c.b.add("conv2d", {x, kernel}, attributes);
  if (c.given(2)) y = c.b.add("add", {y, c.in[2]});
  c.out = {image.out(y)};
}

void pool(OpContext& c) {
  c.expect_inputs(1, 1);
  Image image(c);
  if (!c.has("kernel_shape")) fail(ErrorKind::invalid_model, "", "attribute kernel_shape is missing");
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0, maximum = std::string_view(c.target) == "max_pool2d";
  Attributes attributes{
      {"window", image.spatial("kernel_shape")}, {"strides", image.spatial("strides")}, {"ceil_mode", ceil_mode}};
  image.set_padding(attributes);
  std::vector<int64_t> dilations = image.spatial("dilations");
  if (maximum)
    attributes.set("dilations", dilations);
  else if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; }))
    c.refuse("average pooling with dilations is not supported");
  const bool padding_counts = !maximum && c.integer("count_include_pad", 0) != 0;
  if (!maximum) attributes.set("count_padding", padding_counts);
  Value* x = image.in(c.in[0]);
  if (image.deep()) {
    if (ceil_mode) c.refuse("ceil_mode on volumes is not supported");
    const Pooling kind = maximum ? Pooling::largest : padding_counts ? Pooling::mean_with_padding : Pooling::mean;
    const DepthWindow depth = image.depth(c.integers("kernel_shape")[0]);
    if (!maximum && depth.dilation != 1) c.refuse("average pooling with dilations is not supported");
    c.out = {image.out(pool3d(x, kind, depth, attributes, c.b))};
    return;
  }
  c.out = {image.out(c.b.add(c.target, {x}, attributes))};
}

void global_pool(OpContext& c) {
  c.expect_inputs(1, 1);
  std::vector<int64_t> axes;
  for (size_t i = 2; i < c.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
  c.out = {c.b.add(c.target, {c.in[0]}, {{"axes", axes}, {"keep_dims", true}})};
}

/// Vectors along dim 1, as NCHW values broadcast them.
Value* per_channel(OpContext& c, Value* vector) {
  std::vector<int64_t> shape(c.rank(0) - 1, 1);
  shape[0] = -1;
  return c.b.add("reshape", {vector, c.b.ints(shape)});
}

void batch_normalization(OpContext& c) {
  c.expect_inputs(5, 5);
  if (c.integer("training_mode", 0) != 0) c.refuse("training_mode is not supported; export the model for inference");
  if (c.opset < 9 && c.integer("spatial", 1) == 0) c.refuse("statistics for each element are not supported");
  Attributes attributes{{"epsilon", c.real("epsilon", 1e-5f)}, {"axis", int64_t{c.rank(0) > 1 ? 1 : 0}}};
  c.out = {c.b.add("batch_norm", c.in, attributes)};
}

void instance_normalization(OpContext& c) {
  c.expect_inputs(3, 3);
  std::vector<int64_t> axes;
  for (size_t i = 2; i < c.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
  Attributes reduction{{"axes", axes}, {"keep_dims", true}};
  Value* mean = c.b.add("reduce_mean", {c.in[0]}, reduction);
  Value* centred = c.b.add("sub", {c.in[0], mean});
  Value* variance = c.b.add("reduce_mean", {c.b.add("square", {centred})}, reduction);
  Value* epsilon =
      cast_to(c.b.constant(Tensor::of<double>(kF64, {}, {c.real("epsilon", 1e-5f)})), c.in[0]->type.dtype, c.b);
  Value* scaled = c.b.add("mul", {centred, c.b.add("rsqrt", {c.b.add("add", {variance, epsilon})})});
  c.out = {c.b.add("add", {c.b.add("mul", {scaled, per_channel(c, c.in[1])}), per_channel(c, c.in[2])})};
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

/// One-dimensional operands get a dim of 1, which the result loses again.
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

/// Up to operator set 12 the dims from `axis` on are taken together, from 13 on only the axis.
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
  if (c.node().outputs.size() > 1) c.refuse("only the first result is supported");
  const Shape& scale = c.in[1]->type.shape;
  Value* offset = c.given(2) ? c.in[2] : nullptr;
  if (offset == nullptr) {
    if (!scale.known()) c.refuse("the scale must have a known shape");
    Value* zero = cast_to(c.b.constant(Tensor::scalar_i64(0)), c.in[1]->type.dtype, c.b);
    offset = c.b.add("broadcast_to", {zero, c.b.ints(scale.sizes())});
  }
  c.out = {c.b.add("layer_norm", {c.in[0], c.in[1], offset}, {{"epsilon", c.real("epsilon", 1e-5f)}, {"axis", axis}})};
}

void dropout(OpContext& c) {
  c.expect_inputs(1, 3);
  if (c.given(2)) {
    auto training = c.constant(2);
    if (!training || training->count() != 1 || whole_numbers(*training)[0] != 0)
      c.refuse("dropout in training mode is not supported");
  }
  c.out = {c.in[0]};
}

constexpr Row kNetworkRows[] = {
    {"AveragePool", pool, "avg_pool2d"},
    {"BatchNormalization", batch_normalization},
    {"Conv", conv},
    {"Dropout", dropout},
    {"Gemm", gemm},
    {"GlobalAveragePool", global_pool, "reduce_mean"},
    {"GlobalMaxPool", global_pool, "reduce_max"},
    {"InstanceNormalization", instance_normalization},
    {"LayerNormalization", layer_normalization},
    {"LogSoftmax", softmax, "log_softmax"},
    {"MatMul", matmul},
    {"MaxPool", pool, "max_pool2d"},
    {"Softmax", softmax, "softmax"},
};

}  // namespace

std::span<const Row> network_rows() { return kNetworkRows; }

}  // namespace cairn::onnx
