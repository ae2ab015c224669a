// Records an element-wise program as a list of machine operations on one vector, by calling the functions of
// vector_math.h with a type that records the operations applied to it. Generated code and interpreter therefore compute
// the same.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/cpu/isa.h"
#include "engines/cpu/narrow.h"
#include "engines/cpu/vector_loops.h"

namespace cairn {

struct ElementInstruction {
  ElementOp op;
  int sources[3] = {0, 0, 0};  // numbers of operands or, after these, of earlier instructions
  float low = 0, high = 0;
  int output = -1;  // the output that it stores to; -1: none
  friend bool operator==(const ElementInstruction&, const ElementInstruction&) = default;
};

struct ElementSpec {
  std::vector<bool> single;                     // by operand: one number for all elements, a float
  std::vector<Form> inputs = {}, outputs = {};  // by operand and by output; missing: floats
  std::vector<ElementInstruction> code;
};

/// One operation on vectors; its index in the list identifies its value.
struct MachineOp {
  // clang-format off
  enum class Kind : uint8_t {
    constant, single, input, store,                                // `detail`: bits, operand, operand, output
    add, sub, mul, div, fused_add, fused_sub, fused_sub_from,      // a b + c, a b - c, c - a b
    smaller, larger,                                               // b where a is neither smaller nor larger
    sqrt, round, round_half, round_brain,                          // `detail`: mode of the instruction
    scale,                                                         // a 2^b, with AVX-512 only
    compare, either, both, choose,                                 // `detail`: predicate; a ? b : c
    bits_and, bits_xor, ints_add, ints_sub, shift_left, shift_right,  // `detail`: by how much
    to_ints, to_floats,
    library,                                                       // a, in lanes of c by the function `detail` of b
    none,                                                          // unused
  };
  // clang-format on
  Kind kind;
  int sources[3] = {-1, -1, -1};
  uint32_t detail = 0;
  int vector = 0;       // of those that are computed side by side
  bool rounds = false;  // a store: to the output's 16 bits

  bool is_mask() const { return kind >= Kind::compare && kind <= Kind::both; }
  /// Whether the value is the same for all vectors.
  bool is_fixed() const { return kind <= Kind::single; }
};

/// Records the program. Every input is read before the first store, so that an output may alias an input.
std::vector<MachineOp> record(const ElementSpec& spec, Isa isa);

/// The operations for `count` vectors, one for each before the next operation. Fixed values are there once.
std::vector<MachineOp> side_by_side(const std::vector<MachineOp>& ops, int count);

}  // namespace cairn
