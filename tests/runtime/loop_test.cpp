// Loops and branches of static types: planned with the function around them, run in its memory.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "ir/builder.h"
#include "ir/text.h"
#include "runtime/model.h"

namespace cairn {
namespace {

std::shared_ptr<const Model> model(const std::string& function, ModelOptions options = {}) {
  return Model::make(parse("module @m {\n" + function + "\n}\n"), options);
}

/// Whether the plan has all its regions with it.
bool is_planned(const Plan& plan) {
  for (const PlannedStep& step : plan.steps) {
    if (!step.control) continue;
    if (step.bodies.empty()) return false;
    for (const auto& body : step.bodies)
      if (!is_planned(*body)) return false;
  }
  return true;
}
bool is_planned(const Model& model) {
  std::vector<Dims> dims;
  for (const Port& port : model.inputs()) dims.push_back(port.type.shape.sizes());
  return is_planned(*model.plan(dims));
}

std::vector<float> floats(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}
Tensor vector_of(std::vector<float> values) {
  return Tensor::of<float>(kF32, {static_cast<int64_t>(values.size())}, values);
}

/// %a and %b change places and grow by %w in each of %n turns.
const char* kSwap = R"(
  func @main(%a: f32[2], %b: f32[2], %w: f32[2], %n: i64[]) -> (%c: f32[2], %d: f32[2], %a2: f32[2]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %i, %c, %d = while %zero, %a, %b, %w, %n {carried = 3} : i64[], f32[2], f32[2]
      region(%i1: i64[], %a1: f32[2], %b1: f32[2], %w1: f32[2], %n1: i64[]) {
        %more = less %i1, %n1 : bool[]
        yield %more
      }
      region(%i2: i64[], %a2: f32[2], %b2: f32[2], %w2: f32[2], %n2: i64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %sum = add %a2, %w2 : f32[2]
        yield %next, %b2, %sum
      }
    return %c, %d, %a
  })";

TEST(Loop, CarriedValuesChangePlaces) {
  for (const char* engine : {"cpu", "reference", "remote"}) {
    auto loop = model(kSwap, {.engines = {engine}});
    EXPECT_EQ(is_planned(*loop), std::string(engine) != "remote");
    std::vector<float> a{1, 2}, b{10, 20};
    for (int64_t turns = 0; turns < 5; ++turns) {
      auto made = loop->run({vector_of({1, 2}), vector_of({10, 20}), vector_of({100, 200}), Tensor::scalar_i64(turns)});
      EXPECT_EQ(floats(made[0]), a) << engine << " " << turns;
      EXPECT_EQ(floats(made[1]), b) << engine << " " << turns;
      EXPECT_EQ(floats(made[2]), (std::vector<float>{1, 2}));
      std::vector<float> sum{a[0] + 100, a[1] + 200};
      a = std::exchange(b, sum);
    }
  }
}

TEST(Loop, WhatIsTheSameInEveryTurnIsPackedOnce) {
  const char* text = R"(
  func @main(%x: f32[9, 70], %w: f32[70, 70], %n: i64[]) -> (%y: f32[9, 70]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %i, %y = while %zero, %x, %w, %n {carried = 2} : i64[], f32[9, 70]
      region(%i1: i64[], %x1: f32[9, 70], %w1: f32[70, 70], %n1: i64[]) {
        %p = matmul %x1, %w1 : f32[9, 70]
        %m = reduce_max %p {axes = [0, 1]} : f32[]
        %small = less %m, %m : bool[]
        %more = less %i1, %n1 : bool[]
        %goes = or %more, %small : bool[]
        yield %goes
      }
      region(%i2: i64[], %x2: f32[9, 70], %w2: f32[70, 70], %n2: i64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %a = matmul %x2, %w2 {transpose_b = true} : f32[9, 70]
        %b = matmul %a, %w2 : f32[9, 70]
        %c = tanh %b : f32[9, 70]
        yield %next, %c
      }
    return %y
  })";
  std::vector<float> x(9 * 70), w(70 * 70);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) * 0.05f - 0.3f;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 17) * 0.02f - 0.15f;
  auto loop = model(text, {.threads = 2}), reference = model(text, {.engines = {"reference"}});
  std::string kernels;
  const std::vector<Dims> dims{{9, 70}, {70, 70}, {}};
  for (const auto& body : loop->plan(dims)->steps.at(0).bodies)
    for (const PlannedStep& step : body->steps) kernels += step.kernel + "\n";
  EXPECT_EQ(kernels.find("in the run"), std::string::npos) << kernels;
  for (int64_t turns : {0, 1, 2, 5})
    for (float sign : {1.f, -1.f}) {  // other weights in a later run
      for (float& value : w) value *= sign;
      const std::vector<Tensor> inputs{Tensor::of<float>(kF32, {9, 70}, x), Tensor::of<float>(kF32, {70, 70}, w),
                                       Tensor::scalar_i64(turns)};
      const auto found = floats(loop->run(inputs)[0]), wanted = floats(reference->run(inputs)[0]);
      for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-4) << turns << " " << i;
    }
}

TEST(Loop, LoopsAndBranchesInsideAreThereToo) {
  // y = sum over i < 3, j < 2 of (i even ? x : -x)
  auto nested = model(R"(
  func @main(%x: f32[2]) -> (%y: f32[2]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %start = constant {value = f32[2] (0.0, 0.0)} : f32[2]
    %i, %y = while %zero, %start, %x {carried = 2} : i64[], f32[2]
      region(%i1: i64[], %y1: f32[2], %x1: f32[2]) {
        %three = constant {value = i64[] (3)} : i64[]
        %more = less %i1, %three : bool[]
        yield %more
      }
      region(%i2: i64[], %y2: f32[2], %x2: f32[2]) {
        %one = constant {value = i64[] (1)} : i64[]
        %two = constant {value = i64[] (2)} : i64[]
        %none = constant {value = i64[] (0)} : i64[]
        %next = add %i2, %one : i64[]
        %rest = mod %i2, %two : i64[]
        %even = equal %rest, %none : bool[]
        %j, %sum = while %none, %y2, %x2, %even {carried = 2} : i64[], f32[2]
          region(%j1: i64[], %s1: f32[2], %v1: f32[2], %e1: bool[]) {
            %last = constant {value = i64[] (2)} : i64[]
            %again = less %j1, %last : bool[]
            yield %again
          }
          region(%j2: i64[], %s2: f32[2], %v2: f32[2], %e2: bool[]) {
            %step = constant {value = i64[] (1)} : i64[]
            %later = add %j2, %step : i64[]
            %term = if %e2, %v2 : f32[2]
              region(%p: f32[2]) {
                yield %p
              }
              region(%q: f32[2]) {
                %n = neg %q : f32[2]
                yield %n
              }
            %added = add %s2, %term : f32[2]
            yield %later, %added
          }
        yield %next, %sum
      }
    return %y
  })");
  EXPECT_TRUE(is_planned(*nested));
  EXPECT_EQ(floats(nested->run({vector_of({1, 5})})[0]), (std::vector<float>{2, 10}));
}

TEST(Loop, ListsAreCarried) {
  auto loop = model(R"(
  func @main(%x: f32[2], %n: i64[]) -> (%y: f32[?, 2]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %empty = list_make %zero {element = f32[2]} : list<f32[2]>
    %i, %all, %v = while %zero, %empty, %x, %n {carried = 3} : i64[], list<f32[2]>, f32[2]
      region(%i1: i64[], %l1: list<f32[2]>, %v1: f32[2], %n1: i64[]) {
        %more = less %i1, %n1 : bool[]
        yield %more
      }
      region(%i2: i64[], %l2: list<f32[2]>, %v2: f32[2], %n2: i64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %longer = list_push %l2, %v2 : list<f32[2]>
        %twice = add %v2, %v2 : f32[2]
        yield %next, %longer, %twice
      }
    %y = list_stack %all : f32[?, 2]
    return %y
  })");
  for (int64_t turns : {3, 2, 0, 1})
    EXPECT_EQ(loop->run({vector_of({1, 3}), Tensor::scalar_i64(turns)})[0].dims(), (std::vector<int64_t>{turns, 2}));
  EXPECT_EQ(floats(loop->run({vector_of({1, 3}), Tensor::scalar_i64(3)})[0]), (std::vector<float>{1, 3, 2, 6, 4, 12}));
}

TEST(Loop, RunsAtOnceDoNotMeet) {
  auto loop = model(kSwap, {.threads = 1});
  std::vector<std::thread> threads;
  for (int64_t turns = 1; turns < 4; ++turns)
    threads.emplace_back([&, turns] {
      for (int i = 0; i < 200; ++i) {
        auto made = loop->run({vector_of({1, 2}), vector_of({1, 2}), vector_of({1, 1}), Tensor::scalar_i64(2 * turns)});
        EXPECT_EQ(floats(made[0]), (std::vector<float>{1.f + turns, 2.f + turns}));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

/// Begins and ends of steps, loops' included.
class Counter final : public Observer {
 public:
  void plan_begins(const Plan&) override { ++plans; }
  void step_begins(const Plan& plan, size_t step, void* const* buffers) override {
    for (size_t input : plan.steps[step].inputs) EXPECT_NE(buffers[input], nullptr);
    ++begun;
  }
  void step_ends(const Plan& plan, size_t step, void* const* buffers) override {
    for (size_t output : plan.steps[step].outputs) EXPECT_NE(buffers[output], nullptr);
    ++ended;
  }
  int plans = 0, begun = 0, ended = 0;
};

TEST(Loop, ObserversSeeEveryTurn) {
  auto loop = model(kSwap, {.optimise = false});
  Counter counter;
  loop->run({vector_of({1, 2}), vector_of({1, 2}), vector_of({1, 1}), Tensor::scalar_i64(3)}, {.observer = &counter});
  EXPECT_EQ(counter.plans, 1 + 4 + 3);
  EXPECT_EQ(counter.begun, counter.ended);
  EXPECT_GE(counter.begun, 1 + 4 + 3 * 3);
}

TEST(Loop, AFaultInsideNamesItsNode) {
  auto loop = Model::make(parse(R"(module @m {
  source 0 = "tf" "loop/body/div" "Div" "train.py:7"
  func @main(%x: i64[], %n: i64[]) -> (%y: i64[]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %i, %y = while %n, %x, %zero {carried = 2} : i64[], i64[]
      region(%i1: i64[], %y1: i64[], %z1: i64[]) {
        %more = greater %i1, %z1 : bool[]
        yield %more
      }
      region(%i2: i64[], %y2: i64[], %z2: i64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = sub %i2, %one : i64[]
        %q = floor_div %y2, %z2 : i64[] #0
        yield %next, %q
      }
    return %y
  }
})"),
                          {.optimise = false});
  EXPECT_EQ(loop->run({Tensor::scalar_i64(5), Tensor::scalar_i64(0)})[0].values<int64_t>()[0], 5);
  try {
    loop->run({Tensor::scalar_i64(5), Tensor::scalar_i64(1)});
    FAIL();
  } catch (const Error& fault) {
    EXPECT_TRUE(std::string(fault.what()).starts_with("loop/body/div (train.py:7)")) << fault.what();
  }
}

// A region whose op has no right decomposition is planned when it runs, which it may never do.
TEST(Loop, ABodyThatCannotBePlannedMayStand) {
  OpDef row = {.name = "test_wrong_inside", .summary = "x", .inputs = {{"x", Accepts::floats}}};
  row.infer = [](InferContext& context) { context.result(context.dtype(0), context.shape(0)); };
  row.decompose = [](Builder& b, const Node& node) {
    return std::vector<Value*>{b.add("cast", {node.inputs[0]}, {{"dtype", kF64}})};
  };
  register_op(std::move(row));
  auto branch = model(R"(
  func @main(%p: bool[], %x: f32[2]) -> (%y: f32[2]) {
    %y = if %p, %x : f32[2]
      region(%a: f32[2]) {
        %n = neg %a : f32[2]
        yield %n
      }
      region(%b: f32[2]) {
        %w = test_wrong_inside %b : f32[2]
        yield %w
      }
    return %y
  })");
  auto yes = Tensor::of<uint8_t>(kBool, {}, {1}), no = Tensor::of<uint8_t>(kBool, {}, {0});
  EXPECT_EQ(floats(branch->run({yes, vector_of({1, 2})})[0]), (std::vector<float>{-1, -2}));
  EXPECT_THROW(branch->run({no, vector_of({1, 2})}), Error);
}

}  // namespace
}  // namespace cairn
