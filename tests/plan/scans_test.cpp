// Loops over lists of known lengths become scans of rows: same results, no lists left, sums behind the loop.
#include "plan/scans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "autodiff/differentiate.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "runtime/model.h"

namespace cairn {
namespace {

/// Kernels of all steps, those of bodies in brackets.
std::string kernels_of(const Plan& plan) {
  std::string text;
  for (const PlannedStep& step : plan.steps) {
    text += (text.empty() ? "" : " ") + step.kernel;
    for (const auto& body : step.bodies) text += " [" + kernels_of(*body) + "]";
  }
  return text;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

Tensor numbers(const std::vector<int64_t>& dims, uint32_t seed) {
  Tensor tensor = Tensor::zeros(kF32, dims);
  std::mt19937 random(seed);
  for (float& x : tensor.mutable_values<float>()) x = std::uniform_real_distribution<float>(-1, 1)(random);
  return tensor;
}

/// Runs on engines that make scans, and where lists stay; checks that the results agree. The kernels of the first.
std::string check(const Module& module, const std::vector<Tensor>& inputs) {
  const auto fast = Model::make(clone(module), {.threads = 1}),
             slow = Model::make(clone(module), {.engines = {"remote"}});
  const std::vector<Tensor> a = fast->run(inputs), b = slow->run(inputs);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].type(), b[i].type()) << i;
    if (a[i].dims() != b[i].dims() || a[i].dtype() != kF32) continue;
    for (int64_t k = 0; k < a[i].count(); ++k)
      EXPECT_NEAR(a[i].values<float>()[static_cast<size_t>(k)], b[i].values<float>()[static_cast<size_t>(k)], 1e-4)
          << "result " << i << " element " << k;
  }
  std::vector<Dims> dims;
  for (const Tensor& input : inputs) dims.push_back(input.dims());
  return kernels_of(*fast->plan(dims));
}

/// h = tanh(x[t] + h * w + b) for each t, all of them in y; `place` says which row of x turn t takes, `batch` its rows.
std::string recurrent(int64_t turns, const std::string& batch, const std::string& place = "identity %i2 : i64[]") {
  std::string text = R"(
  func @main(%x: f32[T, B, 3], %w: f32[3, 3], %b: f32[3]) -> (%y: f32[?, B, 3]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %none = constant {value = f32[1, 3] (0.0, 0.0, 0.0)} : f32[1, 3]
    %first = gather %x, %zero : f32[B, 3]
    %start = mul %first, %none : f32[B, 3]
    %empty = list_make %zero {element = f32[B, 3]} : list<f32[B, 3]>
    %i, %h, %all = while %zero, %start, %empty, %x, %w, %b {carried = 3} : i64[], f32[B, 3], list<f32[B, 3]>
      region(%i1: i64[], %h1: f32[B, 3], %l1: list<f32[B, 3]>, %x1: f32[T, B, 3], %w1: f32[3, 3], %b1: f32[3]) {
        %last = constant {value = i64[] (T)} : i64[]
        %more = less %i1, %last : bool[]
        yield %more
      }
      region(%i2: i64[], %h2: f32[B, 3], %l2: list<f32[B, 3]>, %x2: f32[T, B, 3], %w2: f32[3, 3], %b2: f32[3]) {
        %one = constant {value = i64[] (1)} : i64[]
        %end = constant {value = i64[] (T)} : i64[]
        %two = constant {value = i64[] (2)} : i64[]
        %next = add %i2, %one : i64[]
        %left = sub %end, %next : i64[]
        %place = PLACE
        %row = gather %x2, %place : f32[B, 3]
        %p = matmul %h2, %w2 : f32[B, 3]
        %q = add %p, %b2 : f32[B, 3]
        %s = add %q, %row : f32[B, 3]
        %new = tanh %s : f32[B, 3]
        %longer = list_push %l2, %new : list<f32[B, 3]>
        yield %next, %new, %longer
      }
    %y = list_stack %all : f32[?, B, 3]
    return %y
  })";
  const auto put = [&](const std::string& name, const std::string& value) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  };
  put("PLACE", place);
  put("(T)", "(" + std::to_string(turns) + ")");
  put("[T,", "[" + std::to_string(turns) + ",");
  put(" B,", " " + batch + ",");
  put("[B,", "[" + batch + ",");
  return "module @m {\n" + text + "\n}\n";
}

TEST(Scans, AListThatALoopFillsIsOneTensor) {
  for (const int64_t turns : {1, 2, 5}) {
    const std::string kernels =
        check(parse(recurrent(turns, "2")), {numbers({turns, 2, 3}, 1), numbers({3, 3}, 2), numbers({3}, 3)});
    EXPECT_EQ(count(kernels, "list_"), 0u) << kernels;
    EXPECT_EQ(count(kernels, "while"), 0u) << kernels;
    EXPECT_EQ(count(kernels, "gather"), 0u) << kernels;
    EXPECT_EQ(count(kernels, "cpu/slice "), turns > 1 ? 1u : 0u) << "the row of the start alone: " << kernels;
  }
}

TEST(Scans, RowsMayBeReadFromTheLastToTheFirst) {
  const std::string kernels = check(parse(recurrent(4, "2", "identity %left : i64[]")),
                                    {numbers({4, 2, 3}, 1), numbers({3, 3}, 2), numbers({3}, 3)});
  EXPECT_EQ(count(kernels, "scan"), 1u) << kernels;
}

TEST(Scans, AnIndexThatIsNoCounterStays) {
  const std::string kernels = check(parse(recurrent(4, "2", "mod %i2, %two : i64[]")),
                                    {numbers({4, 2, 3}, 1), numbers({3, 3}, 2), numbers({3}, 3)});
  EXPECT_EQ(count(kernels, "scan ["), 1u) << kernels;
  EXPECT_EQ(count(kernels, "gather"), 1u) << kernels;
}

/// The gradients of the sum of squares of the result, by all inputs, behind it.
Module with_gradients(const std::string& text) {
  Module module = parse(text);
  Function& main = module.main();
  Builder b(main.body);
  Value* loss = b.add("square", {main.body.results[0]});
  std::vector<Value*> wanted;
  for (const auto& param : main.body.params) wanted.push_back(param.get());
  for (Value* gradient : append_gradients(module, main, {loss}, {nullptr}, wanted)) {
    main.body.results.push_back(gradient);
    main.result_names.push_back("d" + std::to_string(main.body.results.size()));
  }
  return module;
}

TEST(Scans, TheWayBackReadsRowsAndSumsBehindTheLoop) {
  for (const char* place : {"identity %i2 : i64[]", "identity %left : i64[]"})
    for (const int64_t turns : {1, 2, 5}) {
      const std::string kernels = check(with_gradients(recurrent(turns, "2", place)),
                                        {numbers({turns, 2, 3}, 1), numbers({3, 3}, 2), numbers({3}, 3)});
      EXPECT_EQ(count(kernels, "list_"), 0u) << kernels;
      EXPECT_EQ(count(kernels, "while"), 0u) << kernels;
      EXPECT_EQ(count(kernels, "scatter"), 1u) << "of the first row, which no loop takes: " << kernels;
      EXPECT_EQ(count(kernels, "cpu/tile"), 3u) << "forward, back, and one for all turns: " << kernels;
    }
}

TEST(Scans, ProductsOfRoundedRowsAreSummedBehindTheLoopInF32) {
  const std::string text = R"(module @m {
  func @main(%x: f32[5, 4, 3], %y: f32[5, 4, 7]) -> (%sum: f32[3, 7], %level: f32[7]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %n = constant {value = f32[] (0)} : f32[]
    %d = constant {value = i64[2] (3, 7)} : i64[2]
    %e = constant {value = i64[1] (7)} : i64[1]
    %start = broadcast_to %n, %d : f32[3, 7]
    %flat = broadcast_to %n, %e : f32[7]
    %i, %sum, %level = while %zero, %start, %flat, %x, %y {carried = 3} : i64[], f32[3, 7], f32[7]
      region(%i1: i64[], %s1: f32[3, 7], %l1: f32[7], %x1: f32[5, 4, 3], %y1: f32[5, 4, 7]) {
        %last = constant {value = i64[] (5)} : i64[]
        %more = less %i1, %last : bool[]
        yield %more
      }
      region(%i2: i64[], %s2: f32[3, 7], %l2: f32[7], %x2: f32[5, 4, 3], %y2: f32[5, 4, 7]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %xt = gather %x2, %i2 : f32[4, 3]
        %yt = gather %y2, %i2 : f32[4, 7]
        %tanh = tanh %yt : f32[4, 7]
        %xs = cast %xt {dtype = f16} : f16[4, 3]
        %ys = cast %tanh {dtype = f16} : f16[4, 7]
        %xw = cast %xs {dtype = f32} : f32[4, 3]
        %yw = cast %ys {dtype = f32} : f32[4, 7]
        %p = matmul %xw, %yw {transpose_a = true} : f32[3, 7]
        %ps = cast %p {dtype = f16} : f16[3, 7]
        %pw = cast %ps {dtype = f32} : f32[3, 7]
        %before = cast %s2 {dtype = f16} : f16[3, 7]
        %beforew = cast %before {dtype = f32} : f32[3, 7]
        %all = add %beforew, %pw : f32[3, 7]
        %alls = cast %all {dtype = f16} : f16[3, 7]
        %sum2 = cast %alls {dtype = f32} : f32[3, 7]
        %r = reduce_sum %yw {axes = [0]} : f32[7]
        %rs = cast %r {dtype = f16} : f16[7]
        %rw = cast %rs {dtype = f32} : f32[7]
        %level2 = add %l2, %rw : f32[7]
        yield %next, %sum2, %level2
      }
    return %sum, %level
  } })";
  std::vector<Tensor> inputs{numbers({5, 4, 3}, 1), Tensor::zeros(kF32, {5, 4, 7})};
  for (size_t i = 0; i < 140; ++i) inputs[1].mutable_values<float>()[i] = i % 3 == 0 ? 20.f : i % 3 == 1 ? -20.f : 0.f;
  for (float& each : inputs[0].mutable_values<float>()) each = std::round(4 * each);  // products are whole numbers
  const std::string kernels = check(parse(text), inputs);
  EXPECT_EQ(count(kernels, "list"), 0) << kernels;
  const std::string body = kernels.substr(kernels.find('['), kernels.find(']') - kernels.find('['));
  EXPECT_EQ(count(body, "tile") + count(body, "product") + count(body, "reduce"), 0) << kernels;
  EXPECT_NE(kernels.find("f16 to f32"), std::string::npos) << kernels;
}

TEST(Scans, ElementsOfDimsThatTheRunTells) {
  const Module module = with_gradients(recurrent(3, "?n"));
  for (const int64_t batch : {1, 4}) {
    const std::string kernels = check(module, {numbers({3, batch, 3}, 1), numbers({3, 3}, 2), numbers({3}, 3)});
    EXPECT_EQ(count(kernels, "list_"), 0u) << kernels;
    EXPECT_EQ(count(kernels, "segment_reduce") + count(kernels, "scatter"), 1u)
        << "of the first row, which no loop takes: " << kernels;
  }
}

/// Sets element PLACE of a list of three in each turn, from the elements of another; FLAGS and RESULT follow.
std::string setting(const std::string& place, const std::string& size, const std::string& flags,
                    const std::string& result) {
  std::string text = R"(module @m {
  func @main(%x: f32[3, 2]) -> (%y: f32[?, 2]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %two = constant {value = i64[] (2)} : i64[]
    %size = constant {value = i64[] (SIZE)} : i64[]
    %from = list_unstack %x : list<f32[2]>
    %to = list_make %size {element = f32[2]} : list<f32[2]>
    %i, %all = while %zero, %to, %from {carried = 2} : i64[], list<f32[2]>
      region(%i1: i64[], %l1: list<f32[2]>, %f1: list<f32[2]>) {
        %three = constant {value = i64[] (3)} : i64[]
        %more = less %i1, %three : bool[]
        yield %more
      }
      region(%i2: i64[], %l2: list<f32[2]>, %f2: list<f32[2]>) {
        %one = constant {value = i64[] (1)} : i64[]
        %end = constant {value = i64[] (2)} : i64[]
        %next = add %i2, %one : i64[]
        %left = sub %end, %i2 : i64[]
        %half = mod %i2, %end : i64[]
        %e = list_get %f2, %i2 : f32[2]
        %n = neg %e : f32[2]
        %set = list_set %l2, PLACE, %n FLAGS : list<f32[2]>
        yield %next, %set
      }
    RESULT
    return %y
  }
})";
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"PLACE", place}, {"SIZE", size}, {"FLAGS", flags}, {"RESULT", result}})
    text.replace(text.find(name), name.size(), value);
  return text;
}

TEST(Scans, ElementsMayBeSetInEitherOrder) {
  const std::string stack = "%y = list_stack %all : f32[?, 2]";
  for (const char* place : {"%i2", "%left"}) {
    EXPECT_EQ(count(check(parse(setting(place, "3", "", stack)), {numbers({3, 2}, 1)}), "list_"), 0u) << place;
    EXPECT_EQ(
        count(check(parse(setting(place, "0", "{grow = true, add = true}", stack)), {numbers({3, 2}, 1)}), "list_"),
        0u);
  }
  EXPECT_GT(count(check(parse(setting("%i2", "4", "", stack)), {numbers({3, 2}, 1)}), "list_set"), 0u)
      << "one is left unset";
  EXPECT_GT(count(check(parse(setting("%half", "2", "", stack)), {numbers({3, 2}, 1)}), "list_set"), 0u)
      << "one is set twice";
}

TEST(Scans, OneElementOrFewerAreTakenFromTheRows) {
  const std::string one = R"(%e0 = list_get %all, %two : f32[2]
    %dims = constant {value = i64[2] (1, 2)} : i64[2]
    %y = reshape %e0, %dims : f32[1, 2])";
  EXPECT_EQ(count(check(parse(setting("%i2", "3", "", one)), {numbers({3, 2}, 1)}), "list_"), 0u);
  const std::string fewer = R"(%shorter = list_resize %all, %two : list<f32[2]>
    %y = list_stack %shorter : f32[?, 2])";
  EXPECT_EQ(count(check(parse(setting("%i2", "3", "", fewer)), {numbers({3, 2}, 1)}), "list_"), 0u);
  const std::string longer = R"(%more = list_push %all, %from0 : list<f32[2]>
    %y = list_stack %more : f32[?, 2])";
  const std::string with = "%from0 = list_get %from, %zero : f32[2]\n    " + longer;
  EXPECT_EQ(count(check(parse(setting("%i2", "3", "", with)), {numbers({3, 2}, 1)}), "scan"), 1u);
}

TEST(Scans, AListWithoutElementsMayBeReadBehindItsEnd) {
  const std::string kernels = check(parse(R"(module @m {
  func @main(%x: f32[3, 2]) -> (%y: f32[?, 2], %z: f32[?, 2]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %none = list_make %zero {element = f32[2]} : list<f32[2]>
    %i, %same, %all = while %zero, %none, %none, %x {carried = 3} : i64[], list<f32[2]>, list<f32[2]>
      region(%i1: i64[], %s1: list<f32[2]>, %l1: list<f32[2]>, %x1: f32[3, 2]) {
        %three = constant {value = i64[] (3)} : i64[]
        %more = less %i1, %three : bool[]
        yield %more
      }
      region(%i2: i64[], %s2: list<f32[2]>, %l2: list<f32[2]>, %x2: f32[3, 2]) {
        %one = constant {value = i64[] (1)} : i64[]
        %nothing = constant {value = i64[] (0)} : i64[]
        %next = add %i2, %one : i64[]
        %row = gather %x2, %i2 : f32[2]
        %e = list_get %s2, %i2, %row {grow = true} : f32[2]
        %sum = add %e, %row : f32[2]
        %longer = list_push %l2, %sum : list<f32[2]>
        %shorter = list_resize %s2, %nothing : list<f32[2]>
        yield %next, %shorter, %longer
      }
    %first = gather %x, %zero : f32[2]
    %one_more = list_push %same, %first : list<f32[2]>
    %y = list_stack %one_more : f32[?, 2]
    %z = list_stack %all : f32[?, 2]
    return %y, %z
  }
})"),
                                    {numbers({3, 2}, 1)});
  EXPECT_EQ(count(kernels, "scan"), 1u) << kernels;
}

/// Adds the rows of x in element 0 of a list of one, which BEGIN makes.
std::string summing(const std::string& begin, const std::string& index) {
  std::string text = R"(module @m {
  func @main(%x: f32[3, 2]) -> (%y: f32[?, 2], %z: f32[2]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %size = constant {value = i64[] (1)} : i64[]
    %first = gather %x, %zero : f32[2]
    %empty = list_make %size {element = f32[2]} : list<f32[2]>
    BEGIN
    %i, %sum = while %zero, %start, %x {carried = 2} : i64[], list<f32[2]>
      region(%i1: i64[], %s1: list<f32[2]>, %x1: f32[3, 2]) {
        %three = constant {value = i64[] (3)} : i64[]
        %more = less %i1, %three : bool[]
        yield %more
      }
      region(%i2: i64[], %s2: list<f32[2]>, %x2: f32[3, 2]) {
        %one = constant {value = i64[] (1)} : i64[]
        %three = constant {value = i64[] (3)} : i64[]
        %none = constant {value = i64[] (0)} : i64[]
        %third = floor_div %i2, %three : i64[]
        %next = add %i2, %one : i64[]
        %row = gather %x2, %i2 : f32[2]
        %before = list_get %s2, INDEX : f32[2]
        %after = add %before, %row : f32[2]
        %nothing = list_set %s2, %none, %row : list<f32[2]>
        %set = list_set %nothing, INDEX, %after : list<f32[2]>
        yield %next, %set
      }
    %y = list_stack %sum : f32[?, 2]
    %z = list_get %sum, %zero : f32[2]
    return %y, %z
  }
})";
  for (const auto& [name, value] : {std::pair("BEGIN", begin), {"INDEX", index}, {"INDEX", index}})
    text.replace(text.find(name), 5, value);
  return text;
}

TEST(Scans, AListOfOneElementIsCarriedAsThatElement) {
  for (const char* begin : {"%start = list_set %empty, %zero, %first : list<f32[2]>",
                            "%start = list_set %empty, %zero, %first {grow = true} : list<f32[2]>",
                            "%start = identity %empty : list<f32[2]>"})
    for (const char* index : {"%none", "%third"}) {
      const std::string kernels = check(parse(summing(begin, index)), {numbers({3, 2}, 1)});
      EXPECT_EQ(count(kernels, "list_"), 0u) << begin << ": " << kernels;
    }
}

TEST(Scans, ATurnThatWouldFailStaysALoop) {
  const Module module = parse(setting("%i2", "2", "", "%y = list_stack %all : f32[?, 2]"));
  EXPECT_THROW(Model::make(clone(module), {})->run({numbers({3, 2}, 1)}), Error);
}

/// Two such loops; the second one's rows depend on the first loop unless they are `apart`.
std::string two_recurrences(int64_t turns, bool apart) {
  std::string layer = recurrent(turns, "8");
  layer.replace(layer.find("@main"), 5, "@layer");
  layer.replace(layer.find("module @m {"), 11,
                fmt::format(R"(module @m {{
  func @main(%x: f32[{0}, 8, 3], %w: f32[3, 3], %b: f32[3]) -> (%y: f32[?, 8, 3], %z: f32[?, 8, 3]) {{
    %y = call %x, %w, %b {{callee = @layer}} : f32[?, 8, 3]
    %s = reduce_sum %y {{axes = [0, 1]}} : f32[3]
    %r = add %x, %{1} : f32[{0}, 8, 3]
    %z = call %r, %w, %b {{callee = @layer}} : f32[?, 8, 3]
    return %y, %z
  }})",
                            turns, apart ? "b" : "s"));
  return layer;
}

TEST(Scans, ThoseThatDoNotDependOnEachOtherRunAtOnce) {
  for (const bool apart : {true, false}) {
    const Module module = parse(two_recurrences(900, apart));
    const std::vector<Tensor> inputs{numbers({900, 8, 3}, 1), numbers({3, 3}, 2), numbers({3}, 3)};
    check(module, inputs);
    const auto together = Model::make(clone(module), {.threads = 2}),
               alone = Model::make(clone(module), {.threads = 1});
    const auto plan = together->plan(std::vector<Dims>{{900, 8, 3}, {3, 3}, {3}});
    const auto at_once = std::count_if(plan->steps.begin(), plan->steps.end(),
                                       [](const PlannedStep& step) { return step.scan && step.at_once == 2; });
    EXPECT_EQ(at_once, apart ? 1 : 0) << kernels_of(*plan);
    for (int run = 0; run < 20; ++run) {
      const std::vector<Tensor> a = together->run(inputs), b = alone->run(inputs);
      for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(std::memcmp(a[i].data(), b[i].data(), a[i].bytes()), 0) << run;
    }
  }
}

/// The same with one row of so many elements.
std::string recurrent_of_width(int64_t width) {
  std::string text = recurrent(40, "1");
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"f32[1, 3] (0.0, 0.0, 0.0)} : f32[1, 3]", "f32[1, 1] (0.0)} : f32[1, 1]"},
        {" 3]", fmt::format(" {}]", width)},
        {"[3", fmt::format("[{}", width)}})
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  return text;
}

TEST(Scans, TurnsTakeSeveralWorkersWhereAStepIsLongerThanHandingOver) {
  for (const int64_t width : {64, 300}) {
    const Module module = parse(recurrent_of_width(width));
    const std::vector<Tensor> inputs{numbers({40, 1, width}, 1), numbers({width, width}, 2), numbers({width}, 3)};
    const auto together = Model::make(clone(module), {.threads = 2}),
               alone = Model::make(clone(module), {.threads = 1});
    const auto plan = together->plan(std::vector<Dims>{{40, 1, width}, {width, width}, {width}});
    const auto scan = std::find_if(plan->steps.begin(), plan->steps.end(), [](const auto& step) { return step.scan; });
    ASSERT_NE(scan, plan->steps.end());
    EXPECT_EQ(scan->bodies[0]->brief, width == 64);
    for (int run = 0; run < 10; ++run)
      EXPECT_TRUE(together->run(inputs)[0].same_bits(alone->run(inputs)[0])) << width << ' ' << run;
  }
}

/// h = bf16(x[t] + h * 0.75) for each t: exact sums, so that results are the same bits everywhere.
TEST(Scans, CarryReadAndStackTheElementsOf16BitsThatTheyAreWidenedFrom) {
  const Module module = parse(R"(module @m { func @main(%x: f32[6, 2, 8]) -> (%y: f32[?, 2, 8], %h: f32[2, 8]) {
    %n = cast %x {dtype = bf16} : bf16[6, 2, 8]
    %v = cast %n {dtype = f32} : f32[6, 2, 8]
    %zero = constant {value = i64[] (0)} : i64[]
    %start = constant {value = f32[2, 8] (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)} : f32[2, 8]
    %empty = list_make %zero {element = f32[2, 8]} : list<f32[2, 8]>
    %i, %h, %all = while %zero, %start, %empty, %v {carried = 3} : i64[], f32[2, 8], list<f32[2, 8]>
      region(%i1: i64[], %h1: f32[2, 8], %l1: list<f32[2, 8]>, %x1: f32[6, 2, 8]) {
        %last = constant {value = i64[] (6)} : i64[]
        %more = less %i1, %last : bool[]
        yield %more
      }
      region(%i2: i64[], %h2: f32[2, 8], %l2: list<f32[2, 8]>, %x2: f32[6, 2, 8]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %row = gather %x2, %i2 : f32[2, 8]
        %part = constant {value = f32[] (0.75)} : f32[]
        %p = mul %h2, %part : f32[2, 8]
        %q = add %p, %row : f32[2, 8]
        %r = cast %q {dtype = bf16} : bf16[2, 8]
        %new = cast %r {dtype = f32} : f32[2, 8]
        %longer = list_push %l2, %new : list<f32[2, 8]>
        yield %next, %new, %longer
      }
    %y = list_stack %all : f32[?, 2, 8]
    return %y, %h
  } })");
  const std::string kernels = check(module, {numbers({6, 2, 8}, 1)});
  EXPECT_EQ(count(kernels, "scan"), 1u) << kernels;
  const auto plan = Model::make(clone(module), {.threads = 1})->plan(std::vector<Dims>{{6, 2, 8}});
  for (const PlannedStep& step : plan->steps) {
    if (!step.scan) continue;
    for (const auto& param : step.control->regions[0]->params) EXPECT_EQ(param->type.dtype, kBF16);
    for (const auto& result : step.control->results) EXPECT_EQ(result->type.dtype, kBF16);
  }
}

}  // namespace
}  // namespace cairn
