#include "runtime/input_limits.h"

#include <algorithm>
#include <charconv>

namespace cairn {

namespace {

constexpr const char* kKey = "input_sizes";
constexpr size_t kMostNamed = 8;  // alternatives that a message lists

[[noreturn]] void refuse(const std::string& text) {
  fail(ErrorKind::invalid_model, "", "has input sizes that cannot be read: '{}'", text.substr(0, 80));
}

std::string range_text(const SizeRange& range) {
  if (range.low == range.high) return std::to_string(range.low);
  if (range.high == SizeRange::kNoLimit) return range.low == 1 ? "-1" : fmt::format("{}~-1", range.low);
  return fmt::format("{}~{}", range.low, range.high);
}

std::string sizes_text(const std::vector<SizeRange>& sizes) {
  std::string text;
  for (const SizeRange& range : sizes) text += (text.empty() ? "" : ",") + range_text(range);
  return text;
}

int64_t size_in(std::string_view text, const std::string& all) {
  int64_t size = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (code != std::errc() || end != text.data() + text.size() || size < -1) refuse(all);
  return size;
}

SizeRange range_in(std::string_view text, const std::string& all) {
  size_t tilde = text.find('~');
  int64_t low = size_in(text.substr(0, tilde), all);
  if (tilde == std::string_view::npos) return low < 0 ? SizeRange{} : SizeRange{low, low};
  int64_t high = size_in(text.substr(tilde + 1), all);
  return {low, high < 0 ? SizeRange::kNoLimit : high};
}

/// Calls take(part) for each part; an empty text has none.
template <class Take>
void each_part(std::string_view text, char separator, Take&& take) {
  while (true) {
    size_t end = std::min(text.find(separator), text.size());
    take(text.substr(0, end));
    if (end == text.size()) return;
    text.remove_prefix(end + 1);
  }
}

bool holds(const InputLimits::Alternative& alternative, std::span<const Dims> dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].size() != alternative[i].size()) return false;
    for (size_t axis = 0; axis < dims[i].size(); ++axis)
      if (!alternative[i][axis].holds(dims[i][axis])) return false;
  }
  return true;
}

}  // namespace

InputLimits InputLimits::of(const Module& module) {
  InputLimits limits;
  auto found = module.metadata.find(kKey);
  if (found == module.metadata.end()) return limits;
  const std::string& text = found->second;
  each_part(text, '|', [&](std::string_view part) {
    Alternative& alternative = limits.alternatives_.emplace_back();
    each_part(part, ';', [&](std::string_view sizes) {
      auto& input = alternative.emplace_back();
      if (!sizes.empty()) each_part(sizes, ',', [&](std::string_view size) { input.push_back(range_in(size, text)); });
    });
    if (alternative.size() != limits.alternatives_[0].size()) refuse(text);
  });
  return limits;
}

void InputLimits::write(Module& module) const {
  std::string text;
  for (const Alternative& alternative : alternatives_) {
    if (!text.empty()) text += '|';
    for (size_t i = 0; i < alternative.size(); ++i) text += (i ? ";" : "") + sizes_text(alternative[i]);
  }
  if (alternatives_.empty())
    module.metadata.erase(kKey);
  else
    module.metadata[kKey] = text;
}

void InputLimits::check(std::span<const Dims> dims, std::span<const std::string> names) const {
  if (alternatives_.empty()) return;
  CHECK(alternatives_[0].size() == dims.size() && names.size() == dims.size(), "{} inputs", dims.size());
  for (const Alternative& alternative : alternatives_)
    if (holds(alternative, dims)) return;
  std::string given, allowed;
  for (size_t i = 0; i < dims.size(); ++i)
    given += fmt::format("{}{}:{}", i ? ";" : "", names[i], fmt::join(dims[i], ","));
  for (size_t i = 0; i < std::min(alternatives_.size(), kMostNamed); ++i) {
    allowed += i ? " | " : "";
    for (size_t input = 0; input < names.size(); ++input)
      allowed += fmt::format("{}{}:{}", input ? ";" : "", names[input], sizes_text(alternatives_[i][input]));
  }
  if (alternatives_.size() > kMostNamed) allowed += fmt::format(" and {} more", alternatives_.size() - kMostNamed);
  fail(ErrorKind::invalid_argument, "", "the input sizes {} are none that the model was converted for: {}", given,
       allowed);
}

}  // namespace cairn
