// Scans: loops with a known number of iterations over lists, in which each iteration reads and writes rows of tensors
// in place instead of list elements.
#pragma once

#include "ir/module.h"

namespace cairn {

/// The node that replaces such a loop; only the planner makes it. The params of its region are the carried values (as
/// for `while`), one row of each scanned input, then the captures; the results are the next carried values, then one
/// row of each stacked result.
struct Scan {
  size_t carried = 0, scanned = 0;
  int64_t turns = 0;
  std::vector<int64_t> first,
      step;              // of each scanned input, then of each stacked result: turn t has row first + step * t
  bool at_once = false;  // workers may run turns at the same time: nothing is carried, and the body is pure
};
/// The node as a scan, or nothing.
std::optional<Scan> scan_of(const Node& node);

/// Replaces the block's loops by scans if all types are static, and the lists that they fill and read by tensors; moves
/// sums of products over the iterations out of the loops. Returns the number of replaced loops.
size_t make_scans(Block& block);

}  // namespace cairn
