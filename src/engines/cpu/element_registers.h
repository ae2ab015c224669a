// Register allocation for recorded machine operations: each value is in a register, in the stack frame or in the pool
// of constants.
#pragma once

#include <vector>

#include "engines/cpu/element_recorder.h"
#include "engines/cpu/isa.h"

namespace cairn {

struct ValuePlace {
  enum class Kind : uint8_t { none, vector, mask, frame, pool } kind = Kind::none;
  int index = 0;  // the register, or the offset in vectors
};

struct ElementPlaces {
  std::vector<ValuePlace> values;  // by operation
  std::vector<int> set_up;         // fixed values to load into their register or the frame before the loop
  std::vector<uint32_t> pool;      // constants in memory, each repeated for every lane
  int frame = 0;                   // size of the frame in vectors
  int registers = 0;               // vector registers of values that are computed
  bool fits = true;                // all of these are in registers; without masks nothing can be emitted
  bool masks_fit = true;
};

/// The last two vector registers are left free. Masks are vectors, except with AVX-512: there they are mask registers
/// from k2 to k6.
ElementPlaces place_values(const std::vector<MachineOp>& ops, Isa isa);
/// The same with the fixed values, which come in the same order, where another list of operations has them.
ElementPlaces place_values(const std::vector<MachineOp>& ops, Isa isa, const std::vector<MachineOp>& others,
                           const ElementPlaces& fixed);
inline int vector_registers(Isa isa) { return isa == Isa::avx512 ? 32 : 16; }

}  // namespace cairn
