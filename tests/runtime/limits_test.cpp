// Bounds of a run: the memory that plans keep, the time that it may take, and what ends it early.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "ir/text.h"
#include "plan/budget.h"
#include "runtime/single_op.h"
#include "sanitized.h"
#include "support/memory.h"
#include "support/stop.h"

namespace cairn {
namespace {

std::shared_ptr<const Model> limited_model(const std::string& function, ModelOptions options = {}) {
  return Model::make(parse("module @m {\n" + function + "\n}\n"), options);
}

// Convolution, element-wise groups, a loop and dims born from data: every place that keeps something for a shape.
const char* kKeepsMuch = R"(
  func @main(%x: f32[?n, ?h, 6, 4]) -> (%y: f32[?n, ?h, 6, 8], %z: i64[?k, 4]) {
    %half = constant {value = f32[] (0.5)} : f32[]
    %size = constant {value = i64[4] (3, 3, 4, 8)} : i64[4]
    %w = broadcast_to %half, %size : f32[3, 3, 4, 8]
    %c = conv2d %x, %w {padding = same} : f32[?n, ?h, 6, 8]
    %t = tanh %c : f32[?n, ?h, 6, 8]
    %m = mul %t, %c : f32[?n, ?h, 6, 8]
    %y = add %m, %t : f32[?n, ?h, 6, 8]
    %z = non_zero %x : i64[?k, 4]
    return %y, %z
  })";

/// Bytes that the process has allocated, and those that it has mapped by itself for generated code.
size_t bytes_in_use() {
  malloc_trim(0);
  const auto heap = mallinfo2();
  size_t code = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t from = 0, to = 0;
    char flags[8] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &from, &to, flags) == 3 && flags[2] == 'x' &&
        line.find('/') == std::string::npos && line.find('[') == std::string::npos)
      code += to - from;
  }
  return heap.uordblks + heap.hblkhd + code;
}

void run_shape(const Model& model, int64_t i) { model.run({Tensor::zeros(kF32, {1 + i % 7, 1 + i / 7, 6, 4})}); }

TEST(Memory, OfPlansIsBoundedOverManyShapes) {
  constexpr size_t kMost = 2 << 20;
  auto model = limited_model(kKeepsMuch, {.threads = 1, .plan_bytes = kMost});
  for (int64_t i = 0; i < 300; ++i) run_shape(*model, i);
  const size_t before = bytes_in_use();
  for (int64_t i = 300; i < 1500; ++i) {
    run_shape(*model, i);
    EXPECT_LE(model->plan_bytes(), kMost + (1 << 20)) << "at shape " << i;  // the plan used last stays
  }
  EXPECT_LE(bytes_in_use(), before + (1 << 20));
}

TEST(Memory, GoesWithTheModel) {
  if (!kMemoryCounts) GTEST_SKIP() << "sanitizer: its own memory is counted";
  { run_shape(*limited_model(kKeepsMuch, {.threads = 1}), 3); }  // what the process makes once
  const size_t before = bytes_in_use();
  {
    auto model = limited_model(kKeepsMuch, {.threads = 1});
    for (int64_t i = 0; i < 200; ++i) {
      run_shape(*model, i);
      run_shape(*model, i);  // the second run's context is kept
    }
    EXPECT_GT(bytes_in_use(), before + (1 << 20)) << "nothing is kept that could be freed";
  }
  EXPECT_LE(bytes_in_use(), before + (256 << 10));
}

TEST(Memory, AShapeUsedAgainAndAgainStays) {
  auto model = limited_model(kKeepsMuch, {.threads = 1, .plan_bytes = 1 << 20});
  const std::vector<Dims> dims = {{1, 1, 6, 4}};
  const Plan* kept = model->plan(dims).get();
  for (int64_t i = 1; i < 300; ++i) {
    run_shape(*model, 0);
    run_shape(*model, i);
    ASSERT_EQ(model->plan(dims).get(), kept) << "at shape " << i;
  }
}

TEST(Memory, ManySmallPlansAreKept) {
  auto model = limited_model(kKeepsMuch, {.threads = 1});
  std::vector<std::shared_ptr<const Plan>> plans;
  for (int64_t i = 1; i <= 150; ++i) plans.push_back(model->plan(std::vector<Dims>{{1, i, 6, 4}}));
  for (int64_t i = 1; i <= 150; ++i)
    EXPECT_EQ(model->plan(std::vector<Dims>{{1, i, 6, 4}}), plans[static_cast<size_t>(i - 1)]) << i;
}

TEST(Memory, OfSingleOpsIsBounded) {
  setenv("CAIRN_PLAN_MEMORY", "1M", 1);
  const auto run = [](int64_t i) {
    const Tensor x = Tensor::zeros(kF32, {1 + i});
    const TensorRef ref{kF32, x.dims(), x.data()};
    Tensor y;
    run_op(op_named("tanh"), {}, {&ref, 1}, [&](size_t, DType dtype, std::span<const int64_t> dims) {
      y = Tensor::uninitialized(dtype, {dims.begin(), dims.end()});
      return y.mutable_data();
    });
  };
  for (int64_t i = 0; i < 200; ++i) run(i);
  const size_t before = bytes_in_use();
  for (int64_t i = 200; i < 1500; ++i) run(i);
  EXPECT_LE(bytes_in_use(), before + (1 << 20));
  unsetenv("CAIRN_PLAN_MEMORY");
}

TEST(Memory, BoundOfTheEnvironmentIsChecked) {
  for (auto [text, bytes] :
       {std::pair("1000", size_t{1000}), {"3K", 3 << 10}, {"2G", size_t{2} << 30}, {"", 1 << 30}}) {
    setenv("CAIRN_PLAN_MEMORY", text, 1);
    EXPECT_EQ(PlanBudget::default_bytes(), bytes);
  }
  for (const char* text : {"much", "-1", "1T", "99999999999999999999", "99999999999G"}) {
    setenv("CAIRN_PLAN_MEMORY", text, 1);
    EXPECT_THROW(PlanBudget::default_bytes(), Error) << text;
  }
  unsetenv("CAIRN_PLAN_MEMORY");
}

TEST(Memory, MoreThanThereIsIsRefusedInWords) {
  try {
    require_memory(size_t{1} << 50);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string(error.what()).find("of memory are needed at once"), std::string::npos);
  }
  auto model = limited_model(R"(
  func @main(%x: f32[1]) -> (%y: f32[?n]) {
    %s = constant {value = i64[1] (1099511627776)} : i64[1]
    %y = broadcast_to %x, %s : f32[?n]
    return %y
  })");
  EXPECT_THROW(model->run({Tensor::zeros(kF32, {1})}), Error);
}

std::string sentence_of(const Model& model, const std::vector<Tensor>& inputs, const StopRequest& request) {
  try {
    StopScope scope(request);
    model.run(inputs);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
    return error.what();
  }
  return "no error";
}

// A loop without end, one large step of a kernel of generated code, and one of the reference engine.
const char* kLoop = R"(
  func @main(%x: i64[]) -> (%y: i64[]) {
    %y = while %x {carried = 1} : i64[]
      region(%i: i64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %c = not_equal %i, %one : bool[]
        yield %c
      }
      region(%j: i64[]) {
        %two = constant {value = i64[] (2)} : i64[]
        %n = mul %j, %two : i64[]
        yield %n
      }
    return %y
  })";
const char* kLarge = R"(
  func @main(%x: f32[1024, 1024], %w: f32[1024, 1024]) -> (%y: f32[1024, 1024]) {
    %a = matmul %x, %w : f32[1024, 1024]
    %b = matmul %a, %w : f32[1024, 1024]
    %c = matmul %b, %w : f32[1024, 1024]
    %d = matmul %c, %w : f32[1024, 1024]
    %y = matmul %d, %w : f32[1024, 1024]
    return %y
  })";

void expect_stop(const char* function, const std::vector<Tensor>& inputs, const std::string& engine) {
  auto model = limited_model(function, {.threads = 2, .engines = {engine}});
  EXPECT_EQ(sentence_of(*model, inputs, {.max_seconds = 0.02}), "stopped after 0.02 seconds, the time it was given");
  std::atomic<bool> cancel = false;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel = true;
  });
  EXPECT_EQ(sentence_of(*model, inputs, {.cancel = &cancel}), "cancelled");
  later.join();
  int asked = 0;
  const auto third_time = [](void* count) { return ++*static_cast<int*>(count) >= 1; };
  EXPECT_EQ(sentence_of(*model, inputs, {.interrupted = third_time, .user = &asked}), "cancelled");
}

TEST(Time, ALoopEnds) {
  for (const char* engine : {"cpu", "reference"}) expect_stop(kLoop, {Tensor::scalar_i64(3)}, engine);
}

TEST(Time, ALargeStepEnds) {
  const Tensor x = Tensor::zeros(kF32, {1024, 1024});
  expect_stop(kLarge, {x, x}, "reference");
}

TEST(Time, WhatIsSurelyTooLongIsRefusedBeforeItStarts) {
  auto model = limited_model(kLarge);
  const Tensor x = Tensor::zeros(kF32, {1024, 1024});
  const std::vector<Dims> dims = {{1024, 1024}, {1024, 1024}};
  model->plan(dims);
  std::string sentence;
  for (int trial = 0; trial < 100 && sentence.find("operations") == std::string::npos; ++trial)
    sentence = sentence_of(*model, {x, x}, {.max_seconds = 1e-4});  // another process may take all of that
  EXPECT_TRUE(sentence.starts_with("the run takes about 1e+10 operations, more than the ")) << sentence;
}

TEST(Time, NobodyIsStoppedWithoutALimit) {
  auto model = limited_model(kLoop);
  EXPECT_EQ(sentence_of(*model, {Tensor::scalar_i64(1)}, {.max_seconds = 100}), "no error");
  StopScope outer({.max_seconds = 100});
  { StopScope inner({.max_seconds = 1e-9}); }
  EXPECT_NO_THROW(stop_point());
}

TEST(Time, ConstantFoldingEnds) {
  Module module = parse(std::string("module @m {\n") + R"(
  func @main() -> (%y: f32[512, 512]) {
    %half = constant {value = f32[] (0.5)} : f32[]
    %size = constant {value = i64[2] (512, 512)} : i64[2]
    %x = broadcast_to %half, %size : f32[512, 512]
    %y = matmul %x, %x : f32[512, 512]
    return %y
  })" + "\n}\n");
  StopScope scope({.max_seconds = 1e-3});
  EXPECT_THROW(Model::make(std::move(module)), Error);
}

}  // namespace
}  // namespace cairn
