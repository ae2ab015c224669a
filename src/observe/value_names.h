// The names of the values of a plan's steps in dumps and comparisons: results and operands of source nodes.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "observe/step_values.h"

namespace cairn {

/// A value as result or operand number `places[0]` of the source node `origin`; one value may be several results.
struct ValueName {
  Origin origin;
  std::vector<size_t> places;
  bool inner = false;  // not a result of a source node but an intermediate value: "split:slice" of node "split"
};

class ValueNames {
 public:
  explicit ValueNames(const Module& module);
  /// The name of a node's result, as far as the node itself determines it.
  ValueName of(const Value& value) const;
  /// The name as an intermediate value.
  ValueName inner(const Value& value) const;

 private:
  const Module& module_;
  std::unordered_set<std::string> marked_;
};

struct StepNames {
  std::vector<ValueName> inputs, outputs;  // of the step's group
};
/// The names for each step of the plan. If several steps seem to compute the same result, the last one that does more than
/// widen counts.
std::vector<StepNames> step_names(const Plan& plan, const Module& module);

}  // namespace cairn
