#include "engines/cpu/row_filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "engines/cpu/call_step.h"
#include "engines/cpu/isa.h"
#include "support/memory.h"
#include "support/stop.h"
#include "support/target.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace row_filter_plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/row_filter_body.h"
#undef CAIRN_FLOATS
}  // namespace row_filter_plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace row_filter_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/row_filter_body.h"
#undef CAIRN_FLOATS
}  // namespace row_filter_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace row_filter_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/row_filter_body.h"
#undef CAIRN_FLOATS
}  // namespace row_filter_avx512
CAIRN_TARGET_END

namespace {

constexpr int64_t kBand = 16;  // rows of results

int64_t rows_read(const RowFilter& f, int64_t rows) { return rows + (f.kh - 1) * f.dilation_h; }
size_t bytes_of_floats(int64_t count) { return whole_lines(static_cast<size_t>(count) * sizeof(float)); }

/// Rows [first, first + count) of an image, those outside zeros, each element of a pixel `repeats` times.
void copy_with_borders(const RowFilter& f, int64_t first, int64_t count, const float* image, float* to) {
  const int64_t channels = f.channels / f.repeats;
  // Columns of the border and of the image; a negative border cuts columns off.
  const int64_t columns = f.ow + (f.kw - 1) * f.dilation_w, left = std::clamp<int64_t>(f.pad_left, 0, columns);
  const int64_t skipped = std::max<int64_t>(0, -f.pad_left);
  const int64_t kept = std::max<int64_t>(0, std::min(columns - left, f.w - skipped));
  for (int64_t row = first; row < first + count; ++row, to += f.pitch()) {
    const bool inside = row >= 0 && row < f.h;
    const int64_t begin = inside ? left * f.channels : 0, size = inside ? kept * f.channels : 0;
    std::fill_n(to, begin, 0.f);
    const float* from = image + (row * f.w + skipped) * channels;
    if (inside && f.repeats == 1) std::memcpy(to + begin, from, static_cast<size_t>(size) * sizeof(float));
    for (int64_t i = 0; inside && f.repeats > 1 && i < kept * channels; ++i)
      std::fill_n(to + begin + i * f.repeats, f.repeats, from[i]);
    std::fill(to + begin + size, to + f.pitch(), 0.f);
  }
}

/// Each tap's floats begin anew behind the last channel. `flips`: the taps from the last to the first.
void spread_period(const RowFilter& f, int64_t taps, bool flips, const float* from, float* to) {
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t i = 0, c = 0; i < f.period(); ++i, c = c + 1 == f.channels ? 0 : c + 1)
      to[tap * f.period() + i] = from[(flips ? taps - 1 - tap : tap) * f.channels + c];
}

}  // namespace

std::optional<RowFilter> row_filter(const SlideSpec& s, bool of_image) {
  if (s.d * s.od * s.kd * s.stride_d * s.stride_h * s.stride_w != 1) return std::nullopt;
  RowFilter f{s.n,  s.h,  s.w,          s.oh,         s.ow,      s.channels, s.multiplier,
              s.kh, s.kw, s.dilation_h, s.dilation_w, s.pad_top, s.pad_left};
  if (!of_image) return f;
  std::swap(f.h, f.oh), std::swap(f.w, f.ow);
  f.repeats = 1;
  f.pad_top = (f.kh - 1) * f.dilation_h - f.pad_top, f.pad_left = (f.kw - 1) * f.dilation_w - f.pad_left;
  return f;
}

namespace {

struct FilterScratch {  // bytes: of all, and of one worker
  explicit FilterScratch(const RowFilter& f)
      : weights(bytes_of_floats(f.taps() * f.period())), bias(bytes_of_floats(f.period())),
        rows(bytes_of_floats(rows_read(f, kBand) * f.pitch())), made(bytes_of_floats(kBand * f.ow * f.channels)) {}
  size_t weights, bias, rows, made;
};

}  // namespace

size_t row_filter_workspace(const RowFilter& f, int threads) {
  const FilterScratch s(f);
  return s.weights + s.bias + (s.rows + s.made) * static_cast<size_t>(std::max(1, threads));
}

void filter_images(Executor& executor, const RowFilter& f, bool of_image, int64_t filters, const float* x,
                   const float* kernel, const float* bias, float* y, void* workspace) {
  static const auto filter =
      machine_loop(&row_filter_plain::filter_rows, &row_filter_avx2::filter_rows, &row_filter_avx512::filter_rows);
  const FilterScratch s(f);
  char* const shared = static_cast<char*>(workspace);
  auto *const weights = reinterpret_cast<float*>(shared), *const start = reinterpret_cast<float*>(shared + s.weights);
  spread_period(f, f.taps(), of_image, kernel, weights);
  if (bias) spread_period(f, 1, false, bias, start);
  const int64_t bands = (f.oh + kBand - 1) / kBand, image = f.h * f.w * (f.channels / f.repeats);
  executor.run(static_cast<int>(f.n * bands), [&](int chunk, int worker) {
    char* const own = shared + s.weights + s.bias + static_cast<size_t>(worker) * (s.rows + s.made);
    auto* const rows = reinterpret_cast<float*>(own);
    const int64_t first = chunk % bands * kBand, count = std::min(kBand, f.oh - first),
                  size = count * f.ow * f.channels;
    copy_with_borders(f, first - f.pad_top, rows_read(f, count), x + chunk / bands * image, rows);
    float* const to = y + (chunk / bands * f.oh + first) * f.ow * (f.channels / filters);
    float* const made = filters > 1 ? reinterpret_cast<float*>(own + s.rows) : to;
    filter(f, first - f.pad_top, count, rows, weights, bias ? start : nullptr, made);
    for (int64_t i = 0; filters > 1 && i < size / filters; ++i)
      to[i] = std::accumulate(made + i * filters, made + (i + 1) * filters, 0.f);
    stop_point_after(size * f.taps() / 8);
  });
}

int64_t row_cycle(const RowFilter& f) { return std::lcm(f.channels, static_cast<int64_t>(loop_lanes(machine_isa()))); }

namespace {

struct GradientScratch {
  explicit GradientScratch(const RowFilter& f)
      : sums(bytes_of_floats(f.taps() * row_cycle(f))), rows(bytes_of_floats(rows_read(f, kBand) * f.pitch())),
        gradient(bytes_of_floats(kBand * f.gradient_pitch())) {}
  size_t sums, rows, gradient;
};

}  // namespace

size_t row_kernel_gradient_workspace(const RowFilter& f, int threads) {
  const GradientScratch s(f);
  return s.sums * static_cast<size_t>(f.n) + (s.rows + s.gradient) * static_cast<size_t>(std::max(1, threads));
}

void row_kernel_gradient(Executor& executor, const RowFilter& f, const float* x, const float* dy, float* dk,
                         void* workspace) {
  static const auto sum =
      machine_loop(&row_filter_plain::sum_products, &row_filter_avx2::sum_products, &row_filter_avx512::sum_products);
  const GradientScratch s(f);
  char* const shared = static_cast<char*>(workspace);
  const int64_t cycle = row_cycle(f), row = f.ow * f.channels;
  const auto sums_of = [&](int64_t image) {
    return reinterpret_cast<float*>(shared + static_cast<size_t>(image) * s.sums);
  };
  executor.run(static_cast<int>(f.n), [&](int image, int worker) {
    char* const own = shared + s.sums * static_cast<size_t>(f.n) + static_cast<size_t>(worker) * (s.rows + s.gradient);
    auto *const rows = reinterpret_cast<float*>(own), *const gradient = reinterpret_cast<float*>(own + s.rows);
    std::fill_n(sums_of(image), f.taps() * cycle, 0.f);
    for (int64_t first = 0; first < f.oh; first += kBand) {
      const int64_t count = std::min(kBand, f.oh - first);
      copy_with_borders(f, first - f.pad_top, rows_read(f, count), x + image * f.h * f.w * (f.channels / f.repeats),
                        rows);
      for (int64_t r = 0; r < count; ++r) {
        float* const to = std::copy_n(dy + (image * f.oh + first + r) * row, row, gradient + r * f.gradient_pitch());
        std::fill_n(to, RowFilter::kBehind, 0.f);
      }
      sum(f, count, cycle, rows, gradient, sums_of(image));
      stop_point_after(count * row * f.taps() / 8);
    }
  });
  for (int64_t i = 0; i < f.taps() * f.channels; ++i) {
    double all = 0;
    for (int64_t image = 0; image < f.n; ++image)
      for (int64_t lane = i % f.channels; lane < cycle; lane += f.channels)
        all += static_cast<double>(sums_of(image)[i / f.channels * cycle + lane]);
    dk[i] = static_cast<float>(all);
  }
}

}  // namespace cairn
