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
  if (c.text("data_format", "channels_last") != "channels_last") c.refuse("channels_first is not supported");
  check_volume(c.in[0]);
  return c.in[0];
}

std::vector<int64_t> plane(const std::vector<int64_t>& sizes) { return {sizes[1], sizes[2]}; }

/// Of windows of these sizes; "same" shares what is missing out to both sides, the rest behind.
DepthWindow depth(LayerContext& c, int64_t size, int64_t stride, int64_t dilation) {
  DepthWindow window{size, stride, dilation};
  const std::string padding = c.text("padding", "valid");
  if (padding != "same" && padding != "valid") c.refuse("padding '{}' is not supported", printable(padding));
  if (padding == "valid") return window;
  const int64_t in = c.in[0]->type.shape.dims[1].size, out = (in + stride - 1) / stride;
  const int64_t missing = std::max<int64_t>(0, (out - 1) * stride + window.reach() - in);
  window.before = missing / 2, window.after = missing - missing / 2;
  return window;
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

constexpr Row kVolumeRows[] = {
    {"AveragePooling3D", pool<Pooling::mean>},
    {"Conv3D", conv},
    {"GlobalAveragePooling3D", global_pool, "reduce_mean"},
    {"GlobalMaxPooling3D", global_pool, "reduce_max"},
    {"MaxPooling3D", pool<Pooling::largest>},
    {"UpSampling3D", up_sampling},
};

}  // namespace

std::span<const Row> volume_rows() { return kVolumeRows; }

}  // namespace cairn::keras
