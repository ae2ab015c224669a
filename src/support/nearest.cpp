// Edit distance, keeping only the last rows of the dynamic-programming table.
#include "support/nearest.h"

#include <algorithm>
#include <vector>

namespace cairn {

namespace {

/// A swap of two adjacent bytes counts as one edit.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

size_t difference(size_t a, size_t b) { return a > b ? a - b : b - a; }

}  // namespace

std::optional<std::string_view> nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::optional<std::string_view> found;
  size_t least = std::max<size_t>(name.size() / 3, 1) + 1;
  for (std::string_view candidate : candidates) {
    if (same_letters(name, candidate)) return candidate;
    const size_t distance = edit_distance(name, candidate);
    if (distance >= std::max(name.size(), candidate.size())) continue;  // "y" is nothing like "w"
    const bool as_long = found && distance == least &&
                         difference(name.size(), candidate.size()) < difference(name.size(), found->size());
    if (distance < least || as_long) least = distance, found = candidate;
  }
  return found;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const auto found = nearest(name, candidates);
  return found ? "; did you mean " + std::string(*found) + "?" : "";
}

}  // namespace cairn
