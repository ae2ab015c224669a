#include "engines/cpu/vector_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/isa.h"

#define CAIRN_LOOPS                                                                                \
  constexpr VectorLoops kLoops = {execute,     reduce_channels, reduce_row,        layer_norm_row, \
                                  softmax_row, softmax_columns, cross_entropy_row, softmax_of_scores};

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

namespace plain {
#include "engines/cpu/vector_loops_body.h"
CAIRN_LOOPS
}  // namespace plain

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace avx2 {
#include "engines/cpu/vector_loops_body.h"
CAIRN_LOOPS
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace avx512 {
#include "engines/cpu/vector_loops_body.h"
CAIRN_LOOPS
}  // namespace avx512
#pragma GCC pop_options

}  // namespace

const VectorLoops& vector_loops() {
  static const VectorLoops& chosen = machine_isa() == Isa::avx512 ? avx512::kLoops
                                     : machine_isa() == Isa::avx2 ? avx2::kLoops
                                                                  : plain::kLoops;
  return chosen;
}

}  // namespace cairn
