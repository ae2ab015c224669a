#include "observe/recorder.h"

#include <pthread.h>

#include <cstdlib>
#include <mutex>

#include "observe/dynamic.h"
#include "observe/on_in_process.h"
#include "observe/recording.h"
#include "plan/context.h"
#include "support/fault.h"

namespace cairn {

namespace observe {

std::atomic<bool> recording_on{false};

namespace {

struct RecordingSession : OnInProcess<Recording> {
  int depth = 0;
};

RecordingSession& recording_session() {
  static RecordingSession* instance = new RecordingSession;  // never destroyed: threads may still run models at exit
  return *instance;
}

/// Incremented whenever a recording starts or ends.
std::atomic<uint64_t> changes{0};

/// This thread's lane in the recording that it used last.
struct LaneOfThread {
  std::shared_ptr<Recording> recording;
  Lane* lane = nullptr;
  uint64_t seen = 0;

  ~LaneOfThread() { leave(); }
  void leave() {
    while (lane && !lane->ranges.empty()) lane->end_range();
    if (recording) recording->give_lane(lane);
    recording = nullptr, lane = nullptr;
  }
  void look(uint64_t now) {
    std::shared_ptr<Recording> current;
    {
      std::lock_guard lock(recording_session().mutex);
      current = recording_session().current;
    }
    seen = now;
    if (current == recording) return;
    leave();
    recording = std::move(current);
    if (recording) lane = recording->take_lane();
  }
};

/// The thread's lane in the current recording, or null. While a run of the thread uses a lane, the thread keeps it.
Lane* lane_of_thread() {
  thread_local LaneOfThread mine;
  uint64_t now = changes.load(std::memory_order_acquire);
  if (mine.seen != now && !(mine.lane && mine.lane->runs > 0)) mine.look(now);
  return mine.lane;
}

void stop_at_exit() {
  while (profiling()) {
    try {
      stop_profile();
    } catch (const Error& fault) {
      cairn::note(fmt::format("profile: {}", fault.what()));
    }
  }
}

void after_fork_in_child_of_recording() {
  if (!recording_session().after_fork_in_child()) return;
  recording_on.store(false, std::memory_order_relaxed);
  changes.fetch_add(1, std::memory_order_release);
}

}  // namespace
}  // namespace observe

using namespace observe;

void start_profile(const ProfileOptions& options) {
  std::lock_guard lock(recording_session().mutex);
  if (!recording_session().current)
    recording_session().current = std::make_shared<Recording>(options);
  else
    recording_session().current->raise(options.level);
  for (const std::string& note : options.notes) cairn::note(fmt::format("profile: {}", note));
  ++recording_session().depth;
  changes.fetch_add(1, std::memory_order_release);
  recording_on.store(true, std::memory_order_relaxed);
  static bool registered = std::atexit(stop_at_exit) == 0 && pthread_atfork([] { recording_session().before_fork(); },
                                                                            [] { recording_session().after_fork(); },
                                                                            after_fork_in_child_of_recording) == 0;
  static_cast<void>(registered);
}

std::string stop_profile() {
  std::shared_ptr<Recording> ended;
  {
    std::lock_guard lock(recording_session().mutex);
    if (recording_session().depth == 0) fail(ErrorKind::invalid_argument, "profile", "none is being recorded");
    if (--recording_session().depth > 0 || !recording_session().current)
      return recording_session().current ? recording_session().current->folder() : std::string();
    recording_on.store(false, std::memory_order_relaxed);
    ended = std::move(recording_session().current);
    changes.fetch_add(1, std::memory_order_release);
  }
  ended->close();
  return ended->folder();
}

void start_profile_from_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* mode = std::getenv("PROFILING_MODE");
    std::string_view given = mode ? mode : "";
    if (given.empty() || given == "false") return;
    if (given == "dynamic") return listen_for_clients();
    if (given != "true")
      fail(ErrorKind::invalid_argument, "PROFILING_MODE", "expected true, false or dynamic, found '{}'", given);
    const char* text = std::getenv("PROFILING_OPTIONS");
    ProfileOptions options = parse_profile_options(text ? text : "{}");
    const char* work_path = std::getenv("ASCEND_WORK_PATH");
    if (options.output == "." && work_path && *work_path) options.output = work_path;
    start_profile(options);
  });
}

void begin_range(const std::string& name) {
  Lane* lane = profiling() ? lane_of_thread() : nullptr;
  if (lane) lane->begin_range(name);
}

void end_range() {
  Lane* lane = profiling() ? lane_of_thread() : nullptr;
  if (lane && !lane->ranges.empty()) lane->end_range();
}

RunRecorder::RunRecorder(const Module& module, int64_t host_step, Observer* next)
    : lane_(lane_of_thread()), module_(module), next_(next), host_step_(host_step) {
  if (!lane_) return;
  ++lane_->runs;
  Recording& recording = lane_->recording();
  open_ = lane_->open.size();
  run_ = lane_->next_run();
  if (recording.level() == ProfileLevel::counters && !lane_->counters) lane_->counters = std::make_unique<Counters>();
  begin_ = ticks();
}

RunRecorder::~RunRecorder() {
  if (!lane_) return;
  --lane_->runs;
  lane_->open.resize(open_);
  if (plan_ == 0) return;  // refused before anything ran
  lane_->add({begin_, ticks(), plan_, 0, run_, 0, RecordKind::run, 0});
  if (host_step_ != 0) lane_->add({host_step_, 0, plan_, 0, run_, 0, RecordKind::host_step, 0});
}

bool RunRecorder::watches_steps() const {
  return next_ || (lane_ && lane_->recording().level() != ProfileLevel::marks);
}

void RunRecorder::plan_begins(const Plan& plan) {
  if (next_) next_->plan_begins(plan);
  if (!lane_) return;
  uint32_t serial = plan.contexts->serial();
  if (plan_ == 0) plan_ = serial;
  if (lane_->last_plan == serial) return;
  if (lane_->plans.insert(serial).second) lane_->recording().describe(plan, module_, serial);
  lane_->last_plan = serial;
}

void RunRecorder::step_begins(const Plan& plan, size_t step, void* const* buffers) {
  if (next_) next_->step_begins(plan, step, buffers);
  if (!lane_ || lane_->recording().level() == ProfileLevel::marks) return;
  Lane::Open& open = lane_->open.emplace_back();
  if (lane_->counters) lane_->counters->read(open.counts);
  open.begin = ticks();
}

void RunRecorder::step_ends(const Plan& plan, size_t step, void* const* buffers) {
  if (lane_ && lane_->open.size() > open_) {  // else the step began before the level was raised
    int64_t end = ticks();
    const Lane::Open& open = lane_->open.back();
    uint32_t serial = plan.contexts->serial();
    auto number = static_cast<uint32_t>(step);
    lane_->add({open.begin, end, serial, number, run_, 0, RecordKind::op, 0});
    uint64_t counts[Counters::kCount];
    if (lane_->counters && lane_->counters->read(counts)) {
      auto since = [&](int i) { return static_cast<int64_t>(counts[i] - open.counts[i]); };
      lane_->add({since(0), since(1), serial, number, run_, 0, RecordKind::cycles, 0});
      lane_->add({since(2), since(3), serial, number, run_, 0, RecordKind::cache, 0});
    }
    lane_->open.pop_back();
  }
  if (next_) next_->step_ends(plan, step, buffers);
}

// Collectives go on one after the other.
void RunRecorder::beside_begins(const Plan&, size_t) { beside_begin_ = ticks(); }

void RunRecorder::beside_ends(const Plan& plan, size_t step) {
  Lane* lane = lane_of_thread();
  if (!lane || !lane_ || &lane->recording() != &lane_->recording()) return;
  lane->add({beside_begin_, ticks(), plan.contexts->serial(), static_cast<uint32_t>(step), run_, 0, RecordKind::op, 0});
}

}  // namespace cairn
