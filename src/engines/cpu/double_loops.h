// Element-wise operations on tiles of doubles, compiled for each instruction set; their functions are vector code of the C library.
#pragma once

#include "engines/cpu/vector_loops.h"

namespace cairn {

/// Doubles that loops take at once: a multiple of what a register of any instruction set holds.
inline constexpr int64_t kDoubles = 8;

/// to[i] from x[i], y[i] and z[i] for `count` vectors of kDoubles; `to` may be any of them.
using DoubleLoop = void (*)(int64_t count, double low, double high, const double* x, const double* y, const double* z,
                            double* to);

/// Null for operations that have none.
DoubleLoop double_loop(ElementOp op);

}  // namespace cairn
