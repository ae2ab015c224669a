// Work on rows that indices name: each row has one worker, which meets its indices in their order, so that sums do not
// depend on the number of workers.
#pragma once

#include <atomic>
#include <bit>

#include "engines/cpu/call_step.h"
#include "support/stop.h"

namespace cairn {

/// What an index that names no row stands for: it is left out, or it is an error.
inline constexpr int64_t kLeftOut = -1, kNoRow = -2;

class RowOrder {
 public:
  /// `bytes`: of one row; rows lie side by side.
  RowOrder(int64_t count, int64_t bytes) : count_(count), bytes_(bytes) {
    while (shift_ < 6 && (bytes << shift_) < 64) ++shift_;  // a cache line has one worker
  }
  size_t workspace() const { return static_cast<size_t>(2 * count_ + kChunks * kParts) * sizeof(int64_t); }

  /// Calls body(i, row) for every index i whose row, as row_of(i) tells it, is not kLeftOut. Returns false without a call
  /// when one is kNoRow.
  template <class RowOf, class Body>
  bool run(const StepArgs& args, RowOf&& row_of, Body&& body) const {
    auto* rows = static_cast<int64_t*>(args.workspace);
    // In passes over an index: two for the order and one of `row`, by all workers, or one of a part by one worker.
    const int64_t row = 2 + bytes_ / 16;
    if (count_ * row < kLeastWork || args.executor.width() * row <= 7 + row) {
      bool good = true;
      for (int64_t i = 0; i < count_; ++i) good &= (rows[i] = row_of(i)) != kNoRow;
      for (int64_t i = 0; i < count_ && good; ++i)
        if (rows[i] >= 0) body(i, rows[i]);
      return good;
    }
    // A counting sort by the part that each row belongs to; parts interleave because small indices are frequent.
    int64_t *order = rows + count_, *ends = order + count_;  // ends: [chunk][part]
    const int64_t chunks = std::clamp<int64_t>(count_ / 2048, 1, kChunks);
    const auto part_of = [shift = shift_](int64_t row) { return row >> shift & (kParts - 1); };
    const auto in_chunks = [&](auto&& visit) {
      args.executor.run(static_cast<int>(chunks), [&](int chunk, int) {
        visit(ends + chunk * kParts, count_ * chunk / chunks, count_ * (chunk + 1) / chunks);
      });
    };
    std::atomic<bool> good = true;
    in_chunks([&](int64_t* sizes, int64_t first, int64_t last) {
      std::fill_n(sizes, kParts, 0);
      for (int64_t i = first; i < last; ++i) {
        rows[i] = row_of(i);
        if (rows[i] >= 0) ++sizes[part_of(rows[i])];
        if (rows[i] == kNoRow) good.store(false, std::memory_order_relaxed);
      }
    });
    if (!good) return false;
    int64_t total = 0;
    for (int64_t part = 0; part < kParts; ++part)
      for (int64_t chunk = 0; chunk < chunks; ++chunk) total += std::exchange(ends[chunk * kParts + part], total);
    in_chunks([&](int64_t* next, int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        if (rows[i] >= 0) order[next[part_of(rows[i])]++] = i;
    });
    ends += (chunks - 1) * kParts;
    args.executor.run(kParts, [&](int part, int) {
      for (int64_t k = part > 0 ? ends[part - 1] : 0; k < ends[part]; ++k)
        body(order[k], rows[order[k]]), stop_point_after(bytes_);
    });
    return true;
  }

 private:
  static constexpr int64_t kLeastWork = 16 << 10;
  static constexpr int kChunks = 32, kParts = 64;

  int64_t count_, bytes_;
  int shift_ = 0;
};

/// Combines elements of one type into a row of the same or of a wider type: to[j] = combination of to[j] and from[j].
using CombineRow = void (*)(int64_t count, const void* from, void* to);
/// By a mode of scatter_reduce or segment_reduce. `sums`: 16-bit floats go into a row of f32.
CombineRow combine_row(std::string_view mode, DType dtype, bool sums);

/// to[places[j]] = combination of to[places[j]] and from[j]; the mode "update" puts from[j].
using CombineAt = void (*)(int64_t count, const int64_t* places, const void* from, void* to);
CombineAt combine_at(std::string_view mode, DType dtype);

/// Copies with several workers; from and to may be the same.
void copy_bytes(Executor& executor, const void* from, void* to, int64_t bytes);

}  // namespace cairn
