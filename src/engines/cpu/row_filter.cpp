#include "engines/cpu/row_filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>
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

struct RowLoops {
  decltype(&row_filter_plain::filter_rows) filter;
  decltype(&row_filter_plain::store_phase) store;
  decltype(&row_filter_plain::sum_products) sum;
};
const RowLoops& row_loops() {
  using namespace row_filter_plain;
  static const RowLoops chosen{
      machine_loop(&filter_rows, &row_filter_avx2::filter_rows, &row_filter_avx512::filter_rows),
      machine_loop(&store_phase, &row_filter_avx2::store_phase, &row_filter_avx512::store_phase),
      machine_loop(&sum_products, &row_filter_avx2::sum_products, &row_filter_avx512::sum_products)};
  return chosen;
}

constexpr int64_t kBand = 16;  // rows of results

int64_t rows_read(const RowFilter& f, int64_t rows) { return (rows - 1) * f.stride_h + (f.kh - 1) * f.dilation_h + 1; }
size_t bytes_of_floats(int64_t count) { return whole_lines(static_cast<size_t>(count) * sizeof(float)); }

/// Every stride_w-th column of a row from `phase` on, counted from the border's first; those outside the image are zeros.
void copy_columns(const RowFilter& f, int64_t phase, const float* row, float* to) {
  const int64_t channels = f.channels / f.repeats, step = f.stride_w;
  // A negative border cuts columns off.
  const auto columns_below = [&](int64_t column) {
    return std::clamp<int64_t>((column - phase + step - 1) / step, 0, f.columns());
  };
  const int64_t left = row ? columns_below(std::max(phase, f.pad_left)) : 0;
  const int64_t end = row ? std::max(left, columns_below(std::max(phase, f.pad_left + f.w))) : 0;
  std::fill_n(to, left * f.channels, 0.f);
  const float* from = row + (left * step + phase - f.pad_left) * channels;
  float* at = to + left * f.channels;
  if (f.repeats == 1 && step == 1)
    at = std::copy_n(from, (end - left) * channels, at);
  else
    for (int64_t i = left; i < end; ++i, from += step * channels)
      for (int64_t c = 0; c < channels; ++c) at = std::fill_n(at, f.repeats, from[c]);
  std::fill(at, to + f.part(), 0.f);
}

/// Rows [first, first + count) of an image, those outside zeros, each element of a pixel `repeats` times.
void copy_with_borders(const RowFilter& f, int64_t first, int64_t count, const float* image, float* to) {
  for (int64_t row = first; row < first + count; ++row)
    for (int64_t phase = 0; phase < f.stride_w; ++phase, to += f.part())
      copy_columns(f, phase, row >= 0 && row < f.h ? image + row * f.w * (f.channels / f.repeats) : nullptr, to);
}

/// A tap's floats begin anew behind the last channel.
void spread_period(const RowFilter& f, const float* from, float* to) {
  for (int64_t i = 0, c = 0; i < f.period(); ++i, c = c + 1 == f.channels ? 0 : c + 1) to[i] = from[c];
}

}  // namespace

std::optional<RowFilter> row_filter(const SlideSpec& s) {
  if (s.d * s.od * s.kd * s.stride_d != 1) return std::nullopt;
  RowFilter f{s.n,  s.h,  s.w,          s.oh,         s.ow,      s.channels, s.multiplier,
              s.kh, s.kw, s.dilation_h, s.dilation_w, s.pad_top, s.pad_left};
  f.stride_h = s.stride_h, f.stride_w = s.stride_w;
  return f;
}

namespace {

struct FilterScratch {  // bytes: of all, and of one worker
  explicit FilterScratch(const RowFilter& f)
      : weights(bytes_of_floats(f.taps() * f.period())), bias(bytes_of_floats(f.period())),
        rows(bytes_of_floats(rows_read(f, kBand) * f.pitch())) {}
  size_t weights, bias, rows;
};

}  // namespace

size_t row_filter_workspace(const RowFilter& f, int threads) {
  const FilterScratch s(f);
  return s.weights + s.bias + s.rows * static_cast<size_t>(std::max(1, threads));
}

void filter_images(Executor& executor, const RowFilter& f, const float* x, const float* kernel, const float* bias,
                   float* y, void* workspace) {
  const auto filter = row_loops().filter;
  const FilterScratch s(f);
  char* const shared = static_cast<char*>(workspace);
  auto *const weights = reinterpret_cast<float*>(shared), *const start = reinterpret_cast<float*>(shared + s.weights);
  for (int64_t tap = 0; tap < f.taps(); ++tap) spread_period(f, kernel + tap * f.channels, weights + tap * f.period());
  if (bias) spread_period(f, bias, start);
  const int64_t bands = (f.oh + kBand - 1) / kBand, image = f.h * f.w * (f.channels / f.repeats);
  executor.run(static_cast<int>(f.n * bands), [&](int chunk, int worker) {
    auto* const rows = reinterpret_cast<float*>(shared + s.weights + s.bias + static_cast<size_t>(worker) * s.rows);
    const int64_t first = chunk % bands * kBand, count = std::min(kBand, f.oh - first);
    copy_with_borders(f, first - f.pad_top, rows_read(f, count), x + chunk / bands * image, rows);
    filter(f, first - f.pad_top, count, rows, weights, bias ? start : nullptr,
           y + (chunk / bands * f.oh + first) * f.ow * f.channels);
    stop_point_after(count * f.ow * f.channels * f.taps() / 8);
  });
}

namespace {

/// Of one dim, the pixels from `first` on that lie `stride` apart: their taps, with the dilation and the border of their filter.
struct Phase {
  PhaseFilter::Along along;
  int64_t dilation, pad, size;
};
Phase phase_of(int64_t first, int64_t in, int64_t size, int64_t stride, int64_t dilation, int64_t pad) {
  const int64_t common = std::gcd(stride, dilation), step = stride / common;
  int64_t tap = 0;
  while (tap < size && (first + pad - tap * dilation) % stride != 0) ++tap;
  const int64_t count = (size - tap + step - 1) / step, nearest = (first + pad - tap * dilation) / stride;
  return {{first, tap, step, count},
          dilation / common,
          (count - 1) * (dilation / common) - nearest,
          (std::max(first, in) - first + stride - 1) / stride};
}

}  // namespace

std::vector<PhaseFilter> phase_filters(const SlideSpec& s) {
  std::vector<PhaseFilter> phases;
  if (s.d * s.od * s.kd * s.stride_d != 1) return phases;
  for (int64_t y = 0; y < s.stride_h; ++y)
    for (int64_t x = 0; x < s.stride_w; ++x) {
      const Phase down = phase_of(y, s.h, s.kh, s.stride_h, s.dilation_h, s.pad_top);
      const Phase across = phase_of(x, s.w, s.kw, s.stride_w, s.dilation_w, s.pad_left);
      phases.push_back({{s.n, s.oh, s.ow, down.size, across.size, s.channels, 1, down.along.count, across.along.count,
                         down.dilation, across.dilation, down.pad, across.pad},
                        down.along,
                        across.along});
    }
  return phases;
}

namespace {

/// Bytes of the weights of all phases, and of one worker, whose phases take turns.
struct PhaseScratch {
  explicit PhaseScratch(const std::vector<PhaseFilter>& phases) {
    for (const auto& [f, down, across] : phases) {
      bias = std::max(bias, bytes_of_floats(f.period())),
      made = std::max(made, bytes_of_floats(kBand * f.ow * f.channels));
      if (f.taps() == 0) continue;
      weights += FilterScratch(f).weights, rows = std::max(rows, FilterScratch(f).rows);
    }
  }
  size_t weights = 0, bias = 0, rows = 0, made = 0;
};

void spread_phase(const PhaseFilter& phase, int64_t kw, const float* kernel, float* to) {
  const auto& [down, across] = std::tie(phase.down, phase.across);
  for (int64_t y = down.count; y-- > 0;)  // dx reads the windows that hold it, whose first one holds it at its last tap
    for (int64_t x = across.count; x-- > 0; to += phase.filter.period()) {
      const int64_t tap = (down.tap + y * down.step) * kw + across.tap + x * across.step;
      spread_period(phase.filter, kernel + tap * phase.filter.channels, to);
    }
}

}  // namespace

size_t phase_filters_workspace(const std::vector<PhaseFilter>& phases, int threads) {
  const PhaseScratch s(phases);
  return s.weights + s.bias + (s.rows + s.made) * static_cast<size_t>(std::max(1, threads));
}

void filter_phases(Executor& executor, const SlideSpec& spec, const std::vector<PhaseFilter>& phases, const float* dy,
                   const float* kernel, const float* bias, float* dx, void* workspace) {
  const RowLoops& loops = row_loops();
  const PhaseScratch s(phases);
  char* const shared = static_cast<char*>(workspace);
  const auto next_weights = [](const RowFilter& f) { return bytes_of_floats(f.taps() * f.period()); };
  size_t place = 0;
  for (const PhaseFilter& phase : phases) {
    spread_phase(phase, spec.kw, kernel, reinterpret_cast<float*>(shared + place));
    place += next_weights(phase.filter);
  }
  auto* const start = bias ? reinterpret_cast<float*>(shared + s.weights) : nullptr;
  if (bias) spread_period(phases[0].filter, bias, start);
  const int64_t rows_of_all = kBand * spec.stride_h, bands = (spec.h + rows_of_all - 1) / rows_of_all;
  const int64_t channels = spec.in_channels(), line = spec.w * channels;
  executor.run(static_cast<int>(spec.n * bands), [&](int chunk, int worker) {
    char* const own = shared + s.weights + s.bias + static_cast<size_t>(worker) * (s.rows + s.made);
    auto *const rows = reinterpret_cast<float*>(own), *const made = reinterpret_cast<float*>(own + s.rows);
    const int64_t image = chunk / bands, first = chunk % bands * kBand;
    const char* weights = shared;
    for (const PhaseFilter& phase : phases) {
      const RowFilter& f = phase.filter;
      const auto* const own_weights = reinterpret_cast<const float*>(weights);
      weights += next_weights(f);
      const int64_t count = std::min(kBand, f.oh - first);
      if (count <= 0 || f.ow == 0) continue;
      float* const to =
          dx + (image * spec.h + first * spec.stride_h + phase.down.first) * line + phase.across.first * channels;
      const bool in_place = spec.stride_h * spec.stride_w * spec.multiplier == 1;
      if (f.taps() > 0)
        copy_with_borders(f, first - f.pad_top, rows_read(f, count), dy + image * f.h * f.w * f.channels, rows);
      loops.filter(f, first - f.pad_top, count, rows, own_weights, start, in_place ? to : made);
      if (!in_place)
        loops.store(count, f.ow, channels, spec.multiplier, made, to, spec.stride_w * channels, spec.stride_h * line);
      stop_point_after(count * f.ow * f.channels * f.taps() / 8);
    }
  });
}

namespace {

/// Floats after which the lanes of a row have the same channels again, if these are few; else the floats of a pixel, whose last
/// vector reaches into the next one.
int64_t row_cycle(const RowFilter& f) {
  constexpr int64_t kLongest = 1024;
  const int64_t cycle = std::lcm(f.channels, static_cast<int64_t>(loop_lanes(machine_isa())));
  return cycle <= kLongest ? cycle : f.channels;
}
int64_t row_width(const RowFilter& f) {
  const int64_t lane = loop_lanes(machine_isa());
  return (row_cycle(f) + lane - 1) / lane * lane;
}

struct GradientScratch {
  explicit GradientScratch(const RowFilter& f)
      : sums(bytes_of_floats(f.taps() * row_width(f))), rows(bytes_of_floats(rows_read(f, kBand) * f.pitch())),
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
  const GradientScratch s(f);
  char* const shared = static_cast<char*>(workspace);
  const int64_t cycle = row_cycle(f), width = row_width(f), row = f.ow * f.channels;
  const auto sums_of = [&](int64_t image) {
    return reinterpret_cast<float*>(shared + static_cast<size_t>(image) * s.sums);
  };
  executor.run(static_cast<int>(f.n), [&](int image, int worker) {
    char* const own = shared + s.sums * static_cast<size_t>(f.n) + static_cast<size_t>(worker) * (s.rows + s.gradient);
    auto *const rows = reinterpret_cast<float*>(own), *const gradient = reinterpret_cast<float*>(own + s.rows);
    std::fill_n(sums_of(image), f.taps() * width, 0.f);
    for (int64_t first = 0; first < f.oh; first += kBand) {
      const int64_t count = std::min(kBand, f.oh - first);
      copy_with_borders(f, first * f.stride_h - f.pad_top, rows_read(f, count),
                        x + image * f.h * f.w * (f.channels / f.repeats), rows);
      for (int64_t r = 0; r < count; ++r) {
        float* const to = std::copy_n(dy + (image * f.oh + first + r) * row, row, gradient + r * f.gradient_pitch());
        std::fill_n(to, RowFilter::kBehind, 0.f);
      }
      row_loops().sum(f, count, cycle, rows, gradient, sums_of(image));
      stop_point_after(count * row * f.taps() / 8);
    }
  });
  for (int64_t i = 0; i < f.taps() * f.channels; ++i) {
    double all = 0;
    for (int64_t image = 0; image < f.n; ++image)
      for (int64_t lane = i % f.channels; lane < cycle; lane += f.channels)
        all += static_cast<double>(sums_of(image)[i / f.channels * width + lane]);
    dk[i] = static_cast<float>(all);
  }
}

}  // namespace cairn
