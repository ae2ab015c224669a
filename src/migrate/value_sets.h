// Making values, and sets of them, for the files behind values.h.
#pragma once

#include <algorithm>

#include "migrate/values.h"

namespace cairn::migrate {

inline constexpr std::string_view kTensor = "torch.Tensor";
inline constexpr size_t kMaxValues = 16;  // an expression that may be more than this is unknown

inline void add(Values& into, Value value) {
  if (into.size() < kMaxValues && std::find(into.begin(), into.end(), value) == into.end())
    into.push_back(std::move(value));
}

inline void add_all(Values& into, const Values& from) {
  for (const Value& value : from) add(into, value);
}

inline Value named(std::string name) { return {Value::Is::named, std::move(name), {}, nullptr, kNoNode}; }
inline Value instance(std::string name) { return {Value::Is::instance, std::move(name), {}, nullptr, kNoNode}; }
inline Value defined(Value::Is is, const Module& module, NodeId node) { return {is, {}, {}, &module, node}; }

}  // namespace cairn::migrate
