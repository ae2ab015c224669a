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

namespace {

constexpr int64_t kMostItemBytes = 64 << 10;  // items beyond this leave too few rows to share out

bool is_identity(const std::vector<int64_t>& source, int64_t size) {
  for (size_t i = 0; i < source.size(); ++i)
    if (source[i] != static_cast<int64_t>(i)) return false;
  return static_cast<int64_t>(source.size()) == size;
}

template <class T>
void copy_strided(int64_t count, int64_t step, const char* x, char* y) {
  auto* to = reinterpret_cast<T*>(y);
  for (int64_t i = 0; i < count; ++i) to[i] = *reinterpret_cast<const T*>(x + i * step);
}

}  // namespace

AxisCopy::AxisCopy(const std::vector<int64_t>& from, std::vector<std::vector<int64_t>> sources, size_t element_bytes,
                   uint64_t fill)
    : item_bytes_(static_cast<int64_t>(element_bytes)), element_bytes_(element_bytes), fill_(fill) {
  size_t rank = from.size();
  while (rank > 1 && is_identity(sources[rank - 1], from[rank - 1]) && item_bytes_ * from[rank - 1] <= kMostItemBytes)
    item_bytes_ *= from[--rank];
  if (rank == 0) {  // one element, as one position of one axis
    pieces_.push_back({1, 0, item_bytes_});
    row_bytes_ = item_bytes_;
    return;
  }
  sources.resize(rank);
  int64_t stride = item_bytes_;
  for (size_t axis = rank; axis-- > 0;) {
    for (int64_t& source : sources[axis]) source = source < 0 ? -1 : source * stride;
    stride *= from[axis];
  }
  const std::vector<int64_t>& last = sources.back();
  for (size_t i = 0; i < last.size();) {
    size_t end = i + 1;
    const bool outside = last[i] < 0;
    const int64_t step = end < last.size() && !outside && last[end] >= 0 ? last[end] - last[i] : 0;
    while (end < last.size() && (outside ? last[end] < 0 : last[end] >= 0 && last[end] - last[end - 1] == step)) ++end;
    pieces_.push_back({static_cast<int64_t>(end - i), last[i], end - i == 1 ? item_bytes_ : step});
    i = end;
  }
  row_bytes_ = static_cast<int64_t>(last.size()) * item_bytes_;
  sources.pop_back();
  outer_ = std::move(sources);
  for (const auto& axis : outer_) rows_ *= static_cast<int64_t>(axis.size());
}

void AxisCopy::fill(char* y, int64_t bytes) const {
  const auto put = [&](auto element) {
    using T = decltype(element);
    std::fill_n(reinterpret_cast<T*>(y), bytes / static_cast<int64_t>(sizeof(T)), static_cast<T>(fill_));
  };
  if (element_bytes_ == 1) put(uint8_t());
  if (element_bytes_ == 2) put(uint16_t());
  if (element_bytes_ == 4) put(uint32_t());
  if (element_bytes_ == 8) put(uint64_t());
}

void AxisCopy::copy_piece(const Piece& piece, const char* x, char* y) const {
  if (piece.from < 0) return fill(y, piece.count * item_bytes_);
  x += piece.from;
  if (piece.step == item_bytes_) {
    std::memcpy(y, x, static_cast<size_t>(piece.count * item_bytes_));
  } else if (item_bytes_ == 1) {
    copy_strided<uint8_t>(piece.count, piece.step, x, y);
  } else if (item_bytes_ == 2) {
    copy_strided<uint16_t>(piece.count, piece.step, x, y);
  } else if (item_bytes_ == 4) {
    copy_strided<uint32_t>(piece.count, piece.step, x, y);
  } else if (item_bytes_ == 8) {
    copy_strided<uint64_t>(piece.count, piece.step, x, y);
  } else {
    for (int64_t i = 0; i < piece.count; ++i)
      std::memcpy(y + i * item_bytes_, x + i * piece.step, static_cast<size_t>(item_bytes_));
  }
}

void AxisCopy::run(Executor& executor, const void* x, void* y) const {
  if (row_bytes_ == 0 || rows_ == 0) return;
  const int64_t least = std::max<int64_t>(1, kLeastElements * 4 / row_bytes_);
  const int64_t each = std::max(least, rows_ / (executor.width() * 8));
  executor.run(static_cast<int>((rows_ + each - 1) / each), [&](int chunk, int) {
    for (int64_t row = chunk * each; row < std::min(rows_, (chunk + 1) * each); ++row) {
      int64_t rest = row, from = 0;
      for (size_t axis = outer_.size(); axis-- > 0 && from >= 0;) {
        const auto size = static_cast<int64_t>(outer_[axis].size());
        const int64_t offset = outer_[axis][static_cast<size_t>(rest % size)];
        from = offset < 0 ? -1 : from + offset;
        rest /= size;
      }
      char* to = static_cast<char*>(y) + row * row_bytes_;
      if (from < 0) {
        fill(to, row_bytes_);
        continue;
      }
      for (const Piece& piece : pieces_) {
        copy_piece(piece, static_cast<const char*>(x) + from, to);
        to += piece.count * item_bytes_;
      }
    }
  });
}

}  // namespace cairn
