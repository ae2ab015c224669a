// One operator on the caller's tensors, without a model around it: prepared once for the types of its inputs, then run
// any number of times, by any number of threads. A run that was made before takes no lock and allocates nothing.
#pragma once

#include <array>
#include <optional>

#include "runtime/model.h"

namespace cairn {

/// A tensor of the caller's, or a host object.
struct Operand {
  DType dtype;
  std::span<const int64_t> dims;
  const int64_t* strides = nullptr;  // in elements; null: row-major
  void* data = nullptr;              // of an output null: the allocator gives row-major memory
  HostValue* object = nullptr;       // a list: in place of elements
};

/// What prepared operators are looked up by: words, hashed and compared.
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

/// What to prepare, besides the types of the tensors. `key` appends what tells these attributes and options from others;
/// the other two are asked when the operator has to be made.
struct OpRequest {
  const OpDef& op;
  FunctionRef<void(OpKey&)> key;
  FunctionRef<Attributes()> attributes;
  FunctionRef<ModelOptions()> options;
};

class SingleOp;

/// Holds a prepared operator.
class SingleOpRef {
 public:
  SingleOpRef() = default;
  explicit SingleOpRef(const SingleOp* op) : op_(op) {}  // takes a count over
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
  /// Leaves the count to the caller.
  const SingleOp* detach() { return std::exchange(op_, nullptr); }

 private:
  const SingleOp* op_ = nullptr;
};

class SingleOp {
 public:
  /// The operator for inputs of these types, and shape operands of these values; from the thread's cache, the process's,
  /// or made. Of `outputs` only strides count. Throws Error.
  static SingleOpRef prepare(const OpRequest& request, std::span<const Operand> inputs,
                             std::span<const Operand> outputs = {});
  ~SingleOp();

  struct Result {
    DType dtype;
    std::optional<Dims> dims;  // none: a run tells
    bool is_list = false;
  };
  const std::vector<Result>& results() const { return results_; }

  /// `outputs` may be fewer than the results; `allocate` gives what they lack, and may be null when they lack nothing.
  /// An output may be an input. Throws Error, invalid_argument where an input is not what was prepared for.
  void run(std::span<const Operand> inputs, std::span<const Operand> outputs, const OutputAllocator* allocate,
           const RunOptions& options = {}) const;

  const Module& module() const { return model_->module(); }
  const OpDef& op() const { return *op_; }
  size_t input_count() const;
  const Plan& plan() const { return *plan_; }
  /// "cpu/elementwise 1".
  std::string kernel() const;
  /// How run() gets at input i as it was prepared.
  enum class Access : uint8_t { direct, strided, copied, value };
  Access access(size_t input) const;
  Cost cost() const;
  /// About, with the memory of one run.
  size_t bytes() const;
  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// Frees the memory that is kept for the next run.
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
  mutable std::atomic<uint64_t> last_use_{0};  // for the cache
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

/// SingleOp::prepare() with attributes and options as they are.
SingleOpRef prepare_op(const OpDef& op, const Attributes& attributes, std::span<const Operand> inputs,
                       std::span<const Operand> outputs = {}, const ModelOptions& options = {});
/// Runs one op on row-major tensors. Throws Error.
void run_op(const OpDef& op, const Attributes& attributes, std::span<const TensorRef> inputs, OutputAllocator allocate,
            const ModelOptions& options = {});

}  // namespace cairn
