#include "engines/cpu/plane_pool.h"

#include <algorithm>
#include <limits>

#include "engines/cpu/isa.h"
#include "engines/cpu/resample.h"
#include "support/target.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

constexpr int64_t kMostTogether = 16, kTogether = 2048;  // rows, their floats
constexpr int64_t kBehind = 64;                          // floats that vectors may read and write behind the last row

}  // namespace

PlanePool::PlanePool(const SlideSpec& pooled) : spec(pooled) {
  const SlideSpec& s = spec;
  const auto counted = [&](const Inside& along) { return s.count_padding ? along.padded : along.count; };
  for (int64_t z = 0; z < s.od; ++z)
    for (int64_t y = 0; y < s.oh; ++y) {
      const Inside slices = inside_of(z, s.kd, s.stride_d, s.dilation_d, s.pad_front, s.d, s.pad_back);
      const Inside inside = inside_of(y, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.h, s.pad_bottom);
      const size_t first = offsets.size();
      for (int64_t d = 0; d < slices.count; ++d)
        for (int64_t h = 0; h < inside.count; ++h)
          offsets.push_back(((slices.first + d * s.dilation_d) * s.h + inside.first + h * s.dilation_h) * s.w);
      rows.push_back({first, offsets.size() - first, static_cast<float>(counted(slices) * counted(inside))});
    }
  for (int64_t x = 0; x < s.ow; ++x)
    counts.push_back(
        static_cast<float>(counted(inside_of(x, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.w, s.pad_right))));
  const int64_t reach = (s.ow - 1) * s.stride_w + (s.kw - 1) * s.dilation_w + 1;
  columns = (std::max(s.pad_left + s.w, reach) + s.stride_w - 1) / s.stride_w * s.stride_w;
}

namespace plane_pool_plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/plane_pool_body.h"
#undef CAIRN_FLOATS
}  // namespace plane_pool_plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace plane_pool_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/plane_pool_body.h"
#undef CAIRN_FLOATS
}  // namespace plane_pool_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace plane_pool_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/plane_pool_body.h"
#undef CAIRN_FLOATS
}  // namespace plane_pool_avx512
CAIRN_TARGET_END

void pool_plane_rows(const PlanePool& pool, int64_t first, int64_t last, const float* x, float* y) {
  static const auto loop =
      machine_loop(&plane_pool_plain::pool_rows, &plane_pool_avx2::pool_rows, &plane_pool_avx512::pool_rows);
  loop(pool, first, last, x, y);
}

}  // namespace cairn
