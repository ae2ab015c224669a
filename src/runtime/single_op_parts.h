// What a prepared operator consists of, shared by the sources that make it and run it.
#pragma once

#include <cstring>

#include "engines/cpu/move.h"
#include "runtime/single_op.h"

namespace cairn {

/// Operands whose values decide the result's dims are part of a prepared operator, as constants.
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
/// Whether it lies so; no strides: row-major.
inline bool lies(const Operand& operand, const Dims& strides) {
  if (strides.empty()) return is_row_major(operand);
  if (!operand.strides) return false;
  for (size_t axis = 0; axis < strides.size(); ++axis)
    if (operand.dims[axis] != 1 && operand.strides[axis] != strides[axis]) return false;
  return true;
}

/// The elements in row-major order; a view where they lie so.
Tensor gathered(const Operand& operand);
/// Appends what tells the value from others.
void add_attribute(OpKey& key, const Attribute& value);

struct SingleOp::Input {
  explicit Input(const Operand& given)
      : dtype(given.dtype), dims(given.dims.begin(), given.dims.end()), is_list(given.object != nullptr) {}
  DType dtype;
  Dims dims;
  bool is_list;
  Tensor value = {};  // of an operand that is embedded
  Dims strides = {};  // as prepared
  Dims layout = {};   // as the plan's param lies, in strides of these dims
  size_t param = 0;   // of the plan
};

struct SingleOp::Output {
  Dims strides;  // as prepared
  bool is_rng = false;
  size_t bytes = 0;
};

/// The plan's one step, or copy, with the caller's pointers.
struct SingleOp::Direct {
  static constexpr size_t kMostInputs = 64, kMostOutputs = 16;

  const Step* step = nullptr;  // null: a copy
  std::unique_ptr<Step> own;   // that reads strides
  bool reads_strides = false;
  std::optional<StridedCopy> copy;
  /// Where an argument of the step comes from.
  struct Argument {
    enum class Kind : uint8_t { operand, constant, memory, object } kind = Kind::operand;
    size_t index = 0;  // operand: which; memory: offset; object: which of the memory's
    const void* constant = nullptr;
  };
  std::vector<Argument> inputs, outputs;
  /// Copies before the step, of inputs that it cannot read as they lie, and behind it.
  struct Move {
    size_t operand, offset;
    StridedCopy copy;
  };
  std::vector<Move> gathers, scatters;
  struct Object {
    size_t operand, object;
  };
  std::vector<Object> states_in, states_out;  // random states
  uint64_t shareable = 0;                     // inputs whose memory an output may have
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
