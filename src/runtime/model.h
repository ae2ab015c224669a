// A loaded model: an optimised module, its plans, and contexts to run them. Models and plans are immutable and shared;
// each concurrent run takes a context (arena, objects) from a pool, which makes run() thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/module.h"
#include "plan/plan.h"
#include "plan/reference_steps.h"
#include "support/executor.h"

namespace cairn {

struct ModelOptions {
  int threads = 0;                   // 0: all that the process may use
  std::vector<std::string> engines;  // by name, best first; empty: cpu, reference
  bool optimise = true;              // run the pass pipeline on the module first
  bool reuse_memory = true;
  std::vector<std::string> disabled_passes;
  std::shared_ptr<Executor> pool;  // shared with others; null: a pool of the model's own
  bool bind_state = false;         // the caller keeps the state and passes it as inputs, which run() updates in place
  bool deterministic = false;      // convolutions by their definition, not by Winograd's method
  size_t plan_bytes = 0;           // bound on the memory of plans and their runs; 0: PlanBudget::default_bytes()
};

/// A tensor of the caller: row-major elements that stay valid during the call.
struct TensorRef {
  DType dtype;
  std::span<const int64_t> dims;
  const void* data;
};

/// Returns the memory for output i (64-byte alignment preferred, any accepted); called once per output and run.
using OutputAllocator = FunctionRef<void*(size_t output, DType dtype, std::span<const int64_t> dims)>;

/// Observes every step of a run; without an observer there is no cost. `step` is the index in the plan. Buffers are
/// indexed as in PlannedStep: host pointers, or HostValue* for host objects. A step may overwrite its inputs, so these
/// are valid only before it, its outputs only after it.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void plan_begins(const Plan&) {}
  /// Called when a plan begins: whether to observe its steps.
  virtual bool watches_steps() const { return true; }
  /// Whether the run is to have each value of the model as a step's result: it then runs by a plan of its own.
  virtual bool needs_values() const { return false; }
  virtual void step_begins(const Plan&, size_t /*step*/, void* const* /*buffers*/) {}
  virtual void step_ends(const Plan&, size_t /*step*/, void* const* /*buffers*/) {}
  /// Called instead of step_ends for a step that threw, but not for the control-flow steps around it.
  virtual void step_fails(const Plan&, size_t /*step*/, const Error&) {}
  /// Whether collectives go on beside later steps while steps are watched. Then these are called for them, on another thread,
  /// instead of the three above.
  virtual bool watches_beside() const { return false; }
  virtual void beside_begins(const Plan&, size_t /*step*/) {}
  virtual void beside_ends(const Plan&, size_t /*step*/) {}
};

struct RunOptions {
  Executor* executor = nullptr;  // null: the model's own pool
  Observer* observer = nullptr;
  const std::atomic<bool>* cancel = nullptr;  // checked between steps, and within large ones
};

struct Port {
  std::string name;
  Type type;
};

class Model {
 public:
  /// Throws Error. `packed` may hold packed constants from a file.
  static std::shared_ptr<const Model> make(Module module, const ModelOptions& options = {});
  ~Model();

  const Module& module() const;  // after optimisation
  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;
  /// How a run uses an input: whether it reads the content, and whether it replaces it (`bind_state`). The memory of a
  /// replaced input must not alias another input or output.
  struct InputUse {
    bool reads = false, updates = false, random = false;
  };
  InputUse input_use(size_t i) const;
  /// The state that the model keeps between runs: variables that it updates, and random states (type rng, stored as
  /// u64[3], initially zero). Runs of a model with state are serialised.
  const std::vector<Port>& state() const;
  /// The current value; an undefined tensor for a variable that was not set yet.
  Tensor state_value(size_t i) const;
  /// Throws Error invalid_argument when dtype or dims do not fit.
  void set_state(size_t i, const Tensor& value) const;
  int threads() const;
  /// The approximate size of all plans and of the memory kept for their runs.
  size_t plan_bytes() const;
  /// The time that planning has taken.
  uint64_t planning_ns() const;
  /// The bound on plan_bytes().
  size_t most_plan_bytes() const;
  /// Makes (or finds) the plan for these input dims.
  std::shared_ptr<const Plan> plan(std::span<const Dims> dims) const;
  /// The part of such a plan that runs on the reference engine, with the reasons.
  ReferenceShare reference_share(const Plan& plan) const;
  /// The same for these dims, without making a plan.
  ReferenceShare expected_share(std::span<const Dims> dims) const;
  /// Runs once. Inputs in the order of inputs(); dtypes and dims are checked against them. Throws Error.
  void run(std::span<const TensorRef> inputs, OutputAllocator allocate, const RunOptions& options = {}) const;
  /// run() with tensors of our own, for tests and tools.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const RunOptions& options = {}) const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The engine of that name ("cpu", "reference", "null", "remote"), or null.
const Engine* find_engine(const std::string& name);

}  // namespace cairn
