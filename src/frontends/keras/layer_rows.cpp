// Layers of Keras without images or time: dense, normalisation, activations, merging, shapes.
#include <algorithm>

#include "frontends/einsum.h"
#include "frontends/fold.h"
#include "frontends/keras/importer.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

void identity(LayerContext& c) {
  c.expect_inputs(1);
  c.out = c.in;
}

/// Has an effect in training only. The spatial variants drop whole channels.
void dropout(LayerContext& c) {
  c.expect_inputs(1);
  const double rate = c.number("rate", 0.5);
  if (!(rate >= 0 && rate < 1) || !c.in[0]->type.dtype.is_float()) return identity(c);
  std::vector<int64_t> shared;
  if (c.target != nullptr) {
    const bool first = c.text("data_format", "channels_last") == "channels_first";
    const auto rank = static_cast<int64_t>(c.rank());
    for (int64_t i = 1; i < rank; ++i)
      if (i != (first ? 1 : rank - 1)) shared.push_back(i);
  }
  if (const Json* shape = c.find("noise_shape"); shape != nullptr && shape->is_array())
    for (size_t i = 0; i < shape->size(); ++i)
      if ((*shape)[i] == 1) shared.push_back(static_cast<int64_t>(i));
  c.out = {c.b.add("dropout", {c.in[0]}, {{"rate", rate}, {"broadcast", shared}})};
}

void dense(LayerContext& c) {
  c.expect_inputs(1);
  if (c.rank() < 2) c.refuse("the input has {} dims, expected 2 or more", c.rank());
  const int64_t units = c.integer("units", -1);
  Value* y = c.b.add("matmul", {c.in[0], c.weight("kernel", {c.last_dim(), units})});
  if (c.boolean("use_bias", true)) y = c.b.add("add", {y, c.weight("bias", {units})});
  c.out = {c.activated(y)};
}

/// An ellipsis, which stands for the dims that are not named, becomes letters of its own.
void einsum_dense(LayerContext& c) {
  c.expect_inputs(1);
  const std::string equation = c.text("equation", ""), axes = c.text("bias_axes", "");
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma)
    fail(ErrorKind::invalid_model, "", "equation '{}' is none of two operands", printable(equation));
  std::string in = equation.substr(0, comma), kernel = equation.substr(comma + 1, arrow - comma - 1),
              out = equation.substr(arrow + 2), hidden;
  const bool open = in.find("...") != std::string::npos;
  const size_t named = in.size() - (open ? 3 : 0);
  for (char letter = 'A'; open && hidden.size() + named < c.rank() && letter <= 'Z'; ++letter)
    if (equation.find(letter) == std::string::npos) hidden += letter;
  if (hidden.size() + named != c.rank() || open != (out.find("...") != std::string::npos))
    fail(ErrorKind::invalid_model, "", "equation '{}' does not fit an input of {} dims", printable(equation), c.rank());
  if (open) in.replace(in.find("..."), 3, hidden), out.replace(out.find("..."), 3, hidden);
  Value* y = einsum(in + "," + kernel + "->" + out,
                    {c.in[0], c.weight("kernel", std::vector<int64_t>(kernel.size(), -1))}, c.b);
  if (!axes.empty()) {  // dims from the first one of these on
    const size_t from = out.find_first_of(axes);
    if (from == std::string::npos) fail(ErrorKind::invalid_model, "", "bias_axes '{}' are no dims", printable(axes));
    y = c.b.add("add", {y, c.weight("bias", std::vector<int64_t>(out.size() - from, -1))});
  }
  c.out = {c.activated(y)};
}

void embedding(LayerContext& c) {
  c.expect_inputs(1);
  if (c.boolean("mask_zero", false)) c.mask = c.b.add("not_equal", {c.in[0], c.b.scalar_like(c.in[0], 0)});
  Value* table = c.weight("embeddings", {c.integer("input_dim", -1), c.integer("output_dim", -1)});
  c.out = {c.b.add("gather", {table, cast_to(c.in[0], kI64, c.b)}, {{"axis", int64_t{0}}})};
}

/// Masks the steps whose elements all equal the given value, and sets them to 0.
void masking(LayerContext& c) {
  c.expect_inputs(1);
  Value* differs = c.b.add("not_equal", {c.in[0], c.b.scalar_like(c.in[0], c.number("mask_value", 0))});
  const std::vector<int64_t> last{static_cast<int64_t>(c.rank()) - 1};
  Value* kept = c.b.add("reduce_any", {differs}, {{"axes", last}, {"keep_dims", true}});
  c.out = {c.b.add("mul", {c.in[0], cast_to(kept, c.in[0]->type.dtype, c.b)})};
  c.mask = squeeze(kept, last, c.b);
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
  if (c.boolean("rms_scaling", false)) c.refuse("rms_scaling is not supported");
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

void rescaling(LayerContext& c) {
  c.expect_inputs(1);
  c.in = std::vector<Value*>{cast_to(c.in[0], kF32, c.b)};
  c.out = {c.b.add("add", {c.b.add("mul", {c.in[0], real(c, c.number("scale", 1))}), real(c, c.number("offset", 0))})};
}

void activation_layer(LayerContext& c) {
  c.expect_inputs(1);
  c.out = {c.activated(c.in[0])};
}

void relu(LayerContext& c) {
  c.expect_inputs(1);
  const double slope = c.number("negative_slope", 0), threshold = c.number("threshold", 0);
  Value* y = nullptr;
  if (threshold != 0)  // below it the slope counts from it
    y = c.b.add("select", {c.b.add("greater_equal", {c.in[0], real(c, threshold)}), c.in[0],
                           c.b.add("mul", {c.b.add("sub", {c.in[0], real(c, threshold)}), real(c, slope)})});
  else
    y = slope == 0 ? c.b.add("relu", c.in) : c.b.add("leaky_relu", c.in, {{"alpha", slope}});
  if (c.find("max_value") != nullptr) y = c.b.add("minimum", {y, real(c, c.number("max_value", 0))});
  c.out = {y};
}

void leaky_relu(LayerContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("leaky_relu", c.in, {{"alpha", c.number(c.keras3 ? "negative_slope" : "alpha", 0.3)}})};
}

void elu(LayerContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("elu", c.in, {{"alpha", c.number("alpha", 1)}})};
}

void softmax(LayerContext& c) {
  c.expect_inputs(1);
  if (c.masks[0] != nullptr) c.refuse("a mask on its input is not supported");
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

/// The mask of a concatenation: along the last dim a step is valid if it is in every part; along the steps the masks
/// are concatenated.
void join_masks(LayerContext& c) {
  const auto rank = static_cast<int64_t>(c.rank()), axis = normal_axis(c.integer("axis", -1), c.rank());
  if (rank != 3 || axis == 0) c.refuse("masks of {} dims along dim {} are not supported", rank, axis);
  std::vector<Value*> masks;
  for (size_t i = 0; i < c.in.size(); ++i) {
    Value* mask = c.masks[i];
    if (mask == nullptr) {  // all steps are valid
      Value* sizes = joined({dim_of(c.in[i], 0, c.b), dim_of(c.in[i], 1, c.b)}, c.b);
      mask = c.b.add("broadcast_to", {c.b.constant(Tensor::of<uint8_t>(kBool, {}, {1})), sizes});
    }
    masks.push_back(mask);
  }
  c.mask = masks[0];
  if (axis == 1)
    c.mask = c.b.add("concat", masks, {{"axis", int64_t{1}}});
  else
    for (size_t i = 1; i < masks.size(); ++i) c.mask = c.b.add("and", {c.mask, masks[i]});
}

void concatenate(LayerContext& c) {
  if (c.in.empty()) fail(ErrorKind::invalid_model, "", "has no inputs");
  if (std::any_of(c.masks.begin(), c.masks.end(), [](const Value* mask) { return mask != nullptr; })) join_masks(c);
  c.out = {c.b.add("concat", c.in, {{"axis", normal_axis(c.integer("axis", -1), c.rank())}})};
}

void unit_normalization(LayerContext& c) {
  c.expect_inputs(1);
  c.out = {of_length_one(c.in[0], normal_axes(c.integers("axis"), c.rank()), 1e-12, c.b)};
}

/// Normalises groups of channels, each by the mean and variance over the group and all dims between batch and channels.
void group_normalization(LayerContext& c) {
  c.expect_inputs(1);
  const int64_t channels = c.last_dim(), given = c.integer("groups", 32), groups = given == -1 ? channels : given;
  if (one_axis(c, "axis") + 1 != static_cast<int64_t>(c.rank())) c.refuse("only the last axis is supported");
  if (channels < 1 || groups < 1 || channels % groups != 0) c.refuse("{} channels in {} groups", channels, groups);
  std::vector<NewDim> split, whole;
  std::vector<int64_t> axes;
  for (int axis = 0; axis + 1 < static_cast<int>(c.rank()); ++axis) {
    split.push_back({-1, axis}), whole.push_back({-1, axis});
    if (axis > 0) axes.push_back(axis);
  }
  axes.push_back(static_cast<int64_t>(c.rank()));
  split.insert(split.end(), {{groups}, {channels / groups}}), whole.push_back({channels});
  Value* x = reshape_to(c.in[0], split, c.b);
  x = c.b.add("sub", {x, c.b.add("reduce_mean", {x}, {{"axes", axes}, {"keep_dims", true}})});
  Value* variance = c.b.add("reduce_mean", {c.b.add("square", {x})}, {{"axes", axes}, {"keep_dims", true}});
  x = c.b.add("mul",
              {x, c.b.add("rsqrt", {c.b.add("add", {variance, c.b.scalar_like(x, c.number("epsilon", 1e-3))})})});
  Value* y = reshape_to(x, whole, c.b);
  if (c.boolean("scale", true)) y = c.b.add("mul", {y, c.weight("gamma", {channels})});
  if (c.boolean("center", true)) y = c.b.add("add", {y, c.weight("beta", {channels})});
  c.out = {y};
}

/// Products along one axis of each of two inputs, [batch, n] or [batch, steps, n].
void dot(LayerContext& c) {
  c.expect_inputs(2);
  std::vector<int64_t> axes = c.integers("axes");
  if (axes.size() == 1) axes.push_back(axes[0]);
  if (axes.size() != 2) fail(ErrorKind::invalid_model, "", "has {} axes, expected 2", axes.size());
  std::vector<int64_t> added;
  std::vector<Value*> in = c.in;
  for (size_t i : {0, 1}) {
    Value*& x = in[i];
    if (!x->type.shape.ranked || x->type.shape.rank() < 2 || x->type.shape.rank() > 3)
      c.refuse("an input has other dims than two or three");
    const int64_t axis = normal_axis(axes[i], x->type.shape.rank());
    if (axis == 0) c.refuse("products along the batch are not supported");
    if (c.boolean("normalize", false)) x = of_length_one(x, {axis}, 1e-12, c.b);
    if (x->type.shape.rank() == 2) {
      x = expand_dims(x, {1}, c.b);
      added.push_back(static_cast<int64_t>(i) + 1);
    } else if (axis == 1) {
      x = transposed(x, {0, 2, 1}, c.b);
    }
  }
  if (added.size() == 2) added.pop_back();  // two vectors give a column
  c.out = {squeeze(c.b.add("matmul", in, {{"transpose_b", true}}), added, c.b)};
}

void thresholded_relu(LayerContext& c) {
  c.expect_inputs(1);
  Value* above = c.b.add("greater", {c.in[0], real(c, c.number("theta", 1))});
  c.out = {c.b.add("mul", {c.in[0], cast_to(above, c.in[0]->type.dtype, c.b)})};
}

void flatten(LayerContext& c) {
  c.expect_inputs(1);
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

constexpr auto kPass = Row::Masks::pass, kOwn = Row::Masks::own;

constexpr Row kLayerRows[] = {
    {"Activation", activation_layer, nullptr, kPass},
    {"ActivityRegularization", identity, nullptr, kPass},
    {"Add", merge, "add", kPass},
    {"AlphaDropout", identity, nullptr, kPass},
    {"Average", average, "add", kPass},
    {"BatchNormalization", batch_normalization, nullptr, kPass},
    {"Concatenate", concatenate, nullptr, kOwn},
    {"Dense", dense, nullptr, kPass},
    {"Dot", dot},
    {"Dropout", dropout, nullptr, kPass},
    {"ELU", elu, nullptr, kPass},
    {"EinsumDense", einsum_dense, nullptr, kPass},
    {"Embedding", embedding, nullptr, kOwn},
    {"Flatten", flatten, nullptr, Row::Masks::end, false, 1},
    {"GaussianDropout", identity, nullptr, kPass},
    {"GaussianNoise", identity, nullptr, kPass},
    {"GroupNormalization", group_normalization, nullptr, kPass},
    {"Identity", identity, nullptr, kPass},
    {"LayerNormalization", layer_normalization, nullptr, kPass},
    {"LeakyReLU", leaky_relu, nullptr, kPass},
    {"Masking", masking, nullptr, kOwn},
    {"Maximum", merge, "maximum", kPass},
    {"Minimum", merge, "minimum", kPass},
    {"Multiply", merge, "mul", kPass},
    {"PReLU", prelu, nullptr, kPass},
    {"Permute", permute},
    {"RandomBrightness", identity, nullptr, kPass},
    {"RandomContrast", identity, nullptr, kPass},
    {"RandomFlip", identity, nullptr, kPass},
    {"RandomRotation", identity, nullptr, kPass},
    {"RandomTranslation", identity, nullptr, kPass},
    {"RandomZoom", identity, nullptr, kPass},
    {"ReLU", relu, nullptr, kPass},
    {"RepeatVector", repeat},
    {"Rescaling", rescaling},
    {"Reshape", reshape},
    {"Softmax", softmax},
    {"SpatialDropout1D", dropout, "dropout", kPass},
    {"SpatialDropout2D", dropout, "dropout", kPass},
    {"SpatialDropout3D", dropout, "dropout", kPass},
    {"Subtract", merge, "sub", kPass},
    {"SyncBatchNormalization", batch_normalization, nullptr, kPass},
    {"ThresholdedReLU", thresholded_relu, nullptr, kPass},
    {"TimeDistributed", nullptr, nullptr, kPass},  // the importer's own work: it holds a layer
    {"UnitNormalization", unit_normalization, nullptr, kPass},
};

}  // namespace

std::span<const Row> layer_rows() { return kLayerRows; }

}  // namespace cairn::keras
