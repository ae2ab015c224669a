// What an operator is: one OpDef row says everything about it; parser, printer, builder, verifier, folding, engines'
// conformance, documentation and support tables are derived from the rows. The rows themselves live in src/ops.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attribute.h"
#include "ir/list.h"
#include "ir/tensor.h"
#include "ir/types.h"

namespace cairn {

struct Block;
struct Node;
struct OpDef;
struct Value;
class Builder;
class GradientContext;  // ir/gradient.h

/// Facts that passes and engines may ask for instead of an op's name.
enum Trait : uint32_t {
  kElementwise = 1 << 0,    // result element depends on the elements at the same (broadcast, NumPy rules) position only
  kCommutative = 1 << 1,    // first two inputs may be swapped
  kView = 1 << 2,           // result 0 has the elements of input 0 in the same order: no work, may share memory
  kInPlace = 1 << 3,        // result 0 may overwrite input 0 when both have the same bytes
  kControl = 1 << 4,        // has regions or calls a function: the runtime runs it, engines do not
  kDynamicResult = 1 << 5,  // result dims depend on element values: a planned segment ends after it
  kHostValue = 1 << 7,      // works on lists, optionals or strings: host objects, never device buffers
  kReadsState = 1 << 8,     // may not be reordered with a node that writes state
  kWritesState = 1 << 9,    // dead-code elimination keeps it
  kReduction = 1 << 10,     // sums or compares along axes
  kContraction = 1 << 11,   // matrix product or convolution: most FLOPs of a model
  kNotFoldable = 1 << 12,   // constant folding leaves it alone (random ops, `constant` itself)
  kShapeOnly = 1 << 13,     // the result depends on the types of the inputs alone, not on their elements
  kLoop = 1 << 14,          // with kControl: a condition and a body, which replaces the first `carried` inputs
  kCall = 1 << 15,          // with kControl: runs the function that the attribute `callee` names
};

/// Which types an input accepts.
enum class Accepts : uint8_t {
  any,
  numbers,
  floats,
  integers,
  boolean,
  number_or_bool,
  i32_or_i64,
  text,
  list,
  resource,
  rng,
  token,
  any_tensor
};

/// What an op does with an input.
enum class Role : uint8_t {
  data,   // its elements flow into the results; only float data has a gradient
  shape,  // result dims depend on its elements; a prepared single operator is specialised to them
  index,  // its integers choose elements of another input or positions in a result
  state,  // a variable, a random state or a token: the op reads or replaces the state that it refers to
};

struct InputDef {
  const char* name;
  Accepts accepts = Accepts::any_tensor;
  enum class Arity : uint8_t { one, optional, variadic } arity = Arity::one;  // optional and variadic inputs come last
  Role role = Role::data;
};
/// An input such as "shape", "size" or "count", whose elements determine the size of a result.
inline InputDef shape_operand(const char* name, Accepts accepts = Accepts::i32_or_i64) {
  return {name, accepts, InputDef::Arity::one, Role::shape};
}
inline InputDef index_operand(const char* name, Accepts accepts = Accepts::i32_or_i64,
                              InputDef::Arity arity = InputDef::Arity::one) {
  return {name, accepts, arity, Role::index};
}
inline InputDef state_operand(const char* name, Accepts accepts) {
  return {name, accepts, InputDef::Arity::one, Role::state};
}

struct AttrDef {
  const char* name;
  AttrKind kind;
  std::optional<Attribute> fallback = {};    // value when not given; without one the attribute is required
  std::vector<std::string_view> words = {};  // allowed values of a text attribute; empty: any
};

/// Named access to a node's attributes with the op's defaults; CHECKs that the op declares the name with that kind.
class AttributeView {
 public:
  AttributeView(const OpDef& op, const Attributes& given) : op_(&op), given_(&given) {}
  const Attribute& get(std::string_view name) const;
  bool has(std::string_view name) const;  // given or with a default
  bool boolean(std::string_view name) const { return std::get<bool>(get(name)); }
  int64_t integer(std::string_view name) const { return std::get<int64_t>(get(name)); }
  double number(std::string_view name) const { return std::get<double>(get(name)); }
  const std::string& text(std::string_view name) const { return std::get<std::string>(get(name)); }
  const std::vector<int64_t>& integers(std::string_view name) const {
    return std::get<std::vector<int64_t>>(get(name));
  }
  DType dtype(std::string_view name) const { return std::get<DType>(get(name)); }
  const Tensor& tensor(std::string_view name) const { return std::get<Tensor>(get(name)); }

 private:
  const OpDef* op_;
  const Attributes* given_;
};

/// Inputs and results of a shape rule. A rule is written once and works on known, symbolic and unknown dims alike.
class InferContext {
 public:
  InferContext(const OpDef& op, const Attributes& attributes, std::vector<Type> inputs,
               std::vector<const Tensor*> constants, std::span<const std::unique_ptr<Block>> regions)
      : attr(op, attributes), op_(op), inputs_(std::move(inputs)), constants_(std::move(constants)), regions_(regions) {
  }

  AttributeView attr;
  const OpDef& op() const { return op_; }
  size_t input_count() const { return inputs_.size(); }
  const Type& input(size_t i) const { return inputs_[i]; }
  const Shape& shape(size_t i) const { return inputs_[i].shape; }
  DType dtype(size_t i) const { return inputs_[i].dtype; }
  /// Value of input i when it is known at compile time, else null.
  const Tensor* constant(size_t i) const { return i < constants_.size() ? constants_[i] : nullptr; }
  std::span<const std::unique_ptr<Block>> regions() const { return regions_; }

  void result(Type type) { results_.push_back(std::move(type)); }
  void result(DType dtype, Shape shape) { results_.push_back(Type::tensor(dtype, std::move(shape))); }
  const std::vector<Type>& results() const { return results_; }

  /// Throws Error invalid_model "<op>: message".
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_text(fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_text(const std::string& message) const;

 private:
  const OpDef& op_;
  std::vector<Type> inputs_;
  std::vector<const Tensor*> constants_;
  std::span<const std::unique_ptr<Block>> regions_;
  std::vector<Type> results_;
};

/// A value at run time that is not a plain buffer of the plan: a tensor that carries its own dims, or a list.
struct HostValue {
  Tensor tensor;
  std::shared_ptr<List> list;
};

/// Inputs and results of a reference kernel. Results with static types are allocated before it starts; it allocates the
/// others.
class KernelContext {
 public:
  KernelContext(const OpDef& op, const Attributes& attributes, std::span<const HostValue> inputs,
                std::span<HostValue> results)
      : attr(op, attributes), op_(op), attributes_(attributes), inputs_(inputs), results_(results) {}

  AttributeView attr;
  const OpDef& op() const { return op_; }
  size_t input_count() const { return inputs_.size(); }
  const Tensor& input(size_t i) const { return inputs_[i].tensor; }
  const HostValue& value(size_t i) const { return inputs_[i]; }
  Tensor& output(size_t i) { return results_[i].tensor; }
  HostValue& result(size_t i) { return results_[i]; }
  /// Allocates result i, whose dims the kernel has just computed. A result with a static type keeps its buffer; throws
  /// Error when that has other dims.
  Tensor& allocate(size_t i, DType dtype, std::vector<int64_t> dims);
  /// Result types by the op's shape rule, with all input values known; requires that all inputs are tensors. Throws
  /// Error when the rule refuses the inputs.
  std::vector<Type> infer() const;

  /// Throws Error invalid_argument "<op>: message".
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_text(fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_text(const std::string& message) const;

 private:
  const OpDef& op_;
  const Attributes& attributes_;
  std::span<const HostValue> inputs_;
  std::span<HostValue> results_;
};

/// Accuracy class: what an engine may do and how conformance compares.
/// exact: equal bits; rounded: a few ulp per element; accumulate_f32: sums in f32, in any order.
enum class Precision : uint8_t { exact, rounded, accumulate_f32 };

/// An independent definition of the op: a Python expression that the conformance tests evaluate with the inputs and
/// attributes as variables of their names, and np, tf, torch (only `tf` or `torch` when named by `framework`) in scope.
/// Inputs are numpy arrays (torch tensors for torch), 16-bit floats widened to f32; a variadic input is a list.
struct Oracle {
  const char* expression = nullptr;
  enum class Framework : uint8_t { numpy, tensorflow, torch } framework = Framework::numpy;
  const char* reason = nullptr;  // why there is no expression; names the tests used instead
};

struct OpDef {
  const char* name;
  const char* summary;  // one sentence: the meaning, with rounding, NaN, overflow and empty-tensor behaviour
  std::vector<InputDef> inputs = {};
  std::vector<AttrDef> attributes = {};
  std::vector<const char*> results = {"y"};  // names; empty for an op with a variable number of results
  uint32_t traits = 0;
  Precision precision = Precision::exact;
  void (*infer)(InferContext&) = nullptr;
  /// Floating-point operations for one run with these static types; elementwise ops need none (one per element).
  double (*flops)(const InferContext&) = nullptr;
  /// Appends nodes that compute the gradients of the inputs. `no_gradient` gives the reason when an op with a float
  /// result from float data has no rule.
  void (*gradient)(GradientContext&) = nullptr;
  const char* no_gradient = nullptr;
  /// Computes the same results from simpler ops, for engines that lack the op.
  std::vector<Value*> (*decompose)(Builder&, const Node&) = nullptr;
  void (*reference)(KernelContext&) = nullptr;
  Oracle oracle = {};
  /// Test inputs: "f32[2, 3], f32[3] {axis = 1}"; a literal fixes a value: "f32[6], i64[2]=[2, 3]".
  std::vector<const char*> cases = {};
  /// For operators from users: data that their shape rule, kernel and gradient reach as op().user.
  const void* user = nullptr;

  /// The definition of a node's input i; a variadic last one covers all inputs from its position on.
  const InputDef& input(size_t i) const { return inputs[i < inputs.size() ? i : inputs.size() - 1]; }
  Role role(size_t i) const { return input(i).role; }
  bool has_role(Role wanted) const;
  bool has(uint32_t trait) const { return (traits & trait) != 0; }
  bool pure() const { return !has(kReadsState | kWritesState); }
  const AttrDef* find_attribute(std::string_view attribute) const;
};

/// The row of that name, or null. Defined in src/ops/table.cpp.
const OpDef* find_op(std::string_view name);
/// The row of that name, which must exist (CHECK); for names written in our own code.
const OpDef& op_named(std::string_view name);
/// All built-in rows, ordered by family.
std::span<const OpDef* const> all_ops();
/// Registers the row of a user's operator for the life of the process, so that find_op finds it. Throws Error
/// invalid_argument when the name is taken or the row is incomplete. user_ops() lists these rows, ordered by name.
const OpDef& register_op(OpDef row);
std::vector<const OpDef*> user_ops();

}  // namespace cairn
