// Products and convolutions of f64 and of whole numbers: equal to the reference over several blocks, the same bits at any number of
// threads, and infinite weights meet nothing outside of an image.
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

struct ProductCase {
  const char *inputs, *call;
};

constexpr ProductCase kProductCases[] = {
    {"%a: f64[300, 270], %b: f64[270, 140]", "matmul %a, %b"},
    {"%a: f64[270, 100], %b: f64[37, 270]", "matmul %a, %b {transpose_a = true, transpose_b = true}"},
    {"%a: f64[3, 1, 20, 7], %b: f64[4, 7, 5]", "matmul %a, %b"},
    {"%a: i32[101, 300], %b: i32[300, 33]", "matmul %a, %b"},
    {"%a: f64[40, 3, 20], %b: f64[1, 20, 70]", "matmul %a, %b"},
    {"%a: i64[65, 9], %b: i64[70, 9]", "matmul %a, %b {transpose_b = true}"},
    {"%a: i32[16, 530], %b: i32[400, 530]", "matmul %a, %b {transpose_b = true}"},
    {"%a: f64[9, 50], %b: f64[77, 50]", "matmul %a, %b {transpose_b = true}"},
    {"%a: u8[30, 40], %b: u8[40, 50]", "matmul %a, %b"},
    {"%a: f64[2, 19, 17, 10], %b: f64[3, 3, 5, 6]", "conv2d %a, %b {groups = 2, strides = [2, 1], padding = same}"},
    {"%a: f64[2, 19, 17, 3], %b: f64[3, 2, 3, 130]", "conv2d %a, %b {dilations = [2, 3]}"},
    {"%a: f64[1, 7, 9, 8, 4], %b: f64[3, 3, 3, 4, 5]", "conv3d %a, %b {padding = same, strides = [1, 2, 2]}"},
};

void expect_equal_to_the_reference(const std::string& text) {
  SCOPED_TRACE(text);
  std::mt19937_64 random(11);
  expect_reference_result(
      text, random, [](const auto& kernels) { EXPECT_NE(kernels.find("cpu/products"), std::string::npos) << kernels; });
}

TEST(CpuProducts, equal_the_reference_in_f64_and_whole_numbers) {
  for (const ProductCase& each : kProductCases)
    expect_equal_to_the_reference(
        fmt::format("module @m {{ func @main({}) -> (%y: {}[*]) {{ %y = {} return %y }} }}", each.inputs,
                    std::string(each.inputs).substr(4, std::string(each.inputs).find('[') - 4), each.call));
}

TEST(CpuProducts, gradients_of_f64_convolutions_equal_the_reference) {
  for (const char* attributes : {"{groups = 2, strides = [2, 1], padding = same}", "{groups = 2, dilations = [2, 2]}"})
    for (const auto& [inputs, call] :
         {std::pair("%a: f64[2, {}, 10], %b: f64[3, 3, 5, 6]", "conv2d_input_gradient %a, %b, %s"),
          std::pair("%a: f64[2, 19, 17, 10], %b: f64[2, {}, 6]", "conv2d_kernel_gradient %a, %b, %s")}) {
      const bool of_kernel = std::string(call).find("kernel") != std::string::npos,
                 same = std::string(attributes).find("same") != std::string::npos;
      std::string given = inputs;
      given.replace(given.find("{}"), 2, same ? "10, 17" : "15, 13");
      if (!of_kernel) given.replace(given.find("10]"), 3, "6]");
      expect_equal_to_the_reference(
          fmt::format("module @m {{ func @main({}) -> (%y: f64[*]) {{ %s = constant {{value = i64[4] ({})}} %y = {} {} "
                      "return %y }} }}",
                      given, of_kernel ? "3, 3, 5, 6" : "2, 19, 17, 10", call, attributes));
    }
}

}  // namespace
}  // namespace cairn
