// Plans: order, groups, shared memory, copies between spaces.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include "engines/cpu/engine.h"
#include "engines/reference/engine.h"
#include "ir/text.h"
#include "plan/context.h"
#include "runtime/model.h"

namespace cairn {
namespace {

// Proposes all nodes of one op as a single group, however far apart they stand, and runs them one after the other.
class Greedy final : public Engine {
 public:
  explicit Greedy(std::string op) : op_(std::move(op)) {}
  const char* name() const override { return "greedy"; }
  std::vector<Group> propose(const Block& block, const Uses& uses) const override {
    std::vector<const Node*> nodes;
    for (const auto& node : block.nodes)
      if (node->is(op_)) nodes.push_back(node.get());
    return {make_group(std::move(nodes), uses)};
  }
  std::optional<std::string> refuses(const Group& group) const override {
    return group.nodes.size() > 1 ? std::nullopt : std::optional<std::string>("one node is too few");
  }
  std::vector<Candidate> candidates(const Group&) const override { return {}; }
  std::unique_ptr<Step> make(const Group& group, MakeContext&) const override {
    struct Nothing final : Step {
      void run(const StepArgs&) const override {}
      std::string kernel() const override { return "greedy"; }
    };
    EXPECT_GT(group.nodes.size(), 1u);
    return std::make_unique<Nothing>();
  }

 private:
  std::string op_;
};

class KeepAll final : public Packer {
 public:
  std::shared_ptr<const void> packed(const Tensor&, const std::string&, size_t, FunctionRef<void(void*)>) override {
    return nullptr;
  }
};

struct Planned {
  std::shared_ptr<const Module> module;
  std::shared_ptr<const Plan> plan;
};

Planned planned(const std::string& function, std::vector<const Engine*> engines, bool reuse = true) {
  static KeepAll packer;
  auto module = std::make_shared<const Module>(parse("module @m {\n" + function + "\n}\n"));
  PlanOptions options{std::move(engines), 1, reuse};
  return {module, make_plan(module, clone(module->main()), options, packer)};
}

std::string kernels(const Plan& plan) {
  std::string text;
  for (const PlannedStep& step : plan.steps) text += (text.empty() ? "" : " ") + step.kernel;
  return text;
}

const std::string kChain = R"(
  func @main(%x: f32[64]) -> (%y: f32[64]) {
    %a = neg %x : f32[64]
    %b = exp %a : f32[64]
    %c = relu %b : f32[64]
    %y = neg %c : f32[64]
    return %y
  })";

TEST(Plan, AChainLivesInTwoBuffersAndWritesTheOutputItself) {
  auto [module, plan] = planned(kChain, {&reference_engine()});
  EXPECT_EQ(kernels(*plan), "reference/neg reference/exp reference/relu reference/neg");
  EXPECT_EQ(plan->arena_bytes.at(&host_memory()), 2u * 256);
  EXPECT_EQ(plan->live_bytes, 2u * 256);
  EXPECT_EQ(plan->buffers[plan->outputs[0]].kind, Buffer::Kind::output);
}

TEST(Plan, WithoutReuseEveryTensorHasItsOwnPlace) {
  EXPECT_EQ(planned(kChain, {&reference_engine()}, false).plan->arena_bytes.at(&host_memory()), 3u * 256);
}

TEST(Plan, AGroupThatWouldStandInTwoPlacesIsDissolved) {
  Greedy greedy("neg");
  EXPECT_EQ(kernels(*planned(kChain, {&greedy, &reference_engine()}).plan),
            "reference/neg reference/exp reference/relu reference/neg");
  const std::string side_by_side = R"(
  func @main(%x: f32[4], %z: f32[4]) -> (%y: f32[4]) {
    %a = neg %x : f32[4]
    %e = exp %z : f32[4]
    %b = neg %z : f32[4]
    %s = add %a, %b : f32[4]
    %y = add %s, %e : f32[4]
    return %y
  })";
  EXPECT_EQ(kernels(*planned(side_by_side, {&greedy, &reference_engine()}).plan),
            "reference/exp greedy reference/add reference/add");
}

TEST(Plan, ViewsCostNothingAndKeepTheirSourceAlive) {
  auto [module, plan] = planned(R"(
  func @main(%x: f32[2, 8]) -> (%y: f32[16], %z: f32[2, 8]) {
    %a = neg %x : f32[2, 8]
    %shape = constant {value = i64[1] (16)} : i64[1]
    %v = reshape %a, %shape : f32[16]
    %b = exp %x : f32[2, 8]
    %z = neg %b : f32[2, 8]
    %w = reshape %b, %shape : f32[16]
    %y = add %v, %w : f32[16]
    return %y, %z
  })",
                                {&reference_engine()});
  EXPECT_EQ(kernels(*plan), "reference/neg reference/exp reference/neg reference/add");
}

TEST(Plan, InputsAndConstantsAreCopiedToOutputs) {
  auto [module, plan] = planned(R"(
  func @main(%x: f32[2]) -> (%y: f32[2], %z: f32[2], %c: f32[1]) {
    %c = constant {value = f32[1] (3.0)} : f32[1]
    return %x, %x, %c
  })",
                                {&reference_engine()});
  EXPECT_EQ(kernels(*plan), "copy copy copy");
}

TEST(Plan, WhatMayStopTheRunComesBeforeUpdates) {
  auto [module, plan] = planned(R"(
  func @main(%a: f32[4], %x: f32[4]) -> (%a: f32[4]) updates [0 = 0] {
    %g = exp %x : f32[4]
    %h = is_finite %g : bool[4]
    assert %h {message = "infinite"}
    %a1 = sub %a, %g : f32[4]
    return %a1
  })",
                                {&reference_engine()});
  EXPECT_EQ(kernels(*plan), "reference/exp reference/is_finite reference/assert reference/sub copy");
}

const std::string kChangedRows = R"(
  func @main(%v: f32[4, 2], %i: i64[1], %u: f32[1, 2]) -> (%v: f32[4, 2], %s: f32[2]) updates [0 = 0] {
    %h = square %v : f32[4, 2]
    %y = scatter_reduce %h, %i, %u : f32[4, 2]
    %s = reduce_sum READ {axes = [0]} : f32[2]
    return %y, %s
  })";

TEST(Plan, WhatIsChangedInPlaceIsMadeInTheMemoryOfTheResult) {
  std::string text = kChangedRows;
  text.replace(text.find("READ"), 4, "%y");
  auto [module, plan] = planned(text, {&cpu_engine(), &reference_engine()});
  EXPECT_EQ(plan->buffers[plan->steps[0].outputs[0]].kind, Buffer::Kind::output);
  EXPECT_EQ(plan->steps[1].inputs[0], plan->steps[1].outputs[0]);
  EXPECT_EQ(kernels(*plan).find("copy"), std::string::npos);
}

TEST(Plan, WhatOnlyTheRestReadsAndIsMadeOfParamsIsMadeThere) {
  auto [module, plan] = planned(R"(
  func @main(%m: f32[64, 4], %t: f32[64, 4], %x: f32[64]) -> (%m: f32[64, 4]) updates [0 = 0] {
    %c = constant {value = f32[] (0.5)} : f32[]
    %d = mul %m, %c : f32[64, 4]
    %w = non_zero %x : i64[?n, 1]
    %v = gather_nd %t, %w : f32[?n, 4]
    %y = scatter_update %d, %w, %v : f32[64, 4]
    return %y
  })",
                                {&cpu_engine(), &reference_engine()});
  ASSERT_TRUE(plan->rest);
  EXPECT_EQ(kernels(*plan), "cpu/non_zero");
  for (const Buffer& buffer : plan->buffers)
    EXPECT_TRUE(buffer.kind != Buffer::Kind::arena || buffer.bytes < size_t{64} * 4 * 4);
}

TEST(Plan, WhatIsReadLaterIsNotOverwrittenEarly) {
  std::string text = kChangedRows;
  text.replace(text.find("READ"), 4, "%v");
  auto [module, plan] = planned(text, {&cpu_engine(), &reference_engine()});
  for (const PlannedStep& step : plan->steps)
    if (&step != &plan->steps.back()) {
      for (size_t output : step.outputs)
        EXPECT_FALSE(plan->buffers[output].kind == Buffer::Kind::output && plan->buffers[output].index == 0)
            << step.kernel;
    }
}

TEST(Plan, UpdatesComeAsSoonAsTheirGradient) {
  auto [module, plan] = planned(R"(
  func @main(%a: f32[64], %b: f32[64], %x: f32[64]) -> (%a: f32[64], %b: f32[64]) updates [0 = 0, 1 = 1] {
    %g = exp %x : f32[64]
    %h = tanh %g : f32[64]
    %a1 = sub %a, %g : f32[64]
    %b1 = sub %b, %h : f32[64]
    return %a1, %b1
  })",
                                {&reference_engine()});
  EXPECT_EQ(kernels(*plan).substr(0, 42), "reference/exp reference/sub reference/tanh");
}

TEST(Plan, WhatMakesMuchOfLittleComesRightBeforeItsReader) {
  auto [module, plan] = planned(R"(
  func @main(%a: f32[8, 4096], %b: f32[8, 4096], %i: i32[32]) -> (%y: f32[32, 4096]) {
    %c = gather %a, %i : f32[32, 4096]
    %d = gather %b, %i : f32[32, 4096]
    %e = exp %c : f32[32, 4096]
    %f = tanh %d : f32[32, 4096]
    %y = add %e, %f : f32[32, 4096]
    return %y
  })",
                                {&reference_engine()});
  EXPECT_EQ(kernels(*plan), "reference/gather reference/exp reference/gather reference/tanh reference/add");
}

// The backward pass makes %d, %e and %c; the collectives of %d and %c update params.
Planned backward_pass() {
  return planned(R"(
  func @main(%a: f32[64], %b: f32[64], %x: f32[64]) -> (%a: f32[64], %b: f32[64]) updates [0 = 0, 1 = 1] {
    %d = exp %x : f32[64]
    %h = all_reduce %d : f32[64]
    %b1 = sub %b, %h : f32[64]
    %e = tanh %d : f32[64]
    %c = neg %e : f32[64]
    %g = all_reduce %c : f32[64]
    %a1 = sub %a, %g : f32[64]
    return %a1, %b1
  })",
                 {&reference_engine()});
}

TEST(Plan, CollectivesGoOnBesideTheStepsThatDoNotNeedThem) {
  auto [module, plan] = backward_pass();
  ASSERT_EQ(kernels(*plan),
            "reference/exp reference/all_reduce reference/tanh reference/neg reference/all_reduce reference/sub "
            "reference/sub copy copy");
  const size_t waits[] = {0, 0, 0, 0, 0, 1, 2, 0, 0};
  for (size_t i = 0; i < plan->steps.size(); ++i) {
    EXPECT_EQ(plan->steps[i].beside, i == 1 || i == 4) << i;
    EXPECT_EQ(plan->steps[i].waits, waits[i]) << i;
  }
}

TEST(Plan, ACollectiveThatTheNextStepWaitsForRunsInItsPlaceAfterThoseBefore) {
  auto [module, plan] = planned(R"(
  func @main(%x: f32[64]) -> (%y: f32[64], %z: f32[64]) {
    %y = all_reduce %x : f32[64]
    %a = exp %x : f32[64]
    %b = all_reduce %a : f32[64]
    %z = neg %b : f32[64]
    return %y, %z
  })",
                                {&reference_engine()});
  ASSERT_EQ(kernels(*plan), "reference/all_reduce reference/exp reference/all_reduce reference/neg");
  EXPECT_TRUE(plan->steps[0].beside);
  EXPECT_FALSE(plan->steps[2].beside);
  EXPECT_EQ(plan->steps[2].waits, 1u);
}

TEST(Plan, WhatACollectiveUsesIsNotOverwrittenWhileItGoesOn) {
  auto [module, plan] = backward_pass();
  const PlannedStep &exchange = plan->steps[1], &last = plan->steps[3];
  for (size_t used : {exchange.inputs[0], exchange.outputs[0]})
    for (size_t made : {plan->steps[2].outputs[0], last.outputs[0]}) {
      const Buffer &a = plan->buffers[used], &b = plan->buffers[made];
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << used << " and " << made;
    }
}

TEST(Plan, ParamsAreUpdatedWhenEveryCollectiveBeforeHasEnded) {
  auto [module, plan] = planned(R"(
  func @main(%a: f32[64], %x: f32[64]) -> (%a: f32[64], %s: f32[64], %r: f32[64]) updates [0 = 0] {
    %d = exp %x : f32[64]
    %h = all_reduce %d : f32[64]
    %e = tanh %d : f32[64]
    %g = all_reduce %e : f32[64]
    %c = neg %e : f32[64]
    %a1 = sub %a, %h : f32[64]
    return %a1, %g, %c
  })",
                                {&reference_engine()});
  for (const PlannedStep& step : plan->steps)
    if (step.kernel == "copy") {
      EXPECT_EQ(step.waits, 2u);
    }
  EXPECT_EQ(std::count_if(plan->steps.begin(), plan->steps.end(), [](const auto& step) { return step.beside; }), 2);
}

TEST(Plan, ACollectiveReducesInPlaceWhereNothingElseReadsItsOperand) {
  auto [module, plan] = planned(R"(
  func @main(%x: f32[64]) -> (%y: f32[64]) {
    %d = exp %x : f32[64]
    %h = all_reduce %d : f32[64]
    %y = neg %h : f32[64]
    return %y
  })",
                                {&reference_engine()});
  ASSERT_EQ(kernels(*plan), "reference/exp reference/all_reduce reference/neg");
  EXPECT_EQ(plan->steps[1].inputs, plan->steps[1].outputs);
}

TEST(Plan, ACollectiveThatFailsHalfWayLeavesParamsAlone) {
  auto [module, plan] = planned(R"(
  func @main(%a: f32[64], %x: f32[64]) -> (%a: f32[64]) updates [0 = 0] {
    %d = exp %x : f32[64]
    %h = all_reduce %d : f32[64]
    return %h
  })",
                                {&reference_engine()});
  EXPECT_EQ(kernels(*plan), "reference/exp reference/all_reduce copy");
}

TEST(Plan, OtherMemorySpacesGetCopiesOnceEach) {
  auto [module, plan] = planned(kChain, {&remote_engine(), &reference_engine()});
  EXPECT_EQ(kernels(*plan), "copy remote/neg remote/exp remote/relu remote/neg copy");
  EXPECT_EQ(plan->arena_bytes.count(&remote_engine().memory()), 1u);
}

TEST(Plan, TheFirstRunKeepsNoMemory) {
  struct Counted final : MemorySpace {
    const char* name() const override { return "counted"; }
    void* allocate(size_t bytes) override { return ++live, host_memory().allocate(bytes); }
    void release(void* data, size_t bytes) override { --live, host_memory().release(data, bytes); }
    void copy_in(void*, const void*, size_t) override {}
    void copy_out(void*, const void*, size_t) override {}
    int live = 0;
  } space;
  Plan plan;
  plan.function = std::make_unique<Function>();
  plan.arena_bytes[&space] = 64;
  ContextPool pool(std::make_shared<PlanBudget>(SIZE_MAX), 0, false);
  for (int kept : {0, 1, 1}) {
    pool.release(pool.take(plan));
    EXPECT_EQ(space.live, kept);
  }
  ContextPool step(std::make_shared<PlanBudget>(SIZE_MAX), 0, true);
  step.release(step.take(plan));
  EXPECT_EQ(space.live, 2);
}

TEST(Plan, WhereDimsChangeAnArenaServesSeveralFirstRuns) {
  const auto budget = std::make_shared<PlanBudget>(SIZE_MAX);
  const auto run_once = [&](size_t bytes) {
    Plan plan;
    plan.function = std::make_unique<Function>();
    plan.arena_bytes[&host_memory()] = bytes;
    ContextPool pool(budget, 0, false);
    pool.release(pool.take(plan));
    return budget->used();
  };
  EXPECT_EQ(run_once(4096), 0u);
  EXPECT_EQ(run_once(8192), 8192u);
  EXPECT_EQ(run_once(6016), 8192u);
  EXPECT_EQ(run_once(64), 8192u);
  EXPECT_EQ(run_once(16384), 18432u);
  EXPECT_EQ(run_once(18432), 18432u);
  const Arena spare = budget->take_spare(18432, 18432);
  EXPECT_EQ(spare.bytes, 18432u);
  std::free(spare.data);
  EXPECT_EQ(budget->used(), 0u);
}

TEST(Plan, AtOtherSizesChoicesAreTakenOver) {
  static KeepAll packer;
  const auto module = std::make_shared<const Module>(parse(R"(module @m {
  func @main(%x: f32[?n, 16], %w: f32[16, 64], %b: f32[64]) -> (%r: f32[?n, 64], %s: f32[64]) {
    %a = matmul %x, %w : f32[?n, 64]
    %c = tanh %b : f32[64]
    %d = add %a, %c : f32[?n, 64]
    %r = exp %d : f32[?n, 64]
    %s = reduce_sum %r {axes = [0]} : f32[64]
    return %r, %s
  }
})"));
  const Program program(module, clone(module->main()), {{&cpu_engine(), &reference_engine()}, 1}, packer);
  const auto plan_at = [&](int64_t n) { return program.plan(std::vector<Dims>{{n, 16}, {16, 64}, {64}}); };
  const auto step_of = [](const Plan& plan, const char* op) {
    for (const PlannedStep& step : plan.steps)
      if (step.group.last().is(op)) return step.step.get();
    return static_cast<const Step*>(nullptr);
  };
  const auto first = plan_at(100), second = plan_at(120);
  EXPECT_EQ(first->sibling, nullptr);
  EXPECT_EQ(second->sibling, first->function);
  EXPECT_EQ(step_of(*second, "tanh"), step_of(*first, "tanh"));
  EXPECT_NE(step_of(*second, "reduce_sum"), step_of(*first, "reduce_sum"));
  EXPECT_EQ(second->steps.size(), first->steps.size());
  for (const PlannedStep& step : second->steps)
    for (const Value* output : step.group.outputs) EXPECT_NE(to_string(output->type), "f32[100, 64]");
  EXPECT_EQ(plan_at(201)->sibling, nullptr) << "a size of another magnitude";
  EXPECT_EQ(plan_at(1)->sibling, nullptr) << "a size that is broadcast";
}

TEST(Plan, EachMagnitudeOfSizesHasChoicesAndDecompositionsToTakeOver) {
  static KeepAll packer;
  const auto module = std::make_shared<const Module>(parse(R"(module @m {
  func @main(%x: f64[?n, 16]) -> (%y: f64[?n, 16]) {
    %y = mish %x : f64[?n, 16]
    return %y
  }
})"));
  const Program program(module, clone(module->main()), {{&cpu_engine(), &reference_engine()}, 1}, packer);
  const auto plan_at = [&](int64_t n) { return program.plan(std::vector<Dims>{{n, 16}}); };
  const auto first = plan_at(100), large = plan_at(1000);
  EXPECT_FALSE(first->decomposed.empty());
  EXPECT_EQ(large->sibling, nullptr);
  for (const auto& [n, earlier] : {std::pair{120, first}, {1100, large}}) {
    const auto plan = plan_at(n);
    EXPECT_EQ(plan->sibling, earlier->function) << n;
    ASSERT_EQ(plan->steps.size(), earlier->steps.size());
    for (size_t i = 0; i < plan->steps.size(); ++i) EXPECT_EQ(plan->steps[i].kernel, earlier->steps[i].kernel);
  }
}

TEST(Plan, TheIdNamesKernelsAndShapes) {
  auto id = [](const std::string& text) { return planned(text, {&reference_engine()}).plan->id(); };
  EXPECT_EQ(id(kChain), id(kChain));
  std::string other = kChain;
  while (other.find("64") != std::string::npos) other.replace(other.find("64"), 2, "32");
  EXPECT_NE(id(kChain), id(other));
}

}  // namespace
}  // namespace cairn
