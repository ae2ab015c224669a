// Ends long work early, on request or at a time limit.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cairn {

/// The conditions under which a thread's work ends early.
struct StopRequest {
  const std::atomic<bool>* cancel = nullptr;  // set by any thread
  double max_seconds = 0;                     // 0: no limit
  bool (*interrupted)(void* user) = nullptr;  // called on the thread itself, about twenty times a second
  void* user = nullptr;
};

/// While it lives, stop_point() on this thread throws once a condition of the request, or of an enclosing scope, holds.
/// Executors then skip the remaining chunks of the job that this thread started.
class StopScope {
 public:
  explicit StopScope(const StopRequest& request);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// The innermost scope of this thread; null when there is none.
  static StopScope* current();
  /// Whether the work has to end; once true, it stays true. Callable on any thread.
  bool stopped();
  /// The same, and also calls `interrupted`. Only on the scope's own thread.
  bool poll();
  /// The least time left of this and all enclosing scopes; infinite when none has a limit.
  double seconds_left() const;
  /// Throws Error cancelled when the work has to end. Only on the scope's own thread.
  void check();

 private:
  enum Reason : int { none, cancelled, late };
  using Clock = std::chrono::steady_clock;

  StopRequest request_;
  StopScope* outer_;
  Clock::time_point deadline_ = Clock::time_point::max(), next_question_;
  std::atomic<int> reason_{none};
};

/// While it lives, stop_point() on this thread does nothing: no exception may leave a chunk of an executor.
class NoStopping {
 public:
  NoStopping();
  ~NoStopping();
  NoStopping(const NoStopping&) = delete;
  NoStopping& operator=(const NoStopping&) = delete;

 private:
  StopScope* before_;
};

/// Throws Error cancelled when the work of this thread has to end. Costs about 30 ns.
inline void stop_point() {
  if (StopScope* scope = StopScope::current()) scope->check();
}

/// stop_point() for inner loops: checks once in `every` calls of pass().
class StopPoints {
 public:
  explicit StopPoints(uint32_t every = 1 << 16) : every_(every), left_(every) {}
  void pass() {
    if (--left_ != 0) return;
    left_ = every_;
    stop_point();
  }

 private:
  uint32_t every_, left_;
};

}  // namespace cairn
