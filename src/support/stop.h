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

/// While it lives, stop_point() on this thread throws once a condition of the request, or of an enclosing scope, holds; so
/// it does on workers of an executor while they run chunks of a job that this thread started.
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
  /// Throws Error cancelled when the work has to end; calls `interrupted` on the scope's own thread alone.
  void check();

 private:
  enum Reason : int { none, cancelled, late };
  using Clock = std::chrono::steady_clock;

  StopRequest request_;
  StopScope* outer_;
  Clock::time_point deadline_ = Clock::time_point::max(), next_question_;
  std::atomic<int> reason_{none};
};

/// While it lives, the thread works for another thread's scope (null: for none).
class StopHelper {
 public:
  explicit StopHelper(StopScope* scope);
  ~StopHelper();
  StopHelper(const StopHelper&) = delete;
  StopHelper& operator=(const StopHelper&) = delete;

 private:
  StopScope* before_;
  bool helped_;
};

/// Throws Error cancelled when the work of this thread has to end. Costs about 30 ns.
inline void stop_point() {
  if (StopScope* scope = StopScope::current()) scope->check();
}

/// stop_point() for loops without another: to be told of every piece of work, in units of about a nanosecond; it asks once in
/// 65,536 of them. The count is the thread's, so that many short loops ask as often as a long one.
inline constexpr int64_t kWorkBetweenStops = 1 << 16;
inline thread_local constinit int64_t t_work_left = kWorkBetweenStops;
void stop_point_of_work();
// Always inline: files compiled for one instruction set alone use it too.
[[gnu::always_inline]] inline void stop_point_after(int64_t work) {
  if ((t_work_left -= work) <= 0) [[unlikely]]
    stop_point_of_work();
}

/// The numbers 0 .. count - 1 for the loop of a kernel, each turn of which does so much work:
/// `for (int64_t row : turns(rows, columns))`.
template <class Number>
class turns {
 public:
  explicit turns(Number count, int64_t work = 1) : count_(count), work_(work < 1 ? 1 : work) {}

  struct Turn {
    Number i;
    int64_t work;
    Number operator*() const { return i; }
    void operator++() {
      ++i;
      stop_point_after(work);
    }
    bool operator!=(Number end) const { return i < end; }
  };
  Turn begin() const { return {0, work_}; }
  Number end() const { return count_; }

 private:
  Number count_;
  int64_t work_;
};

}  // namespace cairn
