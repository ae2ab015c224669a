// Layers of Keras without images or time: dense, normalisation, activations, merging, shapes.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/keras/importer.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

void identity(LayerContext& c) {
  c.expect_inputs(1);
  c.out = c.in;
}

void dense(LayerContext& c) {
  c.expect_inputs(1);
  if (c.rank() < 2) c.refuse("the input has {} dims, expected 2 or more", c.rank());
  const int64_t units = c.integer("units", -1);
  Value* y = c.b.add("matmul", {c.in[0], c.weight("kernel", {c.last_dim(), units})});
  if (c.boolean("use_bias", true)) y = c.b.add("add", {y, c.weight("bias", {units})});
  c.out = {c.activated(y)};
}

void embedding(LayerContext& c) {
  c.expect_inputs(1);
  if (c.boolean("mask_zero", false)) c.refuse("mask_zero is not supported");
  Value* table = c.weight("embeddings", {c.integer("input_dim", -1), c.integer("output_dim", -1)});
  c.out = {c.b.add("gather", {table, cast_to(c.in[0], kI64, c.b)}, {{"axis", int64_t{0}}})};
}

/// The axis that a key names, alone or as a list of one.
int64_t one_axis(const LayerContext& c, const char* key) {
  const std::vector<int64_t> axes = c.integers(key);
  if (axes.size() > 1) c.refuse("{} names {} axes, only one is supported", key, axes.size());
  return normal_axis(axes.empty() ? -1 : axes[0], c.rank());
}

Value* ones(LayerContext& c, int64_t count, float value) {
  return c.b.constant(Tensor::of<float>(kF32, {count}, std::vector<float>(static_cast<size_t>(count), value)));
}

void batch_normalization(LayerContext& c) {
  c.expect_inputs(1);
  const int64_t axis = one_axis(c, "axis");
  const Dim size = c.in[0]->type.shape.dims[static_cast<size_t>(axis)];
  if (!size.known()) c.refuse("the number of channels is not known");
  constexpr int64_t kMostChannels = 1 << 24;
  if (size.size > kMostChannels) c.refuse("{} channels are not supported", size.size);
  Value* scale = c.boolean("scale", true) ? c.weight("gamma", {size.size}) : ones(c, size.size, 1);
  Value* offset = c.boolean("center", true) ? c.weight("beta", {size.size}) : ones(c, size.size, 0);
  Value* mean = c.weight("moving_mean", {size.size});
  Value* variance = c.weight("moving_variance", {size.size});
  c.out = {c.b.add("batch_norm", {c.in[0], scale, offset, mean, variance},
                   {{"epsilon", c.number("epsilon", 1e-3)}, {"axis", axis}})};
}

void layer_normalization(LayerContext& c) {
  c.expect_inputs(1);
  const int64_t axis = one_axis(c, "axis");
  if (axis + 1 != static_cast<int64_t>(c.rank())) c.refuse("only the last axis is supported");
  constexpr int64_t kMostChannels = 1 << 24;
  const int64_t size = c.last_dim();
  if (size < 0 || size > kMostChannels) c.refuse("{} channels are not supported", size);
  Value* scale = c.boolean("scale", true) ? c.weight("gamma", {size}) : ones(c, size, 1);
  Value* offset = c.boolean("center", true) ? c.weight("beta", {size}) : ones(c, size, 0);
  c.out = {c.b.add("layer_norm", {c.in[0], scale, offset}, {{"epsilon", c.number("epsilon", 1e-3)}, {"axis", axis}})};
}

Value* real(LayerContext& c, double value) {
  return cast_to(c.b.constant(Tensor::scalar_f32(static_cast<float>(value))), c.in[0]->type.dtype, c.b);
}

/// (x - mean) / sqrt(variance), the statistics being variables or numbers of the configuration.
void normalization(LayerContext& c) {
  c.expect_inputs(1);
  if (c.find("mean") != nullptr || c.boolean("invert", false)) c.refuse("statistics given by hand are not supported");
  const std::vector<int64_t> axes = c.integers("axis");
  if (axes.size() != 1 || normal_axis(axes[0], c.rank()) + 1 != static_cast<int64_t>(c.rank()))
    c.refuse("only the last axis is supported");
  Value *mean = c.weight("mean", {c.last_dim()}), *variance = c.weight("variance", {c.last_dim()});
  Value* deviation = c.b.add("maximum", {c.b.add("sqrt", {variance}), real(c, 1e-7)});
  c.out = {c.b.add("div", {c.b.add("sub", {c.in[0], mean}), deviation})};
}

void rescaling(LayerContext& c) {
  c.expect_inputs(1);
  c.in[0] = cast_to(c.in[0], kF32, c.b);
  c.out = {c.b.add("add", {c.b.add("mul", {c.in[0], real(c, c.number("scale", 1))}), real(c, c.number("offset", 0))})};
}

void activation_layer(LayerContext& c) {
  c.expect_inputs(1);
  c.out = {c.activated(c.in[0])};
}

void relu(LayerContext& c) {
  c.expect_inputs(1);
  if (c.number("threshold", 0) != 0) c.refuse("a threshold is not supported");
  const double slope = c.number("negative_slope", 0);
  Value* y = slope == 0 ? c.b.add("relu", c.in) : c.b.add("leaky_relu", c.in, {{"alpha", slope}});
  if (c.find("max_value") != nullptr) y = c.b.add("minimum", {y, real(c, c.number("max_value", 0))});
  c.out = {y};
}

void leaky_relu(LayerContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("leaky_relu", c.in, {{"alpha", c.number("alpha", 0.3)}})};
}

void elu(LayerContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("elu", c.in, {{"alpha", c.number("alpha", 1)}})};
}

void softmax(LayerContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("softmax", c.in, {{"axis", one_axis(c, "axis")}})};
}

void prelu(LayerContext& c) {
  c.expect_inputs(1);
  std::vector<int64_t> shared = c.integers("shared_axes"), dims;
  for (size_t i = 1; i < c.rank(); ++i) {
    const Dim dim = c.in[0]->type.shape.dims[i];
    const bool one = std::find(shared.begin(), shared.end(), static_cast<int64_t>(i)) != shared.end();
    dims.push_back(one ? 1 : dim.known() ? dim.size : -1);
  }
  Value *alpha = c.weight("alpha", dims), *zero = real(c, 0);
  Value* below = c.b.add("mul", {alpha, c.b.add("minimum", {c.in[0], zero})});
  c.out = {c.b.add("add", {c.b.add("maximum", {c.in[0], zero}), below})};
}

void merge(LayerContext& c) {
  if (c.in.size() < 2) fail(ErrorKind::invalid_model, "", "has {} inputs, expected 2 or more", c.in.size());
  Value* y = c.in[0];
  for (size_t i = 1; i < c.in.size(); ++i) y = c.b.add(c.target, {y, c.in[i]});
  c.out = {y};
}

void average(LayerContext& c) {
  merge(c);
  c.out = {c.b.add("mul", {c.out[0], real(c, 1.0 / static_cast<double>(c.in.size()))})};
}

void concatenate(LayerContext& c) {
  if (c.in.empty()) fail(ErrorKind::invalid_model, "", "has no inputs");
  c.out = {c.b.add("concat", c.in, {{"axis", normal_axis(c.integer("axis", -1), c.rank())}})};
}

void flatten(LayerContext& c) {
  c.expect_inputs(1);
  if (c.text("data_format", "channels_last") != "channels_last") c.refuse("channels_first is not supported");
  int64_t count = 1;
  for (size_t i = 1; i < c.rank(); ++i) {
    const Dim dim = c.in[0]->type.shape.dims[i];
    if (!dim.known() || __builtin_mul_overflow(count, dim.size, &count)) c.refuse("dim {} is not known", i);
  }
  c.out = {reshape_to(c.in[0], {{-1, 0}, {count}}, c.b)};
}

void reshape(LayerContext& c) {
  c.expect_inputs(1);
  std::vector<NewDim> dims{{-1, 0}};
  int64_t known = 1, total = 1;
  for (size_t i = 1; i < c.rank(); ++i) {
    const Dim dim = c.in[0]->type.shape.dims[i];
    if (!dim.known() || __builtin_mul_overflow(total, dim.size, &total)) c.refuse("dim {} is not known", i);
  }
  for (int64_t size : c.integers("target_shape")) {
    dims.push_back({size});
    if (size < -1 || (size >= 0 && __builtin_mul_overflow(known, size, &known)))
      fail(ErrorKind::invalid_model, "", "target_shape has {}", size);
  }
  for (size_t i = 1; i < dims.size(); ++i)
    if (dims[i].size == -1) {
      if (known == 0 || total % known != 0) fail(ErrorKind::invalid_model, "", "{} elements do not fit", total);
      dims[i].size = total / known;
      known = total;
    }
  c.out = {reshape_to(c.in[0], dims, c.b, true)};
}

void permute(LayerContext& c) {
  c.expect_inputs(1);
  std::vector<int64_t> permutation{0};
  for (int64_t axis : c.integers("dims")) permutation.push_back(axis);
  c.out = {c.b.add("transpose", c.in, {{"permutation", permutation}})};
}

void repeat(LayerContext& c) {
  c.expect_inputs(1);
  if (c.rank() != 2) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 2", c.rank());
  Value* row = expand_dims(c.in[0], {1}, c.b);
  c.out = {c.b.add("tile", {row, c.b.ints({1, c.integer("n", 1), 1})})};
}

constexpr Row kLayerRows[] = {
    {"Activation", activation_layer},
    {"ActivityRegularization", identity},
    {"Add", merge, "add"},
    {"AlphaDropout", identity},
    {"Average", average, "add"},
    {"BatchNormalization", batch_normalization},
    {"Concatenate", concatenate},
    {"Dense", dense},
    {"Dropout", identity},
    {"ELU", elu},
    {"Embedding", embedding},
    {"Flatten", flatten},
    {"GaussianDropout", identity},
    {"GaussianNoise", identity},
    {"LayerNormalization", layer_normalization},
    {"LeakyReLU", leaky_relu},
    {"Maximum", merge, "maximum"},
    {"Minimum", merge, "minimum"},
    {"Multiply", merge, "mul"},
    {"Normalization", normalization},
    {"PReLU", prelu},
    {"Permute", permute},
    {"ReLU", relu},
    {"RepeatVector", repeat},
    {"Rescaling", rescaling},
    {"Reshape", reshape},
    {"Softmax", softmax},
    {"SpatialDropout1D", identity},
    {"SpatialDropout2D", identity},
    {"Subtract", merge, "sub"},
};

}  // namespace

std::span<const Row> layer_rows() { return kLayerRows; }

}  // namespace cairn::keras
