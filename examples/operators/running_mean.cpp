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

template <class T>
void run_as(Kernel& kernel) {
  const auto x = kernel.input<T>(0), mean = kernel.input<T>(1);
  const auto y = kernel.output<T>(0), next = kernel.output<T>(1);
  const size_t columns = mean.size(), rows = columns == 0 ? 0 : x.size() / columns;
  const T momentum = static_cast<T>(kernel.number("momentum"));
  for (size_t j = 0; j < columns; ++j) {
    T sum = 0;
    for (size_t i = 0; i < rows; ++i) sum += x[i * columns + j];
    for (size_t i = 0; i < rows; ++i) y[i * columns + j] = x[i * columns + j] - mean[j];
    next[j] = rows == 0 ? mean[j] : momentum * mean[j] + (1 - momentum) * sum / static_cast<T>(rows);
  }
}

void run(Kernel& kernel) {
  kernel.with_type_of<float, double>(0, [&](auto zero) { run_as<decltype(zero)>(kernel); });
}

// The mean so far is a state and gets none; next_mean has a row's share of each element of x.
void differentiate(Gradient& g) {
  Value dx = g.dy(0);
  if (g.has_dy(1)) {
    const Value x = g.x(0), ones = x * 0.0 + 1.0;
    dx = dx + (1 - g.number("momentum")) * ones * g.dy(1) / reduce_sum(ones, {0}, true);
  }
  g.set(0, dx);
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
      .gradient(differentiate)
      .test("f32[4, 3], f32[3]")
      .test("f32[4, 3], f32[3] {momentum = 0.5}");
}
