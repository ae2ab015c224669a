// Records what runs and when: one recording per process, to which every run adds records of fixed size. Costs one load
// when there is no recording; does not allocate per step when there is one.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "observe/event_file.h"
#include "observe/profile_options.h"
#include "runtime/model.h"

namespace cairn {

namespace observe {
class Recording;
class Lane;
class Counters;
extern std::atomic<bool> recording_on;
}  // namespace observe

inline bool profiling() { return observe::recording_on.load(std::memory_order_relaxed); }

/// Starts a recording in a new folder PROF_* below options.output, or joins the current one: starts nest, and the
/// finest level applies. Throws Error io.
void start_profile(const ProfileOptions& options);
/// Ends one start; the last stop writes buffered records and closes the file. Returns the recording's folder. Throws
/// Error invalid_argument when there is no recording, io when records could not be written.
std::string stop_profile();
/// At the first call in the process, starts the recording that PROFILING_MODE and PROFILING_OPTIONS request, until the
/// process ends. Throws Error invalid_argument.
void start_profile_from_environment();

/// Begins a named range of the user ("epoch 3") on this thread, recorded at every level; ranges nest. Does nothing
/// without a recording.
void begin_range(const std::string& name);
/// Ends the range that this thread began last. A range that began before the recording is not recorded; one that
/// outlasts the recording or its thread ends with it.
void end_range();

/// Records one run of a model on this thread: constructed before the run, destroyed after it.
class RunRecorder final : public Observer {
 public:
  /// `host_step`: the host's number of the step that the run is part of; 0: the run is a step of its own. All calls are
  /// forwarded to `next`, which may be null.
  RunRecorder(const Module& module, int64_t host_step, Observer* next = nullptr);
  ~RunRecorder() override;
  RunRecorder(const RunRecorder&) = delete;

  bool watches_steps() const override;
  bool needs_values() const override { return next_ && next_->needs_values(); }
  void plan_begins(const Plan& plan) override;
  void step_begins(const Plan& plan, size_t step, void* const* buffers) override;
  void step_ends(const Plan& plan, size_t step, void* const* buffers) override;
  void step_fails(const Plan& plan, size_t step, const Error& fault) override {
    if (next_) next_->step_fails(plan, step, fault);
  }
  bool watches_beside() const override { return !next_; }  // it may read results of collectives
  void beside_begins(const Plan& plan, size_t step) override;
  void beside_ends(const Plan& plan, size_t step) override;

 private:
  observe::Lane* lane_;  // of this thread, which keeps the recording alive; null when it ended meanwhile
  const Module& module_;
  Observer* next_;
  int64_t host_step_, begin_ = 0, beside_begin_ = 0;  // ticks
  uint32_t run_ = 0, plan_ = 0;
  size_t open_ = 0;  // steps of this lane that were open when the run began
};

}  // namespace cairn
