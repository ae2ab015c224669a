#include "engines/cpu/row_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/isa.h"
#include "support/target.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace row_sums_plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/row_sums_body.h"
#undef CAIRN_FLOATS
}  // namespace row_sums_plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace row_sums_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/row_sums_body.h"
#undef CAIRN_FLOATS
}  // namespace row_sums_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace row_sums_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/row_sums_body.h"
#undef CAIRN_FLOATS
}  // namespace row_sums_avx512
CAIRN_TARGET_END

void add_rows(const RowSums& sums) {
  static const auto loop =
      machine_loop(&row_sums_plain::add_rows, &row_sums_avx2::add_rows, &row_sums_avx512::add_rows);
  loop(sums);
}

}  // namespace cairn
