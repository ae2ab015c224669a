// A fused element-wise operator: one pass over the elements where the formula of other operators takes three.
#include <cmath>

#include "ops.h"

using namespace cairn::op;

namespace {

void run(Kernel& kernel) {
  kernel.with_type_of<float, double>(0, [&](auto zero) {
    using T = decltype(zero);
    const auto x = kernel.input<T>(0);
    const auto y = kernel.output<T>(0);
    const T beta = static_cast<T>(kernel.number("beta"));
    for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] / (1 + std::exp(-beta * x[i]));
  });
}

// With s = sigmoid(beta x), the derivative of x s is s + beta x s (1 - s).
void differentiate(Gradient& g) {
  const double beta = g.number("beta");
  const Value x = g.x(0), s = sigmoid(x * beta);
  g.set(0, g.dy(0) * (s + x * beta * s * (1 - s)));
}

}  // namespace

Row swish() {
  return Row("example.swish", "x * sigmoid(beta * x)")
      .input("x", floats)
      .attribute("beta", 1.0)
      .result("y")
      .elementwise()
      .shape([](ShapeRule& rule) { rule.result(rule.input(0)); })
      .kernel(run)
      .gradient(differentiate)
      .decompose([](Decomposition& parts) { parts.result(0, parts.x(0) * sigmoid(parts.x(0) * parts.number("beta"))); })
      .test("f32[2, 3]")
      .test("f64[4] {beta = 1.5}")
      .test("f32[0]");
}
