// What the ops on texts share.
#pragma once

#include <span>
#include <string>

#include "ops/rows.h"

namespace cairn {

inline constexpr const char* kTextTests = "works on texts: tests/python/test_texts.py compares it with TensorFlow";

inline std::span<const std::string> texts(const Tensor& tensor) { return tensor.values<std::string>(); }

inline bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

inline AttrDef text_or(const char* name, const char* fallback) {
  return {name, AttrKind::text, Attribute(std::string(fallback))};
}

}  // namespace cairn
