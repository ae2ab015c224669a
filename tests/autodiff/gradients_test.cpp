// Gradients of programs: loops, branches, lists, calls, recursion, rules of users; first and second order.
#include "gradients.h"
#include "passes/pipeline.h"

namespace cairn {
namespace {

std::string with_main(const std::string& text) { return "module @m {" + text + "\n}\n"; }

TEST(Gradients, OfAFormulaThatUsesAValueTwice) {
  check_gradients(with_main(R"(
  func @main(%x: f64[3], %y: f64[3]) -> (%loss: f64[]) {
    %a = mul %x, %y : f64[3]
    %b = tanh %a : f64[3]
    %c = mul %b, %x : f64[3]
    %loss = reduce_sum %c {axes = [0]} : f64[]
    return %loss
  })"),
                  {f64({3}, {0.5, -0.25, 1.5}), f64({3}, {1.0, 2.0, -0.75})});
}

// The size of a dim that a slice takes whole is not asked for.
TEST(Gradients, OfASliceAreZerosAroundItByNumbers) {
  Module module = parse(R"(module @m {
  func @main(%x: f64[?n, 4]) -> (%y: f64[?n, 1]) {
    %b = constant {value = i64[2] (0, 1)} : i64[2]
    %e = constant {value = i64[2] (9223372036854775807, 2)} : i64[2]
    %y = slice %x, %b, %e : f64[?n, 1]
    return %y
  }
})");
  Function& main = module.main();
  const Value* dx = append_gradients(module, main, {main.body.results[0]}, {nullptr}, {main.body.params[0].get()})[0];
  ASSERT_TRUE(dx->producer->is("pad"));
  const Tensor* pads = constant_of(dx->producer->inputs[1]);
  ASSERT_NE(pads, nullptr);
  EXPECT_EQ(pads->as_i64(), (std::vector<int64_t>{0, 0, 1, 2}));
}

TEST(Gradients, FlowThroughBothBranches) {
  const std::string text = with_main(R"(
  func @main(%p: bool[], %x: f64[2], %y: f64[2]) -> (%loss: f64[]) {
    %a = sin %x : f64[2]
    %r, %s = if %p, %a, %y : f64[2], f64[2]
      region(%a1: f64[2], %y1: f64[2]) {
        %m = mul %a1, %y1 : f64[2]
        %e = exp %m : f64[2]
        yield %e, %a1
      }
      region(%a2: f64[2], %y2: f64[2]) {
        yield %a2, %a2
      }
    %t = mul %r, %s : f64[2]
    %loss = reduce_sum %t {axes = [0]} : f64[]
    return %loss
  })");
  for (const uint8_t taken : {0, 1})
    check_gradients(text, {Tensor::of<uint8_t>(kBool, {}, {taken}), f64({2}, {0.5, -0.25}), f64({2}, {1.0, 2.0})});
}

// v <- tanh(w v) n times; w stays, v is carried.
const std::string kLoop = with_main(R"(
  func @main(%w: f64[2, 2], %v: f64[2, 1], %n: i64[]) -> (%loss: f64[]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %i, %y = while %zero, %v, %n, %w {carried = 2} : i64[], f64[2, 1]
      region(%i1: i64[], %v1: f64[2, 1], %n1: i64[], %w1: f64[2, 2]) {
        %more = less %i1, %n1 : bool[]
        yield %more
      }
      region(%i2: i64[], %v2: f64[2, 1], %n2: i64[], %w2: f64[2, 2]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %m = matmul %w2, %v2 : f64[2, 1]
        %t = tanh %m : f64[2, 1]
        yield %next, %t
      }
    %s = mul %y, %y : f64[2, 1]
    %loss = reduce_sum %s {axes = [0, 1]} : f64[]
    return %loss
  })");

TEST(Gradients, FlowThroughLoops) {
  for (const int64_t turns : {0, 1, 4})
    check_gradients(kLoop, {f64({2, 2}, {0.7, -0.4, 0.3, 0.9}), f64({2, 1}, {0.5, -1.0}), Tensor::scalar_i64(turns)});
}

TEST(Gradients, FlowThroughBranchesInLoopsInLoopsWithLists) {
  // outer: for i < 3: inner: for j < n: append h * h or sin(h) (by the sign) to a list; then h = the list's last + x[i]
  check_gradients(with_main(R"(
  func @main(%x: f64[3], %n: i64[]) -> (%loss: f64[]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %xs = list_unstack %x : list<f64[]>
    %all = list_make %zero {element = f64[]} : list<f64[]>
    %h = constant {value = f64[] (0.3)} : f64[]
    %i, %h2, %all2, %n2, %xs2 = while %zero, %h, %all, %n, %xs {carried = 5} : i64[], f64[], list<f64[]>, i64[], list<f64[]>
      region(%i1: i64[], %h1: f64[], %all1: list<f64[]>, %n1: i64[], %xs1: list<f64[]>) {
        %three = constant {value = i64[] (3)} : i64[]
        %more = less %i1, %three : bool[]
        yield %more
      }
      region(%ia: i64[], %ha: f64[], %alla: list<f64[]>, %na: i64[], %xsa: list<f64[]>) {
        %one = constant {value = i64[] (1)} : i64[]
        %none = constant {value = i64[] (0)} : i64[]
        %next = add %ia, %one : i64[]
        %j, %hb, %allb = while %none, %ha, %alla, %na {carried = 3} : i64[], f64[], list<f64[]>
          region(%j1: i64[], %hj1: f64[], %l1: list<f64[]>, %nj1: i64[]) {
            %morej = less %j1, %nj1 : bool[]
            yield %morej
          }
          region(%j2: i64[], %hj2: f64[], %l2: list<f64[]>, %nj2: i64[]) {
            %onej = constant {value = i64[] (1)} : i64[]
            %nextj = add %j2, %onej : i64[]
            %bound = constant {value = f64[] (0.5)} : f64[]
            %small = less %hj2, %bound : bool[]
            %g = if %small, %hj2 : f64[]
              region(%hs: f64[]) {
                %e = exp %hs : f64[]
                yield %e
              }
              region(%hl: f64[]) {
                %q = sin %hl : f64[]
                %q2 = mul %q, %hl : f64[]
                yield %q2
              }
            %longer = list_push %l2, %g : list<f64[]>
            yield %nextj, %g, %longer
          }
        %e1 = list_get %xsa, %ia : f64[]
        %hc = mul %hb, %e1 : f64[]
        %first = list_get %allb, %none : f64[]
        %hd = add %hc, %first : f64[]
        yield %next, %hd, %allb, %na, %xsa
      }
    %stacked = list_stack %all2 : f64[?]
    %squares = mul %stacked, %stacked : f64[?]
    %sum = reduce_sum %squares {axes = [0]} : f64[]
    %loss = mul %sum, %h2 : f64[]
    return %loss
  })"),
                  {f64({3}, {0.5, -0.25, 1.5}), Tensor::scalar_i64(2)});
}

TEST(Gradients, OfListsThatLoopsTakeFromAndPutBack) {
  // A stack machine: pops two, pushes their product, n times; then what is left is joined.
  check_gradients(with_main(R"(
  func @main(%x: f64[4, 2], %n: i64[]) -> (%loss: f64[]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %xs = list_unstack %x : list<f64[2]>
    %i, %l = while %zero, %xs, %n {carried = 2} : i64[], list<f64[2]>
      region(%i1: i64[], %l1: list<f64[2]>, %n1: i64[]) {
        %more = less %i1, %n1 : bool[]
        yield %more
      }
      region(%i2: i64[], %l2: list<f64[2]>, %n2: i64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %la, %a = list_pop %l2 : list<f64[2]>, f64[2]
        %lb, %b = list_pop %la : list<f64[2]>, f64[2]
        %c = mul %a, %b : f64[2]
        %d = sin %c : f64[2]
        %lc = list_push %lb, %d : list<f64[2]>
        yield %next, %lc
      }
    %first = list_get %l, %zero : f64[2]
    %set = list_set %l, %zero, %first {add = true} : list<f64[2]>
    %joined = list_concat %set : f64[?]
    %squares = mul %joined, %joined : f64[?]
    %loss = reduce_sum %squares {axes = [0]} : f64[]
    return %loss
  })"),
                  {f64({4, 2}, {0.5, -0.25, 1.5, 0.75, 2.0, -1.0, 0.3, 0.6}), Tensor::scalar_i64(2)});
}

// A call tree like Ackermann's function: a(0, x) = sin x, a(n, x) = a(n - 1, a(n - 1, x * w) * x).
const std::string kTree = with_main(R"(
  func @tree(%n: i64[], %x: f64[], %w: f64[]) -> (%y: f64[]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %deep = greater %n, %zero : bool[]
    %y = if %deep, %n, %x, %w : f64[]
      region(%n1: i64[], %x1: f64[], %w1: f64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %m = sub %n1, %one : i64[]
        %a = mul %x1, %w1 : f64[]
        %b = call %m, %a, %w1 {callee = @tree} : f64[]
        %c = mul %b, %x1 : f64[]
        %d = call %m, %c, %w1 {callee = @tree} : f64[]
        yield %d
      }
      region(%n2: i64[], %x2: f64[], %w2: f64[]) {
        %s = sin %x2 : f64[]
        yield %s
      }
    return %y
  }
  func @main(%n: i64[], %x: f64[], %w: f64[]) -> (%loss: f64[]) {
    %t = call %n, %x, %w {callee = @tree} : f64[]
    %loss = mul %t, %t : f64[]
    return %loss
  })");

TEST(Gradients, FlowThroughFunctionsThatCallThemselves) {
  for (const int64_t depth : {0, 1, 3})
    check_gradients(kTree, {Tensor::scalar_i64(depth), f64({}, {1.25}), f64({}, {0.8})});
}

TEST(Gradients, OfACheckpointAreThoseOfTheFunction) {
  for (const char* recompute : {"true", "false"})
    check_gradients(with_main(fmt::format(R"(
  func @block(%x: f64[2], %w: f64[2]) -> (%y: f64[2]) {{
    %a = mul %x, %w : f64[2]
    %y = tanh %a : f64[2]
    return %y
  }}
  func @main(%x: f64[2], %w: f64[2]) -> (%loss: f64[]) {{
    %a = call %x, %w {{callee = @block, recompute = {}}} : f64[2]
    %b = call %a, %w {{callee = @block, recompute = {}}} : f64[2]
    %loss = reduce_sum %b {{axes = [0]}} : f64[]
    return %loss
  }})",
                                          recompute, recompute)),
                    {f64({2}, {0.5, -0.25}), f64({2}, {1.0, 2.0})});
}

TEST(Gradients, ComputeACheckpointASecondTimeAfterOptimising) {
  for (const bool recompute : {true, false}) {
    Module module = parse(with_main(fmt::format(R"(
  func @block(%x: f64[2], %w: f64[2]) -> (%y: f64[2]) {{
    %a = mul %x, %w : f64[2]
    %b = tanh %a : f64[2]
    %y = sin %b : f64[2]
    return %y
  }}
  func @main(%x: f64[2], %w: f64[2]) -> (%loss: f64[]) {{
    %a = call %x, %w {{callee = @block, recompute = {}}} : f64[2]
    %loss = reduce_sum %a {{axes = [0]}} : f64[]
    return %loss
  }})",
                                                recompute)));
    Function& gradient = append_grad(module, module.main(), {.value = true}, "gradient");
    module.main().name = "loss";
    gradient.name = "main";
    optimise(module);
    const auto& nodes = module.main().body.nodes;
    const auto count = std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return node->is("tanh"); });
    EXPECT_EQ(count, recompute ? 2 : 1) << print(module).text;
  }
}

// z = tanh(w z + x) by turns; its gradient is that of the fixed point: g = dz + g w (1 - z^2) by turns.
TEST(Gradients, OfAFixedPointByARuleOfItsOwn) {
  check_gradients(with_main(R"(
  func @solve(%w: f64[], %x: f64[]) -> (%z: f64[]) {
    %zero = constant {value = f64[] (0.0)} : f64[]
    %start = constant {value = i64[] (0)} : i64[]
    %i, %z = while %start, %zero, %w, %x {carried = 2} : i64[], f64[]
      region(%i1: i64[], %z1: f64[], %w1: f64[], %x1: f64[]) {
        %turns = constant {value = i64[] (60)} : i64[]
        %more = less %i1, %turns : bool[]
        yield %more
      }
      region(%i2: i64[], %z2: f64[], %w2: f64[], %x2: f64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %a = mul %w2, %z2 : f64[]
        %b = add %a, %x2 : f64[]
        %t = tanh %b : f64[]
        yield %next, %t
      }
    return %z
  }
  func @solve_backward(%w: f64[], %x: f64[], %z: f64[], %dz: f64[]) -> (%dw: f64[], %dx: f64[]) {
    %one = constant {value = f64[] (1.0)} : f64[]
    %zz = mul %z, %z : f64[]
    %slope = sub %one, %zz : f64[]
    %ws = mul %w, %slope : f64[]
    %rest = sub %one, %ws : f64[]
    %g = div %dz, %rest : f64[]
    %dx = mul %g, %slope : f64[]
    %dw = mul %dx, %z : f64[]
    return %dw, %dx
  }
  func @main(%w: f64[], %x: f64[]) -> (%loss: f64[]) {
    %z = call %w, %x {callee = @solve, backward = @solve_backward} : f64[]
    %loss = mul %z, %z : f64[]
    return %loss
  })"),
                  {f64({}, {0.4}), f64({}, {0.9})});
}

TEST(Gradients, OfCheckpointsAndRulesOfTheirOwnInLoops) {
  check_gradients(with_main(R"(
  func @block(%x: f64[], %w: f64[]) -> (%y: f64[]) {
    %a = mul %x, %w : f64[]
    %y = sin %a : f64[]
    return %y
  }
  func @square(%x: f64[]) -> (%y: f64[]) {
    %y = mul %x, %x : f64[]
    return %y
  }
  func @square_backward(%x: f64[], %y: f64[], %dy: f64[]) -> (%dx: f64[]) {
    %two = constant {value = f64[] (2.0)} : f64[]
    %a = mul %two, %x : f64[]
    %dx = mul %a, %dy : f64[]
    return %dx
  }
  func @main(%x: f64[], %w: f64[]) -> (%loss: f64[]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %i, %loss = while %zero, %x, %w {carried = 2} : i64[], f64[]
      region(%i1: i64[], %v1: f64[], %w1: f64[]) {
        %three = constant {value = i64[] (3)} : i64[]
        %more = less %i1, %three : bool[]
        yield %more
      }
      region(%i2: i64[], %v2: f64[], %w2: f64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %a = call %v2, %w2 {callee = @block, recompute = true} : f64[]
        %b = call %a {callee = @square, backward = @square_backward} : f64[]
        yield %next, %b
      }
    return %loss
  })"),
                  {f64({}, {0.9}), f64({}, {1.3})});
}

TEST(Gradients, OfFunctionsThatCallEachOtherWithLists) {
  // even(n, l): n = 0 ? sum of l : odd(n - 1, l and sin of its last); odd doubles instead.
  const char* const function = R"(
  func @{0}(%n: i64[], %l: list<f64[]>) -> (%y: f64[]) {{
    %zero = constant {{value = i64[] (0)}} : i64[]
    %deep = greater %n, %zero : bool[]
    %y = if %deep, %n, %l : f64[]
      region(%n1: i64[], %l1: list<f64[]>) {{
        %one = constant {{value = i64[] (1)}} : i64[]
        %m = sub %n1, %one : i64[]
        %size = list_size %l1 : i64[]
        %at = sub %size, %one : i64[]
        %x = list_get %l1, %at : f64[]
        %s = {2} %x, %x : f64[]
        %longer = list_push %l1, %s : list<f64[]>
        %r = call %m, %longer {{callee = @{1}}} : f64[]
        %t = mul %r, %x : f64[]
        yield %t
      }}
      region(%n2: i64[], %l2: list<f64[]>) {{
        %all = list_stack %l2 : f64[?]
        %sum = reduce_sum %all {{axes = [0]}} : f64[]
        yield %sum
      }}
    return %y
  }})";
  check_gradients(with_main(fmt::format(fmt::runtime(function), "even", "odd", "mul") +
                            fmt::format(fmt::runtime(function), "odd", "even", "add") + R"(
  func @main(%x: f64[2], %n: i64[]) -> (%loss: f64[]) {
    %l = list_unstack %x : list<f64[]>
    %loss = call %n, %l {callee = @even} : f64[]
    return %loss
  })"),
                  {f64({2}, {0.9, -0.7}), Tensor::scalar_i64(3)});
}

// Three steps of gradient descent on (w x - 1)^2 within the program, differentiated by the rate and the data.
TEST(Gradients, FlowThroughAnOptimiser) {
  Module module = parse(with_main(R"(
  func @loss(%w: f64[2], %x: f64[2]) -> (%loss: f64[]) {
    %one = constant {value = f64[] (1.0)} : f64[]
    %a = mul %w, %x : f64[2]
    %d = sub %a, %one : f64[2]
    %s = mul %d, %d : f64[2]
    %loss = reduce_sum %s {axes = [0]} : f64[]
    return %loss
  })"));
  append_grad(module, *module.find("loss"), {.wrt = {"w"}}, "step");
  const std::string functions = print(module).text;
  check_gradients(functions.substr(0, functions.rfind('}')) + R"(
  func @main(%w: f64[2], %x: f64[2], %rate: f64[]) -> (%loss: f64[]) {
    %zero = constant {value = i64[] (0)} : i64[]
    %i, %v = while %zero, %w, %x, %rate {carried = 2} : i64[], f64[2]
      region(%i1: i64[], %w1: f64[2], %x1: f64[2], %r1: f64[]) {
        %three = constant {value = i64[] (3)} : i64[]
        %more = less %i1, %three : bool[]
        yield %more
      }
      region(%i2: i64[], %w2: f64[2], %x2: f64[2], %r2: f64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next = add %i2, %one : i64[]
        %g = call %w2, %x2 {callee = @step} : f64[2]
        %s = mul %g, %r2 : f64[2]
        %n = sub %w2, %s : f64[2]
        yield %next, %n
      }
    %loss = call %v, %x {callee = @loss} : f64[]
    return %loss
  }
})",
                  {f64({2}, {0.3, -0.2}), f64({2}, {1.5, 0.7}), f64({}, {0.1})});
}

TEST(Gradients, ThatNothingAsksForAreNotComputed) {
  Module module = parse(kLoop);
  const Function& gradient = append_grad(module, module.main(), {.wrt = {"v"}}, "gradient");
  for (const auto& node : gradient.body.nodes) {
    if (node->regions.empty()) continue;
    for (const auto& result : node->results) EXPECT_NE(to_string(result->type), "f64[2, 2]") << print(gradient);
  }
}

TEST(Gradients, AlongADirection) {
  Module module = parse(kLoop);
  const Function& jvp = append_jvp(module, module.main(), {"w", "v"}, "jvp");
  verify(module);
  const Tensor w = f64({2, 2}, {0.7, -0.4, 0.3, 0.9}), v = f64({2, 1}, {0.5, -1.0}), n = Tensor::scalar_i64(3);
  const Tensor dw = f64({2, 2}, {1, 0, -1, 2}), dv = f64({2, 1}, {0.5, 0.25});
  const std::vector<Tensor> found = run(module, jvp, {w, v, n, dw, dv});
  double expected = 0;
  const auto by_w = differences(module, module.main(), {w, v, n}, 0),
             by_v = differences(module, module.main(), {w, v, n}, 1);
  for (size_t i = 0; i < 4; ++i) expected += by_w[i] * dw.values<double>()[i];
  for (size_t i = 0; i < 2; ++i) expected += by_v[i] * dv.values<double>()[i];
  EXPECT_NEAR(found[1].as_f64()[0], expected, 1e-8);
}

TEST(Gradients, StopWhereTheyAreStopped) {
  Module module = parse(with_main(R"(
  func @main(%x: f64[2]) -> (%loss: f64[]) {
    %s = stop_gradient %x : f64[2]
    %p = mul %x, %s : f64[2]
    %loss = reduce_sum %p {axes = [0]} : f64[]
    return %loss
  })"));
  const Function& gradient = append_grad(module, module.main(), {}, "gradient");
  EXPECT_EQ(run(module, gradient, {f64({2}, {3, 4})})[0].as_f64(), (std::vector<double>{3, 4}));
}

std::string error_of(const std::string& text, const GradientOptions& options = {}) {
  Module module = parse(text);
  try {
    append_grad(module, module.main(), options, "gradient");
  } catch (const Error& fault) {
    return fault.what();
  }
  return "no error";
}

TEST(Gradients, ThatCannotBeMadeSayWhy) {
  EXPECT_EQ(error_of(kLoop, {.wrt = {"W"}}), "W: no input has this name; did you mean w?");
  EXPECT_EQ(error_of(kLoop, {.wrt = {"n"}}), "n: the input is i64[], only floats have gradients");
  EXPECT_EQ(error_of(kLoop, {.result = "los"}), "los: no result has this name; did you mean loss?");
  EXPECT_EQ(error_of(with_main("func @main(%x: f32[2]) -> (%y: f32[2]) { return %x }")),
            "y: the result is f32[2], expected one float, as a loss is");
  EXPECT_EQ(error_of(with_main(R"(
  func @f(%x: f64[]) -> (%y: f64[]) { return %x }
  func @main(%x: f64[]) -> (%y: f64[]) {
    %y = call %x {callee = @f, backward = @f} : f64[]
    return %y
  })")),
            "y: @f takes 1 values and yields 1, expected 3 (inputs, results, gradients of float results) and 1");
}

}  // namespace
}  // namespace cairn
