// Conversions between f32 and 16 bits against those of single elements.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "engines/cpu/narrow.h"
#include "ir/tensor.h"
#include "support/denormals.h"

namespace cairn {
namespace {

TEST(CpuNarrow, every_half_is_widened_as_by_the_reference_also_where_denormals_are_flushed) {
  std::vector<uint16_t> halves(1 << 16);
  std::iota(halves.begin(), halves.end(), uint16_t{0});
  std::vector<float> wide(halves.size());
  {
    const FlushDenormals flush;
    widen(Form::halves, std::ssize(halves), halves.data(), wide.data());
  }
  for (size_t i = 0; i < halves.size(); ++i) {
    const float expected = half_to_float(halves[i]);
    EXPECT_EQ(std::isnan(wide[i]), std::isnan(expected)) << i;
    EXPECT_EQ(std::signbit(wide[i]), std::signbit(expected)) << i;
    EXPECT_TRUE(std::isnan(expected) || wide[i] == expected) << i;
  }
}

TEST(CpuNarrow, floats_are_rounded_to_halves_as_by_the_reference) {
  std::mt19937 random(3);
  for (int64_t count : {1, 7, 8, 15, 16, 17, 100000}) {
    std::vector<float> wide(static_cast<size_t>(count));
    for (float& value : wide) {
      const float fraction = std::uniform_real_distribution<float>(-2, 2)(random);
      value = std::ldexp(fraction, std::uniform_int_distribution<int>(-28, 18)(random));
      if (random() % 4 == 0) {  // between two halves
        const uint16_t below = float_to_half(value) & 0x7bff;
        value = (half_to_float(below) + half_to_float(static_cast<uint16_t>(below + 1))) / 2;
      }
    }
    std::vector<uint16_t> halves(wide.size());
    {
      const FlushDenormals flush;
      narrow(Form::halves, count, wide.data(), halves.data());
    }
    for (size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(halves[i], float_to_half(wide[i])) << wide[i];
  }
}

}  // namespace
}  // namespace cairn
