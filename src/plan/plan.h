// A plan: one function for one set of input dims, resolved to steps over buffers. A segment ends where dims are born
// from data; what follows is a program of its own, planned when those dims are known.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "ir/module.h"
#include "plan/budget.h"
#include "plan/scans.h"

namespace cairn {

using Dims = std::vector<int64_t>;

/// What a plan is made with: engines best first (the last takes every op), and how wide.
struct PlanOptions {
  std::vector<const Engine*> engines;
  int threads = 1;
  bool reuse_memory = true;
  std::shared_ptr<PlanBudget> budget = std::make_shared<PlanBudget>(SIZE_MAX);
};

struct Buffer {
  enum class Kind : uint8_t { input, output, constant, arena, object };
  Kind kind = Kind::arena;
  const Value* value = nullptr;  // in the plan's function; null for workspaces
  size_t index = 0;              // input, output: which; object: which HostValue of the context
  Tensor constant;
  MemorySpace* space = &host_memory();
  size_t offset = 0;  // arena
  size_t bytes = 0;
  size_t first = 0, last = 0;  // steps between which the bytes are needed, both included
};

class Program;
struct Plan;

/// A step of an engine, a control node that runs programs, or (neither set) a copy of inputs[0] to outputs[0].
struct PlannedStep {
  const Engine* engine = nullptr;
  std::unique_ptr<Step> step;
  const Node* control = nullptr;                   // `if`, `while`, `call`
  std::vector<std::unique_ptr<Program>> programs;  // control: one per region, or the callee
  /// `if`, `while` with static types: the plans of the regions, which run in this step's workspace. Else empty: planned at run time.
  std::vector<std::shared_ptr<const Plan>> bodies;
  std::vector<size_t>
      spare;  // loops with bodies: a second buffer for each carried value; `while`: one for the condition
  std::optional<Scan> scan;  // rows in bytes
  Group group;
  std::vector<size_t> inputs, outputs;  // buffers, in the order of the group's (control: the node's) values
  std::optional<size_t> workspace;      // buffer
  std::string kernel;                   // "cpu/conv_brgemm 14x32", "copy", "while"
  Cost cost;
  size_t first_argument = 0;  // of inputs, then outputs, in the context's argument list
  size_t first_inner = 0;     // of the bodies, in the context's list of inner contexts
};

struct Plan {
  ~Plan();
  std::unique_ptr<Function> function;  // specialised to the input dims; owns the nodes that groups point to
  std::vector<Buffer> buffers;
  std::vector<PlannedStep> steps;
  std::vector<size_t> outputs;    // buffer of each function result; with `rest`: of each of its inputs
  std::vector<Dims> output_dims;  // of results with static dims, else empty
  std::unique_ptr<Program> rest;  // what follows when dims were born; its results are the function's
  std::map<MemorySpace*, size_t> arena_bytes;
  size_t live_bytes = 0;  // largest sum of host buffers needed at one step: the lower bound of the host arena
  size_t objects = 0;     // HostValues of a context
  double flops = 0;       // of all steps, loops and branches left out
  size_t own_bytes = 0;   // about, of the plan itself and the code generated for it
  std::unique_ptr<class ContextPool> contexts;
  /// Hash of all kernels and types: same id, same bits.
  std::string id() const;
};

/// A function and its plans by input dims. Thread-safe.
class Program {
 public:
  Program(std::shared_ptr<const Module> module, std::unique_ptr<Function> function, const PlanOptions& options,
          Packer& packer);
  ~Program();
  /// The plan for these dims (one list per param; empty for non-tensors), made when it is the first time.
  std::shared_ptr<const Plan> plan(std::span<const Dims> dims) const;
  /// The plan whose dims `same` accepts, or null; allocates nothing.
  std::shared_ptr<const Plan> find(FunctionRef<bool(const std::vector<Dims>&)> same) const;
  const Function& function() const { return *function_; }
  const Module& module() const { return *module_; }

  /// For the budget. When the plans were used last: the latest; the earliest of those that nobody runs, if any.
  uint64_t last_use() const;
  std::optional<uint64_t> oldest_use() const;
  /// Of the plan used at `last` all but one.
  void drop_idle_contexts(uint64_t last) const;
  /// The plan that was used last then is kept no longer; null when it has been used since.
  std::shared_ptr<const Plan> forget(uint64_t use) const;

 private:
  std::shared_ptr<const Module> module_;  // for called functions and sources
  std::unique_ptr<Function> function_;
  PlanOptions options_;
  Packer* packer_;
  mutable std::shared_mutex mutex_;
  mutable std::list<std::pair<std::vector<Dims>, std::shared_ptr<const Plan>>> plans_;  // newest first
};

/// Plans one function whose params are static (or host objects). `function` becomes the plan's.
std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Module> module, std::unique_ptr<Function> function,
                                      const PlanOptions& options, Packer& packer);

/// A copy of the function for these input dims: types inferred again with numbers, shape computations folded.
/// Throws Error invalid_argument when the dims do not fit the declared input types, invalid_model when an op refuses.
std::unique_ptr<Function> specialise(const Function& function, std::span<const Dims> dims);

}  // namespace cairn
