// Depthwise convolution over whole rows of pixels, and its gradients: equal to the reference, the same bits at any number of threads.
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

struct RowCase {
  int64_t n, h, w, channels, filters, kh, kw;
  int64_t top = 0, left = 0, bottom = 0, right = 0, dilation = 1, down = 1, across = 1;  // down, across: strides

  int64_t made() const { return channels * filters; }
  std::string x() const { return fmt::format("{}, {}, {}, {}", n, h, w, channels); }
  std::string kernel() const { return fmt::format("{}, {}, 1, {}", kh, kw, made()); }
  std::string y() const {
    const int64_t oh = (h + top + bottom - (kh - 1) * dilation - 1) / down + 1;
    const int64_t ow = (w + left + right - (kw - 1) * dilation - 1) / across + 1;
    return fmt::format("{}, {}, {}, {}", n, oh, ow, made());
  }
  std::string attributes() const {
    return fmt::format(
        "{{groups = {}, padding = explicit, pads = [{}, {}, {}, {}], dilations = [{}, {}], "
        "strides = [{}, {}]}}",
        channels, top, bottom, left, right, dilation, dilation, down, across);
  }
};

const std::vector<RowCase> kCases{
    {2, 20, 19, 3, 1, 3, 3, 1, 1, 1, 1}, {1, 37, 41, 3, 1, 11, 11},           {2, 9, 33, 3, 2, 3, 3, 1, 1, 1, 1},
    {3, 1, 50, 5, 1, 1, 7, 0, 6, 0, 0},  {1, 18, 30, 1, 4, 5, 3, 0, 2, 3, 0}, {2, 5, 40, 6, 1, 3, 5, 2, 4, 2, 4, 2},
    {1, 4, 64, 2, 1, 2, 2, 3, 5, 1, 4},
};

/// Of narrower vectors six channels fill most.
const char* const kForward = machine_isa() == Isa::avx512 ? "depthwise_rows" : "depthwise";

/// Equal to the reference and to itself with more threads.
void expect_equal(const std::string& text, const std::string& kernel, float infinity = 0) {
  SCOPED_TRACE(text);
  std::mt19937_64 random(5);
  const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
  std::vector<Tensor> inputs, one;
  for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
  if (infinity != 0) static_cast<float*>(inputs[1].mutable_data())[1] = infinity;
  const auto wanted = expected->run(inputs);
  for (int threads : {1, 2, 5}) {
    const auto model = Model::make(parse(text), {.threads = threads, .optimise = false, .deterministic = true});
    EXPECT_NE(kernels_of(*model).find("cpu/" + kernel), std::string::npos) << kernels_of(*model);
    const auto found = model->run(inputs);
    for (int64_t i = 0; i < wanted[0].count(); ++i) {
      const float a = wanted[0].values<float>()[static_cast<size_t>(i)],
                  b = found[0].values<float>()[static_cast<size_t>(i)];
      ASSERT_TRUE(a == b || std::abs(a - b) <= 2e-4f || (std::isnan(a) && std::isnan(b)))
          << i << ": " << a << ", " << b;
    }
    EXPECT_TRUE(threads == 1 || found[0].same_bits(one[0]));
    one = found;
  }
}

TEST(CpuRowFilter, convolves_images_of_few_channels_with_its_epilogue) {
  for (const RowCase& c : kCases) {
    if (c.channels == 1) continue;  // an ordinary convolution
    for (const char* behind :
         {"%y = identity %p", "%q = add %p, %b %y = relu %q", "%q = add %p, %b %y = clip %q {low = -0.5, high = 0.75}"})
      expect_equal(fmt::format("module @m {{ func @main(%x: f32[{}], %k: f32[{}], %b: f32[{}]) -> (%y: f32[*]) {{ %p = "
                               "conv2d %x, %k {} {} return %y }} }}",
                               c.x(), c.kernel(), c.made(), c.attributes(), behind),
                   kForward);
  }
}

TEST(CpuRowFilter, slides_windows_that_are_larger_than_the_image) {
  for (const RowCase& c : {RowCase{1, 12, 14, 40, 1, 31, 31, 15, 15, 15, 15}, {2, 9, 60, 16, 1, 5, 51, 2, 25, 2, 25}})
    expect_equal(
        fmt::format("module @m {{ func @main(%x: f32[{}], %k: f32[{}]) -> (%y: f32[*]) {{ %y = conv2d %x, %k {} "
                    "return %y }} }}",
                    c.x(), c.kernel(), c.attributes()),
        "depthwise");
}

/// The gradients by image and by kernel.
void expect_gradients(const RowCase& c) {
  const auto dims = [](const std::string& text) {
    return fmt::format("%d = constant {{value = i64[4] ({})}} : i64[4]", text);
  };
  expect_equal(fmt::format("module @m {{ func @main(%g: f32[{0}], %k: f32[{1}]) -> (%y: f32[{2}]) {{ {3} %y = "
                           "conv2d_input_gradient %g, %k, %d {4} return %y }} }}",
                           c.y(), c.kernel(), c.x(), dims(c.x()), c.attributes()),
               "depthwise_input_gradient");
  expect_equal(fmt::format("module @m {{ func @main(%x: f32[{0}], %g: f32[{1}]) -> (%k: f32[{2}]) {{ {3} %k = "
                           "conv2d_kernel_gradient %x, %g, %d {4} return %k }} }}",
                           c.x(), c.y(), c.kernel(), dims(c.kernel()), c.attributes()),
               "depthwise_kernel_gradient");
}

TEST(CpuRowFilter, makes_gradients_of_any_channels) {
  std::vector<RowCase> cases = kCases;
  cases.push_back({2, 12, 7, 37, 1, 3, 3, 1, 1, 1, 1});
  cases.push_back({1, 5, 4, 1152, 1, 5, 5, 2, 2, 2, 2});
  cases.push_back({2, 4, 3, 1031, 1, 3, 3, 1, 1, 1, 1});
  cases.push_back({2, 18, 9, 64, 1, 5, 5, 2, 2, 2, 2});
  cases.push_back({1, 7, 3, 300, 1, 3, 3, 1, 1, 1, 1});
  cases.push_back({1, 12, 14, 16, 1, 17, 17, 8, 8, 8, 8});
  for (const RowCase& c : cases)
    if (c.channels > 1) expect_gradients(c);
}

TEST(CpuRowFilter, makes_gradients_between_strides_of_any_size) {
  for (const RowCase& c : {RowCase{2, 32, 32, 32, 1, 5, 5, 1, 1, 2, 2, 1, 2, 2},
                           {1, 15, 17, 3, 1, 3, 3, 1, 1, 1, 1, 1, 2, 2},
                           {2, 40, 9, 24, 1, 3, 3, 0, 0, 1, 1, 1, 2, 1},
                           {2, 9, 40, 5, 2, 3, 3, 1, 1, 0, 0, 1, 1, 3},
                           {1, 14, 14, 1031, 1, 3, 3, 0, 0, 1, 1, 1, 2, 2},
                           {1, 23, 29, 6, 4, 2, 2, 0, 0, 0, 0, 1, 3, 4},   // some pixels in no window
                           {2, 21, 22, 37, 1, 3, 4, 2, 5, 1, 3, 2, 2, 2},  // strides that share a factor with dilations
                           {1, 25, 24, 10, 1, 3, 3, 3, 1, 2, 4, 3, 2, 3},
                           {1, 24, 13, 4, 1, 5, 1, 4, 0, 4, 0, 4, 6, 1},
                           {3, 1, 100, 7, 1, 1, 9, 0, 4, 0, 4, 1, 1, 4},
                           {1, 2, 3, 17, 1, 7, 7, 3, 3, 3, 3, 1, 2, 2}})
    expect_gradients(c);
}

TEST(CpuRowFilter, transposed_convolutions_of_channels_add_a_bias_and_clip) {
  for (const RowCase& c : {RowCase{1, 64, 62, 64, 1, 4, 4, 1, 1, 1, 1, 1, 2, 2},
                           {2, 23, 29, 6, 1, 2, 2, 0, 0, 0, 0, 1, 3, 4},
                           {2, 12, 7, 37, 1, 3, 3, 1, 1, 1, 1}})
    for (const char* behind : {"%y = identity %q", "%y = relu %q", "%y = clip %q {low = -0.5, high = 0.75}"})
      for (const float infinity : {0.f, std::numeric_limits<float>::infinity()})
        expect_equal(
            fmt::format("module @m {{ func @main(%g: f32[{0}], %k: f32[{1}], %b: f32[{2}]) -> (%y: f32[{3}]) {{ %d = "
                        "constant {{value = i64[4] ({3})}} : i64[4] %p = conv2d_input_gradient %g, %k, %d {4} %q = add "
                        "%p, %b {5} return %y }} }}",
                        c.y(), c.kernel(), c.channels, c.x(), c.attributes(), behind),
            "depthwise_input_gradient", infinity);
}

TEST(CpuRowFilter, keeps_infinities_away_from_borders) {
  const RowCase c = kCases[0];
  const float infinity = std::numeric_limits<float>::infinity();
  expect_equal(fmt::format("module @m {{ func @main(%x: f32[{}], %k: f32[{}]) -> (%y: f32[*]) {{ %y = conv2d %x, %k {} "
                           "return %y }} }}",
                           c.x(), c.kernel(), c.attributes()),
               kForward, infinity);
}

}  // namespace
}  // namespace cairn
