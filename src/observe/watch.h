// The active recording and dump of the process, attached to one run.
#pragma once

#include <optional>

#include "observe/dump.h"
#include "observe/recorder.h"

namespace cairn {

/// At the first call in the process, starts the recording and the dump that environment variables request. Throws
/// Error.
inline void start_watch_from_environment() {
  start_profile_from_environment();
  start_dump_from_environment();
}

/// Observes one run of a model: constructed before the run, destroyed after it.
class RunWatch {
 public:
  /// `host_step` and `next` as for RunRecorder.
  explicit RunWatch(const Module& module, int64_t host_step = 0, Observer* next = nullptr) : observer_(next) {
    if (dumping()) observer_ = &dumper_.emplace(module, host_step, observer_);
    if (profiling()) observer_ = &recorder_.emplace(module, host_step, observer_);
  }
  RunWatch(const RunWatch&) = delete;
  /// The observer for RunOptions; null when there is none.
  Observer* observer() { return observer_; }

 private:
  Observer* observer_;
  std::optional<RunDumper> dumper_;
  std::optional<RunRecorder> recorder_;
};

}  // namespace cairn
