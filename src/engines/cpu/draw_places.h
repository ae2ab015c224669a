// Where the kernels of random numbers find their state and leave what they draw.
#pragma once

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "ops/philox.h"

namespace cairn {

/// Indices among a step's operands and results.
struct DrawPlaces {
  DrawPlaces(const Group& group, const Node& node)
      : state(index_of(group, node.inputs[0])), next(index_of_output(group, node.result(0))),
        y(index_of_output(group, node.result(1))) {}

  random::Philox read(const StepArgs& args) const {
    const Tensor& given = static_cast<const HostValue*>(args.inputs[state])->tensor;
    if (!random::is_state(given)) fail(ErrorKind::invalid_argument, "random", "the random state is not u64[3]");
    return random::read_state(given);
  }
  /// Hands on the state, advanced by so many counts.
  void write(const StepArgs& args, random::Philox after, uint64_t counts) const {
    after.skip(counts);
    if (next != kNoOutput) random::write_state(after, static_cast<HostValue*>(args.outputs[next])->tensor);
  }
  bool drawn() const { return y != kNoOutput; }

  size_t state, next, y;
};

}  // namespace cairn
