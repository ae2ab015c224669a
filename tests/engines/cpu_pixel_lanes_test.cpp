// Convolutions of few channels to few, whose pixels lie in the lanes of vectors: equal to the reference with and without pooling,
// the same bits at any number of threads.
#include <sstream>

#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

struct PixelCase {
  const char *x, *kernel, *attributes, *epilogue;
};

/// The kernel is a constant, or an input.
std::string pixel_module(const PixelCase& each, bool constant = true) {
  const std::string channels = std::string(each.kernel).substr(std::string(each.kernel).rfind(' ') + 1);
  std::string numbers;
  int64_t count = 1;
  for (std::stringstream dims(each.kernel); dims;) {
    int64_t dim = 1;
    dims >> dim;
    if (dims) count *= dim;
    dims.ignore(1);
  }
  for (int64_t i = 0; i < count; ++i) numbers += fmt::format("{}{:.4f}", i ? ", " : "", std::sin(i * 0.7));
  const std::string value = fmt::format("%k = constant {{value = f32[{}] ({})}}", each.kernel, numbers);
  return fmt::format(
      "module @m {{ func @main(%x: f32[{}], {}%b: f32[{}]) -> (%y: f32[*]) {{ {} %p = conv2d %x, %k {{{}}} {} "
      "return %y }} }}",
      each.x, constant ? "" : fmt::format("%k: f32[{}], ", each.kernel), channels, constant ? value : "",
      each.attributes, each.epilogue);
}

const char* const kAlone = "%y = identity %p";
const char* const kRelu = "%q = add %p, %b %y = relu %q";
const char* const kClip = "%q = add %p, %b %y = clip %q {low = -0.5, high = 0.75}";
const char* const kPooled = "%q = add %p, %b %r = relu %q %y = max_pool2d %r {window = [2, 2], strides = [2, 2]}";
const char* const kPooledAlone = "%y = max_pool2d %p {window = [2, 2], strides = [2, 2]}";

bool is_narrow_machine() { return machine_isa() != Isa::avx512; }  // fewer lanes, of which channels fill more

TEST(CpuPixelLanes, EqualsTheReferenceWithItsEpilogue) {
  if (is_narrow_machine()) GTEST_SKIP() << "hardware: needs AVX-512";
  std::mt19937_64 random(5);
  for (const PixelCase& each : {
           PixelCase{"1, 28, 28, 1", "5, 5, 1, 6", "padding = same", kPooled},
           {"2, 28, 28, 1", "5, 5, 1, 6", "padding = same", kRelu},
           {"3, 27, 35, 1", "5, 5, 1, 7", "padding = same", kPooledAlone},
           {"1, 33, 65, 3", "3, 3, 3, 8", "strides = [2, 2]", kClip},
           {"2, 40, 41, 2", "3, 5, 2, 3", "padding = explicit, pads = [0, 2, 1, 0], strides = [1, 3]", kAlone},
           {"1, 50, 33, 1", "5, 3, 1, 2", "dilations = [2, 3]", kRelu},
           {"1, 30, 40, 4", "7, 7, 4, 8", "padding = same, strides = [2, 2]", kPooled},
           {"1, 64, 16, 1", "9, 9, 1, 1", "padding = same", kPooled},
           {"2, 20, 47, 1", "5, 5, 1, 5", "strides = [1, 4], dilations = [1, 3]", kClip},
       }) {
    const std::string text = pixel_module(each);
    SCOPED_TRACE(text);
    const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
    std::vector<Tensor> inputs, one;
    for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
    const auto wanted = expected->run(inputs);
    const bool pooled = each.epilogue == kPooled || each.epilogue == kPooledAlone;
    for (int threads : {1, 2, 5}) {
      const auto model = Model::make(parse(text), {.threads = threads});
      EXPECT_EQ(kernels_of(*model), pooled ? "cpu/pixel_lanes and max_pool " : "cpu/pixel_lanes ");
      const auto found = model->run(inputs);
      for (int64_t i = 0; i < wanted[0].count(); ++i)
        ASSERT_NEAR(found[0].values<float>()[static_cast<size_t>(i)], wanted[0].values<float>()[static_cast<size_t>(i)],
                    1e-4)
            << i;
      EXPECT_TRUE(threads == 1 || found[0].same_bits(one[0]));
      one = found;
    }
  }
}

/// x, kernel and result of 16 bits.
std::string narrow_pixel_module(const PixelCase& each, const char* type, bool pools) {
  std::string text = pixel_module(each, false);
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    text.replace(at, from.size(), to);
  };
  replace("%x: f32", fmt::format("%x: {}", type)), replace("%k: f32", fmt::format("%k: {}", type));
  replace("%y: f32", fmt::format("%y: {}", type));
  replace("%p = conv2d %x, %k", "%v = cast %x {dtype = f32} %w = cast %k {dtype = f32} %p = conv2d %v, %w");
  const std::string narrow = fmt::format("%n = cast %r {{dtype = {}}} ", type);
  replace("return", narrow + (pools ? "%y = max_pool2d %n {window = [2, 2], strides = [2, 2]} return"
                                    : "%y = identity %n return"));
  return text;
}

TEST(CpuPixelLanes, TakesElementsOf16Bits) {
  if (is_narrow_machine()) GTEST_SKIP() << "hardware: needs AVX-512";
  std::mt19937_64 random(7);
  for (const std::string type : {"bf16", "f16"}) {
    if (type == "bf16" && machine_has_brain_products()) continue;  // which multiplies them in pairs
    for (const bool pools : {false, true})
      for (const PixelCase& each :
           {PixelCase{"2, 28, 28, 1", "5, 5, 1, 6", "padding = valid", "%q = add %p, %b %r = relu %q"},
            {"1, 33, 65, 3", "3, 3, 3, 8", "padding = valid", "%q = add %p, %b %r = relu %q"},
            {"2, 70, 41, 2", "3, 5, 2, 3", "strides = [1, 3]", "%r = clip %p {low = -0.5, high = 0.7}"}}) {
        const std::string text = narrow_pixel_module(each, type.c_str(), pools);
        SCOPED_TRACE(text);
        expect_reference_result(text, random, [&](const auto& kernels) {
          EXPECT_EQ(kernels, pools ? "cpu/pixel_lanes and max_pool " : "cpu/pixel_lanes ");
        });
      }
  }
}

TEST(CpuPixelLanes, LeavesOthersToTheTile) {
  for (const PixelCase& each : {PixelCase{"1, 21, 37, 1", "5, 5, 1, 9", "padding = same", kRelu},
                                {"1, 21, 37, 5", "5, 5, 5, 4", "padding = same", kRelu},
                                {"1, 21, 37, 1", "2, 2, 1, 6", "padding = same", kRelu},
                                {"1, 21, 3, 1", "5, 5, 1, 6", "padding = same", kRelu}})
    EXPECT_EQ(kernels_of(*Model::make(parse(pixel_module(each)), {.threads = 1})).find("pixel_lanes"),
              std::string::npos)
        << pixel_module(each);
}

TEST(CpuPixelLanes, LeavesOtherWindowsToThePool) {
  if (is_narrow_machine()) GTEST_SKIP() << "hardware: needs AVX-512";
  for (const char* pool : {"{window = [3, 3], strides = [2, 2]}", "{window = [2, 2], strides = [1, 1]}",
                           "{window = [2, 2], strides = [2, 2], padding = same}"}) {
    const std::string epilogue = fmt::format("%q = relu %p %y = max_pool2d %q {}", pool);
    const auto model = Model::make(
        parse(pixel_module({"1, 27, 29, 1", "5, 5, 1, 6", "padding = same", epilogue.c_str()})), {.threads = 1});
    EXPECT_EQ(kernels_of(*model).substr(0, 28), "cpu/pixel_lanes cpu/max_pool") << pool;
  }
}

TEST(CpuPixelLanes, LeavesPaddedImagesToTheTileWhereTheKernelHasInfinities) {
  if (is_narrow_machine()) GTEST_SKIP() << "hardware: needs AVX-512";
  std::mt19937_64 random(5);
  for (const char* attributes : {"padding = same", "padding = valid"}) {
    const std::string text = pixel_module({"2, 28, 28, 1", "5, 5, 1, 6", attributes, kRelu}, false);
    const auto model = Model::make(parse(text), {.threads = 2});
    EXPECT_EQ(kernels_of(*model), "cpu/pixel_lanes ") << attributes;
    const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
    std::vector<Tensor> inputs;
    for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
    for (const float weight : {0.5f, INFINITY, NAN}) {
      inputs[1].mutable_values<float>()[2] = weight;
      const auto wanted = expected->run(inputs), found = model->run(inputs);
      for (size_t i = 0; i < static_cast<size_t>(wanted[0].count()); ++i) {
        const float a = found[0].values<float>()[i], b = wanted[0].values<float>()[i];
        ASSERT_TRUE(a == b || std::abs(a - b) < 1e-4f || (std::isnan(a) && std::isnan(b)))
            << a << " for " << b << " at " << i << ", " << attributes << ", weight " << weight;
      }
    }
  }
}

TEST(CpuPixelLanes, LeavesPooledImagesWithPaddingToTheTileWhereTheKernelIsNoConstant) {
  if (is_narrow_machine()) GTEST_SKIP() << "hardware: needs AVX-512";
  const auto model = Model::make(parse(pixel_module({"1, 28, 28, 1", "5, 5, 1, 6", "padding = same", kPooled}, false)),
                                 {.threads = 1});
  EXPECT_EQ(kernels_of(*model).find("and max_pool"), std::string::npos);
}

TEST(CpuPixelLanes, KeepsNan) {
  const auto model =
      Model::make(parse(pixel_module({"1, 28, 28, 1", "5, 5, 1, 6", "padding = same", kPooled})), {.threads = 1});
  Tensor x = Tensor::zeros(kF32, {1, 28, 28, 1});
  x.mutable_values<float>()[0] = NAN;
  const auto y = model->run({x, Tensor::zeros(kF32, {6})});
  for (size_t i = 0; i < 14 * 14 * 6; ++i) {
    const size_t row = i / 6 / 14, column = i / 6 % 14;
    EXPECT_EQ(std::isnan(y[0].values<float>()[i]), row < 2 && column < 2) << i;
  }
}

}  // namespace
}  // namespace cairn
