#include "open_sizes.h"

#include <algorithm>

#include "runtime/input_limits.h"

namespace cairn::cli {
namespace {

/// Of one dimension over all that the model is limited to.
std::string sizes_text(const InputLimits& limits, size_t input, size_t dim) {
  std::vector<std::string> sizes;
  for (const auto& alternative : limits.alternatives()) {
    if (input >= alternative.size() || dim >= alternative[input].size()) continue;
    const SizeRange& range = alternative[input][dim];
    if (range == SizeRange{}) return "any size";
    std::string text = range.low == range.high             ? std::to_string(range.low)
                       : range.high == SizeRange::kNoLimit ? fmt::format("{} or more", range.low)
                                                           : fmt::format("{} to {}", range.low, range.high);
    if (std::find(sizes.begin(), sizes.end(), text) == sizes.end()) sizes.push_back(std::move(text));
  }
  if (sizes.empty()) return "any size";
  const std::string last = sizes.back();
  sizes.pop_back();
  return sizes.empty() ? last : fmt::format("{} or {}", fmt::join(sizes, ", "), last);
}

}  // namespace

std::vector<OpenSize> open_sizes(const Module& module) {
  const InputLimits limits = InputLimits::of(module);
  std::vector<OpenSize> open;
  const auto& params = module.main().body.params;
  for (size_t i = 0; i < params.size(); ++i) {
    const Type& type = params[i]->type;
    if (!type.is_tensor()) continue;
    if (!type.shape.ranked) open.push_back({params[i]->name, kAnyRank, "", "any shape"});
    for (size_t dim = 0; type.shape.ranked && dim < type.shape.rank(); ++dim)
      if (const Dim& size = type.shape.dims[dim]; !size.known())
        open.push_back(
            {params[i]->name, dim, size.symbol == nullptr ? "" : to_string(size), sizes_text(limits, i, dim)});
  }
  for (OpenSize& each : open)
    if (each.name.starts_with('?')) each.name.erase(0, 1);
  return open;
}

std::string to_text(const OpenSize& open) {
  if (open.dim == kAnyRank) return fmt::format("{}: {}", open.input, open.sizes);
  return fmt::format("{}: dim {}{}, {}", open.input, open.dim, open.name.empty() ? "" : fmt::format(" ({})", open.name),
                     open.sizes);
}

}  // namespace cairn::cli
