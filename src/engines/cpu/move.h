// Moving elements of any type to other places: transposition of dims.
#pragma once

#include <cstdint>
#include <vector>

#include "support/executor.h"

namespace cairn {

/// Dim i of the result is dim permutation[i] of the input; elements of 1, 2, 4 or 8 bytes.
class Transpose {
 public:
  Transpose(const std::vector<int64_t>& dims, std::vector<int64_t> permutation, size_t element_bytes);
  void run(Executor& executor, const void* x, void* y) const;

 private:
  /// A dim of the result: its strides count elements of input and result.
  struct Axis {
    int64_t size, from, to;
  };
  template <class T>
  void move_block(int64_t block, const T* x, T* y) const;

  std::vector<Axis> outer_;  // all but the two below
  Axis rows_{1, 0, 0};       // consecutive in the input
  Axis columns_{1, 0, 0};    // consecutive in the result
  int64_t row_blocks_ = 1, blocks_ = 0;
  size_t element_bytes_;
};

}  // namespace cairn
