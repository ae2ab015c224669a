// Ways around nodes that cannot be imported, for graphs of any format.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace cairn {

/// Nodes by number.
using Places = std::set<uint32_t>;

/// The nodes and all that next(node), called once for each, leads to.
template <class Next>
Places closure(const Places& starts, Next next) {
  std::vector<uint32_t> pending(starts.begin(), starts.end());
  Places seen;
  while (!pending.empty()) {
    const uint32_t node = pending.back();
    pending.pop_back();
    if (!seen.insert(node).second) continue;
    for (uint32_t each : next(node)) pending.push_back(each);
  }
  return seen;
}

/// Who reads whom, and which nodes make the outputs.
struct DataFlow {
  std::vector<std::vector<uint32_t>> sources;  // of each node
  Places outputs;
  std::function<bool(uint32_t)> can_be_input = [](uint32_t) { return true; };
};

/// Nodes that can be inputs so that the outputs need none of the failed ones: from these downwards, each way ends at the
/// first that can be one and has no failed one below it. None where a way leads to an output.
Places inputs_below(const DataFlow& flow, Places failed);

}  // namespace cairn
