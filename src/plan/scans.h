// Loops of a known number of turns over lists: each turn reads rows of tensors and writes rows of others, where they are.
#pragma once

#include "ir/module.h"

namespace cairn {

/// What such a loop becomes. Its region takes and yields the carried values as that of a `while` does; behind them it takes
/// one row of each scanned input, then the captures, and yields one row of each stacked result. Only the planner makes it.
struct Scan {
  size_t carried = 0, scanned = 0;
  int64_t turns = 0;
  std::vector<int64_t> first,
      step;  // of each scanned input, then of each stacked result: turn t has row first + step * t
};
/// The node as a scan, or nothing.
std::optional<Scan> scan_of(const Node& node);

/// Makes scans of the block's loops, where all types are static, and tensors of the lists that they fill and read; takes
/// sums over the turns of products out of them. Returns how many loops it replaced.
size_t make_scans(Block& block);

}  // namespace cairn
