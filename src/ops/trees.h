// The tables of `tree_ensemble`, for its reference and other kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace cairn {

inline constexpr int64_t kTreeColumns = 4, kTreeLeaf = 6, kTreeMissing = 8;

/// What is wrong with the tables; nothing when every row of `features` numbers ends in a leaf of each root's tree.
std::optional<std::string> fault_of_trees(std::span<const int64_t> nodes, std::span<const int64_t> roots,
                                          std::span<const int64_t> targets, int64_t features, int64_t count);

}  // namespace cairn
