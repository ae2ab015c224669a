// What is on in this process, a recording or a dump, and what becomes of it where the process forks.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace cairn::observe {

/// Thing::hold() and release() stand around a fork: nothing of it is being changed meanwhile. The new process has no thread
/// of it that writes, and what waits there is the parent's to write: it is never used or ended in the new process.
template <class Thing>
struct OnInProcess {
  std::mutex mutex;
  std::shared_ptr<Thing> current;                 // null: none is on
  std::vector<std::shared_ptr<Thing>> inherited;  // of processes that forked this one, and still theirs

  void before_fork() {
    mutex.lock();
    if (current) current->hold();
  }
  void after_fork() {
    if (current) current->release();
    mutex.unlock();
  }
  /// Whether one was on.
  bool after_fork_in_child() {
    after_fork();
    if (!current) return false;
    inherited.push_back(std::move(current));
    return true;
  }
};

}  // namespace cairn::observe
