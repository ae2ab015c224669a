// Shorthands for op rows: attributes with defaults, common shape rules, oracles.
#pragma once

#include "ir/builder.h"
#include "ops/shapes.h"

namespace cairn {

inline AttrDef flag(const char* name, bool fallback = false) { return {name, AttrKind::boolean, Attribute(fallback)}; }
inline AttrDef integer(const char* name, int64_t fallback) { return {name, AttrKind::integer, Attribute(fallback)}; }
inline AttrDef number(const char* name, double fallback) { return {name, AttrKind::number, Attribute(fallback)}; }
inline AttrDef integers(const char* name, std::vector<int64_t> fallback) {
  return {name, AttrKind::integers, Attribute(std::move(fallback))};
}
inline AttrDef word(const char* name, const char* fallback, std::vector<std::string_view> words) {
  return {name, AttrKind::text, Attribute(std::string(fallback)), std::move(words)};
}
inline AttrDef dtype_or(DType fallback) { return {"dtype", AttrKind::dtype, Attribute(fallback)}; }

inline constexpr auto kTensorFlow = Oracle::Framework::tensorflow;
inline constexpr auto kTorch = Oracle::Framework::torch;
inline Oracle untested(const char* reason) { return {nullptr, Oracle::Framework::numpy, reason}; }

/// Shape rule: the result is like input 0.
inline void infer_same(InferContext& context) { context.result(number_type(context, 0), context.shape(0)); }

}  // namespace cairn
