// Operators that do what must not be done.
#include <cairn/op.hpp>
#include <csignal>

using namespace cairn::op;

namespace {

Row faulty(const char* name) {
  return Row(name, "does something wrong").input("x").result("y").shape([](ShapeRule& rule) {
    rule.result(rule.input(0));
  });
}

}  // namespace

CAIRN_OPS(registry) {
  registry.add(faulty("faulty.throws").kernel([](Kernel&) { throw Failure("x is not to its taste"); }));
  registry.add(faulty("faulty.crashes").kernel([](Kernel&) { std::raise(SIGSEGV); }));
  registry.add(faulty("faulty.type").kernel([](Kernel& kernel) { kernel.input<double>(0); }));
  registry.add(
      Row("faulty.no_result", "tells no type").input("x").result("y").shape([](ShapeRule&) {}).kernel([](Kernel&) {}));
  registry.add(faulty("faulty.gradient")
                   .kernel([](Kernel& kernel) {
                     const auto x = kernel.input<double>(0);
                     const auto y = kernel.output<double>(0);
                     for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
                   })
                   .gradient([](Gradient& g) { g.set(0, g.dy(0) * g.x(0)); })
                   .test("f64[3]"));
}
