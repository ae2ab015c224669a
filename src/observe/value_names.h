// What the values of a plan's steps are called in dumps and comparisons: results and operands of source nodes.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "observe/step_values.h"

namespace cairn {

/// Result or operand `places[0]` of the source node `origin`; one value may be several results.
struct ValueName {
  Origin origin;
  std::vector<size_t> places;
  bool inner = false;  // no result of a source node, but a value on the way to one: "split:slice" of node "split"
};

class ValueNames {
 public:
  explicit ValueNames(const Module& module);
  /// Of a node's result, as far as the node itself tells.
  ValueName of(const Value& value) const;
  /// As the value on the way to a result.
  ValueName inner(const Value& value) const;

 private:
  const Module& module_;
  std::unordered_set<std::string> marked_;
};

struct StepNames {
  std::vector<ValueName> inputs, outputs;  // of the step's group
};
/// Of each step of the plan. Where several steps make what looks like the same result, the last one makes it.
std::vector<StepNames> step_names(const Plan& plan, const Module& module);

}  // namespace cairn
