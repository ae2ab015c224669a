// The cache of prepared operators by key: one per thread, searched without a lock, in front of one for the process.
#pragma once

#include <mutex>
#include <unordered_map>

#include "runtime/single_op.h"

namespace cairn {

/// Holds operators up to the bytes that the plans of one model may take (PlanBudget::default_bytes); the least recently
/// used ones are dropped first.
class OpCache {
 public:
  static OpCache& instance();
  /// The operator, or null when it is not cached. The pointer is valid until the thread calls find() again.
  const SingleOp* find(const OpKey& key);
  /// Adds the operator; returns it, or the equal one that another thread has added meanwhile.
  SingleOpRef add(SingleOpRef op);

 private:
  struct ThreadCache;
  static ThreadCache& of_this_thread();
  SingleOpRef find_shared(std::span<const uint64_t> words, uint64_t hash);
  void make_room(std::vector<SingleOpRef>& gone);
  void note_use(const SingleOp& op) const;

  std::mutex mutex_;
  std::unordered_multimap<uint64_t, SingleOpRef> ops_;  // by hash
  size_t bytes_ = 0;
  std::atomic<uint64_t> clock_{1};     // counts additions
  std::atomic<uint64_t> removals_{0};  // threads clear their caches when it changes
};

}  // namespace cairn
