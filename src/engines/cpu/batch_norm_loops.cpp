#include "engines/cpu/batch_norm_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/batch_norm_narrow.h"
#include "engines/cpu/call_step.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/vector_loops.h"

namespace cairn {

namespace {

constexpr int64_t kMostParts = 64;  // parts of the rows, whose sums are added in order: bits do not depend on threads
constexpr int64_t kShiftRows = 16;  // rows whose mean approximates that of the part, as the shift for its squares

int64_t parts_of(int64_t rows) { return std::clamp<int64_t>(rows / 64, 1, kMostParts); }

// For each channel the mean over some rows and the sum of squared distances from it, in one pass: sums of differences
// from an approximate mean, that of the first rows.
CAIRN_VECTORISED(void, add_rows, (int64_t rows, int64_t c, const float* __restrict x, float* __restrict sum)) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < c; ++i) sum[i] += x[row * c + i];
}

CAIRN_VECTORISED(void, add_moments,
                 (int64_t rows, int64_t c, const float* __restrict x, const float* __restrict mean,
                  float* __restrict sum, float* __restrict squares)) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const float* __restrict from = x + row * c;
    for (int64_t i = 0; i < c; ++i) {
      const float p = from[i] - mean[i], q = from[c + i] - mean[i], r = from[2 * c + i] - mean[i],
                  s = from[3 * c + i] - mean[i];
      sum[i] += (p + q) + (r + s);
      squares[i] += (p * p + q * q) + (r * r + s * s);
    }
  }
  for (; row < rows; ++row)
    for (int64_t i = 0; i < c; ++i) {
      const float p = x[row * c + i] - mean[i];
      sum[i] += p;
      squares[i] += p * p;
    }
}

// Sums that are no numbers make the squares NaN, and the mean 0, to which rows can be added. Returns whether there are any.
CAIRN_VECTORISED(bool, end_moments,
                 (int64_t rows, int64_t c, float* __restrict mean, const float* __restrict sum,
                  float* __restrict squares)) {
  int odd = 0;
  for (int64_t i = 0; i < c; ++i) {
    const float shift = sum[i] / static_cast<float>(rows), around = squares[i] - sum[i] * shift;
    const bool finite = std::abs(sum[i]) <= std::numeric_limits<float>::max();
    mean[i] = finite ? mean[i] + shift : 0;
    squares[i] = !finite ? NAN : around < 0 ? 0 : around;
    odd |= !finite;
  }
  return odd != 0;
}

/// Rows of 16-bit elements are widened by blocks that stay in the first-level cache, three at a time.
constexpr int64_t kBlock = 4 * kMostNarrowChannels;
int64_t block_rows(int64_t c) { return std::max<int64_t>(1, 2048 / c / 4) * 4; }

/// Elements as floats: where they are, or in the buffer.
const float* as_floats(Form form, const void* data, int64_t at, int64_t count, float* buffer) {
  if (form == Form::floats) return static_cast<const float*>(data) + at;
  widen(form, count, static_cast<const uint16_t*>(data) + at, buffer);
  return buffer;
}
void* place(Form form, void* data, int64_t at) { return static_cast<char*>(data) + at * bytes_of(form); }

template <class Body>
void for_blocks(int64_t rows, int64_t c, Body&& body) {
  for (int64_t first = 0; first < rows; first += block_rows(c)) body(first, std::min(block_rows(c), rows - first));
}

// Calls body(rows, x) with rows from `first` on as floats.
template <class Body>
void for_rows_of_x(int64_t first, int64_t rows, int64_t c, const BatchNorm& b, Body&& body) {
  if (b.x_form == Form::floats) return body(rows, b.x + first * c);
  alignas(64) float buffer[kBlock];
  for_blocks(rows, c, [&](int64_t at, int64_t count) {
    body(count, as_floats(b.x_form, b.x, (first + at) * c, count * c, buffer));
  });
}

// An infinity or NaN gives the plain mean, and NaN for the squares.
void moments(int64_t first, int64_t rows, int64_t c, const BatchNorm& b, float* mean, float* sum, float* squares) {
  std::fill_n(mean, c, 0.f), std::fill_n(sum, c, 0.f), std::fill_n(squares, c, 0.f);
  const int64_t start = std::min(rows, kShiftRows);
  const NarrowRows* in_registers = narrow_rows(b.x_form);
  if (in_registers)
    in_registers->add_rows(start, c, b, first, mean);
  else
    for_rows_of_x(first, start, c, b, [&](int64_t count, const float* x) { add_rows(count, c, x, mean); });
  for (int64_t i = 0; i < c; ++i) mean[i] /= static_cast<float>(start);
  if (in_registers)
    in_registers->add_moments(rows, c, b, first, mean, sum, squares);
  else
    for_rows_of_x(first, rows, c, b,
                  [&](int64_t count, const float* x) { add_moments(count, c, x, mean, sum, squares); });
  if (!end_moments(rows, c, mean, sum, squares)) return;
  for_rows_of_x(first, rows, c, b, [&](int64_t count, const float* x) {
    for (int64_t i = 0; i < count * c; ++i)
      if (std::isnan(squares[i % c])) mean[i % c] += x[i] / static_cast<float>(rows);
  });
}

// y = (x - mean) * factor + offset [+ residual], with mean, factor and offset per channel.
CAIRN_VECTORISED(void, normalise, (int64_t rows, int64_t c, const BatchNorm& b, int64_t first, const float* factor)) {
  const float *mean = b.mean, *offset = b.offset;
  for (int64_t row = first; row < first + rows; ++row) {
    const float* x = b.x + row * c;
    const float* residual = b.residual + (b.residual ? row * c : 0);
    float* y = b.y + row * c;
    if (residual) {
#pragma GCC ivdep
      for (int64_t i = 0; i < c; ++i) y[i] = (x[i] - mean[i]) * factor[i] + offset[i] + residual[i];
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < c; ++i) y[i] = (x[i] - mean[i]) * factor[i] + offset[i];
    }
    if (!b.relu) continue;
    for (int64_t i = 0; i < c; ++i) y[i] = y[i] < 0 ? 0 : y[i];
  }
}

CAIRN_VECTORISED(void, add_residual, (int64_t count, const float* residual, bool relu, float* y)) {
  for (int64_t i = 0; i < count; ++i) y[i] += residual[i];
  if (!relu) return;
  for (int64_t i = 0; i < count; ++i) y[i] = y[i] < 0 ? 0 : y[i];
}

// The same of elements of 16 bits.
void normalise_narrow(int64_t rows, int64_t c, const BatchNorm& b, int64_t first, const float* factor) {
  alignas(64) float x[kBlock], more[kBlock];
  const Form form = b.narrow.result;
  for_blocks(rows, c, [&](int64_t at, int64_t count) {
    const int64_t from = (first + at) * c, elements = count * c;
    BatchNorm part = b;
    part.x = as_floats(b.x_form, b.x, from, elements, x);
    if (b.residual) part.residual = as_floats(b.narrow.residual, b.residual, from, elements, more);
    part.y = x;
    if (b.residual && b.narrow.rounds_biased) {
      part.residual = nullptr, part.relu = false;
      normalise(count, c, part, 0, factor);
      narrow(form, elements, x, place(form, b.y, from));  // which may be the residual's: that is widened already
      const float* residual = as_floats(b.narrow.residual, b.residual, from, 0, more);
      widen(form, elements, place(form, b.y, from), x);
      add_residual(elements, residual, b.relu, x);
    } else {
      normalise(count, c, part, 0, factor);
    }
    narrow(form, elements, x, place(form, b.y, from));
  });
}

template <bool kGated>
CAIRN_INLINE void slopes_of(int64_t rows, int64_t c, const float* __restrict dy, const float* __restrict gate,
                            const float* __restrict x, const float* __restrict mean, float* __restrict level,
                            float* __restrict slope) {
  const auto at = [&](int64_t i) __attribute__((always_inline)) {
    return kGated ? (gate[i] > 0 ? dy[i] : 0.f) : dy[i];
  };
  int64_t row = 0;
  for (; row + 2 <= rows; row += 2)
    for (int64_t i = 0; i < c; ++i) {
      const float p = at(row * c + i), q = at(row * c + c + i);
      level[i] += p + q;
      slope[i] += p * (x[row * c + i] - mean[i]) + q * (x[row * c + c + i] - mean[i]);
    }
  for (; row < rows; ++row)
    for (int64_t i = 0; i < c; ++i) {
      level[i] += at(row * c + i);
      slope[i] += at(row * c + i) * (x[row * c + i] - mean[i]);
    }
}
// Adds sums of dy, and of dy times the distance from the mean.
CAIRN_VECTORISED(void, add_slopes,
                 (int64_t rows, int64_t c, const BatchNormGradient& b, int64_t first, float* level, float* slope)) {
  if (b.gate)
    slopes_of<true>(rows, c, b.dy + first * c, b.gate + first * c, b.x + first * c, b.mean, level, slope);
  else
    slopes_of<false>(rows, c, b.dy + first * c, nullptr, b.x + first * c, b.mean, level, slope);
}

CAIRN_VECTORISED(void, input_gradient,
                 (int64_t rows, int64_t c, const BatchNormGradient& b, int64_t first, const float* factor,
                  const float* level, const float* slope)) {
  const float* mean = b.mean;
  for (int64_t row = first; row < first + rows; ++row) {
    const float *dy = b.dy + row * c, *x = b.x + row * c;
    const float* gate = b.gate + (b.gate ? row * c : 0);
    float* dx = b.dx + row * c;
    if (gate) {
#pragma GCC ivdep
      for (int64_t i = 0; i < c; ++i) {
        const float gradient = gate[i] > 0 ? dy[i] : 0.f;
        dx[i] = factor[i] * (gradient - level[i] - (x[i] - mean[i]) * slope[i]);
      }
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < c; ++i) dx[i] = factor[i] * (dy[i] - level[i] - (x[i] - mean[i]) * slope[i]);
    }
  }
}

bool is_narrow(const BatchNormGradient& b) {
  return is_narrow(b.x_form) || is_narrow(b.dy_form) || is_narrow(b.gate_form) || is_narrow(b.dx_form);
}

// The loops for operands that are all of one form of 16 bits, or null.
const NarrowRows* in_registers(const BatchNormGradient& b) {
  const bool one = b.dy_form == b.x_form && b.dx_form == b.x_form && (!b.gate || b.gate_form == b.x_form);
  return one ? narrow_rows(b.x_form) : nullptr;
}

// Calls body(rows, part, first row of part) with operands of floats.
template <class Body>
void for_float_blocks(int64_t rows, int64_t c, const BatchNormGradient& b, int64_t first, Body&& body) {
  if (!is_narrow(b)) return body(rows, b, first);
  alignas(64) float x[kBlock], dy[kBlock], gate[kBlock];
  for_blocks(rows, c, [&](int64_t at, int64_t count) {
    const int64_t from = (first + at) * c, elements = count * c;
    BatchNormGradient part = b;
    part.x = as_floats(b.x_form, b.x, from, elements, x);
    part.dy = as_floats(b.dy_form, b.dy, from, elements, dy);
    if (b.gate) part.gate = as_floats(b.gate_form, b.gate, from, elements, gate);
    part.dx = dy;
    body(count, part, 0);
    if (b.dx) narrow(b.dx_form, elements, dy, place(b.dx_form, b.dx, from));
  });
}

void slopes(int64_t rows, int64_t c, BatchNormGradient b, int64_t first, float* level, float* slope) {
  std::fill_n(level, c, 0.f), std::fill_n(slope, c, 0.f);
  if (const NarrowRows* narrow = in_registers(b)) return narrow->add_slopes(rows, c, b, first, level, slope);
  b.dx = nullptr;
  for_float_blocks(rows, c, b, first, [&](int64_t count, const BatchNormGradient& part, int64_t at) {
    add_slopes(count, c, part, at, level, slope);
  });
}

/// Calls visit(element, lane) for the elements of a plane, sixteen lanes at a time.
template <class Visit>
CAIRN_INLINE void in_lanes(int64_t count, Visit&& visit) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) visit(i + lane, lane);
  int64_t first = 0;
  for (; i + 4 <= count; i += 4, first += 4)
    for (int64_t lane = 0; lane < 4; ++lane) visit(i + lane, first + lane);
  for (; i < count; ++i, ++first) visit(i, first);
}

/// Four sums of lanes at once: one would wait for each of its additions.
struct LaneSums {
  double parts[4] = {};
  CAIRN_INLINE void add(const float (&lanes)[kLanes]) {
    for (int64_t lane = 0; lane < kLanes; lane += 4)
      for (int64_t i = 0; i < 4; ++i) parts[i] += static_cast<double>(lanes[lane + i]);
  }
  double total() const { return (parts[0] + parts[1]) + (parts[2] + parts[3]); }
};

template <class Term>
CAIRN_INLINE double sum_of_planes(const ChannelPlanes& p, const float* x, Term&& term) {
  LaneSums sums;
  for (int64_t o = 0; o < p.outer; ++o, x += p.c * p.inner) {
    float lanes[kLanes] = {};
    in_lanes(
        p.inner, [&](int64_t i, int64_t lane) __attribute__((always_inline)) { lanes[lane] += term(x[i]); });
    sums.add(lanes);
  }
  return sums.total();
}
CAIRN_VECTORISED(double, plane_sum, (const ChannelPlanes& p, const float* x)) {
  return sum_of_planes(
      p, x, [](float value) __attribute__((always_inline)) { return value; });
}
CAIRN_VECTORISED(double, plane_squares, (const ChannelPlanes& p, const float* x, float mean)) {
  return sum_of_planes(
      p, x, [=](float value) __attribute__((always_inline)) { return (value - mean) * (value - mean); });
}

CAIRN_VECTORISED(void, normalise_planes,
                 (const ChannelPlanes& p, const BatchNorm& b, int64_t c, float mean, float factor)) {
  const float offset = b.offset[c];
  for (int64_t o = 0; o < p.outer; ++o) {
    const int64_t at = (o * p.c + c) * p.inner;
    const float *x = b.x + at, *residual = b.residual;
    float* y = b.y + at;
    if (residual) {
#pragma GCC ivdep
      for (int64_t i = 0; i < p.inner; ++i) y[i] = (x[i] - mean) * factor + offset + residual[at + i];
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < p.inner; ++i) y[i] = (x[i] - mean) * factor + offset;
    }
    if (!b.relu) continue;
    for (int64_t i = 0; i < p.inner; ++i) y[i] = y[i] < 0 ? 0 : y[i];
  }
}

// Sums of dy and of dy times the distance from the mean.
CAIRN_VECTORISED(void, plane_slopes,
                 (const ChannelPlanes& p, const BatchNormGradient& b, int64_t c, double* level, double* slope)) {
  const float mean = b.mean[c];
  LaneSums levels, slopes;
  for (int64_t o = 0; o < p.outer; ++o) {
    float flat[kLanes] = {}, steep[kLanes] = {};
    const int64_t at = (o * p.c + c) * p.inner;
    const float *dy = b.dy + at, *x = b.x + at, *gate = b.gate ? b.gate + at : nullptr;
    const auto add = [&](int64_t i, int64_t lane, float gradient) __attribute__((always_inline)) {
      flat[lane] += gradient;
      steep[lane] += gradient * (x[i] - mean);
    };
    if (gate)
      in_lanes(
          p.inner, [&](int64_t i, int64_t lane)
                       __attribute__((always_inline)) { add(i, lane, gate[i] > 0 ? dy[i] : 0.f); });
    else
      in_lanes(
          p.inner, [&](int64_t i, int64_t lane) __attribute__((always_inline)) { add(i, lane, dy[i]); });
    levels.add(flat), slopes.add(steep);
  }
  *level = levels.total(), *slope = slopes.total();
}

CAIRN_VECTORISED(void, plane_gradient,
                 (const ChannelPlanes& p, const BatchNormGradient& b, int64_t c, float factor, float level,
                  float slope)) {
  const float mean = b.mean[c];
  for (int64_t o = 0; o < p.outer; ++o) {
    const int64_t at = (o * p.c + c) * p.inner;
    const float *dy = b.dy + at, *x = b.x + at, *gate = b.gate ? b.gate + at : nullptr;
    float* dx = b.dx + at;
#pragma GCC ivdep
    for (int64_t i = 0; i < p.inner; ++i) {
      const float gradient = !gate || gate[i] > 0 ? dy[i] : 0.f;
      dx[i] = factor * (gradient - level - (x[i] - mean) * slope);
    }
  }
}

template <class Body>
void for_parts(Executor& executor, int64_t rows, int64_t parts, Body&& body) {
  executor.run(static_cast<int>(parts), [&](int part, int) {
    const int64_t first = rows * part / parts, last = rows * (part + 1) / parts;
    body(part, first, last - first);
  });
}

void normalise_all(Executor& executor, int64_t rows, int64_t c, const BatchNorm& b, const float* factor) {
  const bool narrow = is_narrow(b.x_form) || b.narrow.acts();
  const bool one_form = b.narrow.result == b.x_form && (!b.residual || b.narrow.residual == b.x_form);
  const NarrowRows* in_registers = one_form ? narrow_rows(b.x_form) : nullptr;
  const auto loop = in_registers ? in_registers->normalise : narrow ? normalise_narrow : normalise;
  for_parts(executor, rows, parts_of(rows),
            [&](int64_t, int64_t first, int64_t count) { loop(count, c, b, first, factor); });
}

// The layout with channels last.
void normalise_rows(Executor& executor, int64_t rows, int64_t c, BatchNorm b, float* mean, float* variance,
                    float* workspace) {
  const int64_t parts = parts_of(rows);
  float *means = workspace, *squares = means + parts * c, *sums = squares + parts * c, *factor = sums + parts * c;
  for_parts(executor, rows, parts, [&](int64_t part, int64_t first, int64_t count) {
    moments(first, count, c, b, means + part * c, sums + part * c, squares + part * c);
  });
  for (int64_t i = 0; i < c; ++i) {
    double sum = 0, around = 0;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t count = rows * (part + 1) / parts - rows * part / parts;
      sum += static_cast<double>(means[part * c + i]) * static_cast<double>(count);
    }
    const double middle = sum / static_cast<double>(rows);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t count = rows * (part + 1) / parts - rows * part / parts;
      const double distance = static_cast<double>(means[part * c + i]) - middle;
      around += static_cast<double>(squares[part * c + i]) + distance * distance * static_cast<double>(count);
    }
    mean[i] = static_cast<float>(middle);
    variance[i] = static_cast<float>(around / static_cast<double>(rows));
    factor[i] = b.scale[i] / std::sqrt(variance[i] + b.epsilon);
  }
  b.mean = mean;
  normalise_all(executor, rows, c, b, factor);
}

void gradient_of_rows(Executor& executor, int64_t rows, int64_t c, const BatchNormGradient& b, float* workspace) {
  const int64_t parts = parts_of(rows);
  float *levels = workspace, *steep = levels + parts * c, *factor = steep + parts * c, *slope = factor + c;
  for_parts(executor, rows, parts, [&](int64_t part, int64_t first, int64_t count) {
    slopes(count, c, b, first, levels + part * c, steep + part * c);
  });
  for (int64_t i = 0; i < c; ++i) {
    double flat = 0, rise = 0;
    for (int64_t part = 0; part < parts; ++part) {
      flat += static_cast<double>(levels[part * c + i]);
      rise += static_cast<double>(steep[part * c + i]);
    }
    const double deviation = std::sqrt(static_cast<double>(b.variance[i]) + static_cast<double>(b.epsilon));
    b.dscale[i] = static_cast<float>(rise / deviation);
    b.doffset[i] = static_cast<float>(flat);
    factor[i] = static_cast<float>(static_cast<double>(b.scale[i]) / deviation);
    slope[i] = static_cast<float>(rise / (deviation * deviation * static_cast<double>(rows)));
    levels[i] = static_cast<float>(flat / static_cast<double>(rows));  // the first part's is no longer needed
  }
  const NarrowRows* narrow = in_registers(b);
  for_parts(executor, rows, parts, [&](int64_t, int64_t first, int64_t count) {
    if (narrow) return narrow->input_gradient(count, c, b, first, factor, levels, slope);
    for_float_blocks(count, c, b, first, [&](int64_t some, const BatchNormGradient& part, int64_t at) {
      input_gradient(some, c, part, at, factor, levels, slope);
    });
  });
}

}  // namespace

size_t batch_norm_workspace(const ChannelPlanes& p) {
  return p.inner > 1 ? 0 : static_cast<size_t>((3 * parts_of(p.outer) + 2) * p.c) * sizeof(float);
}

void batch_norm_training(Executor& executor, const ChannelPlanes& p, BatchNorm b, float* mean, float* variance,
                         float* workspace) {
  if (p.inner == 1) return normalise_rows(executor, p.outer, p.c, b, mean, variance, workspace);
  const auto count = static_cast<double>(p.outer * p.inner);
  for_each(executor, p.c, p.outer * p.inner * 4, [&](int64_t c) {
    const float* from = b.x + c * p.inner;
    mean[c] = static_cast<float>(plane_sum(p, from) / count);
    variance[c] = static_cast<float>(plane_squares(p, from, mean[c]) / count);
    normalise_planes(p, b, c, mean[c], b.scale[c] / std::sqrt(variance[c] + b.epsilon));
  });
}

void batch_norm_inference(Executor& executor, const ChannelPlanes& p, const BatchNorm& b, float* workspace) {
  for (int64_t c = 0; c < p.c; ++c) workspace[c] = b.scale[c] / std::sqrt(b.variance[c] + b.epsilon);
  if (p.inner == 1) return normalise_all(executor, p.outer, p.c, b, workspace);
  for_each(executor, p.c, p.outer * p.inner, [&](int64_t c) { normalise_planes(p, b, c, b.mean[c], workspace[c]); });
}

void batch_norm_gradient(Executor& executor, const ChannelPlanes& p, const BatchNormGradient& b, float* workspace) {
  if (p.inner == 1) return gradient_of_rows(executor, p.outer, p.c, b, workspace);
  const auto count = static_cast<double>(p.outer * p.inner);
  for_each(executor, p.c, p.outer * p.inner * 4, [&](int64_t c) {
    double level = 0, slope = 0;
    plane_slopes(p, b, c, &level, &slope);
    const double deviation = std::sqrt(static_cast<double>(b.variance[c]) + static_cast<double>(b.epsilon));
    b.dscale[c] = static_cast<float>(slope / deviation);
    b.doffset[c] = static_cast<float>(level);
    plane_gradient(p, b, c, static_cast<float>(static_cast<double>(b.scale[c]) / deviation),
                   static_cast<float>(level / count), static_cast<float>(slope / (deviation * deviation * count)));
  });
}

}  // namespace cairn
