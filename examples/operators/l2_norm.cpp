// A reduction with a gradient of its own.
#include <cmath>

#include "ops.h"

using namespace cairn::op;

namespace {

void infer(ShapeRule& rule) {
  const Type x = rule.input(0);
  if (x.ranked && x.rank() == 0) rule.fail("x is a scalar, expected at least one dimension");
  rule.result(x.without(-1));
}

void run(Kernel& kernel) {
  kernel.with_type_of<float, double>(0, [&](auto zero) {
    using T = decltype(zero);
    const auto x = kernel.input<T>(0);
    const auto y = kernel.output<T>(0);
    const size_t row = kernel.input_dims(0).back();
    for (size_t i = 0; i < y.size(); ++i) {
      double sum = kernel.number("epsilon");
      for (size_t j = 0; j < row; ++j) sum += double{x[i * row + j]} * x[i * row + j];
      y[i] = static_cast<T>(std::sqrt(sum));
    }
  });
}

// dx = x / norm * dy, where norm and dy have one element for each row of x.
void differentiate(Gradient& g) {
  const Value x = g.x(0);
  const Value norm = sqrt(reduce_sum(x * x, {-1}, true) + g.number("epsilon"));
  g.set(0, x / norm * reshape_like(g.dy(0), norm));
}

}  // namespace

Row l2_norm() {
  return Row("example.l2_norm", "square root of epsilon and the sum of squares along the last axis")
      .input("x", floats)
      .attribute("epsilon", 1e-6)
      .result("y")
      .shape(infer)
      .kernel(run)
      .gradient(differentiate)
      .test("f32[2, 3]")
      .test("f64[2, 3, 4] {epsilon = 0.5}")
      .test("f32[2, 0]");
}
