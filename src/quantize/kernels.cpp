#include "quantize/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cairn::quantize {

namespace {

/// The largest divisor of `size` that is at most `wanted`.
int64_t fitting_group(int64_t size, int64_t wanted) {
  for (int64_t group = std::min(size, wanted); group > 1; --group)
    if (size % group == 0) return group;
  return 1;
}

/// Of each scale, the one among some shares of the largest that errs least.
std::vector<float> scales_of(std::span<const float> weights, const std::vector<size_t>& place, size_t count, float most,
                             bool search) {
  std::vector<float> largest(count);
  for (size_t i = 0; i < weights.size(); ++i) largest[place[i]] = std::max(largest[place[i]], std::abs(weights[i]));
  std::vector<float> scales(count);
  const auto scale = [&](size_t of, float share) {
    const float step = largest[of] * share / most;
    return step >= std::numeric_limits<float>::min() ? step : 1.0F;
  };
  for (size_t i = 0; i < count; ++i) scales[i] = scale(i, 1);
  if (!search) return scales;
  std::vector<double> least(count, std::numeric_limits<double>::infinity());
  for (float share = 1; share > 0.5F; share -= 0.03F) {
    std::vector<double> error(count);
    for (size_t i = 0; i < weights.size(); ++i) {
      const float step = scale(place[i], share);
      const double gap = weights[i] - step * std::clamp(std::nearbyint(weights[i] / step), -most, most);
      error[place[i]] += gap * gap;
    }
    for (size_t i = 0; i < count; ++i)
      if (error[i] < least[i]) least[i] = error[i], scales[i] = scale(i, share);
  }
  return scales;
}

}  // namespace

SmallKernel small_kernel(const Layer& layer, const Tensor& kernel, const KernelOptions& options) {
  const auto& dims = kernel.dims();
  const Along in(dims, layer.inputs), out(dims, layer.outputs);
  const int64_t whole = dims[layer.inputs];
  const int64_t group = options.group > 0 ? fitting_group(whole, options.group) : whole;
  const bool grouped = group < whole && group >= 8;
  const auto weights = kernel.values<float>();
  std::vector<size_t> place(weights.size());
  // The scales are laid out like the grouped kernel with 1 for what shares them: the order of the two dims decides.
  const size_t groups = grouped ? static_cast<size_t>(whole / group) : 1;
  const bool inputs_first = layer.inputs < layer.outputs;
  for (size_t i = 0; i < place.size(); ++i) {
    const size_t of_group = grouped ? in(i) / static_cast<size_t>(group) : 0;
    place[i] = inputs_first ? of_group * out.size + out(i) : out(i) * groups + of_group;
  }
  const auto most = static_cast<float>((1 << (options.bits - 1)) - 1);
  if (!options.scales.empty() && (grouped || options.scales.size() != out.size))
    fail(ErrorKind::invalid_argument, layer.name, "has {} output channels, {} scales are given", out.size,
         options.scales.size());
  const std::vector<float> scales =
      options.scales.empty() ? scales_of(weights, place, groups * out.size, most, options.search) : options.scales;
  SmallKernel made;
  made.bits = options.bits;
  made.integers = Tensor::uninitialized(kI8, dims), made.near = Tensor::uninitialized(kF32, dims);
  auto integers = made.integers.mutable_values<int8_t>();
  auto near = made.near.mutable_values<float>();
  for (size_t i = 0; i < place.size(); ++i) {
    const float q = std::clamp(std::nearbyint(weights[i] / scales[place[i]]), -most, most);
    integers[i] = static_cast<int8_t>(std::isnan(q) ? 0 : q), near[i] = q * scales[place[i]];
  }
  std::vector<int64_t> scale_dims(dims.size(), 1);
  scale_dims[layer.outputs] = dims[layer.outputs];
  if (grouped) {
    const auto at = static_cast<long>(layer.inputs);
    made.grouped = dims, made.grouped[layer.inputs] = whole / group;
    made.grouped.insert(made.grouped.begin() + at + 1, group);
    scale_dims[layer.inputs] = whole / group;
    scale_dims.insert(scale_dims.begin() + at + 1, 1);
  }
  made.scales = Tensor::of(kF32, scale_dims, scales);
  return made;
}

std::vector<double> mean_shift(const Layer& layer, const Tensor& kernel, const Tensor& near,
                               const std::vector<double>& data_means) {
  const Along out(kernel.dims(), layer.outputs);
  std::vector<double> shift(out.size);
  const auto before = kernel.values<float>(), after = near.values<float>();
  for (size_t i = 0; i < before.size(); ++i) {
    const size_t channel = data_channel(layer, kernel.dims(), i);
    if (channel < data_means.size()) shift[out(i)] += (double{after[i]} - before[i]) * data_means[channel];
  }
  return shift;
}

}  // namespace cairn::quantize
