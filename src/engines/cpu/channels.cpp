#include "engines/cpu/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/isa.h"
#include "engines/cpu/vector_math.h"

namespace cairn {

namespace {

// Channels [first, last) of one outer index; four partial sums in a fixed order.
CAIRN_VECTORISED void reduce_channels(bool largest, int64_t middle, int64_t c, float scale, const float* x, float* y, int64_t first,
                                      int64_t last) {
  int64_t at = first;
  for (; at + kFloats <= last; at += kFloats) {
    Floats part[4];
    for (auto& each : part) each = largest ? spread(-std::numeric_limits<float>::infinity()) : Floats{};
    for (int64_t i = 0; i < middle; ++i) {
      Floats value = load(x + i * c + at);
      part[i & 3] = largest ? larger(part[i & 3], value) : part[i & 3] + value;
    }
    Floats all = largest ? larger(larger(part[0], part[1]), larger(part[2], part[3])) : (part[0] + part[1]) + (part[2] + part[3]);
    store(y + at, largest ? all : all * scale);
  }
  for (; at < last; ++at) {
    float part[4];
    for (auto& each : part) each = largest ? -std::numeric_limits<float>::infinity() : 0.f;
    for (int64_t i = 0; i < middle; ++i) {
      float value = x[i * c + at], &sum = part[i & 3];
      sum = !largest ? sum + value : sum > value || sum != sum ? sum : value;
    }
    if (largest) {
      float all = part[0];
      for (float each : part) all = all > each || all != all ? all : each;
      y[at] = all;
    } else {
      y[at] = ((part[0] + part[1]) + (part[2] + part[3])) * scale;
    }
  }
}

// Elements [first, c) of a row that do not fill a vector, the rest `other`.
CAIRN_INLINE Floats load_rest(const float* x, int64_t first, int64_t c, float other) {
  float rest[kFloats];
  for (int64_t lane = 0; lane < kFloats; ++lane) rest[lane] = first + lane < c ? x[first + lane] : other;
  return load(rest);
}

// Sum of term(vector) over a row in a fixed order: lanes, then halves of them.
template <class Term>
CAIRN_INLINE float sum_row(int64_t c, const float* x, float other, Term term) {
  Floats even{}, odd{};
  int64_t i = 0;
  for (; i + 2 * kFloats <= c; i += 2 * kFloats) {
    even += term(load(x + i));
    odd += term(load(x + i + kFloats));
  }
  for (; i + kFloats <= c; i += kFloats) even += term(load(x + i));
  if (i < c) odd += term(load_rest(x, i, c, other));
  even += odd;
  for (int half = kFloats / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) even[lane] += even[lane + half];
  return even[0];
}

CAIRN_INLINE float largest_of_row(int64_t c, const float* x) {
  const float least = -std::numeric_limits<float>::infinity();
  Floats most = spread(least);
  int64_t i = 0;
  for (; i + kFloats <= c; i += kFloats) most = larger(most, load(x + i));
  if (i < c) most = larger(most, load_rest(x, i, c, least));
  float result = most[0];
  for (int lane = 1; lane < kFloats; ++lane) result = result > most[lane] || result != result ? result : most[lane];
  return result;
}

CAIRN_VECTORISED void reduce_row(bool largest, int64_t c, float scale, const float* x, float* y) {
  *y = largest ? largest_of_row(c, x) : sum_row(c, x, 0.f, [](Floats value) __attribute__((always_inline)) { return value; }) * scale;
}

CAIRN_VECTORISED void layer_norm_row(int64_t c, float epsilon, const float* x, const float* scale, const float* offset, float* y) {
  const float count = static_cast<float>(c);
  const float mean = sum_row(c, x, 0.f, [](Floats value) __attribute__((always_inline)) { return value; }) / count;
  const float squares = sum_row(c, x, mean, [mean](Floats value) __attribute__((always_inline)) { return (value - mean) * (value - mean); });
  const float deviation = std::sqrt(squares / count + epsilon);
  for (int64_t i = 0; i < c; ++i) y[i] = (x[i] - mean) / deviation * scale[i] + offset[i];
}

CAIRN_VECTORISED void softmax_row(int64_t c, const float* x, float* y) {
  const float most = largest_of_row(c, x);
  float total = 0;
  int64_t i = 0;
  Floats sum{};
  for (; i + kFloats <= c; i += kFloats) {
    Floats value = exp_of(load(x + i) - most);
    sum += value;
    store(y + i, value);
  }
  for (int lane = 0; lane < kFloats; ++lane) total += sum[lane];
  if (i < c) {
    float tail[kFloats];
    for (int lane = 0; lane < kFloats; ++lane) tail[lane] = i + lane < c ? x[i + lane] - most : 0.f;
    store(tail, exp_of(load(tail)));
    for (int lane = 0; i + lane < c; ++lane) total += y[i + lane] = tail[lane];
  }
  for (i = 0; i < c; ++i) y[i] /= total;
}

// Chunks of rows with enough work each; returns how many rows a chunk has.
int64_t rows_per_chunk(int64_t rows, int64_t work_per_row, int width) {
  constexpr int64_t kLeastWork = 16 << 10;  // operations below which a chunk is not worth handing out
  int64_t least = std::max<int64_t>(1, kLeastWork / std::max<int64_t>(1, work_per_row));
  return std::max(least, (rows + width * 8 - 1) / (width * 8));
}

template <class Row>
void for_rows(Executor& executor, int64_t rows, int64_t work_per_row, Row&& row) {
  int64_t each = rows_per_chunk(rows, work_per_row, executor.width());
  auto chunk = [&](int index, int) {
    for (int64_t i = index * each; i < std::min(rows, (index + 1) * each); ++i) row(i);
  };
  executor.run(static_cast<int>((rows + each - 1) / each), chunk);
}

}  // namespace

void reduce_middle(Executor& executor, bool largest, int64_t outer, int64_t middle, int64_t c, float scale, const float* x, float* y) {
  constexpr int64_t kSlice = 128;  // channels a row of work; fixed, so that bits never depend on the workers
  int64_t slices = (c + kSlice - 1) / kSlice;
  for_rows(executor, outer * slices, middle * kSlice, [&](int64_t row) {
    int64_t i = row / slices, first = row % slices * kSlice;
    reduce_channels(largest, middle, c, scale, x + i * middle * c, y + i * c, first, std::min(c, first + kSlice));
  });
}

void reduce_rows(Executor& executor, bool largest, int64_t rows, int64_t c, float scale, const float* x, float* y) {
  for_rows(executor, rows, c, [&](int64_t row) { reduce_row(largest, c, scale, x + row * c, y + row); });
}

void layer_norm(Executor& executor, int64_t rows, int64_t c, float epsilon, const float* x, const float* scale, const float* offset, float* y) {
  for_rows(executor, rows, c * 4, [&](int64_t row) { layer_norm_row(c, epsilon, x + row * c, scale, offset, y + row * c); });
}

void softmax(Executor& executor, int64_t rows, int64_t c, const float* x, float* y) {
  for_rows(executor, rows, c * 8, [&](int64_t row) { softmax_row(c, x + row * c, y + row * c); });
}

}  // namespace cairn
