// Prepared operators by key: each thread's own, looked through without a lock, and the process's behind them.
#pragma once

#include <mutex>
#include <unordered_map>

#include "runtime/single_op.h"

namespace cairn {

/// Operators up to as many bytes as the plans of one model may take (PlanBudget::default_bytes); what was used longest ago
/// goes first.
class OpCache {
 public:
  static OpCache& instance();
  /// No operator: there is none yet. The returned pointer is good until the thread calls find() again.
  const SingleOp* find(const OpKey& key);
  /// What stands in the cache now: `op`, or what another thread has added meanwhile.
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
  std::atomic<uint64_t> clock_{1};     // counts what was added
  std::atomic<uint64_t> removals_{0};  // threads drop what they keep when it moves
};

}  // namespace cairn
