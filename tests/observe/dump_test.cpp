// Dumps as they are made: folders, names, which steps and operators, statistics, overflow, failures, budget, crashes.
#include "observe/dump.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "compare/tree.h"
#include "formats/dump_data.h"
#include "ir/text.h"
#include "observe/statistics.h"
#include "runtime/model.h"
#include "support/files.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = R"(module @net {
  source 0 = "tf" "scope/first/Softmax" "Softmax" "train.py:3"
  source 1 = "tf" "scope/Log" "Log" "train.py:4"
  source 2 = "tf" "second/Softmax" "Softmax" "train.py:7"
  func @main(%x: f32[4, 8]) -> (%y: f32[4, 8]) {
    %a = softmax %x #0
    %b = log %a #1
    %y = softmax %b #2
    return %y
  }
}
)";

struct Folder {
  std::string path = (fs::temp_directory_path() / fmt::format("cairn_dump_{}_{}", ::getpid(), ++count)).string();
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  static inline int count = 0;
};

std::shared_ptr<const Model> model(const char* program = kProgram) {
  return Model::make(parse(program), {.threads = 1, .engines = {"reference"}, .optimise = false});
}

Tensor input(float first = 1) {
  std::vector<float> values(32, 0.5f);
  values[0] = first;
  return Tensor::of(kF32, {4, 8}, values);
}

void run(const Model& net, int64_t host_step = 0, const Tensor& x = input()) {
  RunDumper dumper(net.module(), host_step);
  net.run({x}, {.observer = &dumper});
}

/// Runs `count` steps under a dump and reads its tree back.
compare::DumpTree dumped(const std::string& path, const std::string& options, int count = 1, float first = 1) {
  auto net = model();
  start_dump(parse_dump_options(fmt::format("{{\"dump_path\":\"{}\"{}}}", path, options)));
  for (int i = 0; i < count; ++i) run(*net, 0, input(first));
  return compare::read_tree(stop_dump());
}

std::vector<std::string> names(const compare::DumpStep& step) {
  std::vector<std::string> list;
  for (const compare::DumpedOp& op : step.ops) list.push_back(op.name);
  return list;
}

TEST(Dump, FilesLieAndAreNamedAsThePlatformsAre) {
  Folder folder;
  dumped(folder.path, "");
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path))
    if (entry.is_regular_file()) files.push_back(entry.path().lexically_relative(folder.path).string());
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 4u);  // three operators and the manifest
  EXPECT_TRUE(std::all_of(files.begin(), files.end(), [](const std::string& file) {
    return file.substr(14, 10) == "/0/net/1/0" &&
           file.substr(0, 14).find_first_not_of("0123456789") == std::string::npos;
  })) << files[0];
  // op_type.op_name.task.stream.time, the time in 16 digits of microseconds
  std::string name = fs::path(files[0]).filename().string();
  EXPECT_TRUE(name.starts_with("Log.scope_Log.1.0.") || name.starts_with("log.scope_Log.1.0.")) << name;
  EXPECT_EQ(name.size() - name.rfind('.') - 1, 16u);
}

TEST(Dump, TensorsSourcesAndScriptLinesComeBack) {
  Folder folder;
  for (const char* format : {"", R"(,"dump_format":"npy")"}) {
    auto tree = dumped(folder.path, fmt::format(",\"dump_mode\":\"all\"{}", format));
    ASSERT_EQ(tree.steps.size(), 1u);
    ASSERT_EQ(tree.steps[0].ops.size(), 3u);
    const compare::DumpedOp& log = tree.steps[0].ops[1];
    EXPECT_EQ(log.name, "scope/Log");
    EXPECT_EQ(log.location, "train.py:4");
    EXPECT_EQ(log.sources, std::vector<std::string>{"tf:scope/Log"});
    ASSERT_EQ(log.tensors.size(), 2u) << format;  // what it read and what it made
    Tensor before = compare::load(log.tensors[0]).tensor, after = compare::load(log.tensors[1]).tensor;
    for (size_t i = 0; i < 32; ++i) EXPECT_NEAR(std::log(before.values<float>()[i]), after.values<float>()[i], 1e-6);
  }
}

TEST(Dump, OnlyTheStepsAndOperatorsAskedFor) {
  Folder folder;
  auto tree = dumped(folder.path, R"(,"dump_step":"1|4-5","dump_layer":"scope/Log second/Softmax")", 8);
  ASSERT_EQ(tree.steps.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(tree.steps[i].number, (std::vector<int64_t>{1, 4, 5})[i]);
  EXPECT_EQ(names(tree.steps[0]), (std::vector<std::string>{"scope/Log", "second/Softmax"}));
}

TEST(Dump, WeightsThatAKernelHasPackedAreDumpedAsTheGraphHasThem) {
  std::vector<float> weights(8 * 40);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i) / 64;
  auto net = Model::make(parse(fmt::format(R"(module @net {{
  func @main(%x: f32[4, 8]) -> (%y: f32[4, 40]) {{
    %w = constant {{value = f32[8, 40] ({})}}
    %y = matmul %x, %w
    return %y
  }}
}}
)",
                                           fmt::join(weights, ", "))),
                         {.threads = 1});
  Folder folder;
  start_dump(parse_dump_options(fmt::format("{{\"dump_path\":\"{}\",\"dump_mode\":\"input\"}}", folder.path)));
  run(*net);
  auto tree = compare::read_tree(stop_dump());
  ASSERT_EQ(tree.steps[0].ops[0].tensors.size(), 2u);
  Tensor dumped = compare::load(tree.steps[0].ops[0].tensors[1]).tensor;
  EXPECT_TRUE(dumped.same_bits(Tensor::of(kF32, {8, 40}, weights)));
}

TEST(Dump, RunsOfOneHostStepShareAFolder) {
  Folder folder;
  auto net = model();
  start_dump(parse_dump_options(fmt::format("{{\"dump_path\":\"{}\"}}", folder.path)));
  for (int64_t step : {41, 41, 42}) run(*net, step);
  auto tree = compare::read_tree(stop_dump());
  ASSERT_EQ(tree.steps.size(), 2u);
  EXPECT_EQ(tree.steps[0].ops.size(), 6u);
  EXPECT_EQ(tree.steps[1].number, 1);
}

TEST(Dump, BadOptionsAreRefusedInThePlatformsWords) {
  auto message = [](const std::string& options) {
    try {
      parse_dump_options("{\"dump_path\":\"d\"," + options + "}");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (const char* steps : {"5-3", "3-3", "a", "1||2", "1-", "-1", "|1", "1|"})
    EXPECT_EQ(message(fmt::format("\"dump_step\":\"{}\"", steps)),
              fmt::format("dump_step: string style is error, correct example:'0|5|10|50-100', found '{}'", steps));
  std::string many = "0";
  for (int i = 1; i <= 100; ++i) many += fmt::format("|{}", i);
  EXPECT_EQ(message("\"dump_step\":\"" + many + "\""), "dump_step: only support dump <= 100 sets of data, found 101");
  EXPECT_EQ(message(R"("enable_dump":true,"enable_dump_debug":true)"),
            "enable_dump: excludes enable_dump_debug, as on the platform");
  EXPECT_EQ(message(R"("dump_mode":"both")"), "dump_mode: expected input, output, all, found 'both'");
  EXPECT_EQ(message(R"("dump_budget":"12")"), "dump_budget: expected a size as 500MB, found '12'");
  for (const char* value : {"\"x\"", "\"\"", "null", "true"})
    EXPECT_EQ(message(fmt::format("\"dump_pth\":{}", value)), "dump_pth: is no option of a dump");
  EXPECT_NE(message(R"("enable_exception_dump":5)"), "accepted");
  EXPECT_THROW(parse_dump_options("{}"), Error);
  EXPECT_THROW(parse_dump_options("[1"), Error);
}

TEST(Dump, StatisticsAreATableInsteadOfTensors) {
  Folder folder;
  auto tree = dumped(folder.path, R"(,"dump_data":"stats","dump_mode":"all")", 2);
  EXPECT_TRUE(tree.steps.empty());
  std::vector<std::string> tables;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path))
    if (entry.path().filename() == "statistic.csv") tables.push_back(read_file(entry.path().string()));
  ASSERT_EQ(tables.size(), 1u);
  std::istringstream lines(tables[0]);
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("Step,Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,")) << line;
  size_t rows = 0;
  while (std::getline(lines, line)) ++rows;
  EXPECT_EQ(rows, 12u);  // three operators, what they read and made, two steps
}

TEST(Dump, TheFirstOperatorThatOverflowsIsNamed) {
  Folder folder;
  testing::internal::CaptureStderr();
  auto tree = dumped(folder.path, R"(,"enable_dump_debug":true)", 2, 1e4f);  // softmax gives zeros, their log infinity
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("overflow: step 0: scope/Log (train.py:4)"), std::string::npos) << said;
  EXPECT_EQ(said.find("second/Softmax"), std::string::npos) << said;
  EXPECT_EQ(tree.overflow.size(), 2u);
  ASSERT_EQ(tree.steps.size(), 2u);
  EXPECT_EQ(names(tree.steps[0]), std::vector<std::string>{"scope/Log"});
}

TEST(Dump, NothingOverflowsInAHealthyRun) {
  Folder folder;
  testing::internal::CaptureStderr();
  auto tree = dumped(folder.path, R"(,"enable_dump_debug":true)");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(tree.overflow.empty());
}

TEST(Dump, WhatAFailingOperatorReadIsKept) {
  Folder folder;
  auto net = model(R"(module @net {
  source 0 = "tf" "Exp" "Exp" ""
  source 1 = "tf" "lookup" "GatherV2" "train.py:9"
  func @main(%x: f32[4], %i: i32[2]) -> (%y: f32[2]) {
    %a = exp %x #0
    %y = gather %a, %i {axis = 0} #1
    return %y
  }
}
)");
  start_dump(parse_dump_options(fmt::format("{{\"dump_path\":\"{}\",\"enable_exception_dump\":2}}", folder.path)));
  RunDumper dumper(net->module(), 0);
  testing::internal::CaptureStderr();
  EXPECT_THROW(net->run({Tensor::zeros(kF32, {4}), Tensor::of<int32_t>(kI32, {2}, {1, 77})}, {.observer = &dumper}),
               Error);
  std::string said = testing::internal::GetCapturedStderr();
  std::string root = fs::path(stop_dump()).parent_path();
  EXPECT_NE(said.find("what lookup read when it failed is in"), std::string::npos) << said;
  auto tree = compare::read_tree(root + "/extra-info/data-dump/0");
  ASSERT_EQ(tree.steps.size(), 1u);
  ASSERT_EQ(tree.steps[0].ops.size(), 1u);
  const auto& tensors = tree.steps[0].ops[0].tensors;
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(compare::load(tensors[1]).tensor.as_i64(), (std::vector<int64_t>{1, 77}));
}

TEST(Dump, TheBudgetEndsTheDumpAndNotTheRun) {
  Folder folder;
  auto net = Model::make(parse(R"(module @big {
  func @main(%x: f32[400000]) -> (%y: f32[400000]) {
    %y = exp %x
    return %y
  }
}
)"),
                         {.threads = 1});
  start_dump(parse_dump_options(fmt::format("{{\"dump_path\":\"{}\",\"dump_budget\":\"4MB\"}}", folder.path)));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 6; ++i) run(*net, 0, Tensor::zeros(kF32, {400000}));
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said, "dump: the budget of 4 MB is spent; nothing more is kept\n");
  EXPECT_EQ(compare::read_tree(stop_dump()).steps.size(), 2u);
}

TEST(Dump, OneInsideAnotherStandsInForItUntilItIsStopped) {
  Folder first, second;
  auto net = model();
  auto options = [](const Folder& folder) {
    return parse_dump_options(fmt::format("{{\"dump_path\":\"{}\"}}", folder.path));
  };
  std::string outer = start_dump(options(first));
  run(*net);
  std::string inner = start_dump(options(second));
  run(*net);
  run(*net);
  EXPECT_EQ(stop_dump(), inner);
  run(*net);
  EXPECT_EQ(stop_dump(), outer);
  EXPECT_FALSE(dumping());
  EXPECT_EQ(compare::read_tree(outer).steps.size(), 2u);
  EXPECT_EQ(compare::read_tree(inner).steps.size(), 2u);
  EXPECT_THROW(stop_dump(), Error);
}

TEST(Dump, OperatorsAskedForThatDidNotRunAreTold) {
  Folder folder;
  testing::internal::CaptureStderr();
  dumped(folder.path, R"(,"dump_layer":"scope/Log scope/Lag")");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "dump: dump_layer: no operator scope/Lag ran\n");
}

TEST(Dump, WhatWasWrittenBeforeACrashIsWhole) {
  Folder folder;
  pid_t child = ::fork();
  if (child == 0) {
    auto net = model();
    start_dump(parse_dump_options(fmt::format("{{\"dump_path\":\"{}\"}}", folder.path)));
    for (int i = 0;; ++i) {
      if (i == 40) ::_exit(1);
      run(*net);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  auto tree = compare::read_tree(folder.path);
  ASSERT_EQ(tree.steps.size(), 40u);
  for (const auto& step : tree.steps)
    for (const auto& op : step.ops) {
      EXPECT_EQ(op.fault, "");
      EXPECT_EQ(compare::load(op.tensors[0]).tensor.count(), 32);
    }
}

TEST(Dump, ADiskThatRefusesDoesNotStopTheRun) {
  Folder folder;
  auto net = model();
  std::string root = start_dump(parse_dump_options(fmt::format("{{\"dump_path\":\"{}\"}}", folder.path)));
  std::ofstream(root + "/net") << "a file where the folder should be";
  testing::internal::CaptureStderr();
  run(*net);
  run(*net);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  stop_dump();
}

TEST(Dump, LongNamesGetNumbersAndAList) {
  Folder folder;
  std::string program = kProgram;
  std::string name(300, 'n');
  program.replace(program.find("scope/Log"), 9, name);
  auto net = model(program.c_str());
  start_dump(parse_dump_options(fmt::format("{{\"dump_path\":\"{}\"}}", folder.path)));
  run(*net);
  auto tree = compare::read_tree(stop_dump());
  ASSERT_EQ(tree.steps[0].ops.size(), 3u);
  EXPECT_TRUE(
      std::any_of(tree.steps[0].ops.begin(), tree.steps[0].ops.end(), [&](auto& op) { return op.name == name; }));
}

TEST(Statistics, AreThoseOfAPlainLoop) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(3, 20);
  for (size_t count : {0u, 1u, 15u, 16u, 17u, 2047u, 2048u, 5000u}) {
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    if (count > 16)
      values[3] = NAN, values[7] = INFINITY, values[15] = -INFINITY, values[16] = 0, values[count - 1] = NAN;
    Statistics found = statistics_of(Tensor::of(kF32, {static_cast<int64_t>(count)}, values));
    double sum = 0, square = 0, least = INFINITY, most = -INFINITY;
    size_t finite = 0;
    for (float value : values)
      if (std::isfinite(value)) {
        ++finite, sum += value, square += static_cast<double>(value) * value;
        least = std::min<double>(least, value), most = std::max<double>(most, value);
      }
    EXPECT_EQ(found.finite(), finite);
    EXPECT_EQ(found.nan, count > 16 ? 2u : 0u);
    if (finite == 0) continue;
    EXPECT_EQ(found.least, least);
    EXPECT_EQ(found.most, most);
    EXPECT_NEAR(found.mean, sum / static_cast<double>(finite), 1e-9);
    EXPECT_NEAR(found.norm, std::sqrt(square), 1e-6);
    EXPECT_EQ(overflows(Tensor::of(kF32, {static_cast<int64_t>(count)}, values)), count > 16);
  }
}

TEST(Statistics, HalvesOverflowAtTheirLargestNumber) {
  auto halves = [](std::vector<float> values) {
    std::vector<uint16_t> bits;
    for (float value : values) bits.push_back(float_to_half(value));
    return Tensor::of(kF16, {static_cast<int64_t>(bits.size())}, bits);
  };
  EXPECT_FALSE(overflows(halves({1, -65472, 0})));
  EXPECT_TRUE(overflows(halves({1, -65504})));
  EXPECT_TRUE(overflows(halves({INFINITY})));
  EXPECT_EQ(statistics_of(halves({1, -3, 0.5f})).least, -3);
}

}  // namespace
}  // namespace cairn
