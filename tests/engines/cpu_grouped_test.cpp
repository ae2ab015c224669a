// Convolutions in groups of few channels in bf16, several of which matrix registers take at once: equal to the reference, the same
// bits at any number of threads.
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

struct GroupedCase {
  int64_t groups, inputs, outputs;  // of a group
  const char* attributes;
};

std::string grouped_module(const GroupedCase& each) {
  Random random(3);
  const auto numbers = [&](int64_t count) { return fmt::format("{:.3f}", fmt::join(random.floats(count), ", ")); };
  const int64_t all = each.groups * each.outputs;
  return fmt::format(R"(module @m {{ func @main(%x: bf16[2, 9, 7, {0}]) -> (%y: bf16[*]) {{
    %w = constant {{value = f32[3, 3, {1}, {2}] ({3})}} %k = cast %w {{dtype = bf16}} %f = cast %k {{dtype = f32}}
    %b = constant {{value = f32[{2}] ({4})}} %v = cast %x {{dtype = f32}}
    %c = conv2d %v, %f {{groups = {5}, {6}}} %a = add %c, %b %r = relu %a %y = cast %r {{dtype = bf16}} return %y }} }})",
                     each.groups * each.inputs, each.inputs, all, numbers(9 * each.inputs * all), numbers(all),
                     each.groups, each.attributes);
}

constexpr GroupedCase kGroupedCases[] = {
    {32, 4, 4, "padding = same"},  {8, 8, 8, "padding = same, strides = [2, 2]"},
    {6, 16, 8, "padding = valid"}, {4, 2, 6, "padding = same"},
    {3, 5, 4, "padding = same"},   {2, 40, 32, "padding = same"},
};

TEST(CpuGrouped, EqualsTheReferenceInBf16) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: no AVX2";
  for (const GroupedCase& each : kGroupedCases) {
    SCOPED_TRACE(fmt::format("{} groups of {} to {}, {}", each.groups, each.inputs, each.outputs, each.attributes));
    std::mt19937_64 random(11);
    expect_reference_result(grouped_module(each), random, [](const auto& kernels) {
      EXPECT_NE(kernels.find("cpu/grouped"), std::string::npos) << kernels;
    });
  }
}

}  // namespace
}  // namespace cairn
