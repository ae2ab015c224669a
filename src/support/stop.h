// Ends long work before it is done: because somebody asks for it, or because its time is over.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cairn {

/// What may end the work of a thread.
struct StopRequest {
  const std::atomic<bool>* cancel = nullptr;  // set by any thread
  double max_seconds = 0;                     // 0: any time
  bool (*interrupted)(void* user) = nullptr;  // asked on the thread itself, some twenty times a second
  void* user = nullptr;
};

/// While it lives, stop_point() on this thread throws as soon as the request holds, or that of a scope around it.
/// Executors then leave out the chunks that remain of what this thread has them run.
class StopScope {
 public:
  explicit StopScope(const StopRequest& request);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// Of this thread; null where nothing ends its work.
  static StopScope* current();
  /// Whether the work has to end; once true, it stays so. On any thread.
  bool stopped();
  /// The same on the scope's own thread, which asks `interrupted` as well.
  bool poll();
  /// Of all scopes around; infinite where none has a limit.
  double seconds_left() const;
  /// Throws Error cancelled when the work has to end. On the scope's own thread.
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

/// Throws Error cancelled when the work of this thread has to end. It costs some 30 ns.
inline void stop_point() {
  if (StopScope* scope = StopScope::current()) scope->check();
}

/// stop_point() for inner loops: every so many calls.
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
