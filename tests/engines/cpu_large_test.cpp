// Kernels and windows of more taps than generated code has room for, images resized, and batch norm by running statistics: the
// CPU engine takes them all, and agrees with the reference kernels.
#include "engines/cpu_reference.h"
#include "ir/text.h"

namespace cairn {
namespace {

struct LargeCase {
  const char* name;
  const char* params;
  const char* body;    // makes %y
  const char* kernel;  // part of its name
};

constexpr LargeCase kLargeCases[] = {
    {"patches", "%x: f32[2, 32, 48, 3], %k: f32[16, 16, 3, 24]", "conv2d %x, %k {strides = [16, 16]}", "cpu/tile"},
    {"patches_that_overlap", "%x: f32[1, 40, 41, 5], %k: f32[20, 17, 5, 7]", "conv2d %x, %k {strides = [3, 5]}",
     "cpu/tile"},
    {"padded", "%x: f32[2, 9, 20, 6], %k: f32[17, 15, 6, 10]", "conv2d %x, %k {padding = same}", "cpu/grouped"},
    {"padded_with_strides", "%x: f32[1, 30, 31, 4], %k: f32[19, 16, 4, 9]",
     "conv2d %x, %k {padding = same, strides = [2, 3]}", "cpu/grouped"},
    {"dilated", "%x: f32[1, 40, 41, 4], %k: f32[16, 16, 4, 9]", "conv2d %x, %k {padding = same, dilations = [2, 2]}",
     "cpu/grouped"},
    {"groups", "%x: f32[2, 20, 20, 6], %k: f32[17, 17, 3, 8]", "conv2d %x, %k {padding = same, groups = 2}",
     "cpu/grouped"},
    {"depthwise", "%x: f32[1, 20, 20, 5], %k: f32[31, 31, 1, 5]", "conv2d %x, %k {padding = same, groups = 5}",
     "cpu/depthwise_rows"},
    {"input_gradient_of_patches", "%dy: f32[2, 2, 3, 24], %k: f32[16, 16, 3, 24]",
     "conv2d_input_gradient %dy, %k, %s {strides = [16, 16]} where 2, 32, 48, 3", "_gradient"},
    {"input_gradient", "%dy: f32[2, 9, 20, 10], %k: f32[17, 16, 6, 10]",
     "conv2d_input_gradient %dy, %k, %s {padding = same} where 2, 9, 20, 6", "cpu/input_gradient"},
    {"kernel_gradient_of_patches", "%x: f32[2, 32, 48, 3], %dy: f32[2, 2, 3, 24]",
     "conv2d_kernel_gradient %x, %dy, %s {strides = [16, 16]} where 16, 16, 3, 24", "cpu/kernel_gradient"},
    {"kernel_gradient", "%x: f32[2, 9, 20, 6], %dy: f32[2, 9, 20, 10]",
     "conv2d_kernel_gradient %x, %dy, %s {padding = same} where 17, 16, 6, 10", "cpu/kernel_gradient"},
    {"mean_of_a_large_window", "%x: f32[2, 20, 30, 70]", "avg_pool2d %x {window = [20, 15], strides = [20, 15]}",
     "cpu/average_pool"},
    {"padded_mean_of_a_large_window", "%x: f32[1, 20, 30, 5]",
     "avg_pool2d %x {window = [18, 19], padding = same, strides = [2, 3]}", "cpu/average_pool"},
    {"mean_with_its_padding", "%x: f32[1, 20, 30, 5]",
     "avg_pool2d %x {window = [18, 19], padding = explicit, pads = [3, 4, 5, 6], count_padding = true}",
     "cpu/average_pool"},
    {"largest_of_a_large_window", "%x: f32[1, 40, 30, 5]",
     "max_pool2d %x {window = [18, 15], padding = same, dilations = [2, 1]}", "cpu/max_pool"},
    {"bilinear", "%x: f32[2, 7, 9, 5]", "resize2d %x, %s {mode = bilinear, coordinates = half_pixel} where 2: 13, 4",
     "cpu/resize bilinear"},
    {"bicubic", "%x: f32[2, 7, 9, 3]", "resize2d %x, %s {mode = bicubic, coordinates = half_pixel} where 2: 13, 20",
     "cpu/resize bicubic"},
    {"nearest", "%x: f32[2, 7, 9, 3]", "resize2d %x, %s {mode = nearest} where 2: 14, 18", "cpu/resize nearest"},
    {"batch_norm", "%x: f32[2, 7, 9, 21], %a: f32[21], %b: f32[21], %m: f32[21], %v: f32[21]",
     "batch_norm %x, %a, %b, %m, %v {epsilon = 0.9}", "cpu/batch_norm"},
    {"batch_norm_of_planes", "%x: f32[2, 7, 9, 5], %a: f32[7], %b: f32[7], %m: f32[7], %v: f32[7]",
     "batch_norm %x, %a, %b, %m, %v {epsilon = 0.9, axis = 1}", "cpu/batch_norm"},
};

std::string module_of(const LargeCase& each) {
  std::string body = each.body, shape;
  if (const size_t where = body.find(" where "); where != std::string::npos) {
    std::string dims = body.substr(where + 7);
    const bool pair = dims.starts_with("2: ");
    shape = fmt::format("    %s = constant {{value = i64[{}] ({})}}\n", pair ? 2 : 4, pair ? dims.substr(3) : dims);
    body.resize(where);
  }
  return fmt::format("module @m {{\n  func @main({}) -> (%y: f32[*]) {{\n{}    %y = {}\n    return %y\n  }}\n}}\n",
                     each.params, shape, body);
}

class Large : public testing::TestWithParam<LargeCase> {};
INSTANTIATE_TEST_SUITE_P(All, Large, testing::ValuesIn(kLargeCases), [](const auto& info) { return info.param.name; });

TEST_P(Large, IsTakenByTheCpuAndEqualsTheReference) {
  const std::string text = module_of(GetParam());
  const auto make = [&](std::vector<std::string> engines, int threads) {
    return Model::make(parse(text), {.threads = threads, .engines = std::move(engines)});
  };
  auto plain = make({"reference"}, 1);
  Random random(3);
  std::vector<Tensor> inputs;
  for (const Port& port : plain->inputs())
    inputs.push_back(Tensor::of<float>(kF32, port.type.shape.sizes(),
                                       random.floats(*element_count(port.type.shape.sizes()), -0.5f)));
  const Tensor expected = plain->run(inputs)[0];
  std::optional<Tensor> first;
  for (int threads : {1, 3}) {
    auto model = make({}, threads);
    EXPECT_NE(kernels_of(*model).find(GetParam().kernel), std::string::npos) << kernels_of(*model);
    EXPECT_EQ(kernels_of(*model).find("reference/"), std::string::npos) << kernels_of(*model);
    const Tensor found = model->run(inputs)[0];
    ASSERT_EQ(found.dims(), expected.dims());
    const auto a = found.values<float>(), b = expected.values<float>();
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5 * (1 + std::abs(b[i]))) << i;
    if (first) {
      EXPECT_TRUE(first->same_bits(found)) << "more threads change bits";
    }
    first = found;
  }
}

TEST(Large, BatchNormTakesWhatFollowsIt) {
  auto model = Model::make(parse(R"(module @m {
  func @main(%x: f32[2, 7, 9, 21], %r: f32[2, 7, 9, 21], %a: f32[21], %b: f32[21], %m: f32[21], %v: f32[21]) -> (%y: f32[2, 7, 9, 21]) {
    %n = batch_norm %x, %a, %b, %m, %v {epsilon = 0.9}
    %q = add %n, %r
    %y = relu %q
    return %y
  }
}
)"));
  EXPECT_EQ(kernels_of(*model), "cpu/batch_norm, added, relu ");
}

}  // namespace
}  // namespace cairn
