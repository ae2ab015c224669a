// Iterates over the positions of a shape in row-major order by additions only, since a division per dim would cost more
// than processing the elements of a short row.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace cairn {

class Odometer {
 public:
  static constexpr size_t kMostDims = 64;

  /// Starts at this position; at most kMostDims dims.
  Odometer(std::span<const int64_t> dims, int64_t position) : dims_(dims) {
    for (size_t d = dims.size(); d-- > 1; position /= dims[d]) index_[d] = position % dims[d];
    if (!dims.empty()) index_[0] = position;
  }

  /// Advances to the next position. Returns the dim whose index was incremented; the inner ones are 0 again.
  size_t next() {
    size_t d = dims_.size();
    while (d-- > 1 && ++index_[d] == dims_[d]) index_[d] = 0;
    if (d == 0) ++index_[0];
    return d;
  }

  int64_t index(size_t d) const { return index_[d]; }
  /// The offset of the current position with these strides.
  int64_t offset(std::span<const int64_t> strides) const {
    int64_t offset = 0;
    for (size_t d = 0; d < dims_.size(); ++d) offset += index_[d] * strides[d];
    return offset;
  }

 private:
  std::span<const int64_t> dims_;
  std::array<int64_t, kMostDims> index_;
};

}  // namespace cairn
