#include "support/fork.h"

#include <pthread.h>
#include <sched.h>

#include <new>

namespace cairn {
namespace {

// Live shields are counted in several slots, so that threads rarely write to the same cache line.
constexpr uint32_t kSlots = 16;
struct alignas(64) Slot {
  std::atomic<uint32_t> shields{0};
};
Slot slots[kSlots];
std::atomic<int> forking{0};  // threads that are about to fork
std::atomic<uint32_t> generation{0};
std::mutex renewing;  // guards the replacement of a RunMutex's mutex in a child

thread_local uint32_t t_depth = 0;
Slot& own_slot() {
  static std::atomic<uint32_t> next{0};
  thread_local Slot& mine = slots[next.fetch_add(1, std::memory_order_relaxed) % kSlots];
  return mine;
}

void wait_for_shields() {
  forking.fetch_add(1);
  const uint32_t own = t_depth > 0;  // this thread may itself hold a shield while it forks
  const auto shields = [] {
    uint32_t sum = 0;
    for (const Slot& slot : slots) sum += slot.shields.load();
    return sum;
  };
  while (shields() > own) sched_yield();
}

void go_on() { forking.fetch_sub(1); }

void begin_child() {
  generation.fetch_add(1);
  new (&renewing) std::mutex;
  for (Slot& slot : slots) slot.shields.store(0);
  if (t_depth > 0) own_slot().shields.store(1);
  forking.store(0);
}

[[maybe_unused]] const int registered = pthread_atfork(wait_for_shields, go_on, begin_child);

}  // namespace

namespace {

void enter() {
  if (t_depth++ > 0) return;
  Slot& slot = own_slot();
  while (true) {
    slot.shields.fetch_add(1);
    if (!forking.load()) return;
    slot.shields.fetch_sub(1);
    while (forking.load()) sched_yield();
  }
}

void leave() {
  if (--t_depth == 0) own_slot().shields.fetch_sub(1);
}

}  // namespace

uint32_t fork_generation() { return generation.load(std::memory_order_relaxed); }

ForkShield::ForkShield() { enter(); }
ForkShield::~ForkShield() { leave(); }

void RunMutex::lock() {
  const uint32_t now = fork_generation();
  if (generation_.load(std::memory_order_acquire) != now) {
    const std::lock_guard lock(renewing);
    if (generation_.load(std::memory_order_relaxed) != now) {
      new (&mutex_) std::mutex;  // a thread that held it exists only in the parent
      generation_.store(now, std::memory_order_release);
    }
  }
  mutex_.lock();
}

}  // namespace cairn

// A shield lives while a static of a function is initialised: the child would wait for ever for the thread that does it.
// The linker puts these in place of the ABI's functions (cmake/folders.cmake).
extern "C" {
int __real___cxa_guard_acquire(int64_t* guard);
void __real___cxa_guard_release(int64_t* guard) noexcept;
void __real___cxa_guard_abort(int64_t* guard) noexcept;

int __wrap___cxa_guard_acquire(int64_t* guard) {
  cairn::enter();
  const int initialises = __real___cxa_guard_acquire(guard);
  if (!initialises) cairn::leave();
  return initialises;
}
void __wrap___cxa_guard_release(int64_t* guard) noexcept {
  __real___cxa_guard_release(guard);
  cairn::leave();
}
void __wrap___cxa_guard_abort(int64_t* guard) noexcept {
  __real___cxa_guard_abort(guard);
  cairn::leave();
}
}
