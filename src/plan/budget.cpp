#include "plan/budget.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "plan/context.h"
#include "support/fork.h"

namespace cairn {

namespace {

constexpr size_t kSpares = 3;

}  // namespace

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

PlanBudget::~PlanBudget() {
  for (const Arena& spare : spares_) std::free(spare.data);
}

Arena PlanBudget::take_spare(size_t least, size_t most) {
  const ShieldedLock lock(mutex_);
  auto found = spares_.end();
  for (auto spare = spares_.begin(); spare != spares_.end(); ++spare)
    if (spare->bytes >= least && spare->bytes <= most && (found == spares_.end() || spare->bytes < found->bytes)) found = spare;
  if (found == spares_.end()) return {};
  const Arena arena = *found;
  spares_.erase(found);
  give_back(arena.bytes);
  return arena;
}

void PlanBudget::give_spare(Arena arena) {
  {
    const ShieldedLock lock(mutex_);
    if (arena.data && std::exchange(had_one_, true)) {
      take(arena.bytes);
      spares_.push_back(std::exchange(arena, {}));
    }
    if (spares_.size() > kSpares) {
      const auto smallest = std::ranges::min_element(spares_, {}, &Arena::bytes);
      arena = *smallest;
      spares_.erase(smallest);
      give_back(arena.bytes);
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
  for (Arena spare; (spare = take_spare(0, SIZE_MAX)).data;) std::free(spare.data);
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
