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
    const auto body_of_list = [&](const Rows& list) {
      for (int64_t k = 0; k < list.count; ++k)
        if (list.rows[k] >= 0) body(list.indices[k], list.rows[k]);
    };
    return run_lists(args, row_of, body_of_list);
  }

  /// Indices and their rows, some of which may be kLeftOut.
  struct Rows {
    int64_t count;
    const int64_t *indices, *rows;
  };
  static constexpr int64_t kList = 128;

  /// The same by lists of at most kList indices, body(const Rows&).
  template <class RowOf, class Body>
  bool run_lists(const StepArgs& args, RowOf&& row_of, Body&& body) const {
    return run_lists(
        args, row_of, [](bool) {}, body);
  }

  /// The same behind one call of start(ascends): whether one worker meets all rows, none is left out, and none comes behind a larger one.
  template <class RowOf, class Start, class Body>
  bool run_lists(const StepArgs& args, RowOf&& row_of, Start&& start, Body&& body) const {
    auto* rows = static_cast<int64_t*>(args.workspace);
    int64_t *order = rows + count_, *ends = order + count_;  // ends: [chunk][part]
    // In passes over an index: two for the order and one of `row`, by all workers, or one of a part by one worker.
    const int64_t row = 2 + bytes_ / 16;
    if (count_ * row < kLeastWork || args.executor.width() * row <= 7 + row) {
      bool good = true, ascends = true;
      for (int64_t i = 0, last = 0; i < count_; ++i) {
        rows[i] = row_of(i), order[i] = i;
        good &= rows[i] != kNoRow, ascends &= rows[i] >= last;
        last = rows[i];
      }
      if (good) start(ascends);
      for (int64_t i = 0; i < count_ && good; i += kList) {
        const int64_t many = std::min(kList, count_ - i);
        body(Rows{many, order + i, rows + i}), stop_point_after(many * bytes_);
      }
      return good;
    }
    // A counting sort by the part that each row belongs to; parts interleave because small indices are frequent.
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
    start(false);
    int64_t total = 0;
    for (int64_t part = 0; part < kParts; ++part)
      for (int64_t chunk = 0; chunk < chunks; ++chunk) total += std::exchange(ends[chunk * kParts + part], total);
    in_chunks([&](int64_t* next, int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        if (rows[i] >= 0) order[next[part_of(rows[i])]++] = i;
    });
    ends += (chunks - 1) * kParts;
    args.executor.run(kParts, [&](int part, int) {
      int64_t own[kList];
      for (int64_t k = part > 0 ? ends[part - 1] : 0, many = 0; k < ends[part]; k += many) {
        many = std::min(kList, ends[part] - k);
        for (int64_t each = 0; each < many; ++each) own[each] = rows[order[k + each]];
        body(Rows{many, order + k, own}), stop_point_after(many * bytes_);
      }
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
