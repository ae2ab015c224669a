// TensorFlow's gradients of layers: convolution, pooling, normalisation, losses, and those fused by its graph
// optimiser.
#include <algorithm>
#include <cmath>
#include <limits>

#include "frontends/neighbours.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/image.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {

std::optional<std::vector<Dim>> dims_told(const Value* vector) {
  if (const Tensor* sizes = constant_of(vector)) {
    if (sizes->rank() != 1 || !sizes->dtype().is_integer()) return std::nullopt;
    std::vector<Dim> dims;
    for (int64_t size : sizes->as_i64()) dims.push_back(size < 0 ? Dim() : Dim(size));
    return dims;
  }
  const auto* node = vector->producer;
  while (node != nullptr && node->is("cast")) node = node->inputs[0]->producer;
  if (node == nullptr || !node->is("shape_of") || !node->inputs[0]->type.shape.ranked) return std::nullopt;
  return node->inputs[0]->type.shape.dims;
}

namespace {

/// The sizes of an image or kernel, which an input tells or, in first forms of gradients of volumes, is; refuses another
/// number of them.
std::vector<Dim> told_sizes(OpContext& c, size_t input, size_t count, const char* what) {
  if (c.rank(input) != 1) return c.in[input]->type.shape.dims;
  std::optional<std::vector<Dim>> dims = dims_told(c.in[input]);
  if (!dims) return std::vector<Dim>(count);
  if (dims->size() != count)
    fail(ErrorKind::invalid_model, "", "{} has {} sizes, expected {}", what, dims->size(), count);
  return *dims;
}
Value* sizes_of(OpContext& c, size_t input) {
  return c.rank(input) == 1 ? c.in[input] : folded(c.b.add("shape_of", {c.in[input]}), c.b);
}

template <size_t kDims>
void conv_by_input(OpContext& c) {
  c.expect_inputs(3);
  const Image image(c, 2, kDims);
  if (c.rank(1) != image.rank())
    fail(ErrorKind::invalid_model, "", "the kernel has {} dims, expected {}", c.rank(1), image.rank());
  Attributes attributes = image.convolution();
  set_groups(attributes, image.channels(told_sizes(c, 0, image.rank(), "the image")), c.in[1]->type.shape.dims[kDims]);
  c.out = {image.out(c.b.add(c.target, {image.in(c.in[2]), c.in[1], image.sizes(sizes_of(c, 0))}, attributes))};
}

template <size_t kDims>
void conv_by_kernel(OpContext& c) {
  c.expect_inputs(3);
  const Image image(c, 0, kDims);
  Attributes attributes = image.convolution();
  set_groups(attributes, image.channels(c.in[0]->type.shape.dims), told_sizes(c, 1, image.rank(), "the kernel")[kDims]);
  c.out = {c.b.add(c.target, {image.in(c.in[0]), image.in(c.in[2]), sizes_of(c, 1)}, attributes)};
}

/// Our kernel of a depthwise convolution has the sizes [height, width, 1, channels * multiplier].
struct Depthwise {
  int64_t channels, made;
};
Depthwise depthwise_of(OpContext& c, const std::vector<Dim>& kernel) {
  if (kernel.size() != 4 || !kernel[2].known() || !kernel[3].known())
    c.refuse("the kernel must have 4 dims and a known number of channels");
  std::optional<int64_t> made = element_count({kernel[2].size, kernel[3].size});
  if (!made || *made == 0) fail(ErrorKind::invalid_model, "", "the kernel makes no or too many channels");
  return {kernel[2].size, *made};
}

void depthwise_by_input(OpContext& c) {
  c.expect_inputs(3);
  Image image(c, 2);
  c.rank(1);
  const Depthwise sizes = depthwise_of(c, c.in[1]->type.shape.dims);
  Attributes attributes = image.convolution();
  attributes.set("groups", sizes.channels);
  Value* kernel = reshape_to(c.in[1], {{-1, 0}, {-1, 1}, {1, -1}, {sizes.made, -1}}, c.b);
  c.out = {image.out(c.b.add("conv2d_input_gradient", {image.in(c.in[2]), kernel, image.sizes(c.in[0])}, attributes))};
}

void depthwise_by_kernel(OpContext& c) {
  c.expect_inputs(3);
  Image image(c, 0);
  const std::vector<Dim> kernel = told_sizes(c, 1, 4, "the kernel");
  const Depthwise sizes = depthwise_of(c, kernel);
  if (!kernel[0].known() || !kernel[1].known()) c.refuse("the kernel's sizes are not known");
  Attributes attributes = image.convolution();
  attributes.set("groups", sizes.channels);
  Value* shape = c.b.ints({kernel[0].size, kernel[1].size, 1, sizes.made});
  Value* gradient = c.b.add("conv2d_kernel_gradient", {image.in(c.in[0]), image.in(c.in[2]), shape}, attributes);
  c.out = {reshape_to(gradient, {{-1, 0}, {-1, 1}, {kernel[2].size, -1}, {kernel[3].size, -1}}, c.b)};
}

/// MaxPoolGradV2 has window and strides as inputs.
void max_pool_gradient(OpContext& c) {
  const bool inputs = c.node().op == "MaxPoolGradV2";
  c.expect_inputs(inputs ? 5 : 3);
  Image image(c, 0);
  const Attributes attributes = inputs ? image.pooling_by_inputs(3) : image.pooling();
  c.out = {image.out(c.b.add("max_pool2d_gradient", {image.in(c.in[0]), image.in(c.in[2])}, attributes))};
}

/// Each element of a volume that equals its window's largest gets the window's whole gradient, as in TensorFlow.
void max_pool3d_gradient(OpContext& c) {
  c.expect_inputs(3);
  const Image image(c, 0, 3);
  Attributes attributes = image.pooling();
  attributes.set("ties", std::string("all"));
  c.out = {image.out(c.b.add("max_pool3d_gradient", {image.in(c.in[0]), image.in(c.in[2])}, attributes))};
}

template <size_t kDims>
void avg_pool_gradient(OpContext& c) {
  c.expect_inputs(2);
  const Image image(c, 1, kDims);
  c.out = {image.out(c.b.add(c.target, {image.in(c.in[1]), image.sizes(sizes_of(c, 0))}, image.pooling()))};
}

/// In training form the reserves are the mean and the biased variance; the third of FusedBatchNormGradV3 is not used.
void batch_norm_gradient(OpContext& c) {
  const bool third = c.node().op == "FusedBatchNormGradV3";
  c.expect_inputs(third ? 6 : 5);
  const int64_t axis = channel_axis(c, 1);
  const double epsilon = c.real("epsilon", 0.0001);
  Value *dy = c.in[0], *x = c.in[1], *scale = c.in[2], *mean = c.in[3], *variance = c.in[4];
  if (c.boolean("is_training", true)) {
    auto* made = c.b.add_node(op_named("batch_norm_gradient"), {dy, x, scale, mean, variance},
                              {{"epsilon", epsilon}, {"axis", axis}});
    c.out = {made->result(0), made->result(1), made->result(2)};
  } else {  // the statistics are constants: dx = dy * scale / deviation
    const DType dtype = scale->type.dtype;
    const size_t rank = c.rank(1);
    std::vector<int64_t> axes, column(rank - static_cast<size_t>(axis), 1);
    for (int64_t each = 0; each < static_cast<int64_t>(rank); ++each)
      if (each != axis) axes.push_back(each);
    column[0] = -1;
    auto add = [&](const char* op, std::vector<Value*> in) { return c.b.add(op, std::move(in)); };
    auto spread = [&](Value* vector) { return add("reshape", {vector, c.b.ints(column)}); };
    Value* wide = cast_to(dy, dtype, c.b);
    Value* factor = add("rsqrt", {add("add", {variance, c.b.scalar_like(variance, epsilon)})});
    Value* centred = add("sub", {cast_to(x, dtype, c.b), spread(mean)});
    Value* dx = add("mul", {wide, spread(add("mul", {scale, factor}))});
    Value* steep = c.b.add("reduce_sum", {add("mul", {wide, centred})}, {{"axes", axes}});
    c.out = {cast_to(dx, dy->type.dtype, c.b), add("mul", {steep, factor}),
             c.b.add("reduce_sum", {wide}, {{"axes", axes}})};
  }
  Value* nothing = c.b.constant(Tensor::zeros(scale->type.dtype, {0}));
  c.out.insert(c.out.end(), {nothing, nothing});
}

/// Logits and labels of two dims broadcast.
void softmax_cross_entropy(OpContext& c) {
  c.expect_inputs(2);
  Value *logits = c.in[0], *labels = c.in[1];
  if (c.rank(0) != 2 || c.rank(1) != 2) fail(ErrorKind::invalid_model, "", "logits and labels must have 2 dims");
  auto widened = [&](Value* x, Value* other) {
    bool same = true;
    for (size_t i = 0; i < 2; ++i) same &= x->type.shape.dims[i] != Dim(1) || other->type.shape.dims[i] == Dim(1);
    if (same) return x;
    // Adding zeros of the other's shape repeats x by the rules of broadcasting.
    return c.b.add("add", {x, c.b.add("mul", {other, c.b.scalar_like(other, 0)})});
  };
  auto* made = c.b.add_node(op_named("softmax_cross_entropy"), {widened(logits, labels), widened(labels, logits)});
  c.out = {made->result(0), made->result(1)};
}

void sparse_softmax_cross_entropy(OpContext& c) {
  c.expect_inputs(2);
  if (c.rank(0) != 2 || c.rank(1) != 1)
    fail(ErrorKind::invalid_model, "", "logits must have 2 dims and labels 1, found {} and {}", c.rank(0), c.rank(1));
  auto* made = c.b.add_node(op_named("sparse_softmax_cross_entropy"), c.in);
  c.out = {made->result(0), made->result(1)};
}

void ctc_loss(OpContext& c) {
  c.expect_inputs(4);
  auto* made = c.b.add_node(op_named("ctc_loss"), c.in,
                            {{"merge_repeated", c.boolean("ctc_merge_repeated", true)},
                             {"collapse_repeated", c.boolean("preprocess_collapse_repeated", false)},
                             {"ignore_longer", c.boolean("ignore_longer_outputs_than_inputs", false)}});
  c.out = {made->result(0), made->result(1)};
}

void bias_gradient(OpContext& c) {
  c.expect_inputs(1);
  const auto rank = static_cast<int64_t>(c.rank(0));
  if (rank < 2) fail(ErrorKind::invalid_model, "", "the gradient has {} dims, expected at least 2", rank);
  const int64_t channels = c.text("data_format", "NHWC").starts_with("NC") ? 1 : rank - 1;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i)
    if (i != channels) axes.push_back(i);
  c.out = {c.b.add("reduce_sum", c.in, {{"axes", axes}})};
}

/// Local response normalisation: y = x * n^-beta with n = bias + alpha * sum of squares of the neighbouring channels.
struct Response {
  explicit Response(OpContext& c, Value* x) : alpha(c.real("alpha", 1)), beta(c.real("beta", 0.5)) {
    radius = c.integer("depth_radius", 5);
    if (x->type.shape.rank() != 4 || radius < 0 || radius > 1024)
      fail(ErrorKind::invalid_model, "", "must have images of 4 dims and a depth_radius of 0 to 1024, found {} and {}",
           x->type.shape.rank(), radius);
    Value* squares = sum_of_neighbours(c.b.add("mul", {x, x}), 3, radius, radius, c.b);
    level =
        c.b.add("add", {c.b.add("mul", {squares, c.b.scalar_like(x, alpha)}), c.b.scalar_like(x, c.real("bias", 1))});
    factor = c.b.add("pow", {level, c.b.scalar_like(x, -beta)});
  }
  double alpha, beta;
  int64_t radius;
  Value *level, *factor;
};

void local_response(OpContext& c) {
  c.expect_inputs(1);
  c.rank(0);
  c.out = {c.b.add("mul", {c.in[0], Response(c, c.in[0]).factor})};
}

/// dx = dy n^-beta - 2 alpha beta x * sum over the neighbours of dy y / n.
void local_response_gradient(OpContext& c) {
  c.expect_inputs(3);
  c.rank(1);
  Value *dy = c.in[0], *x = c.in[1], *y = c.in[2];
  const Response response(c, x);
  Value* shares = c.b.add("div", {c.b.add("mul", {dy, y}), response.level});
  Value* others = c.b.add("mul", {x, sum_of_neighbours(shares, 3, response.radius, response.radius, c.b)});
  Value* scale = c.b.scalar_like(x, 2 * response.alpha * response.beta);
  c.out = {c.b.add("sub", {c.b.add("mul", {dy, response.factor}), c.b.add("mul", {others, scale})})};
}

constexpr Row kTrainingRows[] = {
    {"AvgPool3DGrad", avg_pool_gradient<3>, "avg_pool3d_gradient"},
    {"AvgPoolGrad", avg_pool_gradient<2>, "avg_pool2d_gradient"},
    {"BiasAddGrad", bias_gradient},
    {"CTCLoss", ctc_loss},
    {"Conv2DBackpropFilter", conv_by_kernel<2>, "conv2d_kernel_gradient", Trait::heavy},
    {"Conv2DBackpropInput", conv_by_input<2>, "conv2d_input_gradient", Trait::heavy},
    {"Conv3DBackpropFilter", conv_by_kernel<3>, "conv3d_kernel_gradient", Trait::heavy},
    {"Conv3DBackpropFilterV2", conv_by_kernel<3>, "conv3d_kernel_gradient", Trait::heavy},
    {"Conv3DBackpropInput", conv_by_input<3>, "conv3d_input_gradient", Trait::heavy},
    {"Conv3DBackpropInputV2", conv_by_input<3>, "conv3d_input_gradient", Trait::heavy},
    {"DepthwiseConv2dNativeBackpropFilter", depthwise_by_kernel, Trait::heavy},
    {"DepthwiseConv2dNativeBackpropInput", depthwise_by_input, Trait::heavy},
    {"FusedBatchNormGrad", batch_norm_gradient, Trait::heavy},
    {"FusedBatchNormGradV2", batch_norm_gradient, Trait::heavy},
    {"FusedBatchNormGradV3", batch_norm_gradient, Trait::heavy},
    {"LRN", local_response},
    {"LRNGrad", local_response_gradient},
    {"MaxPool3DGrad", max_pool3d_gradient, Trait::heavy},
    {"MaxPoolGrad", max_pool_gradient, Trait::heavy},
    {"MaxPoolGradV2", max_pool_gradient},
    {"SoftmaxCrossEntropyWithLogits", softmax_cross_entropy, Trait::heavy},
    {"SparseSoftmaxCrossEntropyWithLogits", sparse_softmax_cross_entropy, Trait::heavy},
};

}  // namespace

std::span<const Row> training_rows() { return kTrainingRows; }

}  // namespace cairn::tensorflow
