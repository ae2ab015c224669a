// Kernels of the CPU engine over rows and crops that indices name, at sizes that several workers share, against the reference engine.
#include <gtest/gtest.h>

#include <random>

#include "engines/cpu_reference.h"
#include "ir/evaluate.h"
#include "ir/text.h"
#include "ops/cases.h"
#include "ops/kernels.h"
#include "runtime/model.h"

namespace cairn {
namespace {

std::vector<Tensor> run(const std::string& function, const std::vector<Tensor>& inputs, const char* engine,
                        int threads) {
  const ModelOptions options{.threads = threads, .engines = {engine}, .optimise = false};
  return Model::make(parse("module @m {\n" + function + "\n}\n"), options)->run(inputs);
}

Tensor indices(DType dtype, int64_t count, int64_t first, int64_t end) {
  std::mt19937 random(3);
  std::vector<int64_t> list;
  for (int64_t i = 0; i < count; ++i)
    list.push_back(first + static_cast<int64_t>(random() % static_cast<uint64_t>(end - first)));
  return dtype == kI64 ? Tensor::of(kI64, {count}, list)
                       : Tensor::of(kI32, {count}, std::vector<int32_t>(list.begin(), list.end()));
}

void expect_equal(const std::string& function, const std::vector<Tensor>& inputs, Precision precision) {
  const auto expected = run(function, inputs, "reference", 1), one = run(function, inputs, "cpu", 1),
             three = run(function, inputs, "cpu", 3);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(difference(expected[i], one[i], precision).value_or(""), "") << function;
    EXPECT_TRUE(one[i].same_bits(three[i])) << function;
  }
}

const std::vector<DType> kNumberTypes{kF32, kF64, kF16, kBF16, kI32, kI64, kI8, kU16};

Tensor small_numbers(DType dtype, Dims dims) {
  std::mt19937_64 random(1);
  const Tensor x = random_tensor(Type::tensor(kF32, Shape::of(dims)), random);
  return evaluate("cast", {x}, {{"dtype", dtype}});
}

TEST(CpuSegments, combines_rows_into_others_in_the_order_of_their_indices) {
  for (const DType dtype : kNumberTypes)
    for (const char* mode : {"add", "sub", "mul", "div", "min", "max"})
      for (const int64_t inner : {1, 3, 40}) {
        if (!dtype.is_float() && mode == std::string("div")) continue;
        const int64_t count = inner == 1 ? 20000 : 2500;
        expect_equal(
            fmt::format("func @main(%x: {0}[50, {1}], %i: i64[{2}], %u: {0}[{2}, {1}]) -> (%y: {0}[50, {1}]) "
                        "{{\n%y = scatter_reduce %x, %i, %u {{mode = {3}, padded = true}} : {0}[50, {1}]\n"
                        "return %y }}",
                        to_string(dtype), inner, count, mode),
            {small_numbers(dtype, {50, inner}), indices(kI64, count, -5, 50), small_numbers(dtype, {count, inner})},
            Precision::accumulate_f32);
      }
}

TEST(CpuSegments, scatters_elements_along_any_axis) {
  struct Form {
    const char *x, *indices, *updates;
    Dims x_dims, index_dims, update_dims;
    int64_t axis;
  };
  const std::vector<Form> forms{{"[90, 40]", "[700, 40]", "[700, 40]", {90, 40}, {700, 40}, {700, 40}, 0},
                                {"[90, 40]", "[700]", "[700, 40]", {90, 40}, {700}, {700, 40}, 0},
                                {"[5, 70, 7]", "[3, 600, 6]", "[3, 600, 6]", {5, 70, 7}, {3, 600, 6}, {3, 600, 6}, 1},
                                {"[50, 7, 3]", "[40, 90]", "[40, 90, 3]", {50, 7, 3}, {40, 90}, {40, 90, 3}, 1},
                                {"[90, 40]", "[80, 300]", "[80, 300]", {90, 40}, {80, 300}, {80, 300}, -1},
                                {"[3000]", "[20000]", "[20000]", {3000}, {20000}, {20000}, 0}};
  for (const DType dtype : kNumberTypes)
    for (const Form& form : forms)
      for (const char* mode : {"update", "add", "mul", "min", "max"}) {
        const int64_t end = form.axis < 0 ? form.x_dims.back() : form.x_dims[static_cast<size_t>(form.axis)];
        const Tensor at = indices(kI32, count_of(form.index_dims), -end, end).reshaped(form.index_dims);
        expect_equal(
            fmt::format("func @main(%x: {0}{1}, %i: i32{2}, %u: {0}{3}) -> (%y: {0}{1}) {{\n%y = scatter_elements "
                        "%x, %i, %u {{axis = {4}, mode = {5}}} : {0}{1}\nreturn %y }}",
                        to_string(dtype), form.x, form.indices, form.updates, form.axis, mode),
            {small_numbers(dtype, form.x_dims), at, small_numbers(dtype, form.update_dims)}, Precision::accumulate_f32);
      }
}

TEST(CpuIndexVectors, put_the_last_of_several_updates) {
  for (const DType dtype : kNumberTypes)
    expect_equal(
        fmt::format("func @main(%x: {0}[50, 9, 40], %i: i32[5000], %u: {0}[2500, 40]) -> (%y: {0}[50, 9, 40]) "
                    "{{\n%s = constant {{value = i64[2] (-1, 2)}} : i64[2]\n%v = reshape %i, %s : i32[2500, 2]\n"
                    "%y = scatter_update %x, %v, %u : {0}[50, 9, 40]\nreturn %y }}",
                    to_string(dtype)),
        {small_numbers(dtype, {50, 9, 40}), indices(kI32, 5000, -9, 9), small_numbers(dtype, {2500, 40})},
        Precision::exact);
}

TEST(CpuIndexVectors, name_parts_of_several_dims) {
  std::mt19937_64 random(4);
  const Tensor x = random_tensor(Type::tensor(kF32, {30, 50, 24}), random),
               u = random_tensor(Type::tensor(kF32, {350, 24}), random), i = indices(kI32, 700, -30, 30);
  const char* vectors = "%s = constant {value = i64[2] (-1, 2)} : i64[2]\n%v = reshape %i, %s : i32[350, 2]\n";
  expect_equal(fmt::format("func @main(%x: f32[30, 50, 24], %i: i32[700]) -> (%y: f32[350, 24]) {{\n{}%y = gather_nd "
                           "%x, %v : f32[350, 24]\nreturn %y }}",
                           vectors),
               {x, i}, Precision::exact);
  expect_equal(fmt::format("func @main(%u: f32[350, 24], %i: i32[700]) -> (%y: f32[30, 50, 24]) {{\n{}%d = constant "
                           "{{value = i64[3] (30, 50, 24)}} : i64[3]\n%y = scatter_nd %v, %u, %d : f32[30, 50, 24]\n"
                           "return %y }}",
                           vectors),
               {u, i}, Precision::accumulate_f32);
}

TEST(CpuIndexVectors, count_batches_and_refuse_what_is_out_of_range) {
  std::mt19937_64 random(5);
  const Tensor x = random_tensor(Type::tensor(kF32, {7, 30, 50}), random);
  const std::string text =
      "func @main(%x: f32[7, 30, 50], %i: i64[700]) -> (%y: f32[7, 100, 50]) {\n%s = constant {value = i64[3] (7, 100, "
      "1)} : i64[3]\n%v = reshape %i, %s : i64[7, 100, 1]\n%y = gather_nd %x, %v {batch_dims = 1} : f32[7, 100, "
      "50]\nreturn %y }";
  expect_equal(text, {x, indices(kI64, 700, -30, 30)}, Precision::exact);
  for (const char* engine : {"reference", "cpu"}) try {
      run(text, {x, indices(kI64, 700, 30, 31)}, engine, 2);
      ADD_FAILURE() << engine;
    } catch (const Error& fault) {
      EXPECT_EQ(std::string(fault.what()), "gather_nd: index 30 is out of range for 30 elements") << engine;
    }
}

TEST(CpuSegments, reduces_rows_of_equal_index) {
  for (const DType dtype : kNumberTypes)
    for (const char* mode : {"sum", "mean", "sqrt_n", "prod", "max", "min"})
      for (const int64_t inner : {1, 3, 40}) {
        if (!dtype.is_float() && mode[0] == 'm' && mode[1] == 'e') continue;
        if (!dtype.is_float() && mode == std::string("sqrt_n")) continue;
        // All in one call: a known count, the same count told by a run, and another one.
        expect_equal(
            fmt::format(
                "func @main(%x: {0}[2500, {1}], %i: i32[2500], %n: i64[]) -> (%a: {0}[33, {1}], %b: {0}[?n, {1}], "
                "%c: {0}[?n, {1}]) {{\n%k = constant {{value = i64[] (33)}} : i64[]\n"
                "%a = segment_reduce %x, %i, %k {{mode = {2}}} : {0}[33, {1}]\n"
                "%b = segment_reduce %x, %i, %n {{mode = {2}}} : {0}[?n, {1}]\n"
                "%c = segment_reduce %x, %i, %n {{mode = {2}, empty_is_zero = true}} : {0}[?n, {1}]\n"
                "return %a, %b, %c }}",
                to_string(dtype), inner, mode),
            {small_numbers(dtype, {2500, inner}), indices(kI32, 2500, -3, 30), Tensor::scalar_i64(37)},
            Precision::accumulate_f32);
      }
}

TEST(CpuSegments, reduces_gathered_rows) {
  for (const DType dtype : {kF32, kF64, kBF16})
    for (const char* mode : {"sum", "mean", "sqrt_n"})
      for (const bool weighted : {false, true})
        for (const int64_t inner : {1, 3, 40})
          expect_equal(
              fmt::format(
                  "func @main(%x: {0}[90, {1}], %i: i32[2500], %s: i64[2500], %n: i64[], %w: {0}[2500]) -> (%a: "
                  "{0}[?n, {1}], %b: {0}[35, {1}]) {{\n%a = gather_reduce %x, %i, %s, %n{3} {{mode = {2}}} : {0}[?n, "
                  "{1}]\n%k = constant {{value = i64[] (35)}} : i64[]\n%b = gather_reduce %x, %i, %s, %k{3} {{mode = "
                  "{2}}} : {0}[35, {1}]\nreturn %a, %b }}",
                  to_string(dtype), inner, mode, weighted ? ", %w" : ""),
              {small_numbers(dtype, {90, inner}), indices(kI32, 2500, -90, 90), indices(kI64, 2500, -2, 33),
               Tensor::scalar_i64(37), small_numbers(dtype, {2500})},
              Precision::accumulate_f32);
}

TEST(CpuSegments, sums_rows_whose_indices_ascend_with_gaps) {
  std::vector<int64_t> rows;  // runs of 0 to 9, one beyond a list of indices, none of the first and last rows
  for (int64_t row = 2; row < 95; ++row) rows.insert(rows.end(), static_cast<size_t>(row == 50 ? 300 : row % 10), row);
  const int64_t count = std::ssize(rows);
  for (const int64_t inner : {1, 3, 40, 100})
    for (const bool weighted : {false, true})
      expect_equal(fmt::format("func @main(%x: f32[90, {0}], %i: i32[{1}], %s: i64[{1}], %w: f32[{1}]) -> (%a: "
                               "f32[99, {0}]) {{\n%n = constant {{value = i64[] (99)}} : i64[]\n"
                               "%a = gather_reduce %x, %i, %s, %n{2} {{mode = sum}} : f32[99, {0}]\nreturn %a }}",
                               inner, count, weighted ? ", %w" : ""),
                   {small_numbers(kF32, {90, inner}), indices(kI32, count, -90, 90), Tensor::of(kI64, {count}, rows),
                    small_numbers(kF32, {count})},
                   Precision::accumulate_f32);
}

TEST(CpuSegments, may_have_no_dims) {
  expect_equal(
      "func @main(%x: f32[], %i: i64[]) -> (%y: f32[3]) {\n%n = constant {value = i64[] (3)} : i64[]\n%y = "
      "segment_reduce %x, "
      "%i, %n {mode = max} : f32[3]\nreturn %y }",
      {Tensor::scalar_f32(2), Tensor::scalar_i64(1)}, Precision::exact);
}

TEST(CpuSegments, take_a_new_count_in_each_run_and_refuse_what_is_out_of_range) {
  const std::string text =
      "func @main(%x: f32[700, 3], %i: i64[700], %n: i64[]) -> (%y: f32[?n, 3]) {\n%y = segment_reduce %x, %i, %n "
      "{sorted "
      "= true} : f32[?n, 3]\nreturn %y }";
  const auto model = [&](const char* engine) {
    const ModelOptions options{.threads = 2, .engines = {engine}, .optimise = false};
    return Model::make(parse("module @m {\n" + text + "\n}\n"), options);
  };
  const auto fast = model("cpu"), plain = model("reference");
  std::vector<int64_t> rows(700);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i / 7);
  const Tensor x = small_numbers(kF32, {700, 3}), i = Tensor::of(kI64, {700}, rows);
  EXPECT_EQ(kernels_of(*fast), "cpu/segments of late dims ");
  for (int64_t turn = 0; turn < 30; ++turn) {
    const std::vector<Tensor> inputs{x, i, Tensor::scalar_i64(100 + turn % 13)};
    const auto found = fast->run(inputs), expected = plain->run(inputs);
    EXPECT_EQ(difference(expected[0], found[0], Precision::accumulate_f32).value_or(""), "") << turn;
  }
  const auto fault = [&](const Tensor& segments, int64_t count) -> std::string {
    std::string texts;
    for (const auto& each : {fast, plain}) try {
        each->run({x, segments, Tensor::scalar_i64(count)});
      } catch (const Error& error) {
        texts += std::string(texts.empty() ? "" : " | ") + error.what();
      }
    return texts;
  };
  const std::string far = "segment_reduce: segment 99 is out of range for 99 segments";
  EXPECT_EQ(fault(i, 99), far + " | " + far);
  rows[350] = 3;
  const std::string falls = "segment_reduce: segment 3 where sorted ones are 49 at least";
  EXPECT_EQ(fault(Tensor::of(kI64, {700}, rows), 100), falls + " | " + falls);
}

TEST(CpuLateDims, are_those_of_a_slice_a_broadcast_a_pad_and_a_scatter) {
  const Tensor x = small_numbers(kF32, {60, 30});
  const Tensor three = Tensor::of_i64({3, 60, 30}), first = Tensor::of_i64({5, 1}), last = Tensor::of_i64({-4, 25});
  expect_equal(
      "func @main(%x: f32[60, 30], %s: i64[3], %b: i64[2], %e: i64[2], %p: i64[2, 2], %i: i64[60, 1], %d: i64[2]) -> "
      "(%t: "
      "f32[?a, ?b, ?c], %v: f32[?d, ?e], %q: f32[?f, ?g], %z: f32[?h, ?i]) {\n%t = broadcast_to %x, %s : f32[?a, ?b, "
      "?c]\n%v = slice %x, %b, %e : f32[?d, ?e]\n%q = pad %x, %p : f32[?f, ?g]\n%z = scatter_nd %i, %x, %d : f32[?h, "
      "?i]\nreturn %t, %v, %q, %z }",
      {x, three, first, last, Tensor::of<int64_t>(kI64, {2, 2}, {1, 2, 0, 3}),
       Tensor::of(kI64, {60, 1}, indices(kI64, 60, 0, 40).as_i64()), Tensor::of_i64({40, 30})},
      Precision::accumulate_f32);
}

TEST(CpuIndexVectors, are_found_where_elements_are_not_zero) {
  for (const DType dtype : {kBool, kF32, kBF16, kI64})
    for (const Dims& dims : {Dims{50000}, Dims{30, 70, 20}, Dims{0, 3}, Dims{}}) {
      std::mt19937_64 random(1);
      const Tensor x =
          evaluate("cast", {random_tensor(Type::tensor(kBool, Shape::of(dims)), random)}, {{"dtype", dtype}});
      expect_equal(
          fmt::format("func @main(%x: {0}) -> (%y: i64[?n, {1}]) {{\n%y = non_zero %x : i64[?n, {1}]\nreturn %y }}",
                      to_string(x.type()), dims.size()),
          {x}, Precision::exact);
    }
}

TEST(CpuSegments, finds_as_many_different_elements_as_there_are) {
  for (const DType dtype : {kF32, kF64, kF16, kI32, kI64, kU8, kBool})
    for (const int64_t count : {0, 1, 5000}) {
      Tensor x = small_numbers(dtype, {count});
      expect_equal(
          fmt::format("func @main(%x: {0}[{1}]) -> (%v: {0}[?n], %i: i64[{1}]) {{\n%v, %i = unique %x : {0}[?n], "
                      "i64[{1}]\nreturn %v, %i }}",
                      to_string(dtype), count),
          {x}, Precision::exact);
    }
}

TEST(CpuSegments, finds_different_elements) {
  for (DType dtype : {kI32, kI64})
    for (int64_t end : {1, 40, 100000})
      expect_equal(
          fmt::format("func @main(%x: {0}[5000]) -> (%v: {0}[5000], %i: i64[5000]) {{\n%v, %i = unique_padded %x : "
                      "{0}[5000], i64[5000]\nreturn %v, %i }}",
                      to_string(dtype)),
          {indices(dtype, 5000, 0, end)}, Precision::exact);
  for (const int64_t below : {1, 40, 4999, 100000}) {
    const auto text = fmt::format(
        "func @main(%x: i32[5000]) -> (%v: i32[{0}], %i: i64[5000]) {{\n%v, %i = unique_padded %x {{below = {1}}} : "
        "i32[{0}], i64[5000]\nreturn %v, %i }}",
        std::min<int64_t>(5000, below), below);
    expect_equal(text, {indices(kI32, 5000, 0, below)}, Precision::exact);
    const auto model = Model::make(parse("module @m { " + text + " }"), {});
    Tensor wrong = Tensor::zeros(kI32, {5000});
    static_cast<int32_t*>(wrong.mutable_data())[4321] = static_cast<int32_t>(below);
    EXPECT_THROW(model->run(std::vector<Tensor>{wrong}), Error) << below;
  }
}

TEST(CpuCrops, and_their_gradient_at_sizes_that_workers_share) {
  std::mt19937 random(9);
  std::uniform_real_distribution<float> spread(-0.1f, 1.1f);
  std::vector<float> corners(4 * 60);
  for (float& corner : corners) corner = spread(random);
  const Tensor boxes = Tensor::of(kF32, {60, 4}, corners), owners = indices(kI32, 60, 0, 3);
  for (const DType dtype : {kF32, kF16, kU8})
    for (const int64_t channels : {1, 3, 40})
      for (const char* mode : {"bilinear", "nearest"})
        for (const int64_t height : {1, 9})
          expect_equal(
              fmt::format(
                  "func @main(%x: {0}[3, 21, 17, {1}], %b: f32[60, 4], %i: i32[60], %d: f32[60, {2}, 7, {1}]) -> "
                  "(%y: f32[60, {2}, 7, {1}], %g: f32[3, 21, 17, {1}]) {{\n"
                  "%s = constant {{value = i32[2] ({2}, 7)}} : i32[2]\n"
                  "%y = crop_and_resize %x, %b, %i, %s {{mode = {3}, outside = -2.0}} : f32[60, {2}, 7, {1}]\n"
                  "%k = constant {{value = i64[4] (3, 21, 17, {1})}} : i64[4]\n"
                  "%g = crop_and_resize_gradient %d, %b, %i, %k {{mode = {3}}} : f32[3, 21, 17, {1}]\n"
                  "return %y, %g }}",
                  to_string(dtype), channels, height, mode),
              {small_numbers(dtype, {3, 21, 17, channels}), boxes, owners,
               small_numbers(kF32, {60, height, 7, channels})},
              Precision::accumulate_f32);
}

}  // namespace
}  // namespace cairn
