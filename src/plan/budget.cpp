#include "plan/budget.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "plan/context.h"
#include "support/fork.h"

namespace cairn {

size_t PlanBudget::default_bytes() {
  constexpr size_t kDefault = size_t{1} << 30;
  const char* text = std::getenv("CAIRN_PLAN_MEMORY");
  if (text == nullptr || *text == 0) return kDefault;
  const std::string_view given = text;
  size_t number = 0;
  auto [stop, fault] = std::from_chars(given.data(), given.data() + given.size(), number);
  const std::string_view unit = given.substr(static_cast<size_t>(stop - given.data()));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (fault != std::errc() || shift < 0 || number > SIZE_MAX >> shift)
    fail(ErrorKind::invalid_argument, "CAIRN_PLAN_MEMORY", "is '{}', expected bytes, as 500000000, 256M or 2G",
         printable(given));
  return number << shift;
}

PlanBudget::~PlanBudget() { std::free(spare_.data); }

Arena PlanBudget::take_spare(size_t least, size_t most) {
  const ShieldedLock lock(mutex_);
  if (spare_.bytes < least || spare_.bytes > most) return {};
  give_back(spare_.bytes);
  return std::exchange(spare_, {});
}

bool PlanBudget::has_smaller_spare(size_t bytes) {
  const ShieldedLock lock(mutex_);
  return spare_.data && spare_.bytes < bytes;
}

void PlanBudget::give_spare(Arena arena) {
  {
    const ShieldedLock lock(mutex_);
    if (std::exchange(had_one_, true) && arena.bytes > spare_.bytes) {
      take(arena.bytes);
      give_back(spare_.bytes);
      std::swap(spare_, arena);
    }
  }
  std::free(arena.data);
}

void PlanBudget::add(const Program* program) {
  const ShieldedLock lock(mutex_);
  programs_.insert(program);
}

void PlanBudget::remove(const Program* program) {
  const ShieldedLock lock(mutex_);
  programs_.erase(program);
}

void PlanBudget::make_room() {
  std::free(take_spare(0, SIZE_MAX).data);
  while (used() > most_) {
    std::shared_ptr<const Plan> gone;  // destroyed after the lock is released: its programs call remove(), which locks
    const ShieldedLock lock(mutex_);
    uint64_t last = 0;
    for (const Program* program : programs_) last = std::max(last, program->last_use());
    const Program* oldest = nullptr;
    uint64_t when = UINT64_MAX;
    for (const Program* program : programs_) {
      program->drop_idle_contexts(last);
      if (auto use = program->oldest_use(); use && *use < std::min(when, last)) oldest = program, when = *use;
    }
    if (used() <= most_ || oldest == nullptr) return;
    gone = oldest->forget(when);
  }
}

}  // namespace cairn
