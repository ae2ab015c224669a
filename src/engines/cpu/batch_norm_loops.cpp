#include "engines/cpu/batch_norm_loops.h"

#include <algorithm>
#include <cmath>

#include "engines/cpu/call_step.h"
#include "engines/cpu/isa.h"

namespace cairn {

namespace {

constexpr int64_t kMostParts = 64;  // parts of the rows, whose sums are added in order: bits do not depend on threads
constexpr int64_t kShiftRows = 16;  // rows whose mean approximates that of the part, as the shift for its squares

int64_t parts_of(int64_t rows) { return std::clamp<int64_t>(rows / 64, 1, kMostParts); }

// For each channel the mean over some rows and the sum of squared distances from it, in one pass: sums of differences
// from an approximate mean.
CAIRN_VECTORISED void moments(int64_t rows, int64_t c, const float* __restrict x, float* __restrict mean,
                              float* __restrict sum, float* __restrict squares) {
  const int64_t first = std::min(rows, kShiftRows);
  std::fill_n(mean, c, 0.f), std::fill_n(sum, c, 0.f), std::fill_n(squares, c, 0.f);
  for (int64_t row = 0; row < first; ++row)
    for (int64_t i = 0; i < c; ++i) mean[i] += x[row * c + i];
  for (int64_t i = 0; i < c; ++i) mean[i] /= static_cast<float>(first);
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
  for (int64_t i = 0; i < c; ++i) {
    const float shift = sum[i] / static_cast<float>(rows), around = squares[i] - sum[i] * shift;
    if (!std::isfinite(sum[i])) {  // an infinity or NaN: the plain mean, and NaN for the squares
      mean[i] = 0;
      for (row = 0; row < rows; ++row) mean[i] += x[row * c + i];
      mean[i] /= static_cast<float>(rows);
      squares[i] = NAN;
      continue;
    }
    mean[i] += shift;
    squares[i] = around < 0 ? 0 : around;
  }
}

// y = (x - mean) * factor + offset [+ residual], with mean, factor and offset per channel.
CAIRN_VECTORISED void normalise(int64_t rows, int64_t c, const BatchNorm& b, int64_t first, const float* factor) {
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

template <bool kGated>
CAIRN_INLINE void slopes_of(int64_t rows, int64_t c, const float* __restrict dy, const float* __restrict gate,
                            const float* __restrict x, const float* __restrict mean, float* __restrict level,
                            float* __restrict slope) {
  std::fill_n(level, c, 0.f), std::fill_n(slope, c, 0.f);
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
// Sums of dy, and of dy times the distance from the mean.
CAIRN_VECTORISED void slopes(int64_t rows, int64_t c, const BatchNormGradient& b, int64_t first, float* level,
                             float* slope) {
  if (b.gate)
    slopes_of<true>(rows, c, b.dy + first * c, b.gate + first * c, b.x + first * c, b.mean, level, slope);
  else
    slopes_of<false>(rows, c, b.dy + first * c, nullptr, b.x + first * c, b.mean, level, slope);
}

CAIRN_VECTORISED void input_gradient(int64_t rows, int64_t c, const BatchNormGradient& b, int64_t first,
                                     const float* factor, const float* level, const float* slope) {
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

// For one channel's planes, the sums of x - middle and of its square.
CAIRN_VECTORISED void plane_moments(const ChannelPlanes& p, const float* x, float middle, double* sum,
                                    double* squares) {
  for (int64_t o = 0; o < p.outer; ++o) {
    const float* from = x + o * p.c * p.inner;
    constexpr int64_t kLanes = 16;
    float flat[kLanes] = {}, around[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= p.inner; i += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const float value = from[i + lane] - middle;
        flat[lane] += value;
        around[lane] += value * value;
      }
    for (int64_t lane = 0; i < p.inner; ++i, ++lane) {
      const float value = from[i] - middle;
      flat[lane] += value;
      around[lane] += value * value;
    }
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      *sum += static_cast<double>(flat[lane]);
      *squares += static_cast<double>(around[lane]);
    }
  }
}

CAIRN_VECTORISED void normalise_planes(const ChannelPlanes& p, const BatchNorm& b, int64_t c, float mean,
                                       float factor) {
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
CAIRN_VECTORISED void plane_slopes(const ChannelPlanes& p, const BatchNormGradient& b, int64_t c, double* level,
                                   double* slope) {
  const float mean = b.mean[c];
  for (int64_t o = 0; o < p.outer; ++o) {
    constexpr int64_t kLanes = 16;
    float flat[kLanes] = {}, steep[kLanes] = {};
    const int64_t at = (o * p.c + c) * p.inner;
    const float *dy = b.dy + at, *x = b.x + at, *gate = b.gate ? b.gate + at : nullptr;
    for (int64_t i = 0; i < p.inner; i += kLanes)
      for (int64_t lane = 0; lane < std::min(kLanes, p.inner - i); ++lane) {
        const float gradient = !gate || gate[i + lane] > 0 ? dy[i + lane] : 0.f;
        flat[lane] += gradient;
        steep[lane] += gradient * (x[i + lane] - mean);
      }
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      *level += static_cast<double>(flat[lane]);
      *slope += static_cast<double>(steep[lane]);
    }
  }
}

CAIRN_VECTORISED void plane_gradient(const ChannelPlanes& p, const BatchNormGradient& b, int64_t c, float factor,
                                     float level, float slope) {
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

// The layout with channels last.
void normalise_rows(Executor& executor, int64_t rows, int64_t c, BatchNorm b, float* mean, float* variance,
                    float* workspace) {
  const int64_t parts = parts_of(rows);
  float *means = workspace, *squares = means + parts * c, *sums = squares + parts * c, *factor = sums + parts * c;
  for_parts(executor, rows, parts, [&](int64_t part, int64_t first, int64_t count) {
    moments(count, c, b.x + first * c, means + part * c, sums + part * c, squares + part * c);
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
  for_parts(executor, rows, parts,
            [&](int64_t, int64_t first, int64_t count) { normalise(count, c, b, first, factor); });
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
  for_parts(executor, rows, parts,
            [&](int64_t, int64_t first, int64_t count) { input_gradient(count, c, b, first, factor, levels, slope); });
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
    double sum = 0, squares = 0, rest = 0;
    plane_moments(p, from, 0, &sum, &squares);
    mean[c] = static_cast<float>(sum / count);
    squares = 0;
    plane_moments(p, from, mean[c], &rest, &squares);
    variance[c] = static_cast<float>(squares / count);
    normalise_planes(p, b, c, mean[c], b.scale[c] / std::sqrt(variance[c] + b.epsilon));
  });
}

void batch_norm_inference(Executor& executor, const ChannelPlanes& p, const BatchNorm& b, float* workspace) {
  for (int64_t c = 0; c < p.c; ++c) workspace[c] = b.scale[c] / std::sqrt(b.variance[c] + b.epsilon);
  if (p.inner == 1)
    return for_parts(executor, p.outer, parts_of(p.outer),
                     [&](int64_t, int64_t first, int64_t count) { normalise(count, p.c, b, first, workspace); });
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
