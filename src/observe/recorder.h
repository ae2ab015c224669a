// Records what runs and when: one recording per process, to which every run adds fixed records. Costs one load while no
// recording is on; allocates nothing per step while one is.
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

/// Starts a recording in a new folder PROF_* below options.output, or joins the one that is on: starts nest, the finer
/// level holds. Throws Error io.
void start_profile(const ProfileOptions& options);
/// Undoes one start; the last one writes the rest and closes the file. The recording's folder. Throws Error
/// invalid_argument when no recording is on, io when records could not be written.
std::string stop_profile();
/// At the first call of the process: what PROFILING_MODE and PROFILING_OPTIONS ask for, until the process ends. Throws
/// Error invalid_argument.
void start_profile_from_environment();

/// A range of the user's own on this thread, "epoch 3", at every level; ranges nest. Nothing while no recording is on.
void begin_range(const std::string& name);
/// Ends the one that this thread began last. What began before the recording is not recorded; what outlasts it, or its
/// thread, ends with it.
void end_range();

/// One run of a model on this thread: made before it, dropped after it.
class RunRecorder final : public Observer {
 public:
  /// `host_step`: the host's number of the step that the run is part of; 0: the run is a step of its own. `next` is told
  /// as well, may be null.
  RunRecorder(const Module& module, int64_t host_step, Observer* next = nullptr);
  ~RunRecorder() override;
  RunRecorder(const RunRecorder&) = delete;

  bool watches_steps() const override;
  void plan_begins(const Plan& plan) override;
  void step_begins(const Plan& plan, size_t step, void* const* buffers) override;
  void step_ends(const Plan& plan, size_t step, void* const* buffers) override;
  void step_fails(const Plan& plan, size_t step, const Error& fault) override {
    if (next_) next_->step_fails(plan, step, fault);
  }

 private:
  observe::Lane* lane_;  // of this thread, which keeps the recording as well; null: it ended in between
  const Module& module_;
  Observer* next_;
  int64_t host_step_, begin_ = 0;  // ticks
  uint32_t run_ = 0, plan_ = 0;
  size_t open_ = 0;  // steps of this lane that were open when the run began
};

}  // namespace cairn
