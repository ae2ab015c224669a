// Helpers of the ops on texts.
#pragma once

#include <charconv>
#include <span>
#include <string>

#include "ops/rows.h"

namespace cairn {

inline constexpr const char* kTextTests = "works on texts: tests/python/test_texts.py compares it with TensorFlow";

inline std::span<const std::string> texts(const Tensor& tensor) { return tensor.values<std::string>(); }

inline bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

inline std::string_view stripped(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Parses a number as TensorFlow does: with nothing but blanks around it, independent of the locale.
template <class T>
bool read_number(std::string_view text, T& value) {
  text = stripped(text);
  if constexpr (std::is_floating_point_v<T>) {
    constexpr size_t kLongest = 32;  // TensorFlow's buffer
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
    const bool letters = !digits.empty() && std::isalpha(static_cast<uint8_t>(digits[0])) != 0;
    if (text.size() >= kLongest || (letters && digits.size() != 3)) return false;
  }
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>)
    if (fault == std::errc::result_out_of_range) {  // becomes an infinity or zero, as in strtod
      value = static_cast<T>(std::strtod(std::string(text).c_str(), nullptr));
      return true;
    }
  return fault == std::errc();
}

inline AttrDef text_or(const char* name, const char* fallback) {
  return {name, AttrKind::text, Attribute(std::string(fallback))};
}

/// The row of decode_csv, one of example_ops().
OpDef csv_row();

}  // namespace cairn
