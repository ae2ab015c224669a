// Collectives that go on beside the steps of a run, one after the other on the communication thread of the process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>

namespace cairn::comm {

/// Those of one run. Nothing that they use may go before this object.
class Beside {
 public:
  Beside() = default;
  /// Stops what is still under way, which ends the job.
  ~Beside();
  Beside(const Beside&) = delete;
  /// `work` may throw; then what was begun later is not done.
  void begin(std::function<void()> work);
  /// Waits until the first `count` (of those begun) have ended. Throws what the first that failed has thrown.
  void wait(size_t count);
  /// Whether this is the communication thread, whose waits leave the processor to the steps.
  static bool here();

 private:
  struct Lane;
  static Lane& lane();

  std::mutex mutex_;
  std::condition_variable news_;
  size_t begun_ = 0, ended_ = 0;
  std::exception_ptr fault_;  // the first
  std::atomic<bool> stop_{false};
};

/// Whether this process is in a job of several ranks.
bool several();

}  // namespace cairn::comm
