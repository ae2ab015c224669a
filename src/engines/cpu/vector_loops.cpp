#include "engines/cpu/vector_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/isa.h"
#include "ops/special.h"
#include "support/target.h"

#define CAIRN_LOOPS(transpose)                                                                                        \
  constexpr VectorLoops kLoops = {execute,         reduce_channels,   reduce_rows,       layer_norm_row, softmax_row, \
                                  softmax_columns, cross_entropy_row, softmax_of_scores, spread_rows,    copy_rows,   \
                                  copy_rows_at,    arg_columns,       arg_row,           pick,           interleave,  \
                                  truncate,        every_second,      transpose};

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

namespace plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/vector_loops_body.h"
CAIRN_LOOPS(nullptr)
#undef CAIRN_FLOATS
}  // namespace plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/vector_loops_body.h"
CAIRN_LOOPS(nullptr)
#undef CAIRN_FLOATS
}  // namespace avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/vector_loops_body.h"

// One step of a transposition: rows i and i + kDistance exchange their off-diagonal blocks.
template <int kDistance>
CAIRN_INLINE void exchange(Floats (&rows)[kFloats]) {
  Ints low, high;
  for (int lane = 0; lane < kFloats; ++lane) {
    low[lane] = lane & kDistance ? kFloats + lane - kDistance : lane;
    high[lane] = lane & kDistance ? kFloats + lane : lane + kDistance;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kFloats; ++i) {
    if (i & kDistance) continue;
    const Floats a = rows[i], b = rows[i + kDistance];
    rows[i] = CAIRN_SHUFFLE(a, b, low);
    rows[i + kDistance] = CAIRN_SHUFFLE(a, b, high);
  }
}
void transpose(const float* from, int64_t step, float* to, int64_t to_step) {
  Floats rows[kFloats];
#pragma GCC unroll 16
  for (int i = 0; i < kFloats; ++i) rows[i] = load(from + i * step);
  exchange<8>(rows);
  exchange<4>(rows);
  exchange<2>(rows);
  exchange<1>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kFloats; ++i) store(to + i * to_step, rows[i]);
}
CAIRN_LOOPS(transpose)
#undef CAIRN_FLOATS
}  // namespace avx512
CAIRN_TARGET_END

}  // namespace

bool is_one_by_one(ElementOp op, float x) {
  if (op == ElementOp::truncate_mod) return !std::isnan(x);
  return op == ElementOp::log_gamma || op == ElementOp::digamma ? x <= 0 : std::abs(x) > kMostAngle;
}
float one_by_one(ElementOp op, float x, float y) {
  if (op == ElementOp::truncate_mod) return std::fmod(x, y);
  if (op == ElementOp::log_gamma) return static_cast<float>(log_gamma(x));
  if (op == ElementOp::digamma) return static_cast<float>(digamma(x));
  return op == ElementOp::sin ? std::sin(x) : op == ElementOp::cos ? std::cos(x) : std::tan(x);
}

const VectorLoops& vector_loops() {
  static const VectorLoops& chosen = machine_isa() == Isa::avx512 ? avx512::kLoops
                                     : machine_isa() == Isa::avx2 ? avx2::kLoops
                                                                  : plain::kLoops;
  return chosen;
}

}  // namespace cairn
