// A process that forks while other threads run, plan and change models: every child runs the same models, and new ones.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "ir/op_def.h"
#include "ir/text.h"
#include "runtime/single_op.h"
#include "sanitized.h"

namespace cairn {
namespace {

constexpr const char* kNetwork = R"(module @m {
  func @main(%x: f32[?n, 64]) -> (%y: f32[?n, 64]) {
    %w = constant {value = f32[64, 64] @weights[0]} : f32[64, 64]
    %a = matmul %x, %w : f32[?n, 64]
    %b = tanh %a : f32[?n, 64]
    %y = matmul %b, %w : f32[?n, 64]
    return %y
  }
})";

std::shared_ptr<const Model> network() {
  return Model::make(parse(kNetwork, {Tensor::zeros(kF32, {64, 64})}), {.threads = 4});
}

void run(const Model& model, int64_t rows) {
  const std::vector<Tensor> y = model.run({Tensor::zeros(kF32, {rows, 64})});
  if (y[0].values<float>()[0] != 0) std::abort();
}

void run_one_op(int64_t rows) {
  const Tensor x = Tensor::zeros(kF32, {rows, 8});
  const TensorRef ref{kF32, x.dims(), x.data()};
  std::vector<float> y(static_cast<size_t>(rows) * 8);
  run_op(*find_op("exp"), {}, {&ref, 1}, [&](size_t, DType, std::span<const int64_t>) { return y.data(); });
}

/// What `child` makes in children of a process whose other threads do `work` all the time.
void expect_children_end(const std::vector<std::function<void(int)>>& work, const std::function<void()>& child) {
  if (!kMemoryCounts) GTEST_SKIP() << "sanitizer: a child waits for ever for its allocator's locks";
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (const auto& each : work)
    threads.emplace_back([&] {
      for (int i = 0; !stop; ++i) each(i);
    });
  int failed = 0;
  for (int i = 0; i < 60; ++i) {
    const pid_t process = ::fork();
    if (process == 0) {
      ::alarm(60);  // of a child that waits for ever
      child();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(process, &status, 0);
    failed += status != 0;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}

TEST(Fork, AChildRunsTheModelThatOtherThreadsWereRunning) {
  auto model = network();
  const auto runs = [&](int) { run(*model, 256); };
  expect_children_end({runs, runs}, [&] {
    for (int i = 0; i < 3; ++i) run(*model, 256);
    model = nullptr;  // whose threads stayed in the parent
  });
}

TEST(Fork, AChildPlansWhileOthersPlanned) {
  auto model = network();
  const auto plans = [&](int i) { run(*model, 1 + i % 200); };
  expect_children_end({plans, plans}, [&] { run(*model, 300), run(*model, 7); });
}

TEST(Fork, AChildMakesModelsWhileOthersMadeThem) {
  const auto makes = [](int i) { run(*network(), 1 + i % 9); };
  expect_children_end({makes}, [] { run(*network(), 64); });
}

TEST(Fork, AChildRunsSingleOpsWhileOthersRanThem) {
  const auto ops = [](int i) { run_one_op(1 + i % 50); };
  expect_children_end({ops, ops}, [] { run_one_op(3), run_one_op(99); });
}

TEST(Fork, AChildFindsTheStateOfAModelWhole) {
  auto model = Model::make(parse(R"(module @m {
  func @main(%x: f32[64, 64], %v: f32[64, 64]) -> (%v_next: f32[64, 64]) updates [0 = 1] {
    %w = matmul %v, %x : f32[64, 64]
    %v_next = add %w, %x : f32[64, 64]
    return %v_next
  }
})",
                                 {}),
                           {.threads = 2});
  model->set_state(0, Tensor::zeros(kF32, {64, 64}));
  const std::vector<Tensor> x = {Tensor::zeros(kF32, {64, 64})};
  expect_children_end({[&](int) { model->run(x); }, [&](int) { model->state_value(0); }}, [&] {
    model->run(x);
    if (model->state_value(0).count() != 64 * 64) std::abort();
  });
}

TEST(Fork, AChildOfAChildRunsAsWell) {
  auto model = network();
  expect_children_end({[&](int) { run(*model, 256); }}, [&] {
    run(*model, 256);
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop) run(*model, 128);
    });
    const pid_t process = ::fork();
    if (process == 0) {
      ::alarm(60);
      run(*model, 256);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(process, &status, 0);
    stop = true;
    other.join();
    if (status != 0) std::abort();
  });
}

int made_slowly() {
  static const int number = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return 7;
  }();
  return number;
}

TEST(Fork, AChildFindsTheStaticsOfFunctionsMade) {
  std::atomic<bool> begun{false};
  std::thread other([&] {
    begun = true;
    made_slowly();
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(made_slowly());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  other.join();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

}  // namespace
}  // namespace cairn
