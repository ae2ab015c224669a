// The clock of recordings: the processor's time-stamp counter if the system itself uses it as clock source (reading it
// costs a few nanoseconds), else CLOCK_MONOTONIC. Ticks are converted to nanoseconds of CLOCK_MONOTONIC afterwards.
#pragma once

#include <cstdint>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace cairn::observe {

int64_t now_ns();  // CLOCK_MONOTONIC

/// Whether ticks are the processor's counter; constant for the process.
extern const bool counts_ticks;

inline int64_t ticks() {
#if defined(__x86_64__)
  if (counts_ticks) return static_cast<int64_t>(__rdtsc());
#endif
  return now_ns();
}

/// Converts ticks to nanoseconds by both clocks' values at several moments; between moments it interpolates linearly.
class TickClock {
 public:
  TickClock() { look(); }
  /// Records a moment; must be called before ticks up to now are converted.
  void look();
  int64_t ns(int64_t ticks) const;

 private:
  struct Moment {
    int64_t ticks, ns;
    double rate;  // nanoseconds per tick until the next moment; unset for the last one
  };
  std::vector<Moment> moments_;
};

}  // namespace cairn::observe
