// erfc: values worked out by hand; everything general is tested from the row.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "runtime/model.h"

namespace cairn {
namespace {

TEST(Erfc, KnownValues) {
  auto model = Model::make(parse(R"(
module @test {
  func @main(%x: f32[3]) -> (%y: f32[3]) {
    %y = erfc %x : f32[3]
    return %y
  }
})"));
  Tensor x = Tensor::zeros(kF32, {3});
  auto values = x.mutable_values<float>();
  values[0] = -20, values[1] = 0, values[2] = 5;
  auto y = model->run({x})[0];
  EXPECT_EQ(y.values<float>()[0], 2);
  EXPECT_EQ(y.values<float>()[1], 1);
  EXPECT_NEAR(y.values<float>()[2], 1.5374598e-12, 1e-18);  // 1 - erf(5) would be 0 in f32
}

}  // namespace
}  // namespace cairn
