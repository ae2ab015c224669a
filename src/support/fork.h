// Makes fork() safe while other threads run models: the child, which has one thread only, finds every mutex free and
// the data that it guards consistent.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace cairn {

/// The number of forks between the process that loaded Cairn and this one; it differs between parent and child.
uint32_t fork_generation();

/// While a shield lives, fork() in another thread waits. Every short critical section that changes data which a child
/// inherits (caches, plans, contexts) holds one together with its mutex, so that the child finds the data consistent
/// and the mutex free. Shields may be nested; the section must not wait for the thread that forks.
class ForkShield {
 public:
  ForkShield();
  ~ForkShield();
  ForkShield(const ForkShield&) = delete;
  ForkShield& operator=(const ForkShield&) = delete;
};

/// A lock together with a shield: `const Shielded<std::lock_guard<std::mutex>> lock(mutex_);`
template <class Lock>
class Shielded {
 public:
  explicit Shielded(typename Lock::mutex_type& mutex) : lock_(mutex) {}

 private:
  ForkShield shield_;
  Lock lock_;
};
using ShieldedLock = Shielded<std::lock_guard<std::mutex>>;

/// A mutex that may be held for a whole run. The child of a fork finds it free, as if its holder had stopped at an
/// arbitrary point outside a ForkShield: the data that it guards must tolerate this.
class RunMutex {
 public:
  void lock();
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::atomic<uint32_t> generation_{fork_generation()};
};

}  // namespace cairn
