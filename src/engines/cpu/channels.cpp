#include "engines/cpu/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/call_step.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/vector_math.h"

namespace cairn {

namespace {

constexpr int64_t kSlice = 128;  // channels a row of work; fixed, so that bits never depend on the workers

// Channels [first, last) of one outer index; four partial sums in a fixed order.
CAIRN_VECTORISED void reduce_channels(bool largest, int64_t middle, int64_t c, float scale, const float* x, float* y,
                                      int64_t first, int64_t last) {
  int64_t at = first;
  for (; at + kFloats <= last; at += kFloats) {
    Floats part[4];
    for (auto& each : part) each = largest ? spread(-std::numeric_limits<float>::infinity()) : Floats{};
    for (int64_t i = 0; i < middle; ++i) {
      Floats value = load(x + i * c + at);
      part[i & 3] = largest ? larger(part[i & 3], value) : part[i & 3] + value;
    }
    Floats all = largest ? larger(larger(part[0], part[1]), larger(part[2], part[3]))
                         : (part[0] + part[1]) + (part[2] + part[3]);
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
  *y = largest ? largest_of_row(c, x)
               : sum_row(
                     c, x, 0.f, [](Floats value) __attribute__((always_inline)) { return value; }) *
                     scale;
}

CAIRN_VECTORISED void layer_norm_row(int64_t c, float epsilon, const float* x, const float* scale, const float* offset,
                                     float* y) {
  const float count = static_cast<float>(c);
  const float mean = sum_row(
                         c, x, 0.f, [](Floats value) __attribute__((always_inline)) { return value; }) /
                     count;
  const float squares = sum_row(
      c, x, mean, [mean](Floats value) __attribute__((always_inline)) { return (value - mean) * (value - mean); });
  const float factor = 1.f / std::sqrt(squares / count + epsilon);
  for (int64_t i = 0; i < c; ++i) y[i] = (x[i] - mean) * factor * scale[i] + offset[i];
}

CAIRN_VECTORISED void softmax_row(bool log, int64_t c, const float* x, float* y) {
  const float most = largest_of_row(c, x);
  if (log) {
    const auto power = [most](Floats value) __attribute__((always_inline)) { return exp_of(value - most); };
    const float total = std::log(sum_row(c, x, -std::numeric_limits<float>::infinity(), power));
    for (int64_t i = 0; i < c; ++i) y[i] = x[i] - most - total;
    return;
  }
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

// The softmax of `lanes` neighbouring columns (at most a vector of them).
CAIRN_VECTORISED void softmax_columns(bool log, int64_t size, int64_t inner, int64_t lanes, const float* x, float* y) {
  const auto take = [&](int64_t i) __attribute__((always_inline)) {
    return lanes == kFloats ? load(x + i * inner) : load_rest(x + i * inner, 0, lanes, 0.f);
  };
  const auto put = [&](int64_t i, Floats value) __attribute__((always_inline)) {
    if (lanes == kFloats) return store(y + i * inner, value);
    for (int64_t lane = 0; lane < lanes; ++lane) y[i * inner + lane] = value[lane];
  };
  Floats most = spread(-std::numeric_limits<float>::infinity()), sum{};
  for (int64_t i = 0; i < size; ++i) most = larger(most, take(i));
  if (log) {
    for (int64_t i = 0; i < size; ++i) sum += exp_of(take(i) - most);
    const Floats shift = log_of(sum);
    for (int64_t i = 0; i < size; ++i) put(i, take(i) - most - shift);
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    const Floats value = exp_of(take(i) - most);
    sum += value;
    put(i, value);
  }
  for (int64_t i = 0; i < size; ++i) {
    Floats value = lanes == kFloats ? load(y + i * inner) : load_rest(y + i * inner, 0, lanes, 0.f);
    put(i, value / sum);
  }
}

// The middle axis in parts whose sums are added in their order: as many as keep each long, whatever the workers.
int64_t middle_parts(int64_t outer, int64_t middle, int64_t c) {
  constexpr int64_t kLeast = 512, kMost = 32;
  return outer * ((c + kSlice - 1) / kSlice) >= kMost ? 1 : std::clamp<int64_t>(middle / kLeast, 1, kMost);
}

}  // namespace

size_t reduce_workspace(int64_t outer, int64_t middle, int64_t c) {
  const int64_t parts = middle_parts(outer, middle, c);
  return parts == 1 ? 0 : static_cast<size_t>(outer * parts * c) * sizeof(float);
}

void reduce_middle(Executor& executor, bool largest, int64_t outer, int64_t middle, int64_t c, float scale,
                   const float* x, float* y, float* workspace) {
  const int64_t slices = (c + kSlice - 1) / kSlice, parts = middle_parts(outer, middle, c);
  float* to = parts == 1 ? y : workspace;
  for_each(executor, outer * parts * slices, middle / parts * kSlice, [&](int64_t i) {
    const int64_t slice = i % slices, part = i / slices % parts, o = i / slices / parts;
    const int64_t first = middle * part / parts, last = middle * (part + 1) / parts;
    reduce_channels(largest, last - first, c, parts == 1 ? scale : 1.f, x + (o * middle + first) * c,
                    to + (o * parts + part) * c, slice * kSlice, std::min(c, (slice + 1) * kSlice));
  });
  if (parts > 1)
    for (int64_t o = 0; o < outer; ++o) reduce_channels(largest, parts, c, scale, to + o * parts * c, y + o * c, 0, c);
}

void reduce_rows(Executor& executor, bool largest, int64_t rows, int64_t c, float scale, const float* x, float* y) {
  for_each(executor, rows, c, [&](int64_t row) { reduce_row(largest, c, scale, x + row * c, y + row); });
}

void layer_norm(Executor& executor, int64_t rows, int64_t c, float epsilon, const float* x, const float* scale,
                const float* offset, float* y) {
  for_each(executor, rows, c * 4,
           [&](int64_t row) { layer_norm_row(c, epsilon, x + row * c, scale, offset, y + row * c); });
}

void softmax(Executor& executor, bool log, int64_t rows, int64_t c, const float* x, float* y) {
  for_each(executor, rows, c * 8, [&](int64_t row) { softmax_row(log, c, x + row * c, y + row * c); });
}

void softmax_middle(Executor& executor, bool log, int64_t outer, int64_t size, int64_t inner, const float* x,
                    float* y) {
  const int64_t blocks = (inner + kFloats - 1) / kFloats;
  for_each(executor, outer * blocks, size * kFloats * 8, [&](int64_t i) {
    const int64_t first = i % blocks * kFloats, at = i / blocks * size * inner + first;
    softmax_columns(log, size, inner, std::min<int64_t>(kFloats, inner - first), x + at, y + at);
  });
}

}  // namespace cairn
