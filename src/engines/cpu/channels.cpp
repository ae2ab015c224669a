#include "engines/cpu/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/call_step.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/vector_loops.h"

namespace cairn {

namespace {

constexpr int64_t kSlice = 128;  // channels per unit of work; fixed, so that bits never depend on the number of workers

constexpr int64_t kFolded = 16;  // rows of few channels that are treated as one row of many

// The number of parts of the middle axis, whose sums are added in order. It depends on the shape only, not on the
// workers.
int64_t middle_parts(int64_t outer, int64_t middle, int64_t c) {
  constexpr int64_t kLeast = 512, kMost = 32;
  return outer * ((c + kSlice - 1) / kSlice) >= kMost ? 1 : std::clamp<int64_t>(middle / kLeast, 1, kMost);
}

/// Rows of up to kSlice elements of 16 bits, some of which are widened at a time, behind what those before gave.
void reduce_narrow(Form form, bool largest, int64_t rows, int64_t step, float scale, const uint16_t* x, int64_t count,
                   float* y) {
  constexpr int64_t kRows = 48;
  alignas(64) float wide[(kRows + 1) * kSlice];
  for (int64_t row = 0; row < rows;) {
    const int64_t before = row > 0, many = std::min(rows - row, kRows);
    for (int64_t i = 0; i < many; ++i) widen(form, count, x + (row + i) * step, wide + (before + i) * count);
    row += many;
    vector_loops().reduce_channels(largest, before + many, count, row == rows || largest ? scale : 1.f, wide,
                                   row == rows ? y : wide, 0, count);
  }
}

// Columns side by side, added over rows in registers of 16 bits for as many rows as these hold; what is left of them one by one.
template <class T, class Wide>
CAIRN_INLINE void add_rows(int64_t rows, int64_t step, int64_t count, const T* from, int32_t* to) {
  constexpr int64_t kWidth = 32, kRows = 255;
  typedef T Bytes __attribute__((vector_size(kWidth / 2), aligned(1), may_alias));
  typedef Wide Words __attribute__((vector_size(kWidth), aligned(2), may_alias));
  std::fill_n(to, count, 0);
  int64_t at = 0;
  for (; at + kWidth <= count; at += kWidth)
    for (int64_t row = 0; row < rows;) {
      Words low = {}, high = {};
      for (const int64_t end = std::min(rows, row + kRows); row < end; ++row) {
        const auto* bytes = reinterpret_cast<const Bytes*>(from + row * step + at);
        low += __builtin_convertvector(bytes[0], Words), high += __builtin_convertvector(bytes[1], Words);
      }
      Wide words[kWidth];
      *reinterpret_cast<Words*>(words) = low, *reinterpret_cast<Words*>(words + kWidth / 2) = high;
      for (int64_t i = 0; i < kWidth; ++i) to[at + i] += words[i];
    }
  if (at < count)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = at; i < count; ++i) to[i] += from[row * step + i];
}
CAIRN_VECTORISED(void, add_unsigned, (int64_t rows, int64_t step, int64_t count, const uint8_t* from, int32_t* to)) {
  add_rows<uint8_t, uint16_t>(rows, step, count, from, to);
}
CAIRN_VECTORISED(void, add_signed, (int64_t rows, int64_t step, int64_t count, const int8_t* from, int32_t* to)) {
  add_rows<int8_t, int16_t>(rows, step, count, from, to);
}

}  // namespace

size_t reduce_workspace(int64_t outer, int64_t middle, int64_t c) {
  if (folds_rows(outer, middle, c))
    return static_cast<size_t>(c * kFolded) * sizeof(float) + reduce_workspace(1, middle / kFolded, c * kFolded);
  const int64_t parts = middle_parts(outer, middle, c);
  return parts == 1 ? 0 : static_cast<size_t>(outer * parts * c) * sizeof(float);
}

void reduce_middle(Executor& executor, bool largest, int64_t outer, int64_t middle, int64_t c, float scale,
                   const void* x, float* y, float* workspace, Form form) {
  if (folds_rows(outer, middle, c)) {
    reduce_middle(executor, largest, 1, middle / kFolded, c * kFolded, largest ? scale : 1.f, x, workspace,
                  workspace + c * kFolded, form);
    vector_loops().reduce_channels(largest, kFolded, c, scale, workspace, y, 0, c);
    return;
  }
  const int64_t slices = (c + kSlice - 1) / kSlice, parts = middle_parts(outer, middle, c);
  float* to = parts == 1 ? y : workspace;
  for_each(executor, outer * parts * slices, middle / parts * kSlice, [&](int64_t i) {
    const int64_t slice = i % slices, part = i / slices % parts, o = i / slices / parts;
    const int64_t first = middle * part / parts, last = middle * (part + 1) / parts;
    const int64_t begin = slice * kSlice, end = std::min(c, begin + kSlice), at = (o * middle + first) * c;
    const float factor = parts == 1 || largest ? scale : 1.f;
    float* const result = to + (o * parts + part) * c;
    if (is_narrow(form))
      reduce_narrow(form, largest, last - first, c, factor, static_cast<const uint16_t*>(x) + at + begin, end - begin,
                    result + begin);
    else
      vector_loops().reduce_channels(largest, last - first, c, factor, static_cast<const float*>(x) + at, result, begin,
                                     end);
  });
  if (parts > 1)
    for (int64_t o = 0; o < outer; ++o)
      vector_loops().reduce_channels(largest, parts, c, scale, to + o * parts * c, y + o * c, 0, c);
}

void sum_bytes(Executor& executor, const SumOfBytes& sum, const void* x, float* y) {
  const int64_t slices = (sum.c + kSlice - 1) / kSlice;
  for_each(executor, sum.outer * slices, sum.middle * kSlice / 8, [&](int64_t i) {
    const int64_t begin = i % slices * kSlice, count = std::min(sum.c - begin, kSlice);
    const int64_t at = i / slices * sum.middle * sum.c + begin;
    int32_t sums[kSlice];
    if (sum.is_signed)
      add_signed(sum.middle, sum.c, count, static_cast<const int8_t*>(x) + at, sums);
    else
      add_unsigned(sum.middle, sum.c, count, static_cast<const uint8_t*>(x) + at, sums);
    const auto zeros = static_cast<int32_t>(sum.middle * sum.zero);
    float* const to = y + i / slices * sum.c + begin;
    for (int64_t k = 0; k < count; ++k) to[k] = static_cast<float>(sums[k] - zeros) * sum.scale;
  });
}

void reduce_rows(Executor& executor, bool largest, int64_t rows, int64_t c, float scale, const float* x, float* y) {
  for_ranges(executor, rows, c, [&](int64_t first, int64_t last) {
    vector_loops().reduce_rows(largest, last - first, c, scale, x + first * c, y + first);
  });
}

void layer_norm(Executor& executor, const FormedRows& forms, float epsilon, const void* x, const float* scale,
                const float* offset, void* y) {
  const int64_t c = forms.c, least = std::max<int64_t>(1, (4 << 10) / std::max<int64_t>(1, c));
  const int64_t each = std::max(least, forms.rows / (executor.width() * 8)), at_once = forms.at_once();
  executor.run(static_cast<int>((forms.rows + each - 1) / each), [&](int chunk, int worker) {
    // Results beside what was widened: a load behind the masked store of a row's end would wait for it.
    float *const own = forms.scratch + 2 * worker * at_once * c, *const results = own + at_once * c;
    const int64_t last = std::min(forms.rows, (chunk + 1) * each);
    for (int64_t row = chunk * each; row < last; row += at_once) {
      const int64_t rows = std::min(at_once, last - row);
      const char* const from = static_cast<const char*>(x) + row * c * bytes_of(forms.x);
      char* const to = static_cast<char*>(y) + row * c * bytes_of(forms.y);
      if (is_narrow(forms.x)) widen(forms.x, rows * c, from, own);
      const float* const wide = is_narrow(forms.x) ? own : reinterpret_cast<const float*>(from);
      float* const made = is_narrow(forms.y) ? results : reinterpret_cast<float*>(to);
      for (int64_t i = 0; i < rows; ++i)
        vector_loops().layer_norm_row(c, epsilon, wide + i * c, scale, offset, made + i * c);
      if (is_narrow(forms.y)) narrow(forms.y, rows * c, results, to);
    }
  });
}

void softmax(Executor& executor, bool log, int64_t rows, int64_t c, const float* x, float* y) {
  for_each(executor, rows, c * 8, [&](int64_t row) { vector_loops().softmax_row(log, c, x + row * c, y + row * c); });
}

void softmax_middle(Executor& executor, bool log, int64_t outer, int64_t size, int64_t inner, const float* x,
                    float* y) {
  const int64_t blocks = (inner + kLanes - 1) / kLanes;
  for_each(executor, outer * blocks, size * kLanes * 8, [&](int64_t i) {
    const int64_t first = i % blocks * kLanes, at = i / blocks * size * inner + first;
    vector_loops().softmax_columns(log, size, inner, std::min<int64_t>(kLanes, inner - first), x + at, y + at);
  });
}

}  // namespace cairn
