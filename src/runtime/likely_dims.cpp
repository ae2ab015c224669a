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

}  // namespace

std::optional<std::vector<Dims>> likely_dims(const Model& model, const std::vector<Dims>& dims, int64_t batch,
                                             const std::function<bool(const std::vector<Dims>&)>& fits) {
  const InputLimits limits = InputLimits::of(model.module());
  const int64_t fewer = std::min<int64_t>(batch, 2);
  for (const Sizes& sizes : {Sizes{batch, {7, 5, 9, 6}, {64, 96}}, Sizes{batch, {8}, {64}}, Sizes{fewer, {8}, {224}},
                             Sizes{fewer, {1}, {1}}, Sizes{1, {8}, {64}}}) {
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
