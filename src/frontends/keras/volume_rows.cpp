// Layers of Keras on volumes [n, d, h, w, c].
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/keras/importer.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

Value* volume(LayerContext& c) {
  c.expect_inputs(1);
  if (c.rank() != 5) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 5", c.rank());
  return c.in[0];
}

std::string padding(LayerContext& c) {
  const std::string padding = c.text("padding", "valid");
  if (padding != "same" && padding != "valid") c.refuse("padding '{}' is not supported", printable(padding));
  return padding;
}

void finish(LayerContext& c, Value* y, int64_t filters) {
  if (c.boolean("use_bias", true)) y = c.b.add("add", {y, c.weight("bias", {filters})});
  c.out = {c.activated(y)};
}

void conv(LayerContext& c) {
  Value* x = volume(c);
  const int64_t groups = c.integer("groups", 1), filters = c.integer("filters", -1);
  if (groups < 1) c.refuse("has {} groups", groups);
  std::vector<int64_t> sizes = c.sizes("kernel_size", 3, 1);
  sizes.insert(sizes.end(), {c.last_dim() / groups, filters});
  finish(c,
         c.b.add("conv3d", {x, c.weight("kernel", sizes)},
                 {{"strides", c.sizes("strides", 3, 1)},
                  {"dilations", c.sizes("dilation_rate", 3, 1)},
                  {"padding", padding(c)},
                  {"groups", groups}}),
         filters);
}

void conv_transpose(LayerContext& c) {
  Value* x = volume(c);
  const int64_t filters = c.integer("filters", -1);
  const std::vector<int64_t> strides = c.sizes("strides", 3, 1), dilations = c.sizes("dilation_rate", 3, 1);
  std::vector<int64_t> kernel = c.sizes("kernel_size", 3, 1);
  std::vector<Value*> sizes{dim_of(x, 0, c.b)};
  std::vector<Dim> dims{x->type.shape.dims[0]};
  for (size_t i = 0; i < 3; ++i) {
    const int64_t added = transposed_extra(c, i, 3, kernel[i], strides[i], dilations[i]);
    Value* scaled = folded(c.b.add("mul", {dim_of(x, 1 + i, c.b), c.b.ints({strides[i]})}), c.b);
    sizes.push_back(folded(c.b.add("add", {scaled, c.b.ints({added})}), c.b));
    const Dim in = x->type.shape.dims[1 + i];
    dims.push_back(in.known() ? Dim(in.size * strides[i] + added) : Dim());
    if (dims.back().known() && dims.back().size < 1) fail(ErrorKind::invalid_model, "", "its result has no elements");
  }
  sizes.push_back(c.b.ints({filters}));
  dims.emplace_back(filters);
  kernel.insert(kernel.end(), {filters, c.last_dim()});
  const Attributes attributes{{"strides", strides}, {"dilations", dilations}, {"padding", padding(c)}};
  finish(c,
         c.b.add_node(op_named("conv3d_input_gradient"), {x, c.weight("kernel", kernel), joined(sizes, c.b)},
                      attributes, {}, {Type::tensor(x->type.dtype, Shape(dims))})
             ->result(),
         filters);
}

void pool(LayerContext& c) {
  const std::vector<int64_t> sizes = c.sizes("pool_size", 3, 2);
  const std::vector<int64_t> strides = c.find("strides") == nullptr ? sizes : c.sizes("strides", 3, 1);
  c.out = {c.b.add(c.target, {volume(c)}, {{"window", sizes}, {"strides", strides}, {"padding", padding(c)}})};
}

void global_pool(LayerContext& c) {
  const Attributes over{{"axes", std::vector<int64_t>{1, 2, 3}}, {"keep_dims", c.boolean("keepdims", false)}};
  c.out = {c.b.add(c.target, {volume(c)}, over)};
}

/// Every slice, row and column several times.
void up_sampling(LayerContext& c) {
  Value* x = volume(c);
  for (size_t i = 1; i < 5; ++i)
    if (!x->type.shape.dims[i].known())
      c.refuse("the volume's sizes are not all known; declare the shapes of the model's inputs");
  const std::vector<int64_t> times = c.sizes("size", 3, 2);
  std::vector<NewDim> apart{{-1, 0}}, together{{-1, 0}};
  std::vector<int64_t> repeats{1};
  for (size_t i = 0; i < 3; ++i) {
    const int64_t size = x->type.shape.dims[1 + i].size;
    apart.insert(apart.end(), {{size}, {1}}), repeats.insert(repeats.end(), {1, times[i]});
    together.push_back({size * times[i]});
  }
  apart.push_back({c.last_dim()}), repeats.push_back(1), together.push_back({c.last_dim()});
  c.out = {reshape_to(c.b.add("tile", {reshape_to(x, apart, c.b), c.b.ints(repeats)}), together, c.b)};
}

constexpr auto kVolumeMasks = Row::Masks::end;

constexpr Row kVolumeRows[] = {
    {"AveragePooling3D", pool, "avg_pool3d", kVolumeMasks, false, 1},
    {"Conv3D", conv, nullptr, kVolumeMasks, false, 1},
    {"Conv3DTranspose", conv_transpose, nullptr, kVolumeMasks, false, 1},
    {"GlobalAveragePooling3D", global_pool, "reduce_mean", kVolumeMasks, false, 1},
    {"GlobalMaxPooling3D", global_pool, "reduce_max", kVolumeMasks, false, 1},
    {"MaxPooling3D", pool, "max_pool3d", kVolumeMasks, false, 1},
    {"UpSampling3D", up_sampling, nullptr, kVolumeMasks, false, 1},
};

}  // namespace

std::span<const Row> volume_rows() { return kVolumeRows; }

}  // namespace cairn::keras
