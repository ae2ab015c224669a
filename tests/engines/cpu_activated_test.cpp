// Contractions in 16 bits with the element-wise operations behind them: taken as one step that rounds as each operation would, no
// further from f32's results, the same bits at any number of threads.
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

struct ActivatedCase {
  const char *x, *kernel, *contraction;
  const char* rest;  // of %s, which may be read several times, to %z
  const char* kernel_name;
};

const char* const kHardSwish =
    "%t = mul %s, %sixth %u = add %t, %half %g = clip %u {low = 0.0, high = 1.0} %z = mul %s, %g";
const char* const kSwish = "%g = sigmoid %s %z = mul %s, %g";
const char* const kGelu = "%z = gelu %s";

constexpr ActivatedCase kActivatedCases[] = {
    {"1, 20, 24, 12", "1, 1, 12, 40", "conv2d %v, %f {groups = 1}", kHardSwish, "product"},
    {"2, 14, 14, 16", "1, 1, 16, 96", "conv2d %v, %f {groups = 1}", kSwish, "product"},
    {"3, 37, 24", "24, 72", "matmul %v, %f", kGelu, "product"},
    {"1, 15, 19, 21", "3, 3, 1, 21", "conv2d %v, %f {groups = 21, padding = same}", kHardSwish, "depthwise"},
    {"2, 30, 34, 40", "5, 5, 1, 40", "conv2d %v, %f {groups = 40, padding = same, strides = [2, 2]}", kSwish,
     "depthwise"},
    {"2, 7, 7, 33", "3, 3, 1, 33", "conv2d %v, %f {groups = 33, padding = same}", kSwish, "depthwise"},
};

/// x and results have elements of `type`; weights are rounded to `low`.
std::string activated_module(const ActivatedCase& each, const std::string& type, const std::string& low) {
  Random random(3);
  int64_t count = 1, channels = 1;
  for (std::stringstream dims(each.kernel); dims >> channels; dims.ignore(1)) count *= channels;
  const auto numbers = [&](int64_t many) { return fmt::format("{:.3f}", fmt::join(random.floats(many), ", ")); };
  return fmt::format(R"(module @m {{ func @main(%x: {0}[{1}]) -> (%y: {0}[*]) {{
    %w = constant {{value = f32[{2}] ({3})}} %k = cast %w {{dtype = {4}}} %f = cast %k {{dtype = f32}}
    %b = constant {{value = f32[{5}] ({6})}} %sixth = constant {{value = f32[] (0.1667)}} %half = constant {{value = f32[] (0.5)}}
    %v = cast %x {{dtype = f32}} %c = {7} %a = add %c, %b %n = cast %a {{dtype = {0}}} %s = cast %n {{dtype = f32}}
    {8} %y = cast %z {{dtype = {0}}} return %y }} }})",
                     type, each.x, each.kernel, numbers(count), low, channels, numbers(channels), each.contraction,
                     each.rest);
}

double largest_difference(const Tensor& found, const Tensor& wanted) {
  const std::vector<double> a = found.as_f64(), b = wanted.as_f64();
  double largest = 0;
  for (size_t i = 0; i < b.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(CpuActivated, RoundsNoWorseThanEachOperation) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: no AVX2";
  std::mt19937_64 random(11);
  const auto reference = [](const std::string& text) {
    return Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
  };
  for (const std::string type : {"bf16", "f16"})
    for (const ActivatedCase& each : kActivatedCases) {
      const std::string text = activated_module(each, type, type);
      SCOPED_TRACE(fmt::format("{} {} {}", type, each.contraction, each.rest));
      const auto rounding = reference(text);
      const std::vector<Tensor> inputs{random_tensor(rounding->inputs()[0].type, random)};
      Tensor wide = Tensor::zeros(kF32, inputs[0].dims());
      std::ranges::copy(inputs[0].as_f64(), wide.mutable_values<float>().begin());
      const Tensor exact = reference(activated_module(each, "f32", type))->run(std::vector<Tensor>{wide})[0];
      const double allowed = largest_difference(rounding->run(inputs)[0], exact);
      Tensor one;
      for (int threads : {1, 3}) {
        const auto model = Model::make(parse(text), {.threads = threads});
        EXPECT_NE(kernels_of(*model).find(std::string("cpu/activated ") + each.kernel_name), std::string::npos)
            << kernels_of(*model);
        const Tensor found = model->run(inputs)[0];
        EXPECT_LE(largest_difference(found, exact), 1.1 * allowed);
        EXPECT_TRUE(!one.defined() || found.same_bits(one));
        one = found;
      }
    }
}

/// x times a number for each image and channel, what is multiplied with weights, and `behind` it.
std::string gated_module(const std::string& behind, const std::string& type, const std::string& low) {
  Random random(4);
  const auto numbers = [&](int64_t many) { return fmt::format("{:.3f}", fmt::join(random.floats(many), ", ")); };
  return fmt::format(
      R"(module @m {{ func @main(%x: {0}[2, 15, 14, 40], %gate: {0}[2, 1, 1, 40], %r: {0}[2, 15, 14, 24]) -> (%y: {0}[*]) {{
    %w = constant {{value = f32[1, 1, 40, 24] ({2})}} %k = cast %w {{dtype = {1}}} %f = cast %k {{dtype = f32}}
    %b = constant {{value = f32[24] ({3})}} %v = cast %x {{dtype = f32}} %g = cast %gate {{dtype = f32}} %old = cast %r {{dtype = f32}}
    %m = mul %v, %g %n = cast %m {{dtype = {0}}} %a = cast %n {{dtype = f32}}
    %c = conv2d %a, %f {{groups = 1}} %s = add %c, %b {4} %y = cast %z {{dtype = {0}}} return %y }} }})",
      type, low, numbers(40 * 24), numbers(24), behind);
}

TEST(CpuActivated, MakesTheLeftOperandOfAProductSomePixelsAtATime) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: no AVX2";
  std::mt19937_64 random(12);
  const auto reference = [](const std::string& text) {
    return Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
  };
  for (const std::string type : {"bf16", "f16"})
    for (const char* behind :
         {"%z = identity %s", "%t = add %s, %old %z = relu %t", "%h = sigmoid %s %z = mul %s, %h"}) {
      SCOPED_TRACE(type + " " + behind);
      const std::string text = gated_module(behind, type, type);
      const auto rounding = reference(text);
      std::vector<Tensor> inputs, wide;
      for (const Port& port : rounding->inputs()) {
        inputs.push_back(random_tensor(port.type, random));
        wide.push_back(Tensor::zeros(kF32, inputs.back().dims()));
        std::ranges::copy(inputs.back().as_f64(), wide.back().mutable_values<float>().begin());
      }
      const Tensor exact = reference(gated_module(behind, "f32", type))->run(wide)[0];
      const double allowed = largest_difference(rounding->run(inputs)[0], exact);
      Tensor one;
      for (int threads : {1, 3}) {
        const auto model = Model::make(parse(text), {.threads = threads});
        EXPECT_NE(kernels_of(*model).find(" before"), std::string::npos) << kernels_of(*model);
        const Tensor found = model->run(inputs)[0];
        EXPECT_LE(largest_difference(found, exact), 1.1 * allowed);
        EXPECT_TRUE(!one.defined() || found.same_bits(one));
        one = found;
      }
    }
}

TEST(CpuActivated, LeavesWhatIsNoElementwiseEndToOtherKernels) {
  ActivatedCase relu = kActivatedCases[0], few = kActivatedCases[0], read_twice = kActivatedCases[0];
  relu.rest = "%z = relu %s";
  few.x = "1, 3, 3, 12";
  read_twice.rest = "%z = transpose %s {permutation = [0, 3, 1, 2]}";
  for (const ActivatedCase& each : {relu, few, read_twice}) {
    const auto model = Model::make(parse(activated_module(each, "bf16", "bf16")), {.threads = 1});
    EXPECT_EQ(kernels_of(*model).find("cpu/activated"), std::string::npos) << kernels_of(*model);
  }
}

/// A mean over pixels, or the normalisation of rows, of 16 bits.
TEST(CpuActivated, ReductionsAndNormalisationsReadAndWriteElementsOf16Bits) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: no AVX2";
  std::mt19937_64 random(5);
  for (const char* type : {"bf16", "f16"})
    for (const char* work :
         {"reduce_mean %v {axes = [1, 2], keep_dims = true}", "reduce_sum %v {axes = [1], keep_dims = false}",
          "reduce_max %v {axes = [1, 2], keep_dims = true}", "layer_norm %v, %a, %b {axis = 3, epsilon = 0.001}"}) {
      const std::string text = fmt::format(
          "module @m {{ func @main(%x: {0}[3, 31, 17, 149], %a: f32[149], %b: f32[149]) -> (%y: {0}[*]) {{ "
          "%v = cast %x {{dtype = f32}} %z = {1} %y = cast %z {{dtype = {0}}} return %y }} }}",
          type, work);
      SCOPED_TRACE(text);
      expect_reference_result(text, random, [&](const auto& kernels) {
        EXPECT_EQ(kernels, std::string(work).starts_with("layer") ? "cpu/layer_norm " : "cpu/reduce ");
      });
    }
}

}  // namespace
}  // namespace cairn
