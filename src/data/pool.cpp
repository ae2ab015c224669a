#include "data/pool.h"

#include <chrono>

#include <csignal>

#include "support/fault.h"

namespace cairn::data {

Pool::~Pool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  added_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Pool::add(std::shared_ptr<Task> task) {
  if (workers_ > 0 && threads_.empty()) start_threads();
  if (workers_ == 0) {
    task->run();
    task->done_ = true;
    return;
  }
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  added_.notify_one();
}

void Pool::start_threads() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (std::ssize(threads_) < workers_) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& refused) {
    note_fewer_threads(threads_.size(), workers_, refused.code().value());
    workers_ = static_cast<int>(threads_.size());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    added_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    std::shared_ptr<Task> task = std::move(tasks_.front());
    tasks_.pop_front();
    if (task->cancelled_) continue;
    lock.unlock();
    task->run();
    lock.lock();
    task->done_ = true;
    finished_.notify_all();
    lock.unlock();
    task.reset();
    lock.lock();
  }
}

bool Pool::done(const Task& task) {
  std::lock_guard lock(mutex_);
  return task.done_;
}

void Pool::wait(const Task& task, const std::function<void()>& poll) {
  std::unique_lock lock(mutex_);
  while (!task.done_) {
    if (finished_.wait_for(lock, std::chrono::milliseconds(100)) == std::cv_status::no_timeout || task.done_ || !poll)
      continue;
    lock.unlock();
    poll();
    lock.lock();
  }
}

void Pool::cancel(Task& task) {
  std::lock_guard lock(mutex_);
  task.cancelled_ = true;
}

}  // namespace cairn::data
