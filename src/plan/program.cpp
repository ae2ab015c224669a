// Programs: a function and its plans by input dims.
#include <algorithm>

#include "plan/context.h"
#include "plan/plan.h"
#include "support/fork.h"

namespace cairn {

namespace {

constexpr size_t kMostPlans = 64;  // per program; the least recently made one goes first

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
    : module_(std::move(module)), function_(std::move(function)), options_(options), packer_(&packer) {}

Program::~Program() = default;

std::shared_ptr<const Plan> Program::find(FunctionRef<bool(const std::vector<Dims>&)> same) const {
  const Shielded<std::shared_lock<std::shared_mutex>> lock(mutex_);
  for (const auto& [dims, plan] : plans_)
    if (same(dims)) return plan;
  return nullptr;
}

std::shared_ptr<const Plan> Program::plan(std::span<const Dims> dims) const {
  auto same = [&](const std::vector<Dims>& key) {
    return std::equal(key.begin(), key.end(), dims.begin(), dims.end());
  };
  if (auto plan = find(same)) return plan;
  auto plan = make_plan(module_, specialise(*function_, dims), options_, *packer_);
  const Shielded<std::unique_lock<std::shared_mutex>> lock(mutex_);
  for (const auto& [key, other] : plans_)
    if (same(key)) return other;  // made meanwhile by another thread
  plans_.emplace_front(std::vector<Dims>(dims.begin(), dims.end()), plan);
  if (plans_.size() > kMostPlans) plans_.pop_back();
  return plan;
}

}  // namespace cairn
