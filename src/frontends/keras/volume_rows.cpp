// Layers of Keras on volumes [n, d, h, w, c].
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/keras/importer.h"
#include "frontends/reshape.h"
#include "frontends/volume.h"

namespace cairn::keras {
namespace {

Value* volume(LayerContext& c) {
  c.expect_inputs(1);
  if (c.rank() != 5) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 5", c.rank());
  check_volume(c.in[0]);
  return c.in[0];
}

std::vector<int64_t> plane(const std::vector<int64_t>& sizes) { return {sizes[1], sizes[2]}; }

DepthWindow depth(LayerContext& c, int64_t size, int64_t stride, int64_t dilation) {
  const std::string padding = c.text("padding", "valid");
  if (padding != "same" && padding != "valid") c.refuse("padding '{}' is not supported", printable(padding));
  return depth_window(c.in[0]->type.shape.dims[1].size, size, stride, dilation, padding == "same");
}

void conv(LayerContext& c) {
  Value* x = volume(c);
  const int64_t groups = c.integer("groups", 1), filters = c.integer("filters", -1);
  if (groups < 1) c.refuse("has {} groups", groups);
  const std::vector<int64_t> strides = c.sizes("strides", 3, 1), dilations = c.sizes("dilation_rate", 3, 1);
  std::vector<int64_t> sizes = c.sizes("kernel_size", 3, 1);
  const DepthWindow window = depth(c, sizes[0], strides[0], dilations[0]);
  sizes.insert(sizes.end(), {c.last_dim() / groups, filters});
  const Attributes attributes{{"strides", plane(strides)},
                              {"dilations", plane(dilations)},
                              {"padding", c.text("padding", "valid")},
                              {"groups", groups}};
  Value* y = conv3d(x, c.weight("kernel", sizes), window, attributes, c.b);
  if (c.boolean("use_bias", true)) y = c.b.add("add", {y, c.weight("bias", {filters})});
  c.out = {c.activated(y)};
}

void conv_transpose(LayerContext& c) {
  Value* x = volume(c);
  const int64_t filters = c.integer("filters", -1);
  const std::vector<int64_t> strides = c.sizes("strides", 3, 1), dilations = c.sizes("dilation_rate", 3, 1);
  std::vector<int64_t> kernel = c.sizes("kernel_size", 3, 1), sizes;
  for (size_t i = 0; i < 3; ++i)
    sizes.push_back(x->type.shape.dims[1 + i].size * strides[i] +
                    transposed_extra(c, i, 3, kernel[i], strides[i], dilations[i]));
  if (*std::min_element(sizes.begin(), sizes.end()) < 1)
    fail(ErrorKind::invalid_model, "", "its result has no elements");
  kernel.insert(kernel.end(), {filters, c.last_dim()});
  const std::string padding = c.text("padding", "valid");
  const DepthWindow window = depth_window(sizes[0], kernel[0], strides[0], dilations[0], padding == "same");
  const Attributes attributes{{"strides", plane(strides)}, {"dilations", plane(dilations)}, {"padding", padding}};
  Value* y = conv3d_transpose(x, c.weight("kernel", kernel), window, attributes, sizes, c.b);
  if (c.boolean("use_bias", true)) y = c.b.add("add", {y, c.weight("bias", {filters})});
  c.out = {c.activated(y)};
}

template <Pooling kPooling>
void pool(LayerContext& c) {
  Value* x = volume(c);
  const std::vector<int64_t> sizes = c.sizes("pool_size", 3, 2);
  const std::vector<int64_t> strides = c.find("strides") == nullptr ? sizes : c.sizes("strides", 3, 1);
  const DepthWindow window = depth(c, sizes[0], strides[0], 1);
  c.out = {pool3d(x, kPooling, window,
                  {{"window", plane(sizes)}, {"strides", plane(strides)}, {"padding", c.text("padding", "valid")}},
                  c.b)};
}

void global_pool(LayerContext& c) {
  const Attributes over{{"axes", std::vector<int64_t>{1, 2, 3}}, {"keep_dims", c.boolean("keepdims", false)}};
  c.out = {c.b.add(c.target, {volume(c)}, over)};
}

/// Every slice, row and column several times.
void up_sampling(LayerContext& c) {
  Value* x = volume(c);
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
    {"AveragePooling3D", pool<Pooling::mean>, nullptr, kVolumeMasks, false, 1},
    {"Conv3D", conv, nullptr, kVolumeMasks, false, 1},
    {"Conv3DTranspose", conv_transpose, nullptr, kVolumeMasks, false, 1},
    {"GlobalAveragePooling3D", global_pool, "reduce_mean", kVolumeMasks, false, 1},
    {"GlobalMaxPooling3D", global_pool, "reduce_max", kVolumeMasks, false, 1},
    {"MaxPooling3D", pool<Pooling::largest>, nullptr, kVolumeMasks, false, 1},
    {"UpSampling3D", up_sampling, nullptr, kVolumeMasks, false, 1},
};

}  // namespace

std::span<const Row> volume_rows() { return kVolumeRows; }

}  // namespace cairn::keras
