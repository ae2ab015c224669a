#include "support/stop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "support/error.h"

namespace cairn {
namespace {

constexpr auto kBetweenQuestions = std::chrono::milliseconds(50);
thread_local StopScope* t_scope = nullptr;
thread_local bool t_helps = false;  // t_scope is another thread's

}  // namespace

StopScope::StopScope(const StopRequest& request)
    : request_(request), outer_(t_scope), next_question_(Clock::now() + kBetweenQuestions) {
  constexpr double kLongest = 1e9;  // seconds; a longer limit could overflow a time point
  if (request.max_seconds > 0 && request.max_seconds < kLongest)
    deadline_ =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(request.max_seconds));
  t_scope = this;
}

StopScope::~StopScope() { t_scope = outer_; }

StopScope* StopScope::current() { return t_scope; }

bool StopScope::stopped() {
  if (reason_.load(std::memory_order_relaxed) != none) return true;
  if (request_.cancel != nullptr && request_.cancel->load(std::memory_order_relaxed)) {
    reason_.store(cancelled, std::memory_order_relaxed);
    return true;
  }
  if (deadline_ != Clock::time_point::max() && Clock::now() >= deadline_) {
    reason_.store(late, std::memory_order_relaxed);
    return true;
  }
  return outer_ != nullptr && outer_->stopped();
}

bool StopScope::poll() {
  if (request_.interrupted != nullptr && Clock::now() >= next_question_) {
    next_question_ = Clock::now() + kBetweenQuestions;
    if (request_.interrupted(request_.user)) reason_.store(cancelled, std::memory_order_relaxed);
  }
  return (outer_ != nullptr && outer_->poll()) || stopped();
}

double StopScope::seconds_left() const {
  const double outer = outer_ != nullptr ? outer_->seconds_left() : std::numeric_limits<double>::infinity();
  if (deadline_ == Clock::time_point::max()) return outer;
  return std::min(outer, std::max(0.0, std::chrono::duration<double>(deadline_ - Clock::now()).count()));
}

void StopScope::check() {
  if (!(t_helps ? stopped() : poll())) return;
  for (StopScope* scope = this; scope != nullptr; scope = scope->outer_)
    if (scope->reason_.load(std::memory_order_relaxed) == late)
      fail(ErrorKind::cancelled, "", "stopped after {} seconds, the time it was given", scope->request_.max_seconds);
  fail(ErrorKind::cancelled, "", "cancelled");
}

void stop_point_of_work() {
  t_work_left = kWorkBetweenStops;
  stop_point();
}

StopHelper::StopHelper(StopScope* scope)
    : before_(std::exchange(t_scope, scope)), helped_(std::exchange(t_helps, t_helps || scope != before_)) {}
StopHelper::~StopHelper() { t_scope = before_, t_helps = helped_; }

}  // namespace cairn
