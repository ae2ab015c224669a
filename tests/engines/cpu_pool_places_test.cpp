// The places of pooled maxima: equal to the reference engine's for any window, in images and volumes, with ties and NaN.
#include "engines/cpu_reference.h"

namespace cairn {
namespace {

struct PlacesCase {
  const char *x, *attributes;
};
constexpr PlacesCase kPlacesCases[] = {
    {"2, 9, 14, 70", "window = [2, 2], strides = [2, 2]"},
    {"1, 7, 5, 3", "window = [3, 3], padding = same"},
    {"3, 8, 11, 16", "window = [3, 2], strides = [1, 3], padding = explicit, pads = [1, 0, 1, 1]"},
    {"1, 12, 12, 5", "window = [3, 3], strides = [2, 2], dilations = [2, 1]"},
    {"2, 6, 1, 8", "window = [6, 1]"},
    {"5, 9, 41, 1", "window = [2, 2], strides = [2, 2]"},
    {"2, 7, 19, 1", "window = [3, 4], strides = [1, 3], dilations = [1, 2], padding = same"},
};

TEST(CpuPoolPlaces, EqualTheReference) {
  std::mt19937_64 random(3);
  for (const PlacesCase& each : kPlacesCases) {
    SCOPED_TRACE(each.x);
    const std::string text = fmt::format(
        "module @m {{ func @main(%x: f32[{}]) -> (%y: i64[*]) {{ %y = max_pool2d_indices %x {{{}}} return %y }} }}",
        each.x, each.attributes);
    expect_reference_result(text, random, [](const auto& kernels) { EXPECT_EQ(kernels, "cpu/max_pool2d_indices "); });
  }
  expect_reference_result(
      "module @m { func @main(%x: f32[2, 5, 6, 7, 4]) -> (%y: i64[*]) { %y = max_pool3d_indices %x "
      "{window = [2, 3, 2], strides = [2, 1, 2], padding = same} return %y } }",
      random, [](const auto& kernels) { EXPECT_EQ(kernels, "cpu/max_pool3d_indices "); });
}

TEST(CpuPoolPlaces, TheFirstOfEqualElementsAndANanThatComesFirstStay) {
  const auto model = Model::make(parse("module @m { func @main(%x: f32[1, 1, 6, 1]) -> (%y: i64[*]) { %y = "
                                       "max_pool2d_indices %x {window = [1, 3], strides = [1, 3]} return %y } }"),
                                 {.threads = 1});
  const std::vector<float> x = {1, 2, 2, NAN, 5, 6};
  const Tensor found = model->run(std::vector<Tensor>{Tensor::of<float>(kF32, {1, 1, 6, 1}, x)})[0];
  EXPECT_EQ(found.as_i64(), (std::vector<int64_t>{1, 3}));
}

}  // namespace
}  // namespace cairn
