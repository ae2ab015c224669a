// The workers of one iterator. They touch no interpreter and take no signals.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cairn::data {

class Task {
 public:
  virtual ~Task() = default;
  /// Throws nothing. What it holds is released where the pool's mutex is free.
  virtual void run() = 0;

 private:
  friend class Pool;
  bool done_ = false, cancelled_ = false;
};

class Pool {
 public:
  explicit Pool(int workers) : workers_(workers) {}
  /// Tasks that have not begun are dropped; those that have are waited for.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int workers() const { return workers_; }
  /// Without workers, or where no thread can be started, the task runs here and now. Threads start with the first task.
  void add(std::shared_ptr<Task> task);
  bool done(const Task& task);
  /// Calls `poll`, which may throw, ten times a second.
  void wait(const Task& task, const std::function<void()>& poll);
  /// A task that has not begun never will.
  void cancel(Task& task);

 private:
  void start_threads();
  void work();

  int workers_;
  std::mutex mutex_;
  std::condition_variable added_, finished_;
  std::deque<std::shared_ptr<Task>> tasks_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

}  // namespace cairn::data
