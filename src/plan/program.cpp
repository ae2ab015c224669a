// Programs: a function and its plans by input dims.
#include <algorithm>
#include <chrono>
#include <utility>

#include "plan/context.h"
#include "plan/plan.h"
#include "plan/sibling.h"
#include "support/fork.h"

namespace cairn {

namespace {

// Plans that a program keeps: few, or more within a part of the model's bound of bytes, as a lookup is linear not too many. The least
// recently used one is dropped first.
constexpr size_t kFewPlans = 64, kMostPlans = 512, kPartOfBound = 32;
constexpr size_t kSiblings = 16;  // magnitudes of sizes whose choices are taken over: of several dims these are many

// Counts the time of the outermost planning on this thread.
class PlanningTimer {
 public:
  explicit PlanningTimer(PlanBudget& budget) : budget_(budget), outermost_(!std::exchange(inside_, true)) {}
  ~PlanningTimer() {
    if (!outermost_) return;
    inside_ = false;
    budget_.planned(static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin_).count()));
  }
  PlanningTimer(const PlanningTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  static thread_local bool inside_;

  PlanBudget& budget_;
  const bool outermost_;
  const Clock::time_point begin_ = Clock::now();
};

thread_local bool PlanningTimer::inside_ = false;

}  // namespace

Plan::~Plan() = default;

std::string Plan::id() const {
  uint64_t hash = 0xcbf29ce484222325;
  auto mix = [&hash](const std::string& text) {
    for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  };
  for (const auto& param : function->body.params) mix(to_string(param->type));
  for (const PlannedStep& step : steps) {
    mix(step.kernel);
    for (const Value* output : step.group.outputs) mix(to_string(output->type));
  }
  return fmt::format("{:016x}", hash);
}

Program::Program(std::shared_ptr<const Module> module, std::unique_ptr<Function> function, const PlanOptions& options,
                 Packer& packer)
    : module_(std::move(module)), function_(std::move(function)), options_(options), packer_(&packer) {
  options_.budget->add(this);
}

Program::~Program() { options_.budget->remove(this); }

std::shared_ptr<const Plan> Program::find(FunctionRef<bool(const std::vector<Dims>&)> same, bool every_value) const {
  const Shielded<std::shared_lock<std::shared_mutex>> lock(mutex_);
  for (const auto& [dims, plan] : plans_) {
    if (plan->every_value != (every_value || options_.every_value) || !same(dims)) continue;
    plan->contexts->touch();
    return plan;
  }
  return nullptr;
}

std::shared_ptr<const Plan> Program::plan(std::span<const Dims> dims, bool every_value) const {
  auto same = [&](const std::vector<Dims>& key) {
    return std::equal(key.begin(), key.end(), dims.begin(), dims.end());
  };
  if (auto plan = find(same, every_value)) return plan;
  const PlanningTimer timer(*options_.budget);
  PlanOptions options = options_;
  options.every_value = every_value || options.every_value;
  const auto earlier = sibling(dims);
  std::shared_ptr<const Plan> plan;
  if (earlier && earlier->every_value == options.every_value && Sibling::may_serve(*earlier, dims))
    plan = make_plan_like(*earlier, module_, specialise(*function_, dims, options.every_value), options, *packer_);
  if (!plan)
    plan = make_plan(module_, specialise(*function_, dims, options.every_value), options, *packer_, earlier.get());
  std::shared_ptr<const Plan> gone;  // destroyed after the lock is released
  {
    const Shielded<std::unique_lock<std::shared_mutex>> lock(mutex_);
    size_t bytes = plan->own_bytes;
    for (const auto& [key, other] : plans_) {
      if (other->every_value == options.every_value && same(key)) return other;  // made meanwhile by another thread
      bytes += other->own_bytes;
    }
    plans_.emplace_front(std::vector<Dims>(dims.begin(), dims.end()), plan);
    if (!plan->sibling && !plan->every_value) {
      siblings_.insert(siblings_.begin(), plan);
      if (siblings_.size() > kSiblings) siblings_.pop_back();
    }
    plan->contexts->touch();
    if (plans_.size() > kMostPlans || (plans_.size() > kFewPlans && bytes > options_.budget->most() / kPartOfBound)) {
      auto oldest = std::min_element(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) {
        return a.second->contexts->last_use() < b.second->contexts->last_use();
      });
      gone = std::move(oldest->second);
      plans_.erase(oldest);
    }
  }
  if (options_.budget->used() > options_.budget->most()) options_.budget->make_room();
  return plan;
}

std::shared_ptr<const Plan> Program::sibling(std::span<const Dims> dims) const {
  std::vector<std::shared_ptr<const Plan>> plans;  // destroyed after the lock is released
  {
    const Shielded<std::shared_lock<std::shared_mutex>> lock(mutex_);
    for (const auto& each : siblings_)
      if (auto plan = each.lock()) plans.push_back(std::move(plan));
  }
  const auto found =
      std::find_if(plans.begin(), plans.end(), [&](const auto& plan) { return Sibling::may_serve(*plan, dims); });
  if (found == plans.end()) return plans.empty() ? nullptr : plans.front();
  (*found)->contexts->touch();  // it is of use, so that it stays
  return *found;
}

void Program::follow(const Program& other) {
  const Shielded<std::shared_lock<std::shared_mutex>> lock(other.mutex_);
  siblings_ = other.siblings_;
}

uint64_t Program::last_use() const {
  const Shielded<std::shared_lock<std::shared_mutex>> lock(mutex_);
  uint64_t last = 0;
  for (const auto& [dims, plan] : plans_) last = std::max(last, plan->contexts->last_use());
  return last;
}

std::optional<uint64_t> Program::oldest_use() const {
  const Shielded<std::shared_lock<std::shared_mutex>> lock(mutex_);
  std::optional<uint64_t> oldest;
  for (const auto& [dims, plan] : plans_)
    if (plan.use_count() == 1) oldest = std::min(oldest.value_or(UINT64_MAX), plan->contexts->last_use());
  return oldest;
}

void Program::drop_idle_contexts(uint64_t last) const {
  const Shielded<std::shared_lock<std::shared_mutex>> lock(mutex_);
  for (const auto& [dims, plan] : plans_) plan->contexts->drop_idle(plan->contexts->last_use() == last ? 1 : 0);
}

std::shared_ptr<const Plan> Program::forget(uint64_t use) const {
  const Shielded<std::unique_lock<std::shared_mutex>> lock(mutex_);
  for (auto entry = plans_.begin(); entry != plans_.end(); ++entry) {
    if (entry->second->contexts->last_use() != use) continue;
    std::shared_ptr<const Plan> plan = std::move(entry->second);
    plans_.erase(entry);
    return plan;
  }
  return nullptr;
}

}  // namespace cairn
