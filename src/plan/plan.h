// A plan: one function for one set of input dims, resolved to steps over buffers. A segment ends where dims are born
// from data; what follows is a program of its own, planned when those dims are known.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "ir/module.h"

namespace cairn {

using Dims = std::vector<int64_t>;

/// What a plan is made with: engines best first (the last takes every op), and how wide.
struct PlanOptions {
  std::vector<const Engine*> engines;
  int threads = 1;
  bool reuse_memory = true;
};

struct Buffer {
  enum class Kind : uint8_t { input, constant, arena, object };
  Kind kind = Kind::arena;
  const Value* value = nullptr;  // in the plan's function
  size_t index = 0;              // input: which; object: which HostValue of the context
  Tensor constant;
  MemorySpace* space = nullptr;
  size_t offset = 0;  // arena
  size_t bytes = 0;
  size_t first = 0, last = 0;  // steps between which the bytes are needed
};

class Program;

/// A step, or a control node that runs programs. Exactly one of step and control is set; neither: a copy between spaces
/// or to an output.
struct PlannedStep {
  std::unique_ptr<Step> step;
  const Node* control = nullptr;                   // `if`, `while`, `call`
  std::vector<std::unique_ptr<Program>> programs;  // control: one per region
  const Engine* engine = nullptr;
  Group group;
  std::vector<size_t> inputs, outputs;  // buffers
  size_t workspace = 0;                 // offset in the host arena
  std::string kernel;
  Cost cost;
};

struct Plan {
  std::unique_ptr<Function> function;  // specialised to the input dims; owns the nodes that groups point to
  std::vector<Buffer> buffers;
  std::vector<PlannedStep> steps;
  std::vector<size_t> outputs;      // buffer of each function result (without rest), of each input of `rest` (with it)
  std::unique_ptr<Program> rest;    // what follows when dims were born; its results are the function's
  std::map<MemorySpace*, size_t> arena_bytes;
  size_t live_bytes = 0;  // largest sum of host arena buffers needed at one step: the lower bound of the arena
  size_t objects = 0;     // HostValues of a context
  std::string id() const;  // hash of all kernel names and shapes: same id, same bits
};

/// A function and its plans by input dims. Thread-safe.
class Program {
 public:
  Program(std::shared_ptr<const Module> module, std::unique_ptr<Function> function, const PlanOptions& options,
          Packer& packer);
  ~Program();
  /// The plan for these dims (one list per param; empty for non-tensors), made when it is the first time.
  std::shared_ptr<const Plan> plan(std::span<const Dims> dims) const;
  const Function& function() const { return *function_; }
  const Module& module() const { return *module_; }

 private:
  std::shared_ptr<const Module> module_;  // for called functions and sources
  std::unique_ptr<Function> function_;
  PlanOptions options_;
  Packer* packer_;
  mutable std::shared_mutex mutex_;
  mutable std::map<std::vector<Dims>, std::shared_ptr<const Plan>> plans_;
};

/// Plans one function whose params are static (or host objects). `function` becomes the plan's.
std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Module> module, std::unique_ptr<Function> function,
                                      const PlanOptions& options, Packer& packer);

/// A copy of the function for these input dims: types inferred again with numbers, shape computations folded.
/// Throws Error invalid_argument when the dims do not fit the declared input types, invalid_model when an op refuses.
std::unique_ptr<Function> specialise(const Module& module, const Function& function, std::span<const Dims> dims);

}  // namespace cairn
