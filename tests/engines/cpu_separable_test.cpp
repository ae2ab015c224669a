// Depthwise convolutions that run with the 1x1 convolutions around them, some rows at a time: equal to the reference, the same
// bits at any number of threads.
#include <regex>
#include <span>

#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

struct SeparableCase {
  const char* name;
  const char* dims;  // of x
  int64_t inputs, middle, outputs;
  const char* attributes;  // of the depthwise convolution, whose kernel is 3x3
  bool before, behind, residual;
  const char* kernel;
};

std::string constant_of_random(const std::string& name, const std::vector<int64_t>& dims, std::mt19937_64& random) {
  std::uniform_real_distribution<float> spread(-0.5, 0.5);
  std::string numbers;
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  for (int64_t i = 0; i < count; ++i) numbers += fmt::format("{}{:.4f}", i ? ", " : "", spread(random));
  return fmt::format("%{} = constant {{value = f32[{}] ({})}} ", name, fmt::join(dims, ", "), numbers);
}

std::string separable_module(const SeparableCase& each) {
  std::mt19937_64 random(3);
  std::string body, x = "%x";
  const auto biased = [&](const std::string& from, const std::string& name, int64_t channels, const char* activation) {
    body += constant_of_random(name + "b", {channels}, random);
    body += fmt::format("%{0}s = add %{1}, %{0}b ", name, from);
    if (*activation) body += fmt::format("%{0}a = {1} ", name, fmt::format(fmt::runtime(activation), "%" + name + "s"));
    return "%" + name + (*activation ? "a" : "s");
  };
  if (each.before) {
    body +=
        constant_of_random("e", {1, 1, each.inputs, each.middle}, random) + "%ec = conv2d %x, %e {padding = valid} ";
    x = biased("ec", "f", each.middle, "clip {} {{low = 0.0, high = 6.0}}");
  }
  body += constant_of_random("d", {3, 3, 1, each.middle}, random);
  body += fmt::format("%dc = conv2d {}, %d {{{}, groups = {}}} ", x, each.attributes, each.middle);
  x = biased("dc", "g", each.middle, "relu {}");
  if (each.behind) {
    body += constant_of_random("p", {1, 1, each.middle, each.outputs}, random);
    body += fmt::format("%pc = conv2d {}, %p {{padding = valid}} ", x);
    x = biased("pc", "h", each.outputs, "");
  }
  if (each.residual) {
    body += fmt::format("%y = add {}, %x ", x);
    x = "%y";
  }
  return fmt::format("module @m {{ func @main(%x: f32[{}]) -> (%r: f32[*]) {{ {} return {} }} }}", each.dims, body, x);
}

constexpr SeparableCase kSeparableCases[] = {
    {"inverted_residual", "1, 40, 48, 8", 8, 72, 8, "padding = same", true, true, true, "product, depthwise, product"},
    {"stride", "2, 57, 50, 8", 8, 76, 16, "padding = same, strides = [2, 2]", true, true, false,
     "product, depthwise, product"},
    {"pads_of_torch", "1, 56, 56, 5", 5, 61, 9, "padding = explicit, pads = [1, 1, 1, 1], strides = [2, 2]", true, true,
     false, "product, depthwise, product"},
    {"dilated", "1, 48, 52, 4", 4, 64, 20, "padding = same, dilations = [2, 3]", true, true, false,
     "product, depthwise, product"},
    {"behind_alone", "1, 48, 52, 64", 64, 64, 24, "padding = same", false, true, false, "depthwise, product"},
    {"before_alone", "1, 48, 52, 12", 12, 64, 0, "padding = valid", true, false, false, "product, depthwise"},
};

TEST(CpuSeparable, EqualsTheReference) {
  std::mt19937_64 random(11);
  for (const SeparableCase& each : kSeparableCases) {
    SCOPED_TRACE(each.name);
    const std::string text = separable_module(each);
    const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
    const std::vector<Tensor> inputs{random_tensor(expected->inputs()[0].type, random)};
    const Tensor wanted = expected->run(inputs)[0];
    Tensor one;
    for (int threads : {1, 2, 5}) {
      const auto model = Model::make(parse(text), {.threads = threads});
      const std::string kernels = kernels_of(*model);
      EXPECT_NE(kernels.find(std::string("cpu/separable ") + each.kernel), std::string::npos) << kernels;
      EXPECT_EQ(kernels.rfind("cpu/"), 0U) << kernels;
      for (int run = 0; run < 2; ++run) {
        const Tensor found = model->run(inputs)[0];
        for (int64_t i = 0; i < wanted.count(); ++i)
          ASSERT_NEAR(found.values<float>()[static_cast<size_t>(i)], wanted.values<float>()[static_cast<size_t>(i)],
                      1e-4)
              << i;
        EXPECT_TRUE(!one.defined() || found.same_bits(one));
        one = found;
      }
    }
  }
}

double largest_error(const std::vector<double>& found, const std::vector<double>& wanted) {
  double largest = 0;
  for (size_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::abs(found[i] - wanted[i]));
  return largest;
}

// Values inside the step may stay in f32: its results are as near to f32's as where each operation rounds.
TEST(CpuSeparable, RoundsTo16BitsNoWorseThanEachOperation) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: no AVX2";
  const std::regex constant(R"(%(\w+) = constant (\{[^}]*\}) )");
  const std::string rounded = "%$1w = constant $2 %$1n = cast %$1w {dtype = bf16} %$1 = cast %$1n {dtype = ";
  std::mt19937_64 random(11);
  for (const SeparableCase& each : std::span(kSeparableCases).first(2)) {
    SCOPED_TRACE(each.name);
    const std::string floats = separable_module(each);
    const std::string text =
        std::regex_replace(std::regex_replace(floats, constant, rounded + "bf16} "), std::regex(": f32"), ": bf16");
    const auto reference = [](const std::string& module) {
      return Model::make(parse(module), {.threads = 1, .engines = {"reference"}, .optimise = false});
    };
    const auto narrow = reference(text);
    const std::vector<Tensor> inputs{random_tensor(narrow->inputs()[0].type, random)};
    Tensor wide = Tensor::zeros(kF32, inputs[0].dims());
    std::ranges::copy(inputs[0].as_f64(), wide.mutable_values<float>().begin());
    const auto exact =
        reference(std::regex_replace(floats, constant, rounded + "f32} "))->run(std::vector<Tensor>{wide})[0].as_f64();
    const double allowed = largest_error(narrow->run(inputs)[0].as_f64(), exact);
    std::vector<double> one;
    for (int threads : {1, 3}) {
      const auto model = Model::make(parse(text), {.threads = threads});
      EXPECT_NE(kernels_of(*model).find(std::string("cpu/separable ") + each.kernel), std::string::npos)
          << kernels_of(*model);
      const std::vector<double> found = model->run(inputs)[0].as_f64();
      EXPECT_LE(largest_error(found, exact), allowed);
      EXPECT_TRUE(one.empty() || one == found);
      one = found;
    }
  }
}

TEST(CpuSeparable, LeavesWhatFitsTheCacheAndWhatIsReadTwice) {
  SeparableCase small = kSeparableCases[0];
  small.dims = "1, 14, 14, 8";
  const auto kernels = [](const std::string& text) { return kernels_of(*Model::make(parse(text), {.threads = 1})); };
  EXPECT_EQ(kernels(separable_module(small)).find("separable"), std::string::npos);
  std::string twice = separable_module(kSeparableCases[0]);
  const std::string from = "-> (%r: f32[*])", back = "return %y";
  twice.replace(twice.find(from), from.size(), "-> (%r: f32[*], %t: f32[*])");
  twice.replace(twice.find(back), back.size(), "return %y, %fa");
  EXPECT_EQ(kernels(twice).find("product, depthwise"), std::string::npos) << kernels(twice);
}

}  // namespace
}  // namespace cairn
