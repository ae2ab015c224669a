// What a process that forks while other threads run models needs: the child has one thread only, finds every mutex free, and
// finds whole what the mutexes guard.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace cairn {

/// Forks between the process that loaded Cairn and this one: a child sees another number than its parent.
uint32_t fork_generation();

/// While one lives, fork() in another thread waits. It stands beside the mutex of every short section that changes what a
/// child inherits (caches, plans, contexts), so that the child finds the content whole and the mutex free. It may be
/// nested; the section must end without waiting for the thread that forks.
class ForkShield {
 public:
  ForkShield();
  ~ForkShield();
  ForkShield(const ForkShield&) = delete;
  ForkShield& operator=(const ForkShield&) = delete;
};

/// A lock taken behind a shield: `const Shielded<std::lock_guard<std::mutex>> lock(mutex_);`
template <class Lock>
class Shielded {
 public:
  explicit Shielded(typename Lock::mutex_type& mutex) : lock_(mutex) {}

 private:
  ForkShield shield_;
  Lock lock_;
};
using ShieldedLock = Shielded<std::lock_guard<std::mutex>>;

/// A mutex that may be held for as long as a run. The child of a fork finds it free, so that what it guards must stand a
/// holder that stopped at any point outside a ForkShield.
class RunMutex {
 public:
  void lock();
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::atomic<uint32_t> generation_{fork_generation()};
};

}  // namespace cairn
