#include "observe/ticks.h"

#include <time.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace cairn::observe {

namespace {

/// Whether the system considers the counters of all cores synchronous and continuous (it uses them as its clock
/// source).
bool system_counts_ticks() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return std::getline(file, name) && name == "tsc";
#else
  return false;
#endif
}

}  // namespace

const bool counts_ticks = system_counts_ticks();

int64_t now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

/// Reads both clocks; takes the fastest of several tries, which was interrupted least.
void TickClock::look() {
  constexpr int kTries = 5;
  Moment best{};
  int64_t least = INT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    int64_t before = ticks();
    int64_t ns = now_ns();
    int64_t after = ticks();
    if (after - before < least) least = after - before, best = {before + (after - before) / 2, ns, 0};
  }
  if (!moments_.empty()) {
    Moment& last = moments_.back();
    if (best.ticks <= last.ticks) return;
    last.rate = static_cast<double>(best.ns - last.ns) / static_cast<double>(best.ticks - last.ticks);
  }
  moments_.push_back(best);
}

int64_t TickClock::ns(int64_t ticks) const {
  if (!counts_ticks || moments_.size() < 2) return counts_ticks ? moments_[0].ns : ticks;
  const Moment* from = &moments_.end()[-2];  // nearly always the right one, since records are written soon
  if (ticks < from->ticks) {
    auto behind = std::upper_bound(moments_.begin() + 1, moments_.end() - 1, ticks,
                                   [](int64_t at, const Moment& moment) { return at < moment.ticks; });
    from = &behind[-1];
  }
  return from->ns + static_cast<int64_t>(static_cast<double>(ticks - from->ticks) * from->rate);
}

}  // namespace cairn::observe
