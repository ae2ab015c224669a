// Moving elements of any type to other places: from one layout to another, and choice of positions axis by axis.
#pragma once

#include <cstdint>
#include <vector>

#include "support/executor.h"

namespace cairn {

/// A dim of what is moved, and how many elements apart its positions are in the one place and in the other.
struct MovedAxis {
  int64_t size, from, to;
};

/// Copies elements of 1, 2, 4, 8 or 16 bytes from one layout to another.
class StridedCopy {
 public:
  /// Outermost axis of the result first.
  StridedCopy(std::vector<MovedAxis> axes, size_t element_bytes);
  /// Between tensors of equal dims; no strides: row-major.
  StridedCopy(const std::vector<int64_t>& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to,
              size_t element_bytes);
  void run(Executor& executor, const void* x, void* y) const;

 private:
  template <class T>
  void move_block(int64_t block, const T* x, T* y) const;

  std::vector<MovedAxis> outer_;  // all but the two below
  MovedAxis rows_{1, 0, 0};       // consecutive in the one place, if any is
  MovedAxis columns_{1, 0, 0};    // consecutive in the other, if any is
  int64_t row_blocks_ = 1, blocks_ = 0;
  size_t element_bytes_;
};

/// Dim i of the result, which is row-major, is dim permutation[i] of the input; no strides: the input is row-major.
StridedCopy transpose_copy(const std::vector<int64_t>& dims, const std::vector<int64_t>& permutation,
                           size_t element_bytes, std::vector<int64_t> strides = {});

/// Row-major strides in elements.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims);

/// y[i, j, ...] = x[sources[0][i], sources[1][j], ...], or the fill where a source is -1: slices, reversals, repetitions
/// and borders. Elements of 1, 2, 4 or 8 bytes.
class AxisCopy {
 public:
  /// `from` has as many dims as the result: leading ones are 1 when the input has fewer. `fill`: bytes of one element.
  AxisCopy(const std::vector<int64_t>& from, std::vector<std::vector<int64_t>> sources, size_t element_bytes,
           uint64_t fill = 0);
  void run(Executor& executor, const void* x, void* y) const;

 private:
  /// Positions of the last axis whose sources follow each other at one distance.
  struct Piece {
    int64_t count, from, step;  // bytes; from -1: the fill
  };
  void copy_piece(const Piece& piece, const char* x, char* y) const;
  void fill(char* y, int64_t bytes) const;

  std::vector<std::vector<int64_t>> outer_;  // byte offsets of each position of each axis but the last
  std::vector<int64_t> outer_sizes_;
  std::vector<Piece> pieces_;  // of the last axis
  int64_t rows_ = 1, row_bytes_ = 0;
  int64_t item_bytes_;  // moved together: an element, or trailing dims that stay whole
  size_t element_bytes_;
  uint64_t fill_;
};

}  // namespace cairn
