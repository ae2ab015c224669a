#include "engines/cpu/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/call_step.h"
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

}  // namespace

size_t reduce_workspace(int64_t outer, int64_t middle, int64_t c) {
  if (folds_rows(outer, middle, c))
    return static_cast<size_t>(c * kFolded) * sizeof(float) + reduce_workspace(1, middle / kFolded, c * kFolded);
  const int64_t parts = middle_parts(outer, middle, c);
  return parts == 1 ? 0 : static_cast<size_t>(outer * parts * c) * sizeof(float);
}

void reduce_middle(Executor& executor, bool largest, int64_t outer, int64_t middle, int64_t c, float scale,
                   const float* x, float* y, float* workspace) {
  if (folds_rows(outer, middle, c)) {
    reduce_middle(executor, largest, 1, middle / kFolded, c * kFolded, 1.f, x, workspace, workspace + c * kFolded);
    vector_loops().reduce_channels(largest, kFolded, c, scale, workspace, y, 0, c);
    return;
  }
  const int64_t slices = (c + kSlice - 1) / kSlice, parts = middle_parts(outer, middle, c);
  float* to = parts == 1 ? y : workspace;
  for_each(executor, outer * parts * slices, middle / parts * kSlice, [&](int64_t i) {
    const int64_t slice = i % slices, part = i / slices % parts, o = i / slices / parts;
    const int64_t first = middle * part / parts, last = middle * (part + 1) / parts;
    vector_loops().reduce_channels(largest, last - first, c, parts == 1 ? scale : 1.f, x + (o * middle + first) * c,
                                   to + (o * parts + part) * c, slice * kSlice, std::min(c, (slice + 1) * kSlice));
  });
  if (parts > 1)
    for (int64_t o = 0; o < outer; ++o)
      vector_loops().reduce_channels(largest, parts, c, scale, to + o * parts * c, y + o * c, 0, c);
}

void reduce_rows(Executor& executor, bool largest, int64_t rows, int64_t c, float scale, const float* x, float* y) {
  for_ranges(executor, rows, c, [&](int64_t first, int64_t last) {
    vector_loops().reduce_rows(largest, last - first, c, scale, x + first * c, y + first);
  });
}

void layer_norm(Executor& executor, int64_t rows, int64_t c, float epsilon, const float* x, const float* scale,
                const float* offset, float* y) {
  for_each(executor, rows, c * 4,
           [&](int64_t row) { vector_loops().layer_norm_row(c, epsilon, x + row * c, scale, offset, y + row * c); });
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
