// TensorFlow's convolutions, pooling, normalisation and matrix products. The module's images are NHWC; NCHW ones are
// transposed on the way in and out, which the layout pass takes out again.
#include <algorithm>

#include "frontends/reshape.h"
#include "frontends/tensorflow/image.h"

namespace cairn::tensorflow {
namespace {

void conv2d(OpContext& c) {
  c.expect_inputs(2);
  Image image(c);
  const Shape& kernel = c.in[1]->type.shape;
  const Dim channels = c.in[0]->type.shape.dims[image.channels_first() ? 1 : 3];
  Attributes attributes{{"strides", image.spatial("strides")}, {"dilations", image.spatial("dilations")}};
  image.set_padding(attributes);
  if (c.rank(1) != 4) fail(ErrorKind::invalid_model, "", "the kernel has {} dims, expected 4", c.rank(1));
  // A kernel with fewer input channels than the image means groups.
  if (channels.known() && kernel.dims[2].known() && kernel.dims[2].size > 0 && channels.size != kernel.dims[2].size) {
    if (channels.size % kernel.dims[2].size != 0)
      fail(ErrorKind::invalid_model, "", "kernel has {} input channels, image has {}", kernel.dims[2].size,
           channels.size);
    attributes.set("groups", channels.size / kernel.dims[2].size);
  }
  c.out = {image.out(c.b.add("conv2d", {image.in(c.in[0]), c.in[1]}, attributes))};
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
  Attributes attributes{
      {"strides", image.spatial("strides")}, {"dilations", image.spatial("dilations")}, {"groups", channels}};
  image.set_padding(attributes);
  c.out = {image.out(c.b.add("conv2d", {image.in(c.in[0]), grouped}, attributes))};
}

void pool2d(OpContext& c) {
  c.expect_inputs(1);
  Image image(c);
  Attributes attributes{{"window", image.spatial("ksize")}, {"strides", image.spatial("strides")}};
  image.set_padding(attributes);
  c.out = {image.out(c.b.add(c.target, {image.in(c.in[0])}, attributes))};
}

void fused_batch_norm(OpContext& c) {
  c.expect_inputs(5);
  if (c.boolean("is_training", true)) c.refuse("batch normalisation in training mode; export the model for inference");
  Image image(c);
  Value* y = c.b.add("batch_norm", {c.in[0], c.in[1], c.in[2], c.in[3], c.in[4]},
                     {{"epsilon", c.real("epsilon", 0.0001)}, {"axis", int64_t{image.channels_first() ? 1 : -1}}});
  // In inference the statistics are handed on; what is kept for the gradient has no meaning.
  c.out = {y, c.in[3], c.in[4], c.in[3], c.in[4]};
  if (c.node().op == "FusedBatchNormV3") c.out.push_back(c.in[4]);
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

constexpr Row kRows[] = {
    {"AvgPool", pool2d, "avg_pool2d"},
    {"BatchMatMul", batch_matmul},
    {"BatchMatMulV2", batch_matmul},
    {"BatchMatMulV3", batch_matmul},
    {"Conv2D", conv2d},
    {"DepthwiseConv2dNative", depthwise_conv2d},
    {"FusedBatchNorm", fused_batch_norm},
    {"FusedBatchNormV2", fused_batch_norm},
    {"FusedBatchNormV3", fused_batch_norm},
    {"LogSoftmax", softmax, "log_softmax"},
    {"MatMul", matmul},
    {"MaxPool", pool2d, "max_pool2d"},
    {"Softmax", softmax, "softmax"},
};

}  // namespace

std::span<const Row> network_rows() {
  return kRows;
}

}  // namespace cairn::tensorflow
