#include "engines/cpu/move.h"

#include <algorithm>
#include <cstring>

namespace cairn {

namespace {

constexpr int64_t kBlock = 16;               // square pieces whose lines stay in the first-level cache
constexpr int64_t kLeastElements = 8 << 10;  // of a chunk worth handing out

}  // namespace

Transpose::Transpose(const std::vector<int64_t>& dims, std::vector<int64_t> permutation, size_t element_bytes)
    : element_bytes_(element_bytes) {
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  std::vector<Axis> axes;
  int64_t to = 1, count = 1;
  for (size_t i = permutation.size(); i-- > 0;) {
    const auto source = static_cast<size_t>(permutation[i] < 0 ? permutation[i] + rank : permutation[i]);
    const Axis axis{dims[source], strides[source], to};
    to *= axis.size, count *= axis.size;
    if (axis.size == 1) continue;
    if (!axes.empty() && axis.from == axes.back().size * axes.back().from)
      axes.back().size *= axis.size;  // neighbours in both
    else
      axes.push_back(axis);
  }
  if (count == 0) return;
  if (!axes.empty()) {
    columns_ = axes.front();  // consecutive in the result
    axes.erase(axes.begin());
  }
  const auto consecutive = std::find_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.from == 1; });
  if (consecutive != axes.end()) {
    rows_ = *consecutive;
    axes.erase(consecutive);
  }
  outer_ = std::move(axes);
  row_blocks_ = (rows_.size + kBlock - 1) / kBlock;
  blocks_ = row_blocks_;
  for (const Axis& axis : outer_) blocks_ *= axis.size;
}

template <class T>
void Transpose::move_block(int64_t block, const T* x, T* y) const {
  const int64_t first = block % row_blocks_ * kBlock, last = std::min(rows_.size, first + kBlock);
  int64_t rest = block / row_blocks_;
  for (const Axis& axis : outer_) {
    x += rest % axis.size * axis.from;
    y += rest % axis.size * axis.to;
    rest /= axis.size;
  }
  if (columns_.from == 1) {  // whole runs keep their order
    std::memcpy(y, x, static_cast<size_t>(columns_.size) * sizeof(T));
    return;
  }
  for (int64_t start = 0; start < columns_.size; start += kBlock) {
    const int64_t end = std::min(columns_.size, start + kBlock);
    for (int64_t row = first; row < last; ++row)
      for (int64_t column = start; column < end; ++column) y[row * rows_.to + column] = x[row + column * columns_.from];
  }
}

void Transpose::run(Executor& executor, const void* x, void* y) const {
  const int64_t elements = std::max<int64_t>(1, columns_.size * std::min(rows_.size, kBlock));
  const int64_t each = std::max<int64_t>({1, kLeastElements / elements, blocks_ / (executor.width() * 8)});
  executor.run(static_cast<int>((blocks_ + each - 1) / each), [&](int chunk, int) {
    const auto move = [&](auto element) {
      using T = decltype(element);
      for (int64_t block = chunk * each; block < std::min(blocks_, (chunk + 1) * each); ++block)
        move_block(block, static_cast<const T*>(x), static_cast<T*>(y));
    };
    if (element_bytes_ == 1) move(uint8_t());
    if (element_bytes_ == 2) move(uint16_t());
    if (element_bytes_ == 4) move(uint32_t());
    if (element_bytes_ == 8) move(uint64_t());
  });
}

}  // namespace cairn
