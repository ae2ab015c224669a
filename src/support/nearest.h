// The name that somebody who misspelt one meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

/// The candidate with the least edit distance (insert, remove, replace a byte, swap two) from `name`, of equals the one whose
/// length is nearest, then the first; one that differs in the case of letters alone before all others. Nothing where more
/// than a third of the name, and one byte, would change.
std::optional<std::string_view> nearest(std::string_view name, std::span<const std::string_view> candidates);

/// "; did you mean NAME?", or nothing.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace cairn
