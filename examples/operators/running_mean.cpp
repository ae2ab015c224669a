// An operator with a state: the mean of what it has seen, kept from run to run.
#include "ops.h"

using namespace cairn::op;

namespace {

void infer(ShapeRule& rule) {
  const Type x = rule.input(0), mean = rule.input(1);
  if (x.ranked && x.rank() != 2) rule.fail("x has " + std::to_string(x.rank()) + " dimensions, expected 2");
  rule.result(x);
  rule.result(mean);
}

void run(Kernel& kernel) {
  const auto x = kernel.input<float>(0);
  const auto mean = kernel.input<float>(1);
  const auto y = kernel.output<float>(0);
  const auto next = kernel.output<float>(1);
  const size_t columns = mean.size(), rows = columns == 0 ? 0 : x.size() / columns;
  const auto momentum = static_cast<float>(kernel.number("momentum"));
  for (size_t j = 0; j < columns; ++j) {
    float sum = 0;
    for (size_t i = 0; i < rows; ++i) sum += x[i * columns + j];
    for (size_t i = 0; i < rows; ++i) y[i * columns + j] = x[i * columns + j] - mean[j];
    next[j] = rows == 0 ? mean[j] : momentum * mean[j] + (1 - momentum) * sum / static_cast<float>(rows);
  }
}

}  // namespace

Row running_mean() {
  return Row("example.running_mean", "x without the mean so far, and that mean with x counted in")
      .input("x", floats)
      .input("mean", floats, state)
      .attribute("momentum", 0.9)
      .result("y")
      .result("next_mean")
      .shape(infer)
      .kernel(run)
      .gradient([](Gradient& g) { g.set(0, g.dy(0)); })
      .test("f32[4, 3], f32[3]")
      .test("f32[4, 3], f32[3] {momentum = 0.5}");
}
