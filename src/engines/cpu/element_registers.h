// Where each value of recorded machine operations lives: a register, or a place in the frame or the pool of constants.
#pragma once

#include <vector>

#include "engines/cpu/element_recorder.h"
#include "engines/cpu/isa.h"

namespace cairn {

struct ValuePlace {
  enum class Kind : uint8_t { none, vector, mask, frame, pool } kind = Kind::none;
  int index = 0;  // register, or vectors from the start
};

struct ElementPlaces {
  std::vector<ValuePlace> values;  // by operation
  std::vector<int> set_up;         // fixed values to be brought to their register or into the frame before the loop
  std::vector<uint32_t> pool;      // numbers that lie there once for each lane
  int frame = 0;                   // vectors
};

/// The last two vector registers are left free; masks are vectors but with AVX-512, where they are in registers from 2.
ElementPlaces place_values(const std::vector<MachineOp>& ops, Isa isa);
inline int vector_registers(Isa isa) { return isa == Isa::avx512 ? 32 : 16; }

}  // namespace cairn
