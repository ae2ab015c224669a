#include "comm/beside.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/fork.h"
#include "support/stop.h"

namespace cairn::comm {

namespace {
thread_local bool t_here = false;
}  // namespace

struct Beside::Lane {
  std::mutex mutex;
  std::condition_variable news;
  std::deque<std::pair<Beside*, std::function<void()>>> work;

  Lane() {
    std::thread([this] { serve(); }).detach();
  }

  void serve() {
    t_here = true;
    while (true) {
      std::unique_lock lock(mutex);
      news.wait(lock, [&] { return !work.empty(); });
      auto [run, next] = std::move(work.front());
      work.pop_front();
      lock.unlock();
      std::exception_ptr fault;
      try {
        StopScope scope({.cancel = &run->stop_});
        scope.check();
        next();
      } catch (...) {
        fault = std::current_exception();
        run->stop_.store(true);
      }
      const std::lock_guard end(run->mutex_);
      if (fault && !run->fault_) run->fault_ = fault;
      ++run->ended_;
      run->news_.notify_all();
    }
  }
};

// In the child of a fork the parent's thread does not exist.
Beside::Lane& Beside::lane() {
  static std::mutex mutex;
  static Lane* lane = nullptr;
  static uint32_t generation = 0;
  const ShieldedLock lock(mutex);
  if (!lane || generation != fork_generation()) {
    lane = new Lane;
    generation = fork_generation();
  }
  return *lane;
}

void Beside::begin(std::function<void()> work) {
  Lane& thread = lane();
  const std::lock_guard lock(thread.mutex);
  ++begun_;
  thread.work.emplace_back(this, std::move(work));
  thread.news.notify_one();
}

bool Beside::here() { return t_here; }

void Beside::wait(size_t count) {
  if (begun_ == 0) return;
  std::unique_lock lock(mutex_);
  while (ended_ < std::min(count, begun_) && !fault_) {
    news_.wait_for(lock, std::chrono::milliseconds(50));
    stop_point();
  }
  if (fault_) std::rethrow_exception(fault_);
}

Beside::~Beside() {
  if (begun_ == 0) return;
  std::unique_lock lock(mutex_);
  if (ended_ < begun_) stop_.store(true);
  news_.wait(lock, [&] { return ended_ == begun_; });
}

}  // namespace cairn::comm
