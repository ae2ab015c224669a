// The cases of the rows with sizes so large that the work takes long.
#pragma once

#include <ctime>

#include "ops/cases.h"

namespace cairn {

inline double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// The case with every size `from` of its inputs times `factor`; nothing where the row's shape rule refuses that, and where an
/// operand or result would have more than `most` elements.
inline std::optional<OpCase> enlarged(const OpCase& small, int64_t from, int64_t factor, int64_t most) {
  OpCase large = small;
  bool changed = false;
  Block block;
  std::vector<Value*> values;
  const auto fits = [&](const Type& type) {
    return !type.is_static() || element_count(type.shape.sizes()).value_or(INT64_MAX) <= most;
  };
  for (size_t i = 0; i < large.types.size(); ++i) {
    if (!large.literals[i].defined() && large.types[i].is_tensor()) {
      auto dims = large.types[i].shape.sizes();
      for (int64_t& size : dims)
        if (size == from) size *= factor, changed = true;
      large.types[i].shape = Shape::of(dims);
    }
    if (!fits(large.types[i])) return std::nullopt;
    values.push_back(block.add_param(large.types[i], "x"));
  }
  try {
    for (const Type& type : infer_types(*large.op, values, large.attributes))
      if (!fits(type)) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  return changed ? std::optional(large) : std::nullopt;
}

/// Calls visit(case, its inputs, seconds) for each size of each of the row's cases, enlarged until `seconds_of(case, inputs)`,
/// which says nothing where it fails, is at least `least`; until a visit returns true.
template <class SecondsOf, class Visit>
void for_large_cases(const OpDef& op, double least, int64_t most, SecondsOf&& seconds_of, Visit&& visit) {
  for (const char* text : op.cases) {
    const OpCase small = parse_case(op, text);
    std::vector<int64_t> sizes;
    for (const Type& type : small.types)
      for (int64_t size : type.is_tensor() ? type.shape.sizes() : std::vector<int64_t>())
        if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
    for (int64_t size : sizes)
      for (int64_t factor = 64; factor <= most; factor *= 8) {
        const auto large = enlarged(small, size, factor, most);
        if (!large) break;
        const auto inputs = random_inputs(*large);
        const std::optional<double> seconds = seconds_of(*large, inputs);
        if (!seconds) break;
        if (*seconds < least) continue;
        OpCase told = *large;
        told.text += fmt::format(", sizes of {} times {}", size, factor);
        if (visit(told, inputs, *seconds)) return;
        break;
      }
  }
}

}  // namespace cairn
