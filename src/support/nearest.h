// Suggests the name that was meant by a misspelt one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

/// The candidate with the least edit distance (insert, remove, replace a byte, swap two) from `name`. Ties go to the
/// nearest length, then to the first; a candidate that differs only in letter case precedes all others. Nothing when
/// the distance is more than one and more than a third of the name's length.
std::optional<std::string_view> nearest(std::string_view name, std::span<const std::string_view> candidates);

/// "; did you mean NAME?", or nothing.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace cairn
