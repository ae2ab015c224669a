// What an element-wise program does to one vector, as a list of machine operations: recorded by calling the functions
// of vector_math.h with a type that writes down what is done to it, so that generated code and interpreter cannot
// differ.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/cpu/vector_loops.h"

namespace cairn {

struct ElementInstruction {
  ElementOp op;
  int sources[3] = {0, 0, 0};  // operands, then results of earlier instructions
  float low = 0, high = 0;
  int output = -1;  // that it makes
  friend bool operator==(const ElementInstruction&, const ElementInstruction&) = default;
};

struct ElementSpec {
  std::vector<bool> single;  // by operand: one number for all elements
  std::vector<ElementInstruction> code;
};

/// One operation on vectors: its value is named by its place in the list.
struct MachineOp {
  // clang-format off
  enum class Kind : uint8_t {
    constant, single, input, store,                                // `detail`: bits, operand, operand, output
    add, sub, mul, div, fused_add, fused_sub, fused_sub_from,      // a b + c, a b - c, c - a b
    sqrt, round,                                                   // `detail`: mode of the instruction
    compare, either, both, choose,                                 // `detail`: predicate; a ? b : c
    bits_and, bits_xor, ints_add, ints_sub, shift_left, shift_right,  // `detail`: by how much
    to_ints, to_floats,
    none,                                                          // nobody needs it
  };
  // clang-format on
  Kind kind;
  int sources[3] = {-1, -1, -1};
  uint32_t detail = 0;

  bool is_mask() const { return kind >= Kind::compare && kind <= Kind::both; }
  /// The same for all vectors.
  bool is_fixed() const { return kind <= Kind::single; }
};

/// Whether the program has nothing that only the C library does.
bool can_record(const ElementSpec& spec);

/// Every input comes before the first store: an output may take an input's place.
std::vector<MachineOp> record(const ElementSpec& spec);

}  // namespace cairn
