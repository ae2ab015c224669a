// Copies elements of any type: from one layout to another, and by a choice of positions along each axis.
#pragma once

#include <cstdint>
#include <vector>

#include "support/executor.h"

namespace cairn {

/// A dim of a copied tensor, with its strides in elements in the source and in the destination.
struct MovedAxis {
  int64_t size, from, to;
};

/// Copies elements of 1, 2, 4, 8 or 16 bytes from one layout to another.
class StridedCopy {
 public:
  /// `axes`: the outermost axis of the result first.
  StridedCopy(std::vector<MovedAxis> axes, size_t element_bytes);
  /// Between tensors of equal dims with the strides `from` and `to`; empty: row-major.
  StridedCopy(const std::vector<int64_t>& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to,
              size_t element_bytes);
  void run(Executor& executor, const void* x, void* y) const;

 private:
  void join_elements(std::vector<MovedAxis>& axes);
  template <class T>
  void move_block(int64_t block, const T* x, T* y) const;

  std::vector<MovedAxis> outer_;  // all axes but the two below
  MovedAxis rows_{1, 0, 0};       // contiguous in one of the layouts, if any axis is
  MovedAxis columns_{1, 0, 0};    // contiguous in the other, if any axis is
  int64_t block_rows_ = 1, row_blocks_ = 1, blocks_ = 0;
  bool planes_ = false;       // of bytes become the channels of pixels
  bool interleaves_ = false;  // a few floats of as many rows lie side by side in the result
  size_t element_bytes_;
};

/// The copy that transposes: dim i of the row-major result is dim permutation[i] of the input. `strides` of the input;
/// empty: row-major.
StridedCopy transpose_copy(const std::vector<int64_t>& dims, const std::vector<int64_t>& permutation,
                           size_t element_bytes, std::vector<int64_t> strides = {});

/// Row-major strides in elements.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims);

/// y[i, j, ...] = x[sources[0][i], sources[1][j], ...], or the fill value if a source is -1: slices, reversals,
/// repetitions and padding. Elements of 1, 2, 4 or 8 bytes.
class AxisCopy {
 public:
  /// `from`: the input's dims, with leading ones so that it has the rank of the result. `fill`: the bytes of one
  /// element.
  AxisCopy(const std::vector<int64_t>& from, std::vector<std::vector<int64_t>> sources, size_t element_bytes,
           uint64_t fill = 0);
  void run(Executor& executor, const void* x, void* y) const;

 private:
  /// A run of positions of the last axis whose sources have a constant stride.
  struct Piece {
    int64_t count, from, step;  // `from` and `step` in bytes; from -1: the fill value
  };
  void copy_piece(const Piece& piece, const char* x, char* y) const;
  void fill(uint64_t element, char* y, int64_t bytes) const;

  std::vector<std::vector<int64_t>> outer_;  // byte offsets of each position of each axis but the last
  std::vector<int64_t> outer_sizes_;
  std::vector<Piece> pieces_;  // of the last axis
  int64_t rows_ = 1, row_bytes_ = 0;
  int64_t repeats_ = 0;  // of the first element, which is then all that is copied
  int64_t item_bytes_;   // bytes copied together: an element, or trailing dims that are copied whole
  size_t element_bytes_;
  uint64_t fill_;
};

}  // namespace cairn
