// Where the kernels of random numbers find their state and leave what they draw.
#pragma once

#include <algorithm>

#include "engines/cpu/groups.h"
#include "engines/cpu/results.h"
#include "ops/philox.h"

namespace cairn {

/// Indices among a step's operands and results; a result that nobody reads has none.
struct DrawPlaces {
  DrawPlaces(const Group& group, const Node& node)
      : state(index_of(group, node.inputs[0])), next(place_of(group, node.result(0))),
        y(place_of(group, node.result(1))), outputs(group.outputs.size()) {}

  static size_t place_of(const Group& group, const Value* result) {
    return static_cast<size_t>(std::find(group.outputs.begin(), group.outputs.end(), result) - group.outputs.begin());
  }
  random::Philox read(const StepArgs& args) const {
    const Tensor& given = static_cast<const HostValue*>(args.inputs[state])->tensor;
    if (!random::is_state(given)) fail(ErrorKind::invalid_argument, "random", "the random state is not u64[3]");
    return random::read_state(given);
  }
  /// Hands on the state, advanced by so many counts.
  void write(const StepArgs& args, random::Philox after, uint64_t counts) const {
    after.skip(counts);
    if (next < outputs) random::write_state(after, static_cast<HostValue*>(args.outputs[next])->tensor);
  }
  bool drawn() const { return y < outputs; }

  size_t state, next, y, outputs;
};

}  // namespace cairn
