#include "plan/context.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "support/fork.h"
#include "support/memory.h"

namespace cairn {

namespace {

constexpr size_t kRoom = 8;  // where arenas grow: a part of an arena that the next ones may need

// Allocates an arena. Touches every page of a host arena, so that runs have no page faults.
Arena make_arena(MemorySpace& space, size_t bytes) {
  if (!space.is_host()) return {space.allocate(bytes), bytes};
  const size_t size = whole_lines(std::max<size_t>(bytes, 1));
  require_memory(size);
  std::unique_ptr<void, decltype(&std::free)> data(allocate_lines(size), &std::free);
  if (!data) fail(ErrorKind::out_of_memory, "", "an arena of {} bytes cannot be allocated", bytes);
  clear_bytes(data.get(), size);
  return {data.release(), size};
}

}  // namespace

Context::Context(const Plan& plan, void* arena, Arena spare)
    : plan_(plan), objects_(plan.objects), pointers_(plan.buffers.size(), nullptr) {
  if (!arena)
    for (auto [space, bytes] : plan.arena_bytes)
      arenas_.emplace_back(space, space->is_host() && spare.data ? spare : make_arena(*space, bytes));
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.kind == Buffer::Kind::arena) {
      const auto is_home = [&](const auto& entry) { return entry.first == buffer.space; };
      void* home = arena ? arena : std::find_if(arenas_.begin(), arenas_.end(), is_home)->second.data;
      pointers_[i] = reinterpret_cast<char*>(home) + buffer.offset;
    } else if (buffer.kind == Buffer::Kind::constant) {
      pointers_[i] = const_cast<void*>(buffer.constant.data());
    } else if (buffer.kind == Buffer::Kind::object) {
      pointers_[i] = &objects_[buffer.index];
      if (buffer.constant.defined()) objects_[buffer.index].tensor = buffer.constant;
    } else {
      auto& list = buffer.kind == Buffer::Kind::input ? inputs_ : outputs_;
      if (list.size() <= buffer.index) list.resize(buffer.index + 1);
      list[buffer.index].buffer = i;
    }
  }
  auto argument = [&](size_t i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.kind == Buffer::Kind::input) inputs_[buffer.index].arguments.push_back(arguments_.size());
    if (buffer.kind == Buffer::Kind::output) outputs_[buffer.index].arguments.push_back(arguments_.size());
    arguments_.push_back(pointers_[i]);
  };
  for (const PlannedStep& step : plan.steps) {
    CHECK(step.first_argument == arguments_.size(), "step {}", step.kernel);
    std::for_each(step.inputs.begin(), step.inputs.end(), argument);
    std::for_each(step.outputs.begin(), step.outputs.end(), argument);
    for (size_t i = 0; i < step.bodies.size(); ++i)
      inner_.push_back(std::make_unique<Context>(
          *step.bodies[i], static_cast<char*>(pointers_[*step.workspace]) + step.body_offsets[i]));
  }
  inputs_.resize(plan.function->body.params.size());
  outputs_.resize(std::max(plan.outputs.size(), outputs_.size()));
}

Context::~Context() {
  for (auto [space, arena] : arenas_) {
    if (space->is_host())
      std::free(arena.data);
    else
      space->release(arena.data, arena.bytes);
  }
}

Arena Context::release_arena() {
  for (auto& [space, arena] : arenas_)
    if (space->is_host()) return std::exchange(arena, {});
  return {};
}

size_t Context::bytes() const {
  size_t bytes = objects_.size() * sizeof(HostValue) + (pointers_.size() + arguments_.size()) * sizeof(void*);
  for (const auto& [space, arena] : arenas_) bytes += arena.bytes;
  for (const auto& inner : inner_) bytes += inner->bytes();
  return bytes;
}

void Context::bind(Binding& binding, void* data) {
  if (binding.buffer == SIZE_MAX) return;
  pointers_[binding.buffer] = data;
  for (size_t i : binding.arguments) arguments_[i] = data;
}

uint32_t ContextPool::next_serial() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

ContextPool::ContextPool(std::shared_ptr<PlanBudget> budget, size_t plan_bytes, bool runs_again)
    : budget_(std::move(budget)), plan_bytes_(plan_bytes), runs_again_(runs_again) {
  budget_->take(plan_bytes_);
}

ContextPool::~ContextPool() {
  drop_idle(0);
  budget_->give_back(plan_bytes_);
}

std::unique_ptr<Context> ContextPool::take(const Plan& plan) {
  {
    const ShieldedLock lock(mutex_);
    if (!idle_.empty()) {
      auto context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  const auto host = plan.arena_bytes.find(&host_memory());
  const size_t bytes = host == plan.arena_bytes.end() ? 0 : host->second;
  Arena spare = budget_->take_spare(bytes, 4 * bytes);
  if (budget_->has_smaller_spare(bytes)) spare = make_arena(host_memory(), bytes + bytes / kRoom);
  auto context = std::make_unique<Context>(plan, nullptr, spare);
  budget_->take(context->bytes());
  return context;
}

void ContextPool::release(std::unique_ptr<Context> context) {
  {
    const ShieldedLock lock(mutex_);
    if (std::exchange(runs_again_, true))
      idle_.push_back(std::move(context));
    else
      budget_->give_back(context->bytes());
  }
  if (context) budget_->give_spare(context->release_arena());
  if (budget_->used() > budget_->most()) budget_->make_room();
}

void ContextPool::drop_idle(size_t left) {
  std::vector<std::unique_ptr<Context>> gone;  // freed after the lock is released
  const ShieldedLock lock(mutex_);
  for (; idle_.size() > left; idle_.pop_back()) {
    budget_->give_back(idle_.back()->bytes());
    gone.push_back(std::move(idle_.back()));
  }
}

}  // namespace cairn
