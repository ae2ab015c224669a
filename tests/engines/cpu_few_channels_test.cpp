// Convolutions to few channels: taken by their own kernel, equal to the reference, the same bits at any number of threads.
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

struct FewCase {
  const char *x, *kernel, *attributes, *epilogue;
};

std::string module_of(const FewCase& each) {
  const std::string channels = std::string(each.kernel).substr(std::string(each.kernel).rfind(' ') + 1);
  return fmt::format(
      "module @m {{ func @main(%x: f32[{}], %k: f32[{}], %b: f32[{}]) -> (%y: f32[*]) {{ %p = conv2d %x, %k {{{}}} {} "
      "return %y }} }}",
      each.x, each.kernel, channels, each.attributes, each.epilogue);
}

const char* const kPlain = "%y = identity %p";
const char* const kBias = "%y = add %p, %b";
const char* const kRelu = "%q = add %p, %b %y = relu %q";
const char* const kClip = "%q = add %p, %b %y = clip %q {low = -0.5, high = 0.75}";

constexpr const char* kSame = "padding = same";

TEST(CpuFewChannels, EqualsTheReferenceWithItsEpilogue) {
  std::mt19937_64 random(5);
  for (const FewCase& each : {
           FewCase{"2, 21, 37, 32", "3, 3, 32, 2", kSame, kBias},
           {"1, 40, 16, 8", "3, 3, 8, 1", kSame, kPlain},
           {"3, 9, 19, 24", "3, 3, 24, 3", "padding = explicit, pads = [0, 2, 1, 0]", kRelu},
           {"1, 30, 33, 13", "5, 3, 13, 3", "dilations = [2, 3]", kClip},
           {"1, 30, 33, 13", "9, 9, 13, 3", kSame, kBias},
           {"2, 17, 64, 16", "1, 11, 16, 2", kSame, kRelu},
           {"1, 4, 17, 512", "5, 5, 512, 1", "padding = explicit, pads = [4, 4, 4, 4]", kPlain},
           {"1, 5, 18, 9", "7, 7, 9, 2", "padding = same, dilations = [9, 9]", kBias},
       }) {
    const std::string text = module_of(each);
    SCOPED_TRACE(text);
    const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
    std::vector<Tensor> inputs, one;
    for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
    const auto wanted = expected->run(inputs);
    for (int threads : {1, 2, 5}) {
      const auto model = Model::make(parse(text), {.threads = threads});
      EXPECT_EQ(kernels_of(*model), "cpu/few_channels ");
      const auto found = model->run(inputs);
      for (int64_t i = 0; i < wanted[0].count(); ++i)
        ASSERT_NEAR(found[0].values<float>()[static_cast<size_t>(i)], wanted[0].values<float>()[static_cast<size_t>(i)],
                    1e-6 * static_cast<double>(inputs[1].count()))
            << i;
      EXPECT_TRUE(threads == 1 || found[0].same_bits(one[0]));
      one = found;
    }
  }
}

/// x, kernel and result of 16 bits: the sum is rounded before the bias, or the result alone.
std::string narrow_module(const FewCase& each, const char* type, bool rounds_sum) {
  const std::string channels = std::string(each.kernel).substr(std::string(each.kernel).rfind(' ') + 1);
  const std::string sum =
      rounds_sum ? fmt::format("%r = cast %c {{dtype = {}}} %p = cast %r {{dtype = f32}}", type) : "%p = identity %c";
  return fmt::format(
      R"(module @m {{ func @main(%x: {0}[{1}], %k: {0}[{2}], %b: f32[{3}]) -> (%z: {0}[*]) {{
    %v = cast %x {{dtype = f32}} %w = cast %k {{dtype = f32}} %c = conv2d %v, %w {{{4}}} {5} {6}
    %z = cast %y {{dtype = {0}}} return %z }} }})",
      type, each.x, each.kernel, channels, each.attributes, sum, each.epilogue);
}

TEST(CpuFewChannels, TakesElementsOf16Bits) {
  if (machine_has_matrix_registers()) GTEST_SKIP() << "hardware: matrix registers multiply bf16";
  std::mt19937_64 random(7);
  for (const char* type : {"bf16", "f16"})
    for (const bool rounds_sum : {false, true})
      for (const FewCase& each : {FewCase{"2, 21, 37, 32", "3, 3, 32, 2", kSame, kBias},
                                  {"3, 9, 19, 24", "3, 3, 24, 3", "padding = explicit, pads = [0, 2, 1, 0]", kRelu},
                                  {"1, 30, 33, 13", "5, 3, 13, 3", "dilations = [2, 3]", kClip}}) {
        const std::string text = narrow_module(each, type, rounds_sum);
        SCOPED_TRACE(text);
        expect_reference_result(text, random, [](const auto& kernels) { EXPECT_EQ(kernels, "cpu/few_channels "); });
      }
}

TEST(CpuFewChannels, LeavesOthersToTheTile) {
  for (const FewCase& each : {FewCase{"1, 21, 37, 32", "3, 3, 32, 5", kSame, kBias},
                              {"1, 21, 37, 32", "1, 1, 32, 2", kSame, kBias},
                              {"1, 21, 37, 32", "3, 3, 32, 2", "padding = same, strides = [2, 2]", kBias},
                              {"1, 21, 12, 32", "3, 3, 32, 2", kSame, kBias}})
    EXPECT_EQ(kernels_of(*Model::make(parse(module_of(each)), {.threads = 1})).find("few_channels"), std::string::npos)
        << module_of(each);
}

TEST(CpuFewChannels, KeepsNan) {
  const auto model = Model::make(parse(module_of({"1, 16, 16, 8", "3, 3, 8, 1", kSame, kRelu})), {.threads = 1});
  Tensor x = Tensor::zeros(kF32, {1, 16, 16, 8});
  x.mutable_values<float>()[0] = NAN;
  const auto y = model->run({x, Tensor::zeros(kF32, {3, 3, 8, 1}), Tensor::zeros(kF32, {1})});
  for (size_t i = 0; i < 256; ++i)
    EXPECT_EQ(std::isnan(y[0].values<float>()[i]), i == 0 || i == 1 || i == 16 || i == 17) << i;
}

}  // namespace
}  // namespace cairn
