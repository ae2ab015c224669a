// What a process was asked to record or dump of its runs, attached to one run by whoever makes it.
#pragma once

#include <optional>

#include "observe/dump.h"
#include "observe/recorder.h"

namespace cairn {

/// At the first call of the process: the recording and the dump that environment variables ask for. Throws Error.
inline void start_watch_from_environment() {
  start_profile_from_environment();
  start_dump_from_environment();
}

/// One run of a model: made before it, dropped after it.
class RunWatch {
 public:
  /// `host_step` and `next` as RunRecorder has them.
  explicit RunWatch(const Module& module, int64_t host_step = 0, Observer* next = nullptr) : observer_(next) {
    if (dumping()) observer_ = &dumper_.emplace(module, host_step, observer_);
    if (profiling()) observer_ = &recorder_.emplace(module, host_step, observer_);
  }
  RunWatch(const RunWatch&) = delete;
  /// For RunOptions; null when nobody watches.
  Observer* observer() { return observer_; }

 private:
  Observer* observer_;
  std::optional<RunDumper> dumper_;
  std::optional<RunRecorder> recorder_;
};

}  // namespace cairn
