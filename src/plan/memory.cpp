#include "plan/memory.h"

#include <algorithm>

#include "support/memory.h"

namespace cairn {

namespace {

size_t most_live(const std::vector<Buffer*>& buffers) {
  std::vector<std::pair<size_t, int64_t>> events;  // (step, change of live bytes)
  for (const Buffer* buffer : buffers) {
    events.emplace_back(buffer->first, static_cast<int64_t>(whole_lines(buffer->bytes)));
    events.emplace_back(buffer->last + 1, -static_cast<int64_t>(whole_lines(buffer->bytes)));
  }
  std::sort(events.begin(), events.end());  // at equal steps, releases sort before allocations
  int64_t live = 0, most = 0;
  for (auto [step, change] : events) most = std::max(most, live += change);
  return static_cast<size_t>(most);
}

// The offsets that are in use, indexed by time: a buffer is entered in every stretch of steps that its live range
// touches, so that a lookup visits only buffers with nearby live ranges.
class TakenPlaces {
 public:
  using Place = std::pair<size_t, size_t>;  // from, to

  explicit TakenPlaces(size_t steps) : stretches_(steps / kStretch + 1) {}
  void add(const Buffer& buffer) {
    for (size_t i = buffer.first / kStretch; i <= buffer.last / kStretch; ++i) stretches_[i].push_back(&buffer);
  }
  /// The sorted offsets of the buffers whose live ranges overlap that of `buffer`; valid until the next call.
  const std::vector<Place>& beside(const Buffer& buffer) {
    found_.clear();
    for (size_t i = buffer.first / kStretch; i <= buffer.last / kStretch; ++i)
      for (const Buffer* other : stretches_[i]) {
        if (other->last < buffer.first || buffer.last < other->first) continue;
        if (std::max<size_t>(other->first, buffer.first) / kStretch == i)  // the first stretch that both touch
          found_.emplace_back(other->offset, other->offset + whole_lines(other->bytes));
      }
    std::sort(found_.begin(), found_.end());
    return found_;
  }

 private:
  static constexpr size_t kStretch = 64;
  std::vector<std::vector<const Buffer*>> stretches_;
  std::vector<Place> found_;
};

// Places the buffers in this order, each into the smallest gap between buffers with overlapping live ranges.
size_t place_in_order(const std::vector<Buffer*>& order) {
  size_t end = 0, steps = 0;
  for (const Buffer* buffer : order) steps = std::max<size_t>(steps, buffer->last);
  TakenPlaces taken(steps);
  for (Buffer* buffer : order) {
    size_t bytes = whole_lines(buffer->bytes), cursor = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (auto [from, to] : taken.beside(*buffer)) {
      if (from > cursor && from - cursor >= bytes && from - cursor < best_gap) {
        best = cursor;
        best_gap = from - cursor;
      }
      cursor = std::max(cursor, to);
    }
    buffer->offset = best == SIZE_MAX ? cursor : best;
    end = std::max(end, buffer->offset + bytes);
    taken.add(*buffer);
  }
  return end;
}

}  // namespace

Placement place(std::vector<Buffer*> buffers, bool reuse) {
  Placement result;
  result.live_bytes = most_live(buffers);
  if (!reuse) {
    for (Buffer* buffer : buffers) {
      buffer->offset = result.bytes;
      result.bytes += whole_lines(buffer->bytes);
    }
    return result;
  }
  // Ordering by size is best for nearly all graphs; by area and by first use win for some, and all three are cheap.
  using Order = bool (*)(const Buffer*, const Buffer*);
  const Order orders[] = {
      [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; },
      [](const Buffer* a, const Buffer* b) {
        return a->bytes * (a->last - a->first + 1) > b->bytes * (b->last - b->first + 1);
      },
      [](const Buffer* a, const Buffer* b) { return a->first < b->first; },
  };
  result.bytes = SIZE_MAX;
  std::vector<size_t> best;
  for (Order order : orders) {
    std::vector<Buffer*> sorted = buffers;
    std::stable_sort(sorted.begin(), sorted.end(), order);
    size_t bytes = place_in_order(sorted);
    if (bytes >= result.bytes) continue;
    result.bytes = bytes;
    best.clear();
    for (const Buffer* buffer : buffers) best.push_back(buffer->offset);
    if (bytes == result.live_bytes) break;
  }
  for (size_t i = 0; i < buffers.size(); ++i) buffers[i]->offset = best[i];
  return result;
}

}  // namespace cairn
