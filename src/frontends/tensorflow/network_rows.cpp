// TensorFlow's convolutions, pooling, normalisation and matrix products. The module's images are NHWC; NCHW inputs and
// results are transposed, and the layout pass removes these transposes.
#include <algorithm>

#include "frontends/reshape.h"
#include "frontends/tensorflow/image.h"

namespace cairn::tensorflow {
namespace {

template <size_t kDims>
void conv(OpContext& c) {
  c.expect_inputs(2);
  const Image image(c, 0, kDims);
  if (c.rank(1) != image.rank())
    fail(ErrorKind::invalid_model, "", "the kernel has {} dims, expected {}", c.rank(1), image.rank());
  Attributes attributes = image.convolution();
  set_groups(attributes, image.channels(c.in[0]->type.shape.dims), c.in[1]->type.shape.dims[kDims]);
  c.out = {image.out(c.b.add(c.target, {image.in(c.in[0]), c.in[1]}, attributes))};
}

void depthwise_conv2d(OpContext& c) {
  c.expect_inputs(2);
  Image image(c);
  const Shape& kernel = c.in[1]->type.shape;
  if (c.rank(1) != 4 || !kernel.dims[2].known() || !kernel.dims[3].known())
    c.refuse("the kernel must have 4 dims and a known number of channels");
  int64_t channels = kernel.dims[2].size;
  std::optional<int64_t> made = element_count({channels, kernel.dims[3].size});
  if (!made) fail(ErrorKind::invalid_model, "", "the kernel makes too many channels");
  Value* grouped = reshape_to(c.in[1], {{-1, 0}, {-1, 1}, {1, -1}, {*made, -1}}, c.b);
  Attributes attributes = image.convolution();
  attributes.set("groups", channels);
  c.out = {image.out(c.b.add("conv2d", {image.in(c.in[0]), grouped}, attributes))};
}

template <size_t kDims>
void pool(OpContext& c) {
  c.expect_inputs(1);
  const Image image(c, 0, kDims);
  c.out = {image.out(c.b.add(c.target, {image.in(c.in[0])}, image.pooling()))};
}

/// Normalises by the statistics of the batch; the returned variance is unbiased, the one for the gradient is biased.
void batch_norm_training(OpContext& c, double epsilon, int64_t axis) {
  auto* made = c.b.add_node(op_named("batch_norm_training"), {c.in[0], c.in[1], c.in[2]},
                            {{"epsilon", epsilon}, {"axis", axis}});
  Value *mean = made->result(1), *variance = made->result(2);
  auto scalar = [&](double value) {
    return cast_to(c.b.constant(Tensor::of<double>(kF64, {}, {value})), mean->type.dtype, c.b);
  };
  auto blended = [&](Value* old, Value* fresh) {
    const double part = c.real("exponential_avg_factor", 1);
    if (part == 1) return fresh;
    return c.b.add("add", {c.b.add("mul", {old, scalar(1 - part)}), c.b.add("mul", {fresh, scalar(part)})});
  };
  // n / (n - 1) for n elements of a channel; 1 for one.
  Value* elements = cast_to(folded(c.b.add("size_of", {c.in[0]}), c.b), mean->type.dtype, c.b);
  Value* channels = cast_to(folded(c.b.add("size_of", {mean}), c.b), mean->type.dtype, c.b);
  Value* count = folded(c.b.add("div", {elements, channels}), c.b);
  Value* rest = folded(c.b.add("maximum", {c.b.add("sub", {count, scalar(1)}), scalar(1)}), c.b);
  Value* sample = c.b.add("mul", {variance, folded(c.b.add("div", {count, rest}), c.b)});
  c.out = {made->result(0), blended(c.in[3], mean), blended(c.in[4], sample), mean, variance};
  if (c.node().op == "FusedBatchNormV3") c.out.push_back(c.b.constant(Tensor::zeros(mean->type.dtype, {0})));
}

void fused_batch_norm(OpContext& c) {
  c.expect_inputs(5);
  const double epsilon = c.real("epsilon", 0.0001);
  const int64_t axis = channel_axis(c) == 1 ? 1 : -1;
  if (c.boolean("is_training", true)) return batch_norm_training(c, epsilon, axis);
  Value* y =
      c.b.add("batch_norm", {c.in[0], c.in[1], c.in[2], c.in[3], c.in[4]}, {{"epsilon", epsilon}, {"axis", axis}});
  // In inference the statistics are returned unchanged; the results for the gradient are meaningless.
  c.out = {y, c.in[3], c.in[4], c.in[3], c.in[4]};
  if (c.node().op == "FusedBatchNormV3") c.out.push_back(c.in[4]);
}

/// The form of 2015: image, mean, variance, offset, scale.
void batch_norm_of_old(OpContext& c) {
  c.expect_inputs(5);
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "the image has {} dims, expected 4", c.rank(0));
  Value *x = c.in[0], *mean = c.in[1], *variance = c.in[2], *offset = c.in[3], *scale = c.in[4];
  if (!c.boolean("scale_after_normalization", true)) {
    Value* channels = folded(c.b.add("shape_of", {scale}), c.b);
    scale = c.b.add("broadcast_to", {c.b.scalar_like(scale, 1), channels});
  }
  c.out = {c.b.add("batch_norm", {x, scale, offset, mean, variance}, {{"epsilon", c.real("variance_epsilon", 0.001)}})};
}

/// A convolution over an image that is padded by reflection first.
void padded_conv(OpContext& c) {
  c.expect_inputs(3);
  const std::string mode = c.text("mode", "");
  if (mode != "REFLECT" && mode != "SYMMETRIC")
    fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(mode));
  const Image image(c);
  Value* x = c.b.add("pad", {c.in[0], c.in[1]}, {{"mode", std::string(mode == "REFLECT" ? "reflect" : "symmetric")}});
  Attributes attributes{{"strides", image.spatial("strides")}};
  image.set_padding(attributes);
  c.out = {c.b.add("conv2d", {x, c.in[2]}, attributes)};
}

void matmul(OpContext& c) {
  c.expect_inputs(2);
  c.out = {
      c.b.add("matmul", c.in,
              {{"transpose_a", c.boolean("transpose_a", false)}, {"transpose_b", c.boolean("transpose_b", false)}})};
}

void batch_matmul(OpContext& c) {
  c.expect_inputs(2);
  c.out = {c.b.add("matmul", c.in,
                   {{"transpose_a", c.boolean("adj_x", false)}, {"transpose_b", c.boolean("adj_y", false)}})};
}

void softmax(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add(c.target, c.in, {{"axis", int64_t{-1}}})};
}

constexpr Row kNetworkRows[] = {
    {"AvgPool", pool<2>, "avg_pool2d"},
    {"AvgPool3D", pool<3>, "avg_pool3d"},
    {"BatchMatMul", batch_matmul, Trait::heavy},
    {"BatchMatMulV2", batch_matmul, Trait::heavy},
    {"BatchMatMulV3", batch_matmul, Trait::heavy},
    {"BatchNormWithGlobalNormalization", batch_norm_of_old, Trait::heavy},
    {"Conv2D", conv<2>, "conv2d", Trait::heavy},
    {"Conv3D", conv<3>, "conv3d", Trait::heavy},
    {"DepthwiseConv2dNative", depthwise_conv2d, Trait::heavy},
    {"FusedBatchNorm", fused_batch_norm, Trait::heavy},
    {"FusedBatchNormV2", fused_batch_norm, Trait::heavy},
    {"FusedBatchNormV3", fused_batch_norm, Trait::heavy},
    {"FusedPadConv2D", padded_conv, Trait::heavy},
    {"LogSoftmax", softmax, "log_softmax"},
    {"MatMul", matmul, Trait::heavy},
    {"MaxPool", pool<2>, "max_pool2d"},
    {"MaxPool3D", pool<3>, "max_pool3d"},
    {"Softmax", softmax, "softmax"},
};

}  // namespace

std::span<const Row> network_rows() { return kNetworkRows; }

}  // namespace cairn::tensorflow
