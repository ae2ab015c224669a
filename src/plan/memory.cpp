#include "plan/memory.h"

#include <algorithm>

namespace cairn {

namespace {

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t most_live(const std::vector<Buffer*>& buffers) {
  std::vector<std::pair<size_t, int64_t>> events;  // (step, change of live bytes)
  for (const Buffer* buffer : buffers) {
    events.emplace_back(buffer->first, static_cast<int64_t>(aligned(buffer->bytes)));
    events.emplace_back(buffer->last + 1, -static_cast<int64_t>(aligned(buffer->bytes)));
  }
  std::sort(events.begin(), events.end());  // releases of a step come before its allocations
  int64_t live = 0, most = 0;
  for (auto [step, change] : events) most = std::max(most, live += change);
  return static_cast<size_t>(most);
}

// Sorted by `before`, then each buffer into the tightest gap that its neighbours in time leave.
size_t place_in_order(std::vector<Buffer*> order) {
  size_t end = 0;
  std::vector<Buffer*> placed;  // by offset
  for (Buffer* buffer : order) {
    size_t bytes = aligned(buffer->bytes), cursor = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (const Buffer* other : placed) {
      if (other->last < buffer->first || buffer->last < other->first) continue;
      if (other->offset > cursor && other->offset - cursor >= bytes && other->offset - cursor < best_gap) {
        best = cursor;
        best_gap = other->offset - cursor;
      }
      cursor = std::max(cursor, other->offset + aligned(other->bytes));
    }
    buffer->offset = best == SIZE_MAX ? cursor : best;
    end = std::max(end, buffer->offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), buffer,
                                   [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; }),
                  buffer);
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
      result.bytes += aligned(buffer->bytes);
    }
    return result;
  }
  // By size is best on nearly every graph; by area and by first use win on some, and all three are cheap.
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
    size_t bytes = place_in_order(std::move(sorted));
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
