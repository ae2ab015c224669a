// Runs a plan: binds the caller's buffers, runs the steps in order, handles control flow and the programs after dynamic
// dims.
#pragma once

#include "plan/plan.h"
#include "runtime/model.h"

namespace cairn {

/// Receives the results of a program.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  /// Memory for a result whose dims are known before the run.
  virtual void* allocate(size_t result, DType dtype, const std::vector<int64_t>& dims) = 0;
  /// Takes a result whose dims became known during the run; the tensor may be a view of memory of the run.
  virtual void take(size_t result, const HostValue& value) = 0;
};

/// Throws Error cancelled if no processor could do the plan's operations in so many seconds.
void check_estimate(const Plan& plan, double seconds);

/// `inputs` hold one pointer per param of the plan's function: its elements, or a HostValue* where is_host_object.
void execute(const Plan& plan, std::span<const void* const> inputs, ResultSink& sink, const Module& module,
             const RunOptions& options);

/// Plans the program for these values and runs it; results own their memory.
std::vector<HostValue> run_program(const Program& program, std::span<const HostValue> inputs,
                                   const RunOptions& options);

}  // namespace cairn
