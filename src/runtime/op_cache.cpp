#include "runtime/op_cache.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "plan/budget.h"
#include "support/fork.h"

namespace cairn {

void OpKey::bytes(const void* data, size_t size) {
  word(size);
  const size_t first = words_.size();
  words_.resize(first + (size + 7) / 8, 0);
  if (size) std::memcpy(words_.data() + first, data, size);
}

uint64_t OpKey::hash() const {
  uint64_t hash = 0x9e3779b97f4a7c15;
  for (uint64_t word : words_) {
    const auto product = static_cast<unsigned __int128>(hash ^ word) * 0xd6e8feb86659fd93;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ word << 1;
  }
  return hash;
}

/// A direct-mapped cache of the operators that a thread used last, indexed by hash.
struct OpCache::ThreadCache {
  static constexpr size_t kPlaces = 256;
  std::array<SingleOpRef, kPlaces> ops;
  uint64_t removals = 0;

  SingleOpRef& place(uint64_t hash) { return ops[hash >> 56]; }
  void drop_after_removals(uint64_t now) {
    if (removals == now) return;
    for (SingleOpRef& op : ops) op = {};
    removals = now;
  }
};

OpCache& OpCache::instance() {
  static auto& cache = *new OpCache;  // never destroyed: threads may still use it at exit
  return cache;
}

OpCache::ThreadCache& OpCache::of_this_thread() {
  thread_local ThreadCache cache;
  return cache;
}

void OpCache::note_use(const SingleOp& op) const {
  const uint64_t now = clock_.load(std::memory_order_relaxed);
  if (op.last_use_.load(std::memory_order_relaxed) != now) op.last_use_.store(now, std::memory_order_relaxed);
}

const SingleOp* OpCache::find(const OpKey& key) {
  const uint64_t hash = key.hash();
  ThreadCache& own = of_this_thread();
  own.drop_after_removals(removals_.load(std::memory_order_relaxed));
  SingleOpRef& place = own.place(hash);
  const auto words = key.words();
  const bool known = place && place->hash_ == hash && std::ranges::equal(place->key_, words);
  if (!known) {
    SingleOpRef shared = find_shared(words, hash);
    if (!shared) return nullptr;
    place = std::move(shared);
  }
  note_use(*place);
  return place.get();
}

SingleOpRef OpCache::find_shared(std::span<const uint64_t> words, uint64_t hash) {
  const ShieldedLock lock(mutex_);
  auto [begin, end] = ops_.equal_range(hash);
  for (auto entry = begin; entry != end; ++entry)
    if (std::ranges::equal(entry->second->key_, words)) return entry->second;
  return {};
}

SingleOpRef OpCache::add(SingleOpRef op) {
  std::vector<SingleOpRef> gone;  // freed after the lock is released
  const ShieldedLock lock(mutex_);
  auto [begin, end] = ops_.equal_range(op->hash_);
  for (auto entry = begin; entry != end; ++entry)
    if (entry->second->key_ == op->key_) return entry->second;
  bytes_ += op->bytes();
  clock_.fetch_add(1, std::memory_order_relaxed);
  note_use(*op);
  ops_.emplace(op->hash_, op);
  if (bytes_ > PlanBudget::default_bytes()) make_room(gone);
  return op;
}

// Removes a quarter of the operators at once, since every removal makes all threads clear their caches and look up here
// again.
void OpCache::make_room(std::vector<SingleOpRef>& gone) {
  const size_t wanted = PlanBudget::default_bytes() / 4 * 3;
  std::vector<std::pair<uint64_t, const SingleOp*>> oldest;
  for (const auto& [hash, op] : ops_) oldest.emplace_back(op->last_use_.load(std::memory_order_relaxed), op.get());
  std::sort(oldest.begin(), oldest.end());
  oldest.pop_back();  // keeps the one that was just added
  for (const auto& [use, op] : oldest) {
    if (bytes_ <= wanted) break;
    bytes_ -= op->bytes();
    op->drop_memory();
    auto [begin, end] = ops_.equal_range(op->hash_);
    auto entry = std::find_if(begin, end, [&](const auto& each) { return each.second.get() == op; });
    gone.push_back(std::move(entry->second));
    ops_.erase(entry);
  }
  removals_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace cairn
