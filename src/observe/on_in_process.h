// The active recording or dump of this process, and its handling when the process forks.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace cairn::observe {

/// Thing::hold() and release() are called before and after a fork, so that it is consistent at the fork. The child has
/// no writer thread, and buffered data is written by the parent: the child never uses or ends an inherited Thing.
template <class Thing>
struct OnInProcess {
  std::mutex mutex;
  std::shared_ptr<Thing> current;                 // null when none is active
  std::vector<std::shared_ptr<Thing>> inherited;  // owned by ancestor processes

  void before_fork() {
    mutex.lock();
    if (current) current->hold();
  }
  void after_fork() {
    if (current) current->release();
    mutex.unlock();
  }
  /// Returns whether one was active.
  bool after_fork_in_child() {
    after_fork();
    if (!current) return false;
    inherited.push_back(std::move(current));
    return true;
  }
};

}  // namespace cairn::observe
