// The clock of recordings: the processor's counter where the system itself goes by it, which costs a few nanoseconds to read;
// else CLOCK_MONOTONIC. What it counts becomes nanoseconds of CLOCK_MONOTONIC afterwards.
#pragma once

#include <cstdint>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace cairn::observe {

int64_t now_ns();  // CLOCK_MONOTONIC

/// Whether ticks are the processor's counter; of the whole process.
extern const bool counts_ticks;

inline int64_t ticks() {
#if defined(__x86_64__)
  if (counts_ticks) return static_cast<int64_t>(__rdtsc());
#endif
  return now_ns();
}

/// Both clocks at moments of a recording; between two moments ticks go evenly.
class TickClock {
 public:
  TickClock() { look(); }
  /// Before ticks up to now are asked for.
  void look();
  int64_t ns(int64_t ticks) const;

 private:
  struct Moment {
    int64_t ticks, ns;
    double rate;  // nanoseconds a tick, up to the next moment; of the last one nothing
  };
  std::vector<Moment> moments_;
};

}  // namespace cairn::observe
