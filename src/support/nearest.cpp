// Edit distance by one row of the table.
#include "support/nearest.h"

#include <algorithm>
#include <vector>

namespace cairn {

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::optional<std::string_view> found;
  size_t least = name.size() / 3 + 2;
  for (std::string_view candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < least) least = distance, found = candidate;
  }
  return found;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const auto found = nearest(name, candidates);
  return found ? "; did you mean " + std::string(*found) + "?" : "";
}

}  // namespace cairn
