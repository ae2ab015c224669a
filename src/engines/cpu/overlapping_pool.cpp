#include "engines/cpu/overlapping_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/isa.h"
#include "engines/cpu/taps.h"
#include "support/memory.h"
#include "support/stop.h"
#include "support/target.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

constexpr int64_t kSlice = 64;  // channels of a unit of work

/// The windows that hold a row or column.
struct Windows {
  int64_t first, last;
};
Windows windows_of(int64_t position, int64_t size, int64_t stride, int64_t pad, int64_t count) {
  const int64_t end = position + pad;  // the windows begin at most here, and above end - size
  return {end < size ? 0 : (end - size) / stride + 1, std::min(count, end / stride + 1)};
}

/// Rows of windows that hold one row of the image.
int64_t rows_kept(const SlideSpec& s) { return (s.kh - 1) / s.stride_h + 1; }

/// Whether the maxima of rows, which windows below each other share, save comparisons.
bool goes_by_rows(const SlideSpec& s) { return s.stride_h * s.kw + s.kh < s.kh * s.kw; }

int64_t row_elements(const SlideSpec& s) { return s.ow * kSlice; }

/// Of each window the pixel that gets its gradient, or its row, or -1: [rows_kept][ow][kSlice]. By rows, of the last kh rows what is
/// largest in the columns of each window, and in which, and the gradients of one row.
size_t kept_bytes(const SlideSpec& s) {
  const int64_t rows = rows_kept(s) + (goes_by_rows(s) ? 2 * s.kh + 1 : 0);
  return whole_lines(static_cast<size_t>(rows * row_elements(s)) * sizeof(int32_t));
}

struct RowMaxima {
  int32_t* rows;     // of each window the row that gets its gradient, or -1
  float* values;     // [kh][ow][kSlice]
  int32_t* columns;  // the same
  float* sums;       // [ow][kSlice]
};
RowMaxima maxima_in(const SlideSpec& s, int32_t* kept) {
  const int64_t rows = rows_kept(s) * row_elements(s), values = s.kh * row_elements(s);
  auto* const floats = reinterpret_cast<float*>(kept + rows);
  return {kept, floats, kept + rows + values, floats + 2 * values};
}

}  // namespace

namespace overlapping_plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/overlapping_pool_body.h"
#undef CAIRN_FLOATS
}  // namespace overlapping_plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace overlapping_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/overlapping_pool_body.h"
#undef CAIRN_FLOATS
}  // namespace overlapping_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace overlapping_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/overlapping_pool_body.h"
#undef CAIRN_FLOATS
}  // namespace overlapping_avx512
CAIRN_TARGET_END

bool has_overlapping_windows(const SlideSpec& s) {
  return s.d * s.od * s.kd == 1 && s.dilation_h == 1 && s.dilation_w == 1 && (s.stride_h < s.kh || s.stride_w < s.kw) &&
         s.pixels() <= std::numeric_limits<int32_t>::max();
}

size_t overlapping_pool_workspace(const SlideSpec& s, int threads) {
  return kept_bytes(s) * static_cast<size_t>(std::max(1, threads));
}

void overlapping_pool_gradient(Executor& executor, const SlideSpec& s, bool gated, const float* x, const float* dy,
                               float* dx, void* workspace) {
  using namespace overlapping_plain;
  static const auto usual =
      machine_loop(&gradient_of, &overlapping_avx2::gradient_of, &overlapping_avx512::gradient_of);
  static const auto by_rows =
      machine_loop(&gradient_by_rows, &overlapping_avx2::gradient_by_rows, &overlapping_avx512::gradient_by_rows);
  const int64_t slices = (s.channels + kSlice - 1) / kSlice;
  executor.run(static_cast<int>(s.n * slices), [&](int chunk, int worker) {
    const int64_t image = chunk / slices, at = chunk % slices * kSlice;
    auto* kept =
        reinterpret_cast<int32_t*>(static_cast<char*>(workspace) + static_cast<size_t>(worker) * kept_bytes(s));
    const int64_t channels = std::min(kSlice, s.channels - at), from = image * s.pixels() * s.channels + at;
    const float* const gradient = dy + image * s.out_pixels() * s.channels + at;
    if (goes_by_rows(s) && by_rows(s, gated, channels, x + from, gradient, dx + from, maxima_in(s, kept))) return;
    usual(s, gated, channels, x + from, gradient, dx + from, kept);
  });
}

}  // namespace cairn
