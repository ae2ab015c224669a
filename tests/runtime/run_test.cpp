// Models run: control flow, dims born from data, lists, memory spaces, threads, cancel, errors.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "ir/text.h"
#include "runtime/single_op.h"

namespace cairn {
namespace {

std::shared_ptr<const Model> model(const std::string& text, ModelOptions options = {}) {
  return Model::make(parse(text), options);
}

std::string with_main(const std::string& function) { return "module @m {\n" + function + "\n}\n"; }

Tensor counting(std::vector<int64_t> dims) {
  Tensor tensor = Tensor::zeros(kF32, std::move(dims));
  auto values = tensor.mutable_values<float>();
  std::iota(values.begin(), values.end(), 1.f);
  return tensor;
}

std::vector<float> floats(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

const std::string kMlp = with_main(R"(
  func @main(%x: f32[?n, 2]) -> (%y: f32[?n, 3], %x2: f32[?n, 2]) {
    %w = constant {value = f32[2, 3] (1.0, 0.0, -1.0, 0.5, 2.0, 1.0)} : f32[2, 3]
    %b = constant {value = f32[3] (0.5, -9.0, 0.0)} : f32[3]
    %m = matmul %x, %w : f32[?n, 3]
    %a = add %m, %b : f32[?n, 3]
    %y = relu %a : f32[?n, 3]
    return %y, %x
  })");

TEST(Run, AnyBatchWithoutOptions) {
  auto mlp = model(kMlp);
  for (int64_t n : {1, 3, 1, 0}) {
    auto outputs = mlp->run({counting({n, 2})});
    EXPECT_EQ(outputs[0].dims(), (std::vector<int64_t>{n, 3}));
    if (n) {
      EXPECT_EQ(floats(outputs[0])[0], 2.5f);
    }
    EXPECT_TRUE(outputs[1].same_bits(counting({n, 2})));
  }
}

// Runs a model whose variables stay with the caller; returns the outputs, `variables` hold the new contents.
std::vector<Tensor> run_bound(const Model& model, std::vector<Tensor>& variables) {
  std::vector<TensorRef> refs;
  for (Tensor& tensor : variables) refs.push_back({tensor.dtype(), tensor.dims(), tensor.mutable_data()});
  std::vector<Tensor> outputs(model.outputs().size());
  model.run(refs, [&](size_t i, DType dtype, std::span<const int64_t> dims) {
    outputs[i] = Tensor::uninitialized(dtype, {dims.begin(), dims.end()});
    return outputs[i].mutable_data();
  });
  return outputs;
}

TEST(Run, VariablesOfTheCallerAreUpdatedWhereTheyLie) {
  // %a and %b change places, %c is read after its successor is known, %d is handed out as it was.
  const char* text = R"(
  func @main(%a: f32[3], %b: f32[3], %c: f32[3], %d: f32[3]) -> (%y: f32[3], %z: f32[3], %a2: f32[3], %b2: f32[3],
                                                                 %c2: f32[3], %d2: f32[3]) updates [2 = 0, 3 = 1, 4 = 2, 5 = 3] {
    %c2 = add %c, %a : f32[3]
    %y = mul %c2, %c : f32[3]
    %d2 = neg %d : f32[3]
    return %y, %d, %b, %a, %c2, %d2
  })";
  for (const char* engine : {"reference", "cpu", "remote"}) {
    auto made = model(with_main(text), {.engines = {engine}, .bind_state = true});
    ASSERT_EQ(made->inputs().size(), 4u);
    EXPECT_TRUE(made->input_use(0).updates);
    std::vector<Tensor> variables;
    for (int i = 0; i < 4; ++i) variables.push_back(Tensor::of<float>(kF32, {3}, {1.f + i, 2.f + i, 3.f + i}));
    const void* where = variables[2].data();
    auto outputs = run_bound(*made, variables);
    EXPECT_EQ(variables[2].data(), where);
    EXPECT_EQ(floats(outputs[0]), (std::vector<float>{12, 24, 40})) << engine;
    EXPECT_EQ(floats(outputs[1]), (std::vector<float>{4, 5, 6})) << engine;
    EXPECT_EQ(floats(variables[0]), (std::vector<float>{2, 3, 4})) << engine;
    EXPECT_EQ(floats(variables[1]), (std::vector<float>{1, 2, 3})) << engine;
    EXPECT_EQ(floats(variables[2]), (std::vector<float>{4, 6, 8})) << engine;
    EXPECT_EQ(floats(variables[3]), (std::vector<float>{-4, -5, -6})) << engine;
  }
}

TEST(Run, ARandomStateOfTheCallerAdvances) {
  auto made = model(with_main(R"(
  func @main(%state: rng) -> (%y: f32[4], %next: rng) updates [1 = 0] {
    %shape = constant {value = i64[1] (4)} : i64[1]
    %next, %y = random_uniform %state, %shape {dtype = f32} : rng, f32[4]
    return %y, %next
  })"),
                    {.bind_state = true});
  EXPECT_TRUE(made->input_use(0).random);
  std::vector<Tensor> state{Tensor::of<uint64_t>(kU64, {3}, {7, 0, 0})};
  auto first = run_bound(*made, state);
  EXPECT_EQ(state[0].values<uint64_t>()[1], 1u);
  auto second = run_bound(*made, state);
  EXPECT_FALSE(first[0].same_bits(second[0]));
}

TEST(Run, EveryEngineAgrees) {
  Tensor x = counting({5, 2});
  auto expected = model(kMlp, {.engines = {"reference"}})->run({x});
  for (const char* engine : {"cpu", "remote"}) {
    auto outputs = model(kMlp, {.engines = {engine}})->run({x});
    for (size_t i = 0; i < floats(expected[0]).size(); ++i)
      EXPECT_NEAR(floats(outputs[0])[i], floats(expected[0])[i], 1e-6);
  }
  auto nothing = model(kMlp, {.engines = {"null"}})->run({x});
  EXPECT_EQ(floats(nothing[0]), std::vector<float>(15, 0.f));
}

TEST(Run, WhileCarriesValuesOfGrowingSize) {
  auto loop = model(with_main(R"(
  func @main(%x: f32[?], %n: i64[]) -> (%y: f32[?]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %i, %y, %end = while %zero, %x, %n {carried = 3} : i64[], f32[?], i64[]
      region(%i1: i64[], %v1: f32[?], %n1: i64[]) {
        %more = less %i1, %n1 : bool[]
        yield %more
      }
      region(%i2: i64[], %v2: f32[?], %n2: i64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %twice = concat %v2, %v2 {axis = 0} : f32[?]
        yield %next, %twice, %n2
      }
    %r = neg %y : f32[?]
    return %r
  })"));
  auto outputs = loop->run({counting({2}), Tensor::scalar_i64(2)});
  EXPECT_EQ(floats(outputs[0]), (std::vector<float>{-1, -2, -1, -2, -1, -2, -1, -2}));
  EXPECT_EQ(loop->run({counting({1}), Tensor::scalar_i64(0)})[0].dims(), std::vector<int64_t>{1});
}

TEST(Run, IfTakesOneBranch) {
  auto branch = model(with_main(R"(
  func @main(%p: bool[], %x: f32[2]) -> (%y: f32[2]) {
    %y = if %p, %x : f32[2]
      region(%a: f32[2]) {
        %n = neg %a : f32[2]
        yield %n
      }
      region(%b: f32[2]) {
        yield %b
      }
    return %y
  })"));
  EXPECT_EQ(floats(branch->run({Tensor::of<uint8_t>(kBool, {}, {1}), counting({2})})[0]), (std::vector<float>{-1, -2}));
  EXPECT_EQ(floats(branch->run({Tensor::of<uint8_t>(kBool, {}, {0}), counting({2})})[0]), (std::vector<float>{1, 2}));
}

TEST(Run, ASegmentEndsWhereDimsAreBorn) {
  auto nonzero = model(with_main(R"(
  func @main(%x: f32[?, 2]) -> (%y: f32[?, 2], %s: f32[?, 2]) {
    %zero = constant {value = f32[] (2.0)} : f32[]
    %mask = greater %x, %zero : bool[?, 2]
    %where = non_zero %mask : i64[?, 2]
    %f = cast %where {dtype = f32} : f32[?, 2]
    %y = add %f, %f : f32[?, 2]
    %s = neg %x : f32[?, 2]
    return %y, %s
  })"));
  for (int repeat = 0; repeat < 2; ++repeat) {
    auto outputs = nonzero->run({counting({2, 2})});
    EXPECT_EQ(outputs[0].dims(), (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(floats(outputs[0]), (std::vector<float>{2, 0, 2, 2}));
    EXPECT_EQ(floats(outputs[1]), (std::vector<float>{-1, -2, -3, -4}));
  }
  EXPECT_EQ(nonzero->run({Tensor::zeros(kF32, {3, 2})})[0].dims(), (std::vector<int64_t>{0, 2}));
}

TEST(Run, ListsLiveThroughLoops) {
  auto squares = model(with_main(R"(
  func @main(%x: f32[2]) -> (%y: f32[?, 2]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %list = list_make %zero {element = f32[2]} : list<f32[2]>
    %i, %v, %all = while %zero, %x, %list {carried = 3} : i64[], f32[2], list<f32[2]>
      region(%i1: i64[], %v1: f32[2], %l1: list<f32[2]>) {
        %three = constant {value = i64[] (3)} : i64[]
        %more = less %i1, %three : bool[]
        yield %more
      }
      region(%i2: i64[], %v2: f32[2], %l2: list<f32[2]>) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %square = mul %v2, %v2 : f32[2]
        %longer = list_push %l2, %square : list<f32[2]>
        yield %next, %square, %longer
      }
    %y = list_stack %all : f32[?, 2]
    return %y
  })"));
  EXPECT_EQ(floats(squares->run({counting({2})})[0]), (std::vector<float>{1, 4, 1, 16, 1, 256}));
}

TEST(Run, VariablesKeepTheirContentBetweenRuns) {
  auto counter = model(with_main(R"(
  func @main(%x: f32[2]) -> (%y: f32[2]) {
    %v = variable {name = total, type = f32[2]} : resource<f32[2]>
    %old = read_variable %v : f32[2]
    %y = add %old, %x : f32[2]
    assign_variable %v, %y
    return %y
  })"));
  ASSERT_EQ(counter->state().size(), 1u);
  EXPECT_EQ(counter->state()[0].name, "total");
  EXPECT_EQ(counter->inputs().size(), 1u);
  EXPECT_THROW(counter->run({counting({2})}), Error);
  EXPECT_THROW(counter->set_state(0, counting({3})), Error);
  counter->set_state(0, Tensor::zeros(kF32, {2}));
  EXPECT_EQ(floats(counter->run({counting({2})})[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(counter->run({counting({2})})[0]), (std::vector<float>{2, 4}));
  EXPECT_EQ(floats(counter->state_value(0)), (std::vector<float>{2, 4}));
}

TEST(Run, RandomStateContinuesAndCanBeSetBack) {
  auto random = model(with_main(R"(
  func @main(%s: rng) -> (%t: rng, %y: f32[4]) updates [0 = 0] {
    %shape = constant {value = i64[1] (4)} : i64[1]
    %t, %y = random_uniform %s, %shape : rng, f32[4]
    return %t, %y
  })"));
  ASSERT_EQ(random->state().size(), 1u);
  Tensor start = random->state_value(0);
  auto first = random->run({}), second = random->run({});
  EXPECT_FALSE(first[0].same_bits(second[0]));
  random->set_state(0, start);
  EXPECT_TRUE(random->run({})[0].same_bits(first[0]));
}

TEST(Run, IsSafeFromManyThreads) {
  auto mlp = model(kMlp, {.threads = 2});
  auto expected = mlp->run({counting({4, 2})});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        if (!mlp->run({counting({4, 2})})[0].same_bits(expected[0])) ++wrong;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Run, RefusesWhatDoesNotFit) {
  auto mlp = model(kMlp);
  auto message = [&](std::vector<Tensor> inputs) {
    try {
      mlp->run(inputs);
    } catch (const Error& fault) {
      return std::string(fault.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message({counting({4, 3})}), "x: input has shape [4, 3], the model takes [?n, 2]");
  EXPECT_EQ(message({counting({4})}), "x: input has shape [4], the model takes [?n, 2]");
  EXPECT_EQ(message({Tensor::zeros(kF64, {1, 2})}), "x: input is f64, the model takes f32");
  EXPECT_EQ(message({}), "the model has 1 inputs, 0 are given");
}

TEST(Run, StopsWhenCancelled) {
  auto mlp = model(kMlp);
  std::atomic<bool> cancel = true;
  Tensor x = counting({1, 2});
  EXPECT_THROW(mlp->run({x}, {.cancel = &cancel}), Error);
}

TEST(RunOp, ServesAnyOpFromItsRow) {
  Tensor x = counting({2, 3});
  Tensor out;
  TensorRef ref{kF32, x.dims(), x.data()};
  for (int repeat = 0; repeat < 2; ++repeat) {
    run_op(op_named("reduce_sum"), {{"axes", std::vector<int64_t>{1}}}, {&ref, 1},
           [&](size_t, DType dtype, std::span<const int64_t> dims) {
             out = Tensor::uninitialized(dtype, {dims.begin(), dims.end()});
             return out.mutable_data();
           });
    EXPECT_EQ(floats(out), (std::vector<float>{6, 15}));
  }
}

}  // namespace
}  // namespace cairn
