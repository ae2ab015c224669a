// Element-wise programs and reductions of f64 and whole numbers: equal to the reference whatever the shapes, the same bits at any
// number of threads, and one step for a chain.
#include "engines/cpu_reference.h"

namespace cairn {
namespace {

std::string model_of(const std::string& params, const std::string& body, const std::string& result) {
  return "module @m { func @main(" + params + ") -> (%r: " + result + ") {\n" + body + "\nreturn %r } }";
}

void expect_kernel(const std::string& text, const std::string& kernel) {
  std::mt19937_64 random(3);
  expect_reference_result(text, random, [&](const std::string& kernels) {
    EXPECT_NE(kernels.find(kernel), std::string::npos) << kernels << "\n" << text;
  });
}

TEST(CpuDoubles, a_chain_of_f64_is_one_step_whatever_the_shapes) {
  for (const char* shape : {"1", "7", "129", "3, 5", "64, 33", "2, 3, 250", "5000"}) {
    const std::string type = fmt::format("f64[{}]", shape);
    expect_kernel(
        model_of(
            fmt::format("%x: {0}, %y: {0}", type),
            "%a = mul %x, %y\n%b = tanh %a\n%c = exp %b\n%d = sub %c, %x\n%e = less %d, %y\n%r = select %e, %a, %d",
            type),
        "cpu/doubles 6");
  }
}

TEST(CpuDoubles, broadcasts_views_and_casts_are_read_in_place) {
  expect_kernel(model_of("%x: f64[20, 30], %y: f64[30], %z: f64[20, 1], %s: f64[]",
                         "%a = add %x, %y\n%b = mul %a, %z\n%r = sub %b, %s", "f64[20, 30]"),
                "cpu/doubles 3");
  expect_kernel(
      model_of("%x: f32[40], %y: i32[40], %z: i64[40]",
               "%a = cast %x {dtype = f64}\n%b = cast %y {dtype = f64}\n%c = cast %z {dtype = f64}\n%d = mul %a, %b\n"
               "%r = add %d, %c",
               "f64[40]"),
      "cpu/doubles 5");
  expect_kernel(model_of("%x: f64[30, 20], %y: f64[20, 30]",
                         "%t = transpose %x {permutation = [1, 0]}\n%a = mul %t, %y\n%r = sqrt %a", "f64[20, 30]"),
                "cpu/doubles");
}

TEST(CpuDoubles, every_function_of_one_number_equals_the_reference) {
  for (const char* op :
       {"exp",   "expm1",      "log",   "log1p", "tanh",  "sigmoid", "softplus", "erf",   "erfc",   "sin",
        "cos",   "tan",        "asin",  "acos",  "atan",  "sinh",    "cosh",     "asinh", "atanh",  "sqrt",
        "rsqrt", "reciprocal", "floor", "ceil",  "round", "abs",     "neg",      "sign",  "square", "log_gamma"})
    expect_kernel(model_of("%x: f64[133]", fmt::format("%a = sigmoid %x\n%r = {} %a", op), "f64[133]"),
                  "cpu/doubles 2");
}

TEST(CpuDoubles, reductions_of_neighbouring_axes_are_vector_code) {
  for (const char* type : {"f64", "i32", "i64"})
    for (const char* op : {"reduce_sum", "reduce_max", "reduce_min", "reduce_mean"}) {
      if (op == std::string("reduce_mean") && type != std::string("f64")) continue;
      for (const auto& [from, axes, to] : {std::tuple{"7, 133", "1", "7"},
                                           {"133, 7", "0", "7"},
                                           {"5, 31, 70", "1", "5, 70"},
                                           {"3, 4, 5", "0, 1, 2", ""},
                                           {"2, 1000", "1", "2"}})
        expect_kernel(model_of(fmt::format("%x: {}[{}]", type, from),
                               fmt::format("%r = {} %x {{axes = [{}]}}", op, axes), fmt::format("{}[{}]", type, to)),
                      "cpu/wide_reduce");
    }
}

TEST(CpuDoubles, largest_and_smallest_numbers_keep_nan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* op : {"reduce_max", "reduce_min"})
    for (size_t at : {0, 40, 63}) {
      const auto model =
          Model::make(parse(model_of("%x: f64[64]", fmt::format("%r = {} %x {{axes = [0]}}", op), "f64[]")));
      std::vector<double> values(64, 1.0);
      values[at] = nan;
      const Tensor found = model->run(std::vector<Tensor>{Tensor::of<double>(kF64, {64}, values)})[0];
      EXPECT_TRUE(std::isnan(found.values<double>()[0])) << op << at;
    }
}

}  // namespace
}  // namespace cairn
