// The parts of a prepared operator, shared by the sources that prepare and run it.
#pragma once

#include <cstring>

#include "engines/cpu/move.h"
#include "runtime/single_op.h"

namespace cairn {

/// Whether the operand's value determines the result's dims: it is then embedded in the prepared operator as a
/// constant.
inline bool is_embedded(const OpDef& op, size_t input) { return op.role(input) == Role::shape; }

inline int64_t count_of(const Operand& operand) {
  int64_t count = 1;
  for (int64_t dim : operand.dims) count *= dim;
  return count;
}
inline size_t bytes_of(const Operand& operand) { return storage_bytes(operand.dtype, count_of(operand)); }

inline bool is_row_major(const Operand& operand) {
  if (!operand.strides) return true;
  int64_t expected = 1;
  for (size_t axis = operand.dims.size(); axis-- > 0;) {
    if (operand.dims[axis] != 1 && operand.strides[axis] != expected) return count_of(operand) == 0;
    expected *= operand.dims[axis];
  }
  return true;
}
/// Whether the operand has these strides; without strides it is row-major.
inline bool lies(const Operand& operand, const Dims& strides) {
  if (strides.empty()) return is_row_major(operand);
  if (!operand.strides) return false;
  for (size_t axis = 0; axis < strides.size(); ++axis)
    if (operand.dims[axis] != 1 && operand.strides[axis] != strides[axis]) return false;
  return true;
}

/// The elements in row-major order; a view if they already are.
Tensor gathered(const Operand& operand);
/// Appends words that identify the value.
void add_attribute(OpKey& key, const Attribute& value);

struct SingleOp::Input {
  explicit Input(const Operand& given)
      : dtype(given.dtype), dims(given.dims.begin(), given.dims.end()), is_list(given.object != nullptr) {}
  DType dtype;
  Dims dims;
  bool is_list;
  Tensor value = {};  // of an embedded operand
  Dims strides = {};  // for which it was prepared
  Dims layout = {};   // strides of the plan's param, in the order of the operand's dims
  size_t param = 0;   // index of the plan's param
};

struct SingleOp::Output {
  Dims strides;  // as prepared
  bool is_rng = false;
  size_t bytes = 0;
};

/// Direct execution of the plan's only step, or copy, on the caller's pointers.
struct SingleOp::Direct {
  static constexpr size_t kMostInputs = 64, kMostOutputs = 16;

  const Step* step = nullptr;  // null: a copy
  std::unique_ptr<Step> own;   // a step made for strided operands, if any
  bool reads_strides = false;
  std::optional<StridedCopy> copy;
  /// The source of an argument of the step.
  struct Argument {
    enum class Kind : uint8_t { operand, constant, memory, object } kind = Kind::operand;
    size_t index = 0;  // the operand's number, the offset in memory, or the number of the object
    const void* constant = nullptr;
  };
  std::vector<Argument> inputs, outputs;
  /// A copy of an input that the step cannot read in place (before the step), or of an output (after it).
  struct Move {
    size_t operand, offset;
    StridedCopy copy;
  };
  std::vector<Move> gathers, scatters;
  struct Object {
    size_t operand, object;
  };
  std::vector<Object> states_in, states_out;  // random states
  uint64_t shareable = 0;                     // bit set of the inputs that an output may overwrite
  bool several_shareable = false;
  size_t workspace = 0, memory = 0, objects = 0;  // offset; bytes; number
};

struct SingleOp::Memory {
  Memory(size_t bytes, size_t objects);
  ~Memory();
  char* data;
  std::vector<HostValue> objects;
};

}  // namespace cairn
