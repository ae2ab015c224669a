#include "engines/cpu/move.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engines/cpu/call_step.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/odometer.h"
#include "engines/cpu/vector_loops.h"

namespace cairn {

namespace {

constexpr int64_t kBlock = kLanes;           // side of square blocks, whose cache lines stay in the first-level cache
constexpr int64_t kPixels = 2048;            // rows of a block that makes pixels of a few planes
constexpr int64_t kLeastElements = 8 << 10;  // fewest elements of a chunk that is worth scheduling
constexpr int64_t kMostElements = 4 << 20;   // most of one, so that a run that has to end waits for no chunk

}  // namespace

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

StridedCopy transpose_copy(const std::vector<int64_t>& dims, const std::vector<int64_t>& permutation,
                           size_t element_bytes, std::vector<int64_t> strides) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (strides.empty()) strides = row_major_strides(dims);
  std::vector<MovedAxis> axes(permutation.size());
  int64_t to = 1;
  for (size_t i = permutation.size(); i-- > 0;) {
    const auto source = static_cast<size_t>(permutation[i] < 0 ? permutation[i] + rank : permutation[i]);
    axes[i] = {dims[source], strides[source], to};
    to *= dims[source];
  }
  return StridedCopy(std::move(axes), element_bytes);
}

namespace {

std::vector<MovedAxis> axes_between(const std::vector<int64_t>& dims, const std::vector<int64_t>& from,
                                    const std::vector<int64_t>& to) {
  const std::vector<int64_t> plain = row_major_strides(dims);
  std::vector<MovedAxis> axes;
  for (size_t i = 0; i < dims.size(); ++i)
    axes.push_back({dims[i], (from.empty() ? plain : from)[i], (to.empty() ? plain : to)[i]});
  return axes;
}

}  // namespace

StridedCopy::StridedCopy(const std::vector<int64_t>& dims, const std::vector<int64_t>& from,
                         const std::vector<int64_t>& to, size_t element_bytes)
    : StridedCopy(axes_between(dims, from, to), element_bytes) {}

StridedCopy::StridedCopy(std::vector<MovedAxis> given, size_t element_bytes) : element_bytes_(element_bytes) {
  std::vector<MovedAxis> axes;  // innermost first
  int64_t count = 1;
  for (size_t i = given.size(); i-- > 0;) {
    const MovedAxis& axis = given[i];
    count *= axis.size;
    if (axis.size == 1) continue;
    const bool adjoins = !axes.empty() && axis.from == axes.back().size * axes.back().from &&
                         axis.to == axes.back().size * axes.back().to;
    if (adjoins)
      axes.back().size *= axis.size;
    else
      axes.push_back(axis);
  }
  if (count == 0) return;
  join_elements(axes);
  const auto take = [&](auto wanted) {
    auto found = std::find_if(axes.begin(), axes.end(), wanted);
    if (found == axes.end()) found = axes.begin();
    const MovedAxis taken = *found;
    axes.erase(found);
    return taken;
  };
  if (!axes.empty()) columns_ = take([](const MovedAxis& axis) { return axis.to == 1; });
  if (!axes.empty()) {
    const auto consecutive = [](const MovedAxis& axis) { return axis.from == 1; };
    const bool lies_together = columns_.from == 1 && columns_.to == 1;  // then rows are the axis next to it
    if (lies_together || columns_.to != 1 || std::any_of(axes.begin(), axes.end(), consecutive))
      rows_ = take(consecutive);
  }
  outer_ = std::move(axes);
  planes_ = element_bytes_ == 1 && columns_.size == 3 && columns_.to == 1 && rows_.from == 1 && rows_.to == 3;
  interleaves_ = element_bytes_ == sizeof(float) && columns_.to == 1 && rows_.from == 1 && rows_.to == columns_.size &&
                 columns_.size > 1 && columns_.size <= kMostInterleaved;
  block_rows_ = planes_ || interleaves_ ? kPixels : kBlock;
  row_blocks_ = (rows_.size + block_rows_ - 1) / block_rows_;
  blocks_ = row_blocks_;
  for (const MovedAxis& axis : outer_) blocks_ *= axis.size;
}

// Elements that lie together in both layouts move as one.
void StridedCopy::join_elements(std::vector<MovedAxis>& axes) {
  if (axes.size() < 2 || axes[0].from != 1 || axes[0].to != 1) return;
  const int64_t size = axes[0].size;
  const size_t bytes = static_cast<size_t>(size) * element_bytes_;
  if (bytes != 8 && bytes != 16 && bytes != 32 && bytes != 64) return;
  for (const MovedAxis& axis : axes)
    if (&axis != axes.data() && (axis.from % size != 0 || axis.to % size != 0)) return;
  axes.erase(axes.begin());
  for (MovedAxis& axis : axes) axis.from /= size, axis.to /= size;
  element_bytes_ = bytes;
}

namespace {

/// An element of any alignment.
template <size_t kBytes>
struct Element {
  std::array<char, kBytes> bytes;
};

/// to[j * to_step + i] = from[i * step + j] for i, j < 8: halves of rows are interleaved three times.
void transpose_eight(const uint16_t* from, int64_t step, uint16_t* to, int64_t to_step) {
  typedef uint16_t Eight __attribute__((vector_size(16), aligned(2), may_alias));
  Eight rows[8], next[8];
  for (int64_t i = 0; i < 8; ++i) rows[i] = *reinterpret_cast<const Eight*>(from + i * step);
#pragma GCC unroll 3
  for (int stage = 0; stage < 3; ++stage) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      next[2 * i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    std::copy_n(next, 8, rows);
  }
  for (int64_t i = 0; i < 8; ++i) *reinterpret_cast<Eight*>(to + i * to_step) = rows[i];
}

// Three planes become the channels of pixels.
CAIRN_VECTORISED(void, interleave, (int64_t count, const uint8_t* a, const uint8_t* b, const uint8_t* c, uint8_t* to)) {
  for (int64_t i = 0; i < count; ++i) {
    to[3 * i] = a[i];
    to[3 * i + 1] = b[i];
    to[3 * i + 2] = c[i];
  }
}

}  // namespace

template <class T>
void StridedCopy::move_block(int64_t block, const T* x, T* y) const {
  const int64_t first = block % row_blocks_ * block_rows_, last = std::min(rows_.size, first + block_rows_);
  int64_t rest = block / row_blocks_;
  for (const MovedAxis& axis : outer_) {
    x += rest % axis.size * axis.from;
    y += rest % axis.size * axis.to;
    rest /= axis.size;
  }
  if constexpr (sizeof(T) == 1)
    if (planes_) {
      const T* from = x + first;
      return interleave(last - first, from, from + columns_.from, from + 2 * columns_.from, y + first * 3);
    }
  if (columns_.from == 1 && columns_.to == 1) {  // contiguous in both layouts
    const auto copy = [&](auto bytes) {
      for (int64_t row = first; row < last; ++row) std::memcpy(y + row * rows_.to, x + row * rows_.from, bytes);
    };
    switch (const size_t bytes = static_cast<size_t>(columns_.size) * sizeof(T)) {  // short rows without a call each
      case 8: return copy(std::integral_constant<size_t, 8>());
      case 16: return copy(std::integral_constant<size_t, 16>());
      case 32: return copy(std::integral_constant<size_t, 32>());
      case 64: return copy(std::integral_constant<size_t, 64>());
      default: return copy(bytes);
    }
  }
  if (interleaves_)
    return vector_loops().interleave(last - first, columns_.size, reinterpret_cast<const float*>(x + first),
                                     columns_.from, reinterpret_cast<float*>(y + first * rows_.to));
  const auto transpose = sizeof(T) == sizeof(float) && columns_.to == 1 && rows_.from == 1 && last - first == kLanes
                             ? vector_loops().transpose
                             : nullptr;
  const bool by_eight = sizeof(T) == sizeof(uint16_t) && columns_.to == 1 && rows_.from == 1 && (last - first) % 8 == 0;
  for (int64_t start = 0; start < columns_.size; start += kBlock) {
    const int64_t end = std::min(columns_.size, start + kBlock);
    if (by_eight && (end - start) % 8 == 0) {
      for (int64_t column = start; column < end; column += 8)
        for (int64_t row = first; row < last; row += 8)
          transpose_eight(reinterpret_cast<const uint16_t*>(x + row + column * columns_.from), columns_.from,
                          reinterpret_cast<uint16_t*>(y + row * rows_.to + column), rows_.to);
      continue;
    }
    if (transpose && end - start == kLanes) {
      transpose(reinterpret_cast<const float*>(x + first + start * columns_.from), columns_.from,
                reinterpret_cast<float*>(y + first * rows_.to + start), rows_.to);
      continue;
    }
    for (int64_t row = first; row < last; ++row) {
      const T* from = x + row * rows_.from;
      T* to = y + row * rows_.to;
      if (columns_.to == 1)
        for (int64_t column = start; column < end; ++column) to[column] = from[column * columns_.from];
      else
        for (int64_t column = start; column < end; ++column) to[column * columns_.to] = from[column * columns_.from];
    }
  }
}

void StridedCopy::run(Executor& executor, const void* x, void* y) const {
  const int64_t moved = columns_.size * std::min(rows_.size, block_rows_);
  const int64_t elements = moved * std::max<int64_t>(1, static_cast<int64_t>(element_bytes_ / sizeof(float)));
  const int64_t least = std::max<int64_t>(1, kLeastElements / elements);
  const int64_t each = std::clamp(blocks_ / (executor.width() * 8), least, std::max(least, kMostElements / elements));
  executor.run(static_cast<int>((blocks_ + each - 1) / each), [&](int chunk, int) {
    const auto move = [&](auto element) {
      using T = decltype(element);
      for (int64_t block = chunk * each; block < std::min(blocks_, (chunk + 1) * each); ++block)
        move_block(block, static_cast<const T*>(x), static_cast<T*>(y));
    };
    if (element_bytes_ == 1) move(uint8_t());
    if (element_bytes_ == 2) move(uint16_t());
    if (element_bytes_ == 4) move(uint32_t());
    if (element_bytes_ == 8) move(Element<8>());
    if (element_bytes_ == 16) move(Element<16>());
    if (element_bytes_ == 32) move(Element<32>());
    if (element_bytes_ == 64) move(Element<64>());
  });
}

namespace {

constexpr int64_t kMostItemBytes = 64 << 10;  // larger items would leave too few rows to distribute over the workers

bool is_identity(const std::vector<int64_t>& source, int64_t size) {
  for (size_t i = 0; i < source.size(); ++i)
    if (source[i] != static_cast<int64_t>(i)) return false;
  return static_cast<int64_t>(source.size()) == size;
}

CAIRN_VECTORISED(void, repeat_word, (int64_t count, uint64_t word, char* to)) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + 8 * i, &word, 8);
}

template <class T>
void repeat(int64_t count, T element, char* to) {
  constexpr int64_t kMany = 64, kEach = 8 / sizeof(T);
  if (count >= kMany) {
    uint64_t word = 0;
    for (size_t at = 0; at < 8; at += sizeof(T)) std::memcpy(reinterpret_cast<char*>(&word) + at, &element, sizeof(T));
    repeat_word(count / kEach, word, to);
    to += count / kEach * 8, count %= kEach;
  }
  std::fill_n(reinterpret_cast<T*>(to), count, element);
}

template <class T>
void copy_strided(int64_t count, int64_t step, const char* x, char* y) {
  if (step == 0) return repeat(count, *reinterpret_cast<const T*>(x), y);
  if (sizeof(T) == sizeof(float) && step == 2 * static_cast<int64_t>(sizeof(T)))
    return vector_loops().every_second(count, reinterpret_cast<const float*>(x), reinterpret_cast<float*>(y));
  auto* to = reinterpret_cast<T*>(y);
  for (int64_t i = 0; i < count; ++i) to[i] = *reinterpret_cast<const T*>(x + i * step);
}

using Offsets = std::vector<int64_t>;  // of the positions of an axis, -1 where it is filled

// An axis of one position adds to the offsets of another.
void drop_single_positions(std::vector<Offsets>& axes) {
  for (size_t axis = axes.size(); axis-- > 0 && axes.size() > 1;) {
    if (axes[axis].size() != 1 || axes[axis][0] < 0) continue;
    for (int64_t& offset : axes[axis > 0 ? axis - 1 : 1])
      if (offset >= 0) offset += axes[axis][0];
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(axis));
  }
}

/// Whether the offsets rise or fall by `step` each.
bool goes_by(const Offsets& offsets, int64_t step) {
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] < 0 || offsets[i] != offsets[0] + static_cast<int64_t>(i) * step) return false;
  return true;
}

// The last two axes are one where their positions follow each other at one distance; of a length that leaves rows to share.
void join_last_axes(std::vector<Offsets>& axes) {
  constexpr size_t kMostPositions = 4 << 10;
  while (axes.size() > 1) {
    const Offsets &last = axes.back(), &rows = axes[axes.size() - 2];
    if (last.size() < 2 || rows.size() < 2 || last.size() * rows.size() > kMostPositions) return;
    const int64_t step = last[1] - last[0];
    if (!goes_by(last, step) || !goes_by(rows, step * std::ssize(last))) return;
    Offsets joined;
    for (int64_t row : rows)
      for (int64_t offset : last) joined.push_back(row + offset);
    axes.pop_back();
    axes.back() = std::move(joined);
  }
}

}  // namespace

AxisCopy::AxisCopy(const std::vector<int64_t>& from, std::vector<std::vector<int64_t>> sources, size_t element_bytes,
                   uint64_t fill)
    : item_bytes_(static_cast<int64_t>(element_bytes)), element_bytes_(element_bytes), fill_(fill) {
  const auto is_one = [](const Offsets& axis) {
    return std::all_of(axis.begin(), axis.end(), [](int64_t at) { return at == 0; });
  };
  if (std::all_of(sources.begin(), sources.end(), is_one)) {
    repeats_ = 1;
    for (const Offsets& axis : sources) repeats_ *= std::ssize(axis);
    return;
  }
  size_t rank = from.size();
  while (rank > 1 && is_identity(sources[rank - 1], from[rank - 1]) && item_bytes_ * from[rank - 1] <= kMostItemBytes)
    item_bytes_ *= from[--rank];
  sources.resize(rank);
  int64_t stride = item_bytes_;
  for (size_t axis = rank; axis-- > 0;) {
    for (int64_t& source : sources[axis]) source = source < 0 ? -1 : source * stride;
    stride *= from[axis];
  }
  drop_single_positions(sources);
  join_last_axes(sources);
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
  for (const auto& axis : outer_) outer_sizes_.push_back(static_cast<int64_t>(axis.size()));
  for (int64_t size : outer_sizes_) rows_ *= size;
}

void AxisCopy::fill(uint64_t element, char* y, int64_t bytes) const {
  const auto put = [&](auto tag) {
    using T = decltype(tag);
    repeat(bytes / static_cast<int64_t>(sizeof(T)), static_cast<T>(element), y);
  };
  if (element_bytes_ == 1) put(uint8_t());
  if (element_bytes_ == 2) put(uint16_t());
  if (element_bytes_ == 4) put(uint32_t());
  if (element_bytes_ == 8) put(uint64_t());
}

void AxisCopy::copy_piece(const Piece& piece, const char* x, char* y) const {
  if (piece.from < 0) return fill(fill_, y, piece.count * item_bytes_);
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
  if (repeats_ > 0) {
    uint64_t element = 0;
    std::memcpy(&element, x, element_bytes_);
    return for_ranges(executor, repeats_, 1, [&](int64_t first, int64_t last) {
      fill(element, static_cast<char*>(y) + first * item_bytes_, (last - first) * item_bytes_);
    });
  }
  if (row_bytes_ == 0 || rows_ == 0) return;
  const int64_t least = std::max<int64_t>(1, kLeastElements * 4 / row_bytes_);
  const int64_t most = std::max(least, kMostElements * 4 / row_bytes_);
  const int64_t each = std::clamp(rows_ / (executor.width() * 8), least, most);
  executor.run(static_cast<int>((rows_ + each - 1) / each), [&](int chunk, int) {
    const int64_t first = chunk * each, last = std::min(rows_, first + each);
    Odometer place(outer_sizes_, first);
    std::array<int64_t, Odometer::kMostDims + 1> from{};  // with the axes before this one; -1: outside
    size_t changed = 0;
    for (int64_t row = first; row < last; ++row) {
      for (size_t axis = changed; axis < outer_.size(); ++axis) {
        const int64_t offset = outer_[axis][static_cast<size_t>(place.index(axis))];
        from[axis + 1] = offset < 0 || from[axis] < 0 ? -1 : from[axis] + offset;
      }
      char* to = static_cast<char*>(y) + row * row_bytes_;
      if (from[outer_.size()] < 0) {
        fill(fill_, to, row_bytes_);
      } else {
        for (const Piece& piece : pieces_) {
          copy_piece(piece, static_cast<const char*>(x) + from[outer_.size()], to);
          to += piece.count * item_bytes_;
        }
      }
      if (row + 1 < last) changed = place.next();
    }
  });
}

}  // namespace cairn
