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

CAIRN_VECTORISED void softmax_row(int64_t c, const float* x, float* y) {
  float most = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < c; ++i) most = x[i] > most || x[i] != x[i] ? x[i] : most;
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

void softmax(Executor& executor, int64_t rows, int64_t c, const float* x, float* y) {
  for_rows(executor, rows, c * 8, [&](int64_t row) { softmax_row(c, x + row * c, y + row * c); });
}

}  // namespace cairn
