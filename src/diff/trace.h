// One run of a model, looked at from inside: every tensor that a step made, called by its source node. The same hook can put
// other values in the place of what a step made, or move them by what rounding could do.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "observe/value_names.h"
#include "runtime/model.h"

namespace cairn::diff {

/// A tensor as the source framework calls it: a node, which of its results, and which execution of it (in loops).
struct Key {
  std::string node;
  size_t index = 0, turn = 0;
  auto operator<=>(const Key&) const = default;
};

struct Traced {
  Key key;
  std::string op, location, kernel;
  Tensor tensor;
  const Node* producer = nullptr;     // of a run of ours
  const PlannedStep* step = nullptr;  // of a run of ours; lives as long as its model
  std::vector<size_t> inputs;         // places in the trace of the values that it was made from
};

struct Trace {
  std::vector<Traced> values;  // in the order in which they were made
  std::vector<std::pair<std::string, Tensor>> outputs;
};

/// What a run does to its own values on the way.
struct Meddling {
  std::map<size_t, Tensor> replaced;  // by place in the trace; dims and dtype are those of the place
  std::optional<uint64_t> noise;      // seed: every float is moved by a rounding error of its own
  bool keep = true;                   // the tensors of the trace
};

/// Runs once. `fault` is told of every step before all else, and may change what the step made: tests plant faults with it.
/// Variables start from what they hold, and are put back.
Trace trace_run(const Model& model, const std::vector<Tensor>& inputs, const Meddling& meddling = {},
                Observer* fault = nullptr);

}  // namespace cairn::diff
