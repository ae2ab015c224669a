// Copy-on-write asks whether an object has one owner only before it writes into it.
#pragma once

#include <atomic>
#include <memory>

namespace cairn {

/// Whether nobody else owns `*owner`; then all that earlier owners read happened before what the caller writes.
template <class T>
bool is_sole_owner(const std::shared_ptr<T>& owner) {
  if (owner.use_count() != 1) return false;
#ifdef __SANITIZE_THREAD__
  const std::shared_ptr<T> counted_again = owner;  // orders as the fence does, which the thread sanitizer does not know
#else
  std::atomic_thread_fence(std::memory_order_acquire);  // use_count() orders nothing
#endif
  return true;
}

}  // namespace cairn
