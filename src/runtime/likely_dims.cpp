#include "runtime/likely_dims.h"

#include <algorithm>
#include <map>

#include "runtime/input_limits.h"

namespace cairn {

namespace {

/// Used in turn; `spatial` in inputs of rank 4 and above.
struct Sizes {
  int64_t batch;
  std::vector<int64_t> lengths, spatial;
};

std::vector<Dims> filled(const Model& model, const InputLimits::Alternative& limits, std::vector<Dims> all,
                         const Sizes& sizes) {
  std::map<Symbol, int64_t> by_symbol;
  size_t lengths = 0, places = 0;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t axis = 0; axis < all[i].size(); ++axis) {
      if (all[i][axis] >= 0) continue;
      int64_t size = axis == 0            ? sizes.batch
                     : all[i].size() >= 4 ? sizes.spatial[places++ % sizes.spatial.size()]
                                          : sizes.lengths[lengths++ % sizes.lengths.size()];
      const Shape& shape = model.inputs()[i].type.shape;
      if (shape.ranked && shape.dims[axis].symbol != nullptr)
        size = by_symbol.try_emplace(shape.dims[axis].symbol, size).first->second;
      const SizeRange range = i < limits.size() && axis < limits[i].size() ? limits[i][axis] : SizeRange{};
      all[i][axis] = std::clamp(size, range.low, range.high);
    }
  return all;
}

/// Those of usual models; then those that the model's constant shapes have, since exporters keep the sizes of their example there
/// even where they declare them open, and multiples of these, since strides may come before.
std::vector<Sizes> tries(const Module& module, int64_t batch) {
  const int64_t fewer = std::min<int64_t>(batch, 2);
  std::vector<Sizes> all = {
      {batch, {7, 5, 9, 6}, {64, 96}}, {batch, {8}, {64}}, {fewer, {8}, {224}}, {fewer, {1}, {1}}, {1, {8}, {64}}};
  constexpr size_t kMostSizes = 16;
  constexpr int64_t kLongestShape = 8, kLargest = 1 << 16;
  std::map<int64_t, int> uses;
  for_each_block(module.main().body, [&](const Block& block) {
    for (const auto& node : block.nodes)
      if (const Tensor* shape = node->is("constant") ? constant_of(node->result()) : nullptr)
        if (shape->dtype() == kI64 && shape->count() <= kLongestShape)
          for (const int64_t size : shape->as_i64())
            if (size > 1 && size <= kLargest) ++uses[size];
  });
  std::vector<std::pair<int64_t, int>> sizes(uses.begin(), uses.end());
  std::stable_sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  sizes.resize(std::min(sizes.size(), kMostSizes));
  for (const int64_t times : {1, 2, 4, 8})
    for (const auto& [size, count] : sizes) all.push_back({1, {size * times}, {size * times}});
  for (const auto& [size, count] : sizes) all.push_back({size, {7, 5, 9, 6}, {64, 96}});
  return all;
}

}  // namespace

std::optional<std::vector<Dims>> likely_dims(const Model& model, const std::vector<Dims>& dims, int64_t batch,
                                             const std::function<bool(const std::vector<Dims>&)>& fits) {
  const InputLimits limits = InputLimits::of(model.module());
  for (const Sizes& sizes : tries(model.module(), batch)) {
    std::vector<Dims> all = filled(
        model, limits.alternatives().empty() ? InputLimits::Alternative() : limits.alternatives()[0], dims, sizes);
    try {
      model.plan(all);
      if (!fits || fits(all)) return all;
    } catch (const Error& fault) {  // the model does not fit these sizes
      if (fault.kind() == ErrorKind::cancelled) throw;
    }
  }
  return {};
}

}  // namespace cairn
