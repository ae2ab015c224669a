// A plan: one function for one set of input dims, lowered to steps over buffers. A plan covers the nodes up to those
// whose result dims depend on data; the nodes after them form a program of their own, planned when these dims are
// known.
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
#include "plan/worker_choice.h"

namespace cairn {

using Dims = std::vector<int64_t>;

/// The options of planning: the engines, best first (the last one takes every op), the number of threads and others.
struct PlanOptions {
  std::vector<const Engine*> engines;
  int threads = 1;
  bool reuse_memory = true;
  std::shared_ptr<PlanBudget> budget = std::make_shared<PlanBudget>(SIZE_MAX);
  size_t first_that_stays = SIZE_MAX;  // of a loop's body: params from here on are the same in every turn
  bool every_value = false;  // each value of the function is a step's result, once: for those who look at values
  bool winograd = false;     // MakeContext; not with every_value
  double brief = 20e3;       // ns: plans that are estimated to take less are brief
};

struct Buffer {
  enum class Kind : uint8_t { input, output, constant, arena, object };
  Kind kind = Kind::arena;
  const Value* value = nullptr;  // in the plan's function; null for workspaces
  size_t index = 0;              // the number of the input or output; for an object, of the context's HostValue
  Tensor constant;
  MemorySpace* space = &host_memory();
  size_t offset = 0;  // in the arena
  size_t bytes = 0;
  size_t first = 0, last = 0;  // live range in steps, both included
};

class Program;
struct Plan;

/// The positions of the nodes that decompose() replaced, in each round.
using Decomposed = std::vector<std::vector<size_t>>;

/// A step of an engine, a control node that runs programs, or (neither set) a copy of inputs[0] to outputs[0].
struct PlannedStep {
  const Engine* engine = nullptr;
  std::shared_ptr<const Step> step;
  const Node* control = nullptr;                   // `if`, `while`, `call`
  std::vector<std::unique_ptr<Program>> programs;  // of a control node: one per region, or the callee
  /// For `if` and `while` with static types: the plans of the regions, whose arenas are in this step's workspace. Empty
  /// when they are planned at run time. Of a scan: one for each worker that runs turns, which share a plan.
  std::vector<std::shared_ptr<const Plan>> bodies;
  std::vector<size_t>
      spare;  // loops with bodies: a second buffer for each carried value; `while`: one for the condition
  std::optional<Scan> scan;  // rows in bytes
  Group group;
  std::vector<size_t> inputs, outputs;  // buffers, in the order of the group's (or the control node's) values
  std::optional<size_t> workspace;      // buffer
  std::optional<size_t> kept;           // buffer
  std::vector<size_t> body_offsets;     // of each body's arena in the workspace
  std::string kernel;                   // "cpu/conv_brgemm 14x32", "copy", "while"
  bool beside = false;                  // a collective that goes on while later steps run (exchanges.h)
  size_t waits = 0;                     // that so many of those that go on beside have ended before this step
  size_t at_once = 1;                   // so many steps from this one on run at the same time (at_once.h)
  Cost cost;
  size_t first_argument = 0;  // index in the context's argument list, where inputs and then outputs follow
  size_t first_inner = 0;     // index in the context's list of inner contexts, where those of the bodies follow
};

struct Plan {
  ~Plan();
  std::shared_ptr<Function> function;  // specialised to the input dims; owns the nodes that groups point to
  /// The function of the earlier plan whose choices this one took over, which its steps may refer to; null: it chose itself.
  std::shared_ptr<const Function> sibling;
  std::vector<Buffer> buffers;
  std::vector<PlannedStep> steps;
  std::vector<size_t> outputs;    // buffer of each function result; with `rest`: of each of its inputs
  std::vector<Dims> output_dims;  // of results with static dims, else empty
  std::unique_ptr<Program> rest;  // the nodes that depend on dynamic dims, if any; its results are the function's
  std::map<MemorySpace*, size_t> arena_bytes;
  size_t live_bytes = 0;     // largest sum of live host buffers at any step: a lower bound for the host arena
  size_t objects = 0;        // number of HostValues in a context
  double flops = 0;          // of all steps and scans, without other loops and branches
  double time = 0;           // ns that one worker takes by estimate, without loops and branches
  bool every_value = false;  // PlanOptions
  bool rewritten = false;    // prepare() changed the function
  Decomposed decomposed;     // what it decomposed
  bool brief = false;        // one worker is done before others would be awake: it runs the steps alone
  size_t own_bytes = 0;      // approximate size of the plan itself and of its generated code
  std::unique_ptr<class ContextPool> contexts;
  std::shared_ptr<WorkerChoice> workers;  // that of the sibling, or its own
  /// Hash of all kernels and types: plans with equal ids give equal bits.
  std::string id() const;
};

/// A function and its plans by input dims. Thread-safe.
class Program {
 public:
  Program(std::shared_ptr<const Module> module, std::unique_ptr<Function> function, const PlanOptions& options,
          Packer& packer);
  ~Program();
  /// The plan for these dims (one list per param; empty for non-tensors); made at the first call. Throws as
  /// specialise() does, and Error unsupported when no engine takes a node. `every_value`: as PlanOptions has it.
  std::shared_ptr<const Plan> plan(std::span<const Dims> dims, bool every_value = false) const;
  /// The plan whose dims `same` accepts, or null; allocates nothing.
  std::shared_ptr<const Plan> find(FunctionRef<bool(const std::vector<Dims>&)> same, bool every_value = false) const;
  const Function& function() const { return *function_; }
  const Module& module() const { return *module_; }
  /// Until it has plans of its own that chose for themselves, plans take over choices from those of `other`, a program of
  /// the same function or of one that differs in dims.
  void follow(const Program& other);

  /// For the budget: the latest time stamp of use among the plans, and the earliest among those that are not running.
  uint64_t last_use() const;
  std::optional<uint64_t> oldest_use() const;
  /// Frees all idle contexts, except one of the plan used at `last`.
  void drop_idle_contexts(uint64_t last) const;
  /// Removes the plan whose last use has this time stamp, and returns it; null when it has been used since.
  std::shared_ptr<const Plan> forget(uint64_t use) const;

 private:
  std::shared_ptr<const Module> module_;  // for called functions and sources
  std::unique_ptr<Function> function_;
  PlanOptions options_;
  Packer* packer_;
  /// Of the plans that chose for themselves the latest of like sizes, else the latest; null if there is none.
  std::shared_ptr<const Plan> sibling(std::span<const Dims> dims) const;

  mutable std::shared_mutex mutex_;
  mutable std::vector<std::weak_ptr<const Plan>> siblings_;  // that chose for themselves, the latest first
  mutable std::list<std::pair<std::vector<Dims>, std::shared_ptr<const Plan>>> plans_;  // most recently made first
};

/// Plans a function whose params are static (or host objects). The plan owns `function`, and takes over what it can from
/// `sibling`, a plan of the same function at other dims or null. Throws Error unsupported when no engine takes a node.
std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Module> module, std::unique_ptr<Function> function,
                                      const PlanOptions& options, Packer& packer, const Plan* sibling = nullptr);
/// The same with what prepare() did to the sibling's function; null when the choices of the sibling do not serve.
std::shared_ptr<const Plan> make_plan_like(const Plan& sibling, std::shared_ptr<const Module> module,
                                           std::unique_ptr<Function> function, const PlanOptions& options,
                                           Packer& packer);

/// A copy of the function for these input dims, with types inferred again and shape computations folded. Cheap values are
/// computed again behind others rather than kept, unless `once`.
/// Throws Error invalid_argument when the dims do not fit the declared input types, invalid_model when an op refuses.
std::unique_ptr<Function> specialise(const Function& function, std::span<const Dims> dims, bool once = false);

}  // namespace cairn
