#include "observe/counters.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/fault.h"

namespace cairn::observe {
namespace {

constexpr uint64_t kEvents[Counters::kCount] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                                PERF_COUNT_HW_CACHE_REFERENCES, PERF_COUNT_HW_CACHE_MISSES};

}  // namespace

Counters::Counters() {
  for (int i = 0; i < kCount; ++i) {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_HARDWARE;
    wanted.config = kEvents[i];
    wanted.read_format = PERF_FORMAT_GROUP;
    wanted.exclude_kernel = 1;
    wanted.exclude_hv = 1;
    files_[i] = static_cast<int>(::syscall(SYS_perf_event_open, &wanted, 0, -1, files_[0], PERF_FLAG_FD_CLOEXEC));
    if (files_[i] >= 0) continue;
    refusal_ = fmt::format("the system does not let the processor's counters be read: {}", reason(errno));
    return;
  }
}

Counters::~Counters() {
  for (int file : files_)
    if (file >= 0) ::close(file);
}

bool Counters::read(uint64_t counts[kCount]) const {
  uint64_t values[kCount + 1] = {};  // the number of counters, then their values
  bool read = refusal_.empty() && ::read(files_[0], values, sizeof values) == static_cast<ssize_t>(sizeof values);
  for (int i = 0; i < kCount; ++i) counts[i] = values[i + 1];
  return read;
}

}  // namespace cairn::observe
