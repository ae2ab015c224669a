// Pooling of planes [planes, d, h, w], whose columns lie next to each other: down the rows of the windows first, then along them.
#pragma once

#include <vector>

#include "engines/cpu/slides.h"

namespace cairn {

/// Pooled planes, and what lies inside them of the windows of each row and column of the result.
struct PlanePool {
  struct Row {
    size_t first, count;  // rows of x, in `offsets`
    float counted;        // mean: rows and slices of a window
  };
  explicit PlanePool(const SlideSpec& spec);

  SlideSpec spec;
  int64_t columns;  // of a row with its borders: whole steps, so that rows behind each other are pooled as one
  std::vector<int64_t> offsets;  // in a plane
  std::vector<Row> rows;
  std::vector<float> counts;  // mean: the columns of a window, for each column of the result
};

inline constexpr int64_t kMostPlaneColumns = 4096, kMostPlaneRows = 64;  // of a row with its borders, of a window

/// Rows [first, last) of y, counted over all planes; the pool has at most the numbers above.
void pool_plane_rows(const PlanePool& pool, int64_t first, int64_t last, const float* x, float* y);

}  // namespace cairn
