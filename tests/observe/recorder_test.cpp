// Recordings as they are made: what is recorded, by whom, and what is left when the program stops in the middle.
#include "observe/recorder.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <latch>
#include <set>
#include <thread>

#include "ir/text.h"
#include "observe/ticks.h"
#include "profile/analysis.h"
#include "runtime/model.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = R"(module @net {
  func @main(%x: f32[4, 8]) -> (%y: f32[4, 8]) {
    %a = exp %x : f32[4, 8]
    %y = softmax %a : f32[4, 8]
    return %y
  }
}
)";

struct Folder {
  std::string path = (fs::temp_directory_path() / fmt::format("cairn_observe_{}_{}", ::getpid(), ++count)).string();
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  static inline int count = 0;
};

std::shared_ptr<const Model> model() { return Model::make(parse(kProgram), {.threads = 1}); }

void run(const Model& model, int64_t host_step = 0) {
  RunRecorder recorder(model.module(), host_step);
  model.run({Tensor::zeros(kF32, {4, 8})}, {.observer = &recorder});
}

profile::Recording record(const std::function<void()>& body, ProfileLevel level = ProfileLevel::ops) {
  Folder folder;
  start_profile({.level = level, .output = folder.path});
  body();
  return profile::read_recording(stop_profile());
}

TEST(Recorder, RangesOfTheUserNestAndEndWithTheirThreadOrTheRecording) {
  auto net = model();
  begin_range("before the recording");
  auto recording = record(
      [&] {
        begin_range("epoch");
        std::thread([] {
          begin_range("elsewhere");
          end_range();
          begin_range("never ended");
        }).join();
        std::thread([] { end_range(); }).join();  // takes the lane of the thread before, not its range
        for (int i = 0; i < 2; ++i) {
          begin_range("batch");
          run(*net);
          end_range();
        }
        end_range();
        end_range();  // of what began before
        begin_range("outlasts it");
        run(*net);
      },
      ProfileLevel::marks);
  ASSERT_EQ(recording.remark, "");
  std::vector<std::string> names;
  for (const Record& range : recording.ranges) names.push_back(recording.range_names[range.step]);
  EXPECT_EQ(names, (std::vector<std::string>{"epoch", "elsewhere", "never ended", "batch", "batch", "outlasts it"}));
  ASSERT_EQ(recording.runs.size(), 3u);
  const Record &unended = recording.ranges[2], &last = recording.ranges[5];
  EXPECT_LE(unended.end_ns, recording.ranges[3].begin_ns);
  EXPECT_TRUE(last.begin_ns <= recording.runs[2].begin_ns && recording.runs[2].end_ns <= last.end_ns);
  for (size_t i = 0; i < 2; ++i) {
    const Record &epoch = recording.ranges[0], &batch = recording.ranges[3 + i], &run = recording.runs[i];
    EXPECT_TRUE(epoch.begin_ns <= batch.begin_ns && batch.begin_ns <= run.begin_ns);
    EXPECT_TRUE(run.end_ns <= batch.end_ns && batch.end_ns <= epoch.end_ns);
  }
}

TEST(Recorder, EveryStepOfEveryRunIsRecorded) {
  auto net = model();
  size_t steps = net->plan(std::vector<Dims>{{4, 8}})->steps.size();
  auto recording = record([&] {
    for (int i = 0; i < 5; ++i) run(*net);
  });
  EXPECT_EQ(recording.remark, "");
  EXPECT_EQ(recording.runs.size(), 5u);
  EXPECT_EQ(recording.ops.size(), 5 * steps);
  ASSERT_EQ(recording.plans.size(), 1u);
  EXPECT_EQ(recording.plans[0].steps.size(), steps);
  for (const Record& op : recording.ops) EXPECT_LE(op.begin_ns, op.end_ns);
}

TEST(Recorder, TimesAreThoseOfTheSystemsClock) {
  auto net = model();
  constexpr int64_t kSlack = 2000;  // ns: two clocks are never read at one moment
  std::vector<std::pair<int64_t, int64_t>> around;
  auto recording = record([&] {
    for (int i = 0; i < 30; ++i) {
      int64_t before = observe::now_ns();
      run(*net);
      around.emplace_back(before, observe::now_ns());
      if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(230));  // the writer looks at both clocks
    }
  });
  ASSERT_EQ(recording.runs.size(), around.size());
  for (size_t i = 0; i < around.size(); ++i) {
    EXPECT_GE(recording.runs[i].begin_ns, around[i].first - kSlack);
    EXPECT_LE(recording.runs[i].end_ns, around[i].second + kSlack);
    EXPECT_LT(recording.runs[i].begin_ns, recording.runs[i].end_ns);
  }
}

TEST(Recorder, MarksRecordRunsOnly) {
  auto net = model();
  auto recording = record([&] { run(*net); }, ProfileLevel::marks);
  EXPECT_EQ(recording.runs.size(), 1u);
  EXPECT_TRUE(recording.ops.empty());
}

TEST(Recorder, StartsNestAndTheLastStopEnds) {
  Folder folder;
  auto net = model();
  start_profile({.level = ProfileLevel::marks, .output = folder.path});
  start_profile({.level = ProfileLevel::ops, .output = folder.path});
  run(*net);
  std::string inner = stop_profile();
  EXPECT_TRUE(profiling());
  run(*net);
  EXPECT_EQ(stop_profile(), inner);
  EXPECT_FALSE(profiling());
  EXPECT_EQ(profile::read_recording(inner).runs.size(), 2u);
  EXPECT_THROW(stop_profile(), Error);
}

TEST(Recorder, ThreadsRecordAtTheSameTime) {
  auto net = model();
  constexpr int kThreads = 4, kRuns = 3000;  // more records than one chunk holds
  auto recording = record([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        for (int k = 0; k < kRuns; ++k) run(*net);
      });
    for (auto& thread : threads) thread.join();
  });
  EXPECT_EQ(recording.remark, "");
  EXPECT_EQ(recording.runs.size(), size_t{kThreads * kRuns});
  EXPECT_EQ(recording.ops.size(), recording.runs.size() * recording.plans[0].steps.size());
}

TEST(Recorder, ThreadsThatBeginAtOnceHaveNumbersOfTheirOwn) {
  constexpr int kThreads = 64;
  for (int turn = 0; turn < 10; ++turn) {
    const auto recording = record([&] {
      std::latch begin(kThreads), end(kThreads);
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
          begin.arrive_and_wait();
          begin_range("range");
          end_range();
          end.arrive_and_wait();  // a lane is given to another thread only when its own has ended
        });
    });
    std::set<uint16_t> numbers;
    for (const Record& range : recording.ranges) numbers.insert(range.thread);
    EXPECT_EQ(numbers.size(), size_t{kThreads});
  }
}

TEST(Recorder, RunsOfOneHostStepAreOneIteration) {
  auto net = model();
  auto recording = record([&] {
    for (int64_t step : {7, 7, 8, 8}) run(*net, step);
  });
  auto analysis = profile::analyse(recording);
  ASSERT_EQ(analysis.iterations.size(), 2u);
  EXPECT_EQ(analysis.iterations[0].host_step, 7);
  EXPECT_EQ(analysis.iterations[1].runs, 2u);
}

TEST(Recorder, WhatWasWrittenBeforeACrashCanBeRead) {
  Folder folder;
  pid_t child = ::fork();
  if (child == 0) {
    auto net = model();
    start_profile({.output = folder.path});
    begin_range("epoch");
    for (int i = 0; i < 100; ++i) run(*net);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));  // the writer's interval, three times
    ::_exit(9);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  auto recording = profile::read_recording(profile::find_recordings(folder.path).back());
  ASSERT_EQ(recording.runs.size(), 100u);
  EXPECT_NE(recording.remark, "");
  ASSERT_EQ(recording.ranges.size(), 1u);
  EXPECT_LE(recording.ranges[0].begin_ns, recording.runs[0].begin_ns);
  EXPECT_GE(recording.ranges[0].end_ns, recording.runs[99].end_ns);
}

TEST(Recorder, UnderALimitTheOldestRecordsGo) {
  Folder folder;
  auto net = model();
  start_profile({.output = folder.path, .storage_limit = 1 << 20});
  constexpr int kRuns = 160000;
  for (int i = 1; i <= kRuns; ++i) run(*net, i);
  std::string path = stop_profile();
  uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) bytes += entry.file_size();
  EXPECT_LE(bytes, 3u << 19);  // one chunk of records may lie over each part
  auto recording = profile::read_recording(path);
  EXPECT_GT(recording.dropped, 0u);
  std::vector<int64_t> steps;  // of the host, in the order of the chunks that they were put into
  for (const Record& record : recording.host_steps) steps.push_back(record.begin_ns);
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(*std::max_element(steps.begin(), steps.end()), kRuns);
  EXPECT_GT(*std::min_element(steps.begin(), steps.end()), kRuns / 4);
  EXPECT_NE(recording.remark.find("dropped at the storage limit"), std::string::npos) << recording.remark;
}

TEST(Recorder, AFolderThatCannotBeMadeIsSaid) {
  EXPECT_THROW(start_profile({.output = "/proc/none"}), Error);
  EXPECT_FALSE(profiling());
}

TEST(ProfileOptions, KeysActAreNotedOrRefused) {
  auto parsed =
      parse_profile_options(R"({"output": "/tmp/p", "training_trace": "on", "task_trace": "on", "fp_point": "a",
    "bp_point": "b", "aic_metrics": "PipeUtilization", "l2": "on", "aicpu": "off", "storage_limit": "200MB"})");
  EXPECT_EQ(parsed.level, ProfileLevel::counters);
  EXPECT_EQ(parsed.output, "/tmp/p");
  EXPECT_EQ(parsed.fp_point + parsed.bp_point, "ab");
  EXPECT_EQ(parsed.notes.size(), 1u);
  EXPECT_EQ(parsed.storage_limit, uint64_t{200} << 20);
  EXPECT_EQ(parse_profile_options("{}").level, ProfileLevel::ops);
  EXPECT_EQ(parse_profile_options(R"({"aic_metrics": "Custom:0x49,0x8"})").level, ProfileLevel::counters);
  EXPECT_EQ(parse_profile_options(R"({"task_time": "off"})").level, ProfileLevel::marks);
  EXPECT_EQ(parse_profile_options(R"({"fp_point": "a"})").fp_point, "");  // read only with training_trace
  for (const char* wrong :
       {"", "[]", "{", R"({"training_trace": "off"})", R"({"storage_limit": "1MB"})", R"({"output": 1.5})",
        R"({"output": "a\nb"})", R"({"what": "on"})", R"({"instr_profiling_freq": "300"})",
        R"({"aic_metrics": "Nothing"})", R"({"level": "all"})", R"({"level": "L1", "aic_metrics": "Nothing"})",
        R"({"aic_metrics": "Custom:zz"})", R"({"aic_metrics": "Custom:0x1,0x2,0x3,0x4,0x5,0x6,0x7,0x8,0x9"})"})
    EXPECT_THROW(parse_profile_options(wrong), Error) << wrong;
}

}  // namespace
}  // namespace cairn
