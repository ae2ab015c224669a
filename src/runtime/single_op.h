// A single operator on the caller's tensors, without a model: prepared once for the types of its inputs, then run any
// number of times, by any number of threads. Repeated runs take no lock and do not allocate.
#pragma once

#include <array>
#include <optional>

#include "runtime/model.h"

namespace cairn {

/// A tensor of the caller, or a host object.
struct Operand {
  DType dtype;
  std::span<const int64_t> dims;
  const int64_t* strides = nullptr;  // in elements; null: row-major
  void* data = nullptr;              // null for an output: the allocator provides row-major memory
  HostValue* object = nullptr;       // for a list: used instead of data
};

/// The key by which prepared operators are looked up: a list of words that is hashed and compared.
class OpKey {
 public:
  void clear() { words_.clear(); }
  void word(uint64_t value) { words_.push_back(value); }
  void bytes(const void* data, size_t size);
  std::span<const uint64_t> words() const { return words_; }
  uint64_t hash() const;

 private:
  std::vector<uint64_t> words_;
};

/// What to prepare, besides the types of the tensors. `key` appends words that identify the attributes and options; the
/// other two are called only if the operator has to be made.
struct OpRequest {
  const OpDef& op;
  FunctionRef<void(OpKey&)> key;
  FunctionRef<Attributes()> attributes;
  FunctionRef<ModelOptions()> options;
};

class SingleOp;

/// A reference-counted pointer to a prepared operator.
class SingleOpRef {
 public:
  SingleOpRef() = default;
  explicit SingleOpRef(const SingleOp* op) : op_(op) {}  // takes over one count
  SingleOpRef(const SingleOpRef& other);
  SingleOpRef(SingleOpRef&& other) noexcept : op_(std::exchange(other.op_, nullptr)) {}
  SingleOpRef& operator=(SingleOpRef other) noexcept {
    std::swap(op_, other.op_);
    return *this;
  }
  ~SingleOpRef();
  explicit operator bool() const { return op_ != nullptr; }
  const SingleOp* get() const { return op_; }
  const SingleOp* operator->() const { return op_; }
  const SingleOp& operator*() const { return *op_; }
  /// Releases the pointer; the caller takes over its count.
  const SingleOp* detach() { return std::exchange(op_, nullptr); }

 private:
  const SingleOp* op_ = nullptr;
};

class SingleOp {
 public:
  /// The operator for inputs of these types and shape operands of these values: from the thread's cache, from the
  /// process's, or newly made. Of `outputs` only the strides matter. Throws Error.
  static SingleOpRef prepare(const OpRequest& request, std::span<const Operand> inputs,
                             std::span<const Operand> outputs = {});
  ~SingleOp();

  struct Result {
    DType dtype;
    std::optional<Dims> dims;  // none: known only after a run
    bool is_list = false;
  };
  const std::vector<Result>& results() const { return results_; }

  /// There may be fewer `outputs` than results; `allocate` provides the memory of the others, and may be null if there
  /// are none. An output may alias an input. Throws Error; invalid_argument if an input differs from what was prepared
  /// for.
  void run(std::span<const Operand> inputs, std::span<const Operand> outputs, const OutputAllocator* allocate,
           const RunOptions& options = {}) const;

  const Module& module() const { return model_->module(); }
  const OpDef& op() const { return *op_; }
  size_t input_count() const;
  const Plan& plan() const { return *plan_; }
  /// The kernel's name, such as "cpu/elementwise 1".
  std::string kernel() const;
  /// How run() accesses input i.
  enum class Access : uint8_t { direct, strided, copied, value };
  Access access(size_t input) const;
  Cost cost() const;
  /// The approximate size, with the memory of one run.
  size_t bytes() const;
  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// Frees the memory kept for the next run.
  void drop_memory() const;

 private:
  friend class OpCache;
  struct Input;
  struct Output;
  struct Memory;
  struct Direct;
  class Lease;

  SingleOp();
  void make_model(const Attributes& attributes, std::span<const Operand> inputs, ModelOptions options);
  void read_signature(std::span<const Operand> inputs, std::span<const Operand> outputs);
  void make_direct();
  bool make_step(Direct& direct);
  bool make_copy(Direct& direct, bool strided);
  void place_memory(Direct& direct);
  bool lies_as_prepared(std::span<const Operand> inputs, std::span<const Operand> outputs) const;
  void check(std::span<const Operand> inputs, std::span<const Operand> outputs) const;
  bool may_share(std::span<const Operand> inputs, std::span<const Operand> outputs) const;
  bool run_direct(std::span<const Operand> inputs, std::span<const Operand> outputs, const OutputAllocator* allocate,
                  Executor& executor) const;
  void run_plan(std::span<const Operand> inputs, std::span<const Operand> outputs, const OutputAllocator* allocate,
                const RunOptions& options) const;

  mutable std::atomic<uint32_t> count_{1};
  mutable std::atomic<uint64_t> last_use_{0};  // set by the cache
  mutable std::atomic<Memory*> spare_{nullptr};
  std::vector<uint64_t> key_;
  uint64_t hash_ = 0;
  const OpDef* op_ = nullptr;
  std::shared_ptr<Executor> pool_;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Plan> plan_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<Result> results_;
  std::unique_ptr<Direct> direct_;  // null: the plan is run step by step
};

/// SingleOp::prepare() with the attributes and options given directly.
SingleOpRef prepare_op(const OpDef& op, const Attributes& attributes, std::span<const Operand> inputs,
                       std::span<const Operand> outputs = {}, const ModelOptions& options = {});
/// Runs one op on row-major tensors. Throws Error.
void run_op(const OpDef& op, const Attributes& attributes, std::span<const TensorRef> inputs, OutputAllocator allocate,
            const ModelOptions& options = {});

}  // namespace cairn
