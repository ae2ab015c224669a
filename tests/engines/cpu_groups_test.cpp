// Groups of the CPU engine beyond one node: equal to their nodes one by one, the same bits at any number of threads, and
// really one step.
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"
#include "runtime/model.h"

namespace cairn {
namespace {

/// The kernels begin with those named, in any detail, and there are no others.
void expect_steps(const std::string& function, const std::vector<std::string>& kernels) {
  const std::string text = "module @m { func @main" + function + " }";
  std::vector<Tensor> inputs, one;
  std::mt19937_64 random(5);
  const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
  for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
  const auto wanted = expected->run(inputs);
  for (int threads : {1, 2, 5}) {
    const auto model = Model::make(parse(text), {.threads = threads, .optimise = false});
    std::string rest = kernels_of(*model);
    for (const std::string& kernel : kernels) {
      const size_t at = rest.find("cpu/" + kernel);
      ASSERT_NE(at, std::string::npos) << kernel << " in " << kernels_of(*model);
      rest.erase(at, 4);
    }
    EXPECT_EQ(rest.find("cpu/"), std::string::npos) << kernels_of(*model);
    EXPECT_EQ(rest.find("copy"), std::string::npos) << kernels_of(*model);
    EXPECT_EQ(rest.find("reference/"), std::string::npos) << kernels_of(*model);
    const auto found = model->run(inputs);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const auto wrong = difference(wanted[i], found[i], Precision::accumulate_f32);
      EXPECT_FALSE(wrong) << "result " << i << ": " << *wrong;
      EXPECT_TRUE(threads == 1 || found[i].same_bits(one[i])) << "result " << i;
    }
    one = found;
  }
}

class CpuGroups : public testing::Test {
 protected:
  void SetUp() override {
    if (machine_isa() == Isa::none) GTEST_SKIP() << "needs AVX2";
  }
};

const char* const kAdam = R"((%w: f32[70, 33], %m: f32[70, 33], %v: f32[70, 33], %g: f32[70, 33], %rate: f32[]) ->
      (%a: f32[70, 33], %b: f32[70, 33], %c: f32[70, 33]) UPDATES {
    %k = constant {value = f32[] (0.125)}
    %e = constant {value = f32[] (1.0)}
    %dm = sub %g, %m
    %sm = mul %dm, %k
    %b = add %m, %sm
    %q = square %g
    %dv = sub %q, %v
    %sv = mul %dv, %k
    %nv = add %v, %sv
    %c = abs %nv
    %r = sqrt %c
    %d = add %r, %e
    %s = mul %b, %rate
    %t = div %s, %d
    %a = sub %w, %t
    return %a, %b, %c })";

std::string adam(const std::string& updates) {
  return std::string(kAdam).replace(std::string(kAdam).find("UPDATES"), 7, updates);
}

TEST_F(CpuGroups, an_update_of_three_variables_is_one_step) { expect_steps(adam(""), {"elementwise 13"}); }

TEST_F(CpuGroups, variables_of_the_caller_are_updated_in_one_step_without_copies) {
  std::vector<Tensor> inputs;
  std::mt19937_64 random(5);
  const auto plain = Model::make(parse("module @m { func @main" + adam("") + " }"), {.engines = {"reference"}});
  for (const Port& port : plain->inputs()) inputs.push_back(random_tensor(port.type, random));
  const auto wanted = plain->run(inputs);
  const std::string text = "module @m { func @main" + adam("updates [0 = 0, 1 = 1, 2 = 2]") + " }";
  const auto model = Model::make(parse(text), {.threads = 2, .bind_state = true});
  EXPECT_EQ(kernels_of(*model), "cpu/elementwise 13 ");
  std::vector<TensorRef> refs;
  for (Tensor& tensor : inputs) refs.push_back({tensor.dtype(), tensor.dims(), tensor.mutable_data()});
  model->run(refs, [](size_t, DType, std::span<const int64_t>) -> void* { return nullptr; });
  for (size_t i = 0; i < 3; ++i) {
    const auto wrong = difference(wanted[i], inputs[i], Precision::accumulate_f32);
    EXPECT_FALSE(wrong) << "variable " << i << ": " << *wrong;
  }
}

TEST_F(CpuGroups, the_update_of_a_weight_is_part_of_the_step_that_makes_its_gradient) {
  const auto momentum = [](const std::string& dims, const std::string& operands, const std::string& gradient) {
    return fmt::format(R"(({1}, %w: f32{0}, %m: f32{0}, %rate: f32[]) -> (%a: f32{0}, %b: f32{0}) {{
    {2}
    %k = constant {{value = f32[] (0.875)}}
    %km = mul %m, %k
    %b = add %km, %g
    %s = mul %b, %rate
    %a = sub %w, %s
    return %a, %b }})",
                       dims, operands, gradient);
  };
  expect_steps(momentum("[70, 72]", "%x: f32[500, 70], %dy: f32[500, 72]", "%g = matmul %x, %dy {transpose_a = true}"),
               {"updated_gradient"});
  expect_steps(
      momentum("[300, 256]", "%x: f32[264, 300], %dy: f32[264, 256]", "%g = matmul %x, %dy {transpose_a = true}"),
      {"updated_gradient"});
  for (const std::string shape : {"1, 1, 24, 40", "3, 3, 6, 20", "2, 2, 10, 50"})
    expect_steps(momentum("[" + shape + "]",
                          fmt::format("%x: f32[6, 17, 16, {}], %dy: f32[6, 9, 8, {}]",
                                      shape.substr(6, shape.rfind(',') - 6), shape.substr(shape.rfind(' ') + 1)),
                          "%shape = constant {value = i64[4] (" + shape +
                              ")}\n    %g = conv2d_kernel_gradient %x, %dy, %shape {strides = [2, 2], padding = same}"),
                 {"updated_gradient"});
  const std::string product = "%g = matmul %x, %dy {transpose_a = true}";
  expect_steps(momentum("[70, 72]", "%x: f32[32, 70], %dy: f32[32, 72]", product), {"tile", "elementwise 4"});
  std::string read = momentum("[70, 72]", "%x: f32[500, 70], %dy: f32[500, 72]", product);
  read.replace(read.find("%b: f32[70, 72])"), 16, "%b: f32[70, 72], %g: f32[70, 72])");
  read.replace(read.find("%a, %b }"), 8, "%a, %b, %g }");
  expect_steps(read, {"transposed_product", "elementwise 4"});
}

TEST_F(CpuGroups, the_gradient_of_a_relu_before_a_pooling_is_part_of_its_gradient) {
  const auto expect_gated = [](int dims, const std::string& x, const std::string& dy, const std::string& attributes) {
    expect_steps(fmt::format(R"((%c: f32{0}, %dy: f32{1}) -> (%y: f32{0}) {{
    %zero = constant {{value = f32[] (0)}}
    %r = relu %c
    %g = max_pool{2}d_gradient %r, %dy {{{3}}}
    %above = greater %r, %zero
    %y = select %above, %g, %zero
    return %y }})",
                             x, dy, dims, attributes),
                 {"elementwise", fmt::format("max_pool{}d_gradient and relu's", dims)});
  };
  for (const int channels : {1, 6, 16, 20, 70}) {
    const auto of = [&](const std::string& dims) { return fmt::format("[{}, {}]", dims, channels); };
    expect_gated(2, of("3, 13, 15"), of("3, 6, 7"), "window = [2, 2], strides = [2, 2]");
    expect_gated(2, of("3, 9, 11"), of("3, 5, 6"), "window = [3, 3], strides = [2, 2], padding = same");
    for (const char* ties : {"first", "all"})
      expect_gated(3, of("2, 5, 9, 8"), of("2, 3, 5, 4"),
                   fmt::format("window = [3, 3, 3], strides = [2, 2, 2], padding = same, ties = {}", ties));
  }
}

TEST_F(CpuGroups, the_update_of_a_weight_stays_in_its_step_at_sizes_of_the_same_magnitude) {
  const std::string text =
      R"(module @m { func @main(%w: f32[96, 64], %x: f32[?n, 96], %dy: f32[?n, 64]) -> (%a: f32[96, 64]) {
    %g = matmul %x, %dy {transpose_a = true}
    %k = constant {value = f32[] (0.125)}
    %s = mul %g, %k
    %a = sub %w, %s
    return %a } })";
  const int64_t many = machine_isa() == Isa::avx512 ? 130 : 260, fewer = many / 2 + 5;
  const auto dims_at = [](int64_t rows) { return std::vector<Dims>{{96, 64}, {rows, 96}, {rows, 64}}; };
  const auto model = Model::make(parse(text), {.threads = 1}), other = Model::make(parse(text), {.threads = 1});
  const auto first = model->plan(dims_at(many)), second = model->plan(dims_at(fewer));
  EXPECT_EQ(other->plan(dims_at(fewer))->steps.size(), 2u) << "by itself two steps are faster";
  EXPECT_EQ(second->sibling, first->function);
  ASSERT_EQ(second->steps.size(), 1u);
  EXPECT_EQ(second->steps[0].kernel.find("cpu/updated_gradient"), 0u);
  std::mt19937_64 random(5);
  std::vector<Tensor> inputs;
  for (const Dims& dims : dims_at(fewer)) inputs.push_back(random_tensor(Type::tensor(kF32, Shape::of(dims)), random));
  const auto wrong = difference(Model::make(parse(text), {.engines = {"reference"}})->run(inputs)[0],
                                model->run(inputs)[0], Precision::accumulate_f32);
  EXPECT_FALSE(wrong) << *wrong;
}

TEST_F(CpuGroups, a_weight_changes_in_place_behind_the_last_step_that_reads_it) {
  const auto expect_updated = [](const std::string& x, const std::string& made) {
    const std::string text = fmt::format(R"({{
    %g = matmul {}, %dy {{transpose_a = true}}
    %k = constant {{value = f32[] (0.125)}}
    %s = mul %g, %k
    %a = sub %w, %s
    %dx = {}
    return %a, %dx }} }})",
                                         x, made);
    const std::string head =
        "module @m { func @main(%w: f32[256, 256], %x: f32[256, 256], %dy: f32[256, 256]) -> "
        "(%a: f32[256, 256], %dx: f32[256, 256]) ";
    std::vector<Tensor> inputs;
    std::mt19937_64 random(5);
    const auto plain = Model::make(parse(head + text), {.engines = {"reference"}});
    for (const Port& port : plain->inputs()) inputs.push_back(random_tensor(port.type, random));
    const std::vector<Tensor> wanted = plain->run(inputs);
    const auto model = Model::make(parse(head + "updates [0 = 0] " + text), {.threads = 2, .bind_state = true});
    EXPECT_NE(kernels_of(*model).find("updated_gradient"), std::string::npos);
    Tensor dx = random_tensor(wanted[1].type(), random);
    std::vector<TensorRef> refs;
    for (Tensor& tensor : inputs) refs.push_back({tensor.dtype(), tensor.dims(), tensor.mutable_data()});
    model->run(refs, [&](size_t, DType, std::span<const int64_t>) -> void* { return dx.mutable_data(); });
    for (const auto& [expected, found] : {std::pair{&wanted[0], &inputs[0]}, std::pair{&wanted[1], &dx}}) {
      const auto wrong = difference(*expected, *found, Precision::accumulate_f32);
      EXPECT_FALSE(wrong) << text << *wrong;
    }
  };
  expect_updated("%x", "matmul %dy, %w {transpose_b = true}");
  expect_updated("%w", "mul %x, %k");  // the weight is also what its gradient is made of
}

TEST_F(CpuGroups, a_long_chain_that_rounds_behind_every_operation_is_one_step) {
  for (const char* type : {"f16", "bf16"}) {
    std::string nodes = "%n0 = cast %x {dtype = f32}", last = "%n0";
    for (int i = 0; i < 20; ++i) {
      nodes += fmt::format("\n%p{} = {} {}, %y\n%h{} = cast %p{} {{dtype = {}}}\n%w{} = cast %h{} {{dtype = f32}}", i,
                           i % 2 ? "mul" : "sub", last, i, i, type, i, i);
      last = fmt::format("%w{}", i);
    }
    expect_steps(fmt::format("(%x: {}[90, 70], %y: f32[90, 70]) -> (%h19: {}[90, 70]) {{\n{}\nreturn %h19 }}", type,
                             type, nodes),
                 {"elementwise"});
  }
}

TEST_F(CpuGroups, a_result_that_another_step_needs_first_stays_outside) {
  expect_steps(R"((%x: f32[40, 40]) -> (%y: f32[40, 40]) {
    %a = square %x
    %b = softmax %a {axis = -1}
    %c = neg %b
    %d = mul %a, %c
    %y = add %d, %x
    return %y })",
               {"elementwise 1", "softmax", "elementwise 3"});
}

TEST_F(CpuGroups, nodes_without_results_are_left_alone) {
  const auto model = Model::make(parse(R"(module @m { func @main(%x: f32[3, 40], %ok: bool[]) -> (%y: f32[3, 40]) {
    assert %ok {message = "never"}
    %y = softmax %x
    return %y } })"),
                                 {.threads = 1});
  EXPECT_NE(kernels_of(*model).find("softmax"), std::string::npos) << kernels_of(*model);
}

TEST_F(CpuGroups, a_mask_of_bools_stays_inside) {
  expect_steps(R"((%x: f32[300], %dy: f32[300]) -> (%y: f32[300], %z: f32[300]) {
    %zero = constant {value = f32[] (0.0)}
    %p = greater %x, %zero
    %y = select %p, %dy, %zero
    %f = cast %p {dtype = f32}
    %z = mul %f, %y
    return %y, %z })",
               {"elementwise 4"});
}

// Long rows are read where they are, short ones by tiles, what repeats soon from one copy; none may touch what lies beyond
// the last.
TEST_F(CpuGroups, rows_and_columns_of_numbers_and_bools_are_spread) {
  for (const auto& [n, c] :
       {std::pair{37, 70}, {700, 33}, {300, 7}, {40, 6}, {3000, 2}, {5000, 1}, {1, 5000}, {3, 4099}}) {
    expect_steps(fmt::format(R"((%x: f32[2, {0}, {1}], %r: f32[{1}], %c: f32[{0}, 1], %o: f32[2, 1, 1], %s: f32[1, 1],
        %p: bool[{0}, {1}], %q: bool[2, {0}, {1}], %t: bool[], %m: f32[2, 1, {1}]) -> (%y: f32[2, {0}, {1}], %z: f32[2, {0}, {1}]) {{
    %a = mul %x, %r
    %b = sub %a, %c
    %n = mul %b, %m
    %y = add %n, %o
    %d = select %p, %y, %s
    %e = select %q, %d, %x
    %z = select %t, %e, %a
    return %y, %z }})",
                             n, c),
                 {"elementwise 7"});
  }
}

// A factor of each row, of each few rows, and parts of short rows of a larger tensor, at the borders of vectors and tiles.
TEST_F(CpuGroups, short_rows_have_factors_of_their_own) {
  for (int n : {1, 3, 50})
    for (int c : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 95, 96, 97, 130, 257})
      expect_steps(
          fmt::format(
              R"((%x: f32[{0}, 5, {1}], %r: f32[{0}, 5, 1], %t: f32[5, 1], %o: f32[{0}, 1, {1}], %p: bool[{0}, 5, 1],
        %q: bool[{0}, 1, {1}], %w: f32[{0}, 7, {2}]) -> (%y: f32[{0}, 5, {1}], %z: f32[{0}, 5, {1}]) {{
    %b = constant {{value = i64[3] (0, 1, 2)}}
    %e = constant {{value = i64[3] ({0}, 6, {3})}}
    %v = slice %w, %b, %e
    %a = div %x, %r
    %m = mul %a, %t
    %d = sub %m, %o
    %y = select %p, %d, %v
    %z = select %q, %y, %x
    return %y, %z }})",
              n, c, c + 3, c + 2),
          {"elementwise 5"});
}

TEST_F(CpuGroups, slices_for_one_group_are_read_where_they_are) {
  for (const auto& [n, c] : {std::pair{1, 64}, {7, 64}, {3, 5}, {40, 33}, {1, 1}, {300, 2}}) {
    expect_steps(
        fmt::format(
            R"((%x: f32[{0}, {3}], %c: f32[{0}, {1}], %p: bool[{0}, {2}], %r: f32[2, {2}]) -> (%h: f32[{0}, {1}], %d: f32[{0}, {1}]) {{
    %b0 = constant {{value = i64[2] (0, 0)}}
    %e0 = constant {{value = i64[2] ({0}, {1})}}
    %b1 = constant {{value = i64[2] (0, {1})}}
    %e1 = constant {{value = i64[2] ({0}, {2})}}
    %b2 = constant {{value = i64[2] (-1, -1)}}
    %e2 = constant {{value = i64[2] (-999, {4})}}
    %b3 = constant {{value = i64[2] (1, 1)}}
    %e3 = constant {{value = i64[2] (2, {2})}}
    %i = slice %x, %b0, %e0
    %g = slice %x, %b1, %e1
    %o = slice %x, %b2, %e2 {{steps = [-1, -1]}}
    %q = slice %p, %b1, %e1
    %s = slice %r, %b3, %e3 {{steps = [1, 2]}}
    %si = sigmoid %i
    %tg = tanh %g
    %in = mul %si, %tg
    %old = mul %in, %c
    %ss = add %old, %s
    %d = select %q, %ss, %c
    %so = sigmoid %o
    %h = mul %so, %d
    return %h, %d }})",
            n, c, 2 * c, 3 * c, 3 * c - 1 - c - 3 * c),
        {"elementwise 8"});
  }
}

TEST_F(CpuGroups, slices_of_16_bits_are_read_where_they_are) {
  for (const char* type : {"bf16", "f16"})
    for (int columns : {1, 5, 32, 70, 130})
      expect_steps(fmt::format(R"((%x: {0}[300, {2}]) -> (%y: {0}[300, {1}]) {{
    %b0 = constant {{value = i64[2] (0, 0)}}
    %e0 = constant {{value = i64[2] (300, {1})}}
    %b1 = constant {{value = i64[2] (0, {1})}}
    %e1 = constant {{value = i64[2] (300, {2})}}
    %p = slice %x, %b0, %e0
    %q = slice %x, %b1, %e1
    %a = cast %p {{dtype = f32}}
    %c = cast %q {{dtype = f32}}
    %t = tanh %a
    %s = sigmoid %c
    %z = mul %t, %s
    %y = cast %z {{dtype = {0}}}
    return %y }})",
                               type, columns, 2 * columns),
                   {"elementwise 7"});
}

TEST_F(CpuGroups, a_slice_that_others_need_and_one_beside_its_whole_stay_right) {
  expect_steps(R"((%x: f32[20, 12]) -> (%y: f32[20, 12], %r: f32[20, 12], %s: f32[1, 12]) {
    %b = constant {value = i64[2] (3, 0)}
    %e = constant {value = i64[2] (4, 12)}
    %row = slice %x, %b, %e
    %s = slice %x, %b, %e
    %a = neg %x
    %y = add %a, %row
    %r = mul %y, %s
    return %y, %r, %s })",
               {"slice", "elementwise 3"});
}

TEST_F(CpuGroups, rows_gathered_for_one_group_are_read_where_they_are) {
  for (int c : {4, 7, 16, 33, 300})
    for (const char* index : {"i64", "i32"})
      expect_steps(
          fmt::format(
              R"((%x: f32[3, 9, {0}], %t: f32[5, {0}], %p: bool[3, 20], %w: f32[3, 20, 1], %v: f32[3, 20, {0}]) ->
        (%y: f32[3, 20, {0}], %z: f32[3, 20, {0}]) {{
    %five = constant {{value = {1}[] (4)}}
    %one = constant {{value = {1}[] (-3)}}
    %q = select %p, %five, %one
    %a = gather %x, %q {{axis = 1, batch_dims = 1}}
    %b = gather %t, %q {{axis = 0}}
    %m = mul %a, %w
    %s = add %m, %b
    %y = add %s, %v
    %z = sub %y, %a
    return %y, %z }})",
              c, index),
          {"elements select", "elementwise 4 gathering"});
}

TEST_F(CpuGroups, rows_gathered_from_outside_fail_as_alone) {
  const auto model =
      Model::make(parse(R"(module @m { func @main(%x: f32[5, 8], %i: i64[3], %v: f32[3, 8]) -> (%y: f32[3, 8]) {
    %a = gather %x, %i {axis = 0}
    %y = add %a, %v
    return %y } })"),
                  {.threads = 1});
  EXPECT_EQ(kernels_of(*model), "cpu/elementwise 1 gathering ");
  const Tensor x = Tensor::zeros(kF32, {5, 8}), v = Tensor::zeros(kF32, {3, 8});
  EXPECT_THROW(model->run(std::vector{x, Tensor::of_i64({0, 5, 1}), v}), Error);
  EXPECT_THROW(model->run(std::vector{x, Tensor::of_i64({0, -6, 1}), v}), Error);
}

TEST_F(CpuGroups, a_concatenation_reads_slices_along_its_axis_where_they_are) {
  for (const char* type : {"f32", "i64", "bool"})
    for (int inner : {1, 3, 40})
      expect_steps(fmt::format(R"((%x: {0}[3, 11, {1}]) -> (%y: {0}[3, 11, {1}]) {{
    %zero = constant {{value = i64[3] (0, 0, 0)}}
    %cut = constant {{value = i64[3] (0, -4, 0)}}
    %before = constant {{value = i64[3] (3, 7, {1})}}
    %all = constant {{value = i64[3] (3, 11, {1})}}
    %last = slice %x, %cut, %all
    %first = slice %x, %zero, %before
    %y = concat %last, %first {{axis = 1}}
    return %y }})",
                               type, inner),
                   {"concat"});
}

TEST_F(CpuGroups, a_concatenation_leaves_slices_along_other_axes_and_those_that_others_need) {
  expect_steps(R"((%x: f32[4, 6]) -> (%y: f32[3, 10], %a: f32[3, 6]) {
    %b = constant {value = i64[2] (1, 0)}
    %c = constant {value = i64[2] (1, 2)}
    %e = constant {value = i64[2] (4, 6)}
    %a = slice %x, %b, %e
    %d = slice %x, %c, %e
    %y = concat %a, %d {axis = 1}
    return %y, %a })",
               {"slice", "slice", "concat"});
}

// Transposes around an operator on images are left out where it goes by planes.
TEST_F(CpuGroups, planes_are_pooled_and_resized_without_transposes) {
  struct Case {
    const char *node, *x, *y;
  };
  const std::vector<Case> images = {
      {"max_pool2d %t {window = [3, 3], padding = same}", "2, 3, 7, 37", "2, 3, 7, 37"},
      {"max_pool2d %t {window = [3, 3], strides = [2, 2], padding = same}", "2, 19, 7, 37", "2, 19, 4, 19"},
      {"max_pool2d %t {window = [1, 2], strides = [1, 3]}", "1, 2, 3, 64", "1, 2, 3, 21"},
      {"max_pool2d %t {window = [3, 3], dilations = [2, 3]}", "1, 3, 9, 60", "1, 3, 5, 54"},
      {"max_pool2d %t {window = [2, 2], padding = explicit, pads = [1, 1, 0, 1]}", "1, 3, 4, 5", "1, 3, 5, 5"},
      {"avg_pool2d %t {window = [3, 3], padding = same}", "2, 3, 7, 37", "2, 3, 7, 37"},
      {"avg_pool2d %t {window = [3, 3], strides = [2, 2], padding = same_lower}", "2, 19, 7, 38", "2, 19, 4, 19"},
      {"avg_pool2d %t {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], count_padding = true}", "1, 3, 7, 8",
       "1, 3, 7, 8"},
      {"avg_pool2d %t {window = [3, 3], strides = [2, 2], ceil_mode = true}", "1, 3, 6, 6", "1, 3, 3, 3"},
      {"avg_pool2d %t {window = [1, 9]}", "1, 3, 2, 4000", "1, 3, 2, 3992"},
      {"max_pool2d %t {window = [2, 2], strides = [2, 2]}", "2, 30, 7, 7", "2, 30, 3, 3"},
      {"max_pool2d %t {window = [5, 5], strides = [3, 3]}", "1, 5, 62, 62", "1, 5, 20, 20"},
      {"avg_pool2d %t {window = [7, 3], strides = [2, 4], padding = same}", "1, 5, 9, 90", "1, 5, 5, 23"},
      {"avg_pool2d %t {window = [2, 5], strides = [2, 5]}", "2, 3, 5, 17", "2, 3, 2, 3"},
      {"resize2d %t, %s {mode = nearest}", "2, 3, 7, 9", "2, 3, 14, 43"},
      {"resize2d %t, %s {mode = nearest, coordinates = half_pixel}", "1, 3, 28, 100", "1, 3, 14, 43"},
  };
  const std::vector<Case> volumes = {
      {"max_pool3d %t {window = [3, 3, 3], strides = [2, 2, 2], padding = same}", "2, 19, 5, 7, 8", "2, 19, 3, 4, 4"},
      {"max_pool3d %t {window = [2, 2, 2], strides = [2, 2, 2]}", "1, 3, 4, 4, 40", "1, 3, 2, 2, 20"},
      {"avg_pool3d %t {window = [3, 3, 3], padding = same}", "1, 4, 5, 6, 28", "1, 4, 5, 6, 28"},
      {"avg_pool3d %t {window = [1, 2, 2], strides = [1, 2, 2]}", "1, 3, 4, 5, 6", "1, 3, 4, 2, 3"},
      {"avg_pool3d %t {window = [3, 1, 1], padding = same}", "1, 3, 6, 4, 3", "1, 3, 6, 4, 3"},
  };
  const auto expect = [](const Case& each, const char* last, const char* first) {
    expect_steps(fmt::format(R"((%x: f32[{}]) -> (%y: f32[{}]) {{
    %s = constant {{value = i64[2] (14, 43)}}
    %t = transpose %x {{permutation = {}}}
    %p = {}
    %y = transpose %p {{permutation = {}}}
    return %y }})",
                             each.x, each.y, last, each.node, first),
                 {std::string(each.node).starts_with("resize") ? "resize of planes"
                  : std::string(each.node).starts_with("max")  ? "max_pool of planes"
                                                               : "average_pool of planes"});
  };
  for (const char* op : {"max_pool2d", "avg_pool2d"})  // one channel needs no transposes
    expect_steps(fmt::format(R"((%x: f32[2, 9, 50, 1]) -> (%y: f32[2, 9, 50, 1]) {{
    %y = {} %x {{window = [5, 3], padding = same}}
    return %y }})",
                             op),
                 {*op == 'm' ? "max_pool of planes" : "average_pool of planes"});
  for (const Case& each : images) expect(each, "[0, 2, 3, 1]", "[0, 3, 1, 2]");
  for (const Case& each : volumes) expect(each, "[0, 2, 3, 4, 1]", "[0, 4, 1, 2, 3]");
}

TEST_F(CpuGroups, maxima_of_planes_keep_a_nan_wherever_it_is) {
  for (int stride : {1, 2, 3}) {
    const std::string text =
        fmt::format(R"(module @m {{ func @main(%x: f32[1, 9, 50, 1]) -> (%y: f32[1, {0}, {1}, 1]) {{
    %y = max_pool2d %x {{window = [3, 3], strides = [{2}, {2}]}}
    return %y }} }})",
                    6 / stride + 1, 47 / stride + 1, stride);
    const auto model = Model::make(parse(text), {.threads = 1, .optimise = false});
    for (int64_t at : {0, 49, 50, 223, 400, 449}) {
      std::vector<float> values(450, 1.f);
      values[static_cast<size_t>(at)] = std::nanf("");
      const Tensor y = model->run(std::vector<Tensor>{Tensor::of<float>(kF32, {1, 9, 50, 1}, values)})[0];
      for (int64_t i = 0; i < y.count(); ++i) {
        const int64_t width = 47 / stride + 1, row = i / width * stride, column = i % width * stride;
        const int64_t down = at / 50 - row, along = at % 50 - column;
        const bool inside = down >= 0 && down < 3 && along >= 0 && along < 3;
        EXPECT_EQ(std::isnan(y.values<float>()[static_cast<size_t>(i)]), inside) << stride << " " << at << " " << i;
      }
    }
  }
}

TEST_F(CpuGroups, what_normalises_rows_is_one_step) {
  const char* const kSquares[] = {"square %d", "mul %d, %d", "squared_difference %x, %m"};
  const char* const kEnds[] = {"%r = rsqrt %e %y = mul %d, %r", "%r = rsqrt %e %y = mul %r, %d",
                               "%r = sqrt %e %y = div %d, %r"};
  for (const char* squares : kSquares)
    for (const char* end : kEnds)
      for (const char* dims : {"3, 5, 7", "2, 1, 1", "9, 40, 50", "8, 3, 2100"})
        expect_steps(fmt::format(R"((%x: f32[{0}]) -> (%y: f32[{0}]) {{
    %c = constant {{value = f32[] (0.001)}}
    %m = reduce_mean %x {{axes = [1, -1], keep_dims = true}}
    %d = sub %x, %m
    %q = {1}
    %v = reduce_mean %q {{axes = [2, 1], keep_dims = true}}
    %e = add %v, %c
    {2}
    return %y }})",
                                 dims, squares, end),
                     {"normalisation"});
}

TEST_F(CpuGroups, a_normalisation_over_other_axes_or_whose_parts_others_need_stays_right) {
  const auto steps = [](const char* axes, const char* needed, const std::vector<std::string>& kernels) {
    expect_steps(fmt::format(R"((%x: f32[6, 33]) -> (%y: f32[6, 33], %z: f32[6, 33]) {{
    %c = constant {{value = f32[] (0.001)}}
    %m = reduce_mean %x {{axes = {0}, keep_dims = true}}
    %d = sub %x, %m
    %q = square %d
    %v = reduce_mean %q {{axes = {0}, keep_dims = true}}
    %e = add %v, %c
    %r = rsqrt %e
    %y = mul %d, %r
    %n = neg {1}
    %z = add %n, %x
    return %y, %z }})",
                             axes, needed),
                 kernels);
  };
  steps("[0]", "%x", {"reduce", "elementwise", "elementwise", "reduce", "elementwise", "elementwise"});
  steps("[1]", "%d", {"reduce", "elementwise", "elementwise", "reduce", "elementwise", "elementwise"});
}

TEST_F(CpuGroups, few_rows_read_weights_that_are_no_constants_where_they_are) {
  for (int rows : {1, 2, 6, 7})
    for (int k : {1, 37, 600})
      for (int c : {5, 16, 64, 70, 300})
        expect_steps(
            fmt::format(
                R"((%x: f32[{0}, {1}], %w: f32[{1}, {2}], %r: f32[{0}, {2}], %b: f32[{2}]) -> (%y: f32[{0}, {2}]) {{
    %p = matmul %x, %w
    %a = add %p, %b
    %s = add %a, %r
    %y = relu %s
    return %y }})",
                rows, k, c),
            {"tile"});
  expect_steps(R"((%x: f32[9, 1, 37], %w: f32[9, 37, 70]) -> (%y: f32[9, 1, 70]) {
    %y = matmul %x, %w
    return %y })",
               {"tile"});
}

// Rows that divide into slices and that leave a rest, along inner axes, with operands by rows, by elements and by both.
TEST_F(CpuGroups, what_goes_by_the_same_rows_is_one_step_of_slices) {
  const char* kNorm = R"((%x: f32[{0}, {1}, {2}, {3}], %s: f32[{1}, 1, 1], %o: f32[{3}], %r: f32[{0}, {1}, {2}, {3}]) ->
      (%y: f32[{0}, {1}, {2}, {3}], %m: f32[{0}, {1}, 1, 1]) {{
    %e = constant {{value = f32[] (0.001)}}
    %in = add %x, %r
    %m = reduce_mean %in {{axes = [2, 3], keep_dims = true}}
    %d = sub %in, %m
    %q = square %d
    %v = reduce_mean %q {{axes = [2, -1], keep_dims = true}}
    %w = add %v, %e
    %f = rsqrt %w
    %n = mul %d, %f
    %t = mul %n, %s
    %y = add %t, %o
    return %y, %m }})";
  for (const auto& [a, b, c, d] :
       {std::array{1, 64, 28, 28}, {3, 67, 20, 33}, {500, 1, 1, 100}, {2, 33, 1, 700}, {7, 3, 50, 90}})
    expect_steps(fmt::format(fmt::runtime(kNorm), a, b, c, d), {"slices"});
  expect_steps(R"((%x: f32[301, 130], %g: f32[301, 130], %k: f32[]) -> (%p: f32[301, 130], %dx: f32[301, 130]) {
    %a = mul %x, %k
    %p = softmax %a {axis = -1}
    %b = mul %p, %g
    %s = reduce_sum %b {axes = [1], keep_dims = true}
    %c = sub %g, %s
    %d = mul %c, %p
    %dx = mul %d, %k
    return %p, %dx })",
               {"slices"});
}

// Of short rows along an inner axis a slice takes all, and those of several outer places.
TEST_F(CpuGroups, short_rows_along_an_inner_axis_are_sliced_together) {
  for (const auto& [a, b, c] : {std::array{1152, 10, 16}, {501, 3, 33}, {2, 2000, 9}})
    expect_steps(fmt::format(R"((%x: f32[1, {0}, {1}, {2}], %v: f32[1, 1, {1}, {2}]) -> (%y: f32[1, {0}, {1}, {2}]) {{
    %p = mul %x, %v
    %s = reduce_sum %p {{axes = [3], keep_dims = true}}
    %y = sub %x, %s
    return %y }})",
                             a, b, c),
                 {"slices"});
}

// Operands whose last dims are short: spread, repeated as pairs or fours, or with dims of their own between.
TEST_F(CpuGroups, operands_of_short_rows_are_spread_in_any_pattern) {
  const auto product = [](const std::string& a, const std::string& b, const std::string& y) {
    expect_steps("(%a: f32[" + a + "], %b: f32[" + b + "]) -> (%y: f32[" + y + "]) { %y = mul %a, %b return %y }",
                 {"elementwise 1"});
  };
  for (int last : {1, 2, 3, 4, 5, 8, 12})
    for (int middle : {1, 2, 3, 16, 31, 200}) {
      const std::string k = fmt::format("{}", middle), l = fmt::format("{}", last);
      product("61, 7, " + k + ", 1", "61, 7, 1, " + l, "61, 7, " + k + ", " + l);
      product("7, 1, " + k + ", " + l, "1, 300, 1, " + l, "7, 300, " + k + ", " + l);
      product("300, 1, " + l, k + ", 1", "300, " + k + ", " + l);
      product("5, " + k + ", 1, 3, " + l, "5, 1, 11, 3, " + l, "5, " + k + ", 11, 3, " + l);
    }
}

// Axes of which one position is taken vanish, and those that then follow each other at one distance are one.
TEST_F(CpuGroups, slices_of_single_places_of_any_axes) {
  const auto slice = [](const std::string& begin, const std::string& end, const std::string& steps,
                        const std::string& y) {
    expect_steps("(%x: f32[9, 70, 5, 4]) -> (%y: f32[" + y + "]) { %b = constant {value = i64[4] (" + begin +
                     ")} %e = constant {value = i64[4] (" + end + ")} %y = slice %x, %b, %e {steps = [" + steps +
                     "]} return %y }",
                 {"slice"});
  };
  slice("0, 0, 0, 2", "9, 70, 5, 3", "1, 1, 1, 1", "9, 70, 5, 1");
  slice("0, 0, 3, 0", "9, 70, 4, 4", "1, 1, 1, 1", "9, 70, 1, 4");
  slice("0, 69, 0, 1", "9, 70, 5, 2", "1, 1, 1, 1", "9, 1, 5, 1");
  slice("4, 1, 2, 3", "5, 70, 3, 4", "1, 3, 1, 1", "1, 23, 1, 1");
  slice("8, 69, 4, 3", "-10, -71, -6, 4", "-1, -1, -1, 1", "9, 70, 5, 1");
  slice("0, 60, 4, 0", "9, 2, 0, 4", "2, -7, -2, 3", "5, 9, 2, 2");
}

TEST_F(CpuGroups, concatenations_of_short_pieces) {
  for (int a : {1, 2, 3, 4, 8, 16, 17})
    for (int b : {1, 2, 5})
      expect_steps(fmt::format("(%a: f32[301, 7, {0}], %b: f32[301, 7, {1}], %c: f32[301, 7, 1]) -> "
                               "(%y: f32[301, 7, {2}]) {{ %y = concat %a, %b, %c {{axis = 2}} return %y }}",
                               a, b, a + b + 1),
                   {"concat"});
}

// Weights that are constants are packed once, also those of many small products, some of which share them.
TEST_F(CpuGroups, many_products_with_constant_matrices) {
  std::string numbers;
  for (int i = 0; i < 5 * 3 * 16; ++i) numbers += fmt::format("{}{}", i ? ", " : "", (i * 7 % 23 - 11) / 8.0);
  for (const char* left : {"9, 5, 1, 3", "1, 5, 4, 3", "5, 40, 3"})
    expect_steps(fmt::format("(%x: f32[{0}]) -> (%y: f32[{1}, 16]) {{ %w = constant {{value = f32[5, 3, 16] ({2})}} "
                             "%y = matmul %x, %w return %y }}",
                             left, std::string(left).substr(0, std::string(left).size() - 3), numbers),
                 {"tile"});
}

TEST_F(CpuGroups, rows_that_another_step_needs_in_between_stay_apart) {
  expect_steps(R"((%x: f32[300, 200]) -> (%y: f32[300, 200]) {
    %m = reduce_max %x {axes = [1], keep_dims = true}
    %d = sub %x, %m
    %t = transpose %d {permutation = [1, 0]}
    %shape = constant {value = i64[2] (300, 200)}
    %f = reshape %t, %shape
    %s = reduce_sum %d {axes = [1], keep_dims = true}
    %n = div %f, %s
    %y = add %n, %d
    return %y })",
               {"slices", "transpose", "slices"});
}

TEST_F(CpuGroups, a_column_of_a_transposed_matrix_is_a_row_of_its_vector) {
  for (const auto& [k, m] : {std::pair{512, 200}, {1, 7}, {37, 1}, {300, 64}, {5, 70}})
    for (const char* order : {"1", "0"})
      expect_steps(fmt::format(R"((%x: f32[{0}, {1}], %d: f32[{2}], %r: f32[{1}, 1]) -> (%y: f32[{1}, 1]) {{
    %p = matmul %x, %d {{transpose_a = true, transpose_b = {3}}}
    %y = add %p, %r
    return %y }})",
                               k, m, *order == '1' ? fmt::format("1, {}", k) : fmt::format("{}, 1", k),
                               *order == '1' ? "true" : "false"),
                   {"tile"});
}

TEST_F(CpuGroups, products_and_convolutions_take_a_bias_that_is_no_constant) {
  for (const char* c : {"5", "16", "64", "70"}) {
    expect_steps(fmt::format(R"((%x: f32[31, 40], %w: f32[40, {0}], %b: f32[{0}]) -> (%y: f32[31, {0}]) {{
    %p = matmul %x, %w
    %a = add %p, %b
    %y = relu %a
    return %y }})",
                             c),
                 {"tile"});
    expect_steps(fmt::format(
                     R"((%x: f32[2, 9, 9, 5], %w: f32[3, 3, 5, {0}], %b: f32[1, 1, {0}]) -> (%y: f32[2, 9, 9, {0}]) {{
    %p = conv2d %x, %w {{padding = same}}
    %y = add %b, %p
    return %y }})",
                     c),
                 {"tile"});
  }
  expect_steps(R"((%x: f32[2, 9, 9, 20], %w: f32[3, 3, 1, 20], %b: f32[20]) -> (%y: f32[2, 9, 9, 20]) {
    %p = conv2d %x, %w {padding = same, groups = 20}
    %a = add %p, %b
    %y = relu %a
    return %y })",
               {"depthwise"});
}

TEST_F(CpuGroups, normalisation_of_a_batch_takes_addition_and_relu) {
  for (const char* axis : {"-1", "1"})
    expect_steps(fmt::format(R"((%x: f32[6, 20, 7, 20], %s: f32[20], %o: f32[20], %r: f32[6, 20, 7, 20]) ->
      (%y: f32[6, 20, 7, 20], %m: f32[20]) {{
    %n, %m, %v = batch_norm_training %x, %s, %o {{epsilon = 0.001, axis = {0}}}
    %a = add %n, %r
    %y = relu %a
    return %y, %m }})",
                             axis),
                 {"batch_norm_training, added, relu"});
}

TEST_F(CpuGroups, gradient_of_normalisation_takes_that_of_relu_before_it) {
  for (const char* axis : {"-1", "1"})
    expect_steps(fmt::format(R"((%y: f32[6, 20, 7, 20], %dy: f32[6, 20, 7, 20], %x: f32[6, 20, 7, 20], %s: f32[20]) ->
      (%dx: f32[6, 20, 7, 20], %ds: f32[20], %do: f32[20]) {{
    %zero = constant {{value = f32[] (0.0)}}
    %one = constant {{value = f32[20] (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)}}
    %p = greater %y, %zero
    %g = select %p, %dy, %zero
    %dx, %ds, %do = batch_norm_gradient %g, %x, %s, %s, %one {{epsilon = 0.001, axis = {0}}}
    return %dx, %ds, %do }})",
                             axis),
                 {"batch_norm_gradient, gated"});
}

TEST_F(CpuGroups, gradient_of_an_image_is_added_to_another) {
  for (const char* stride : {"1", "2"})
    expect_steps(fmt::format(R"((%dy: f32[2, 5, 5, 24], %w: f32[1, 1, 20, 24], %r: f32[2, {0}, {0}, 20]) ->
      (%y: f32[2, {0}, {0}, 20]) {{
    %shape = constant {{value = i64[4] (2, {0}, {0}, 20)}}
    %g = conv2d_input_gradient %dy, %w, %shape {{strides = [{1}, {1}], padding = same}}
    %y = add %r, %g
    return %y }})",
                             std::string(stride) == "1" ? 5 : 9, stride),
                 {"input_gradient"});
}

// The casts around them are no steps of their own, typed operations round where they did, and what is added has 16 bits too.
TEST_F(CpuGroups, products_and_convolutions_of_16_bits_are_one_step) {
  for (const char* type : {"f16", "bf16"}) {
    expect_steps(fmt::format(R"((%x: {0}[2, 7, 9, 24], %w: {0}[3, 3, 24, 40], %b: {0}[40], %r: {0}[2, 7, 9, 40]) ->
        (%y: {0}[2, 7, 9, 40]) {{
      %c = conv2d %x, %w {{padding = same}}
      %d = add %c, %b
      %e = add %d, %r
      %y = relu %e
      return %y }})",
                             type),
                 {"tile"});
    expect_steps(fmt::format(R"((%x: {0}[33, 70], %w: {0}[50, 70], %b: f32[50]) -> (%y: {0}[33, 50]) {{
      %a = cast %x {{dtype = f32}}
      %v = cast %w {{dtype = f32}}
      %p = matmul %a, %v {{transpose_b = true}}
      %q = add %p, %b
      %y = cast %q {{dtype = {0}}}
      return %y }})",
                             type),
                 {"tile"});
    for (const char* kernel : {"3, 3", "1, 1"})
      for (const auto& [size, stride] : {std::pair("9, 9", "1"), {"8, 6", "1"}, {"17, 12", "2"}, {"2, 1", "1"}})
        expect_steps(fmt::format(R"((%x: {0}[2, {1}, 6], %dy: {0}[2, {2}, 32]) -> (%y: f32[{3}, 6, 32]) {{
      %a = cast %x {{dtype = f32}}
      %d = cast %dy {{dtype = f32}}
      %shape = constant {{value = i64[4] ({3}, 6, 32)}}
      %y = conv2d_kernel_gradient %a, %d, %shape {{padding = same, strides = [{4}, {4}]}}
      return %y }})",
                                 type, size, *stride == '2' ? "9, 6" : size, kernel, stride),
                     {"kernel_gradient"});
    for (int rows : {400, 401})
      expect_steps(fmt::format(R"((%x: {0}[{1}, 70], %dy: {0}[{1}, 90]) -> (%y: f32[70, 90]) {{
      %a = cast %x {{dtype = f32}}
      %d = cast %dy {{dtype = f32}}
      %y = matmul %a, %d {{transpose_a = true}}
      return %y }})",
                               type, rows),
                   {"transposed_product"});
  }
}

// Weights in f32 are rounded while they are packed, where an odd number of channels has no pairs as well.
TEST_F(CpuGroups, a_step_rounds_its_weights_itself) {
  for (const char* type : {"f16", "bf16"}) {
    for (int channels : {70, 71, 200})
      for (const auto& [transposed, shape] : {std::pair("false", "{1}, 90"), {"true", "90, {1}"}})
        for (int rows : {3, 130})
          expect_steps(fmt::format(fmt::runtime(std::string("(%x: {0}[{3}, {1}], %w: f32[") + shape +
                                                R"(]) -> (%y: {0}[{3}, 90]) {{
      %a = cast %x {{dtype = f32}}
      %n = cast %w {{dtype = {0}}}
      %v = cast %n {{dtype = f32}}
      %p = matmul %a, %v {{transpose_b = {2}}}
      %y = cast %p {{dtype = {0}}}
      return %y }})"),
                                   type, channels, transposed, rows),
                       {"tile"});
    for (const char* stride : {"1", "2"})
      expect_steps(fmt::format(R"((%x: {0}[2, 9, 9, 24], %w: f32[3, 3, 24, 40], %dy: {0}[2, {2}, {2}, 40]) ->
          (%y: {0}[2, {2}, {2}, 40], %z: {0}[2, 9, 9, 24]) {{
      %n = cast %w {{dtype = {0}}}
      %m = cast %w {{dtype = {0}}}
      %y = conv2d %x, %n {{padding = same, strides = [{1}, {1}]}}
      %shape = constant {{value = i64[4] (2, 9, 9, 24)}}
      %z = conv2d_input_gradient %dy, %m, %shape {{padding = same, strides = [{1}, {1}]}}
      return %y, %z }})",
                               type, stride, *stride == '1' ? 9 : 5),
                   {"tile", "input_gradient"});
    expect_steps(fmt::format(R"((%x: {0}[2, 9, 9, 24], %w: f32[3, 3, 6, 40]) -> (%y: {0}[2, 9, 9, 40]) {{
      %n = cast %w {{dtype = {0}}}
      %y = conv2d %x, %n {{padding = same, groups = 4}}
      return %y }})",
                             type),
                 {"grouped"});
  }
}

TEST_F(CpuGroups, gradients_of_depthwise_convolutions_of_16_bits_take_the_kernel_of_floats) {
  for (const char* type : {"f16", "bf16"})
    for (const char* stride : {"1", "2"})
      expect_steps(fmt::format(R"((%x: {0}[3, 9, 9, 24], %w: f32[3, 3, 1, 24], %dy: {0}[3, {2}, {2}, 24]) ->
          (%y: f32[3, 3, 1, 24], %z: {0}[3, 9, 9, 24]) {{
      %a = cast %x {{dtype = f32}}
      %d = cast %dy {{dtype = f32}}
      %weights = constant {{value = i64[4] (3, 3, 1, 24)}}
      %y = conv2d_kernel_gradient %a, %d, %weights {{padding = same, strides = [{1}, {1}], groups = 24}}
      %n = cast %w {{dtype = {0}}}
      %image = constant {{value = i64[4] (3, 9, 9, 24)}}
      %z = conv2d_input_gradient %dy, %n, %image {{padding = same, strides = [{1}, {1}], groups = 24}}
      return %y, %z }})",
                               type, stride, *stride == '1' ? 9 : 5),
                   {"depthwise_kernel_gradient, widened", "depthwise_input_gradient, widened"});
}

// Transposed convolutions: bias and activation run in the step, the kernel is packed once for each way it is read.
TEST_F(CpuGroups, transposed_convolutions_take_bias_and_relu) {
  std::string kernel = "0.5";
  for (int i = 1; i < 4 * 4 * 3 * 2; ++i) kernel += fmt::format(", {}.{}", i % 7 - 3, i % 10);
  expect_steps(fmt::format(R"((%x: f32[2, 5, 6, 2]) ->
      (%p: f32[2, 5, 6, 3], %q: f32[2, 10, 12, 3], %r: f32[2, 25, 30, 3]) {{
    %k = constant {{value = f32[4, 4, 3, 2] ({})}}
    %b = constant {{value = f32[3] (0.5, -1.0, 2.0)}}
    %s1 = constant {{value = i64[4] (2, 5, 6, 3)}}
    %s2 = constant {{value = i64[4] (2, 10, 12, 3)}}
    %s5 = constant {{value = i64[4] (2, 25, 30, 3)}}
    %c1 = conv2d_input_gradient %x, %k, %s1 {{padding = same}}
    %a1 = add %c1, %b
    %p = relu %a1
    %c2 = conv2d_input_gradient %x, %k, %s2 {{padding = same, strides = [2, 2]}}
    %a2 = add %c2, %b
    %q = relu %a2
    %c5 = conv2d_input_gradient %x, %k, %s5 {{padding = same, strides = [5, 5]}}
    %a5 = add %c5, %b
    %r = relu %a5
    return %p, %q, %r }})",
                           kernel),
               {"input_gradient", "input_gradient", "input_gradient", "elementwise"});
}

}  // namespace
}  // namespace cairn
