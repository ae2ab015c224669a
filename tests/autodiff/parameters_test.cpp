// Constants that become params.
#include "autodiff/parameters.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace cairn {
namespace {

// The name of a constant is that of its value in the text.
const char* const kLoop = R"(module @m {
  func @main(%x: f32[2], %n: i64[]) -> (%y: f32[2]) {
    %w = constant {value = f32[2] (1.0, 2.0)} : f32[2]
    %h = constant {value = f32[] (0.5)} : f32[]
    %zero = constant {value = i64[] (0)} : i64[]
    %a = mul %x, %w : f32[2]
    %b = mul %a, %h : f32[2]
    %i, %y = while %zero, %b, %n {carried = 2} : i64[], f32[2]
      region(%i1: i64[], %v1: f32[2], %n1: i64[]) {
        %more = less %i1, %n1 : bool[]
        yield %more
      }
      region(%i2: i64[], %v2: f32[2], %n2: i64[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %u = constant {value = f32[2] (3.0, 4.0)} : f32[2]
        %next = add %i2, %one : i64[]
        %z = add %v2, %u : f32[2]
        yield %next, %z
      }
    return %y
  }
}
)";

TEST(Parameters, NamedConstantsOfAnyRegionBecomeParams) {
  Module module = parse(kLoop);
  const std::vector<Parameter> made = lift_constants(module.main());
  verify(module);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].name, "w");
  EXPECT_EQ(made[0].param, 2u);
  EXPECT_EQ(made[1].name, "u");
  EXPECT_EQ(to_string(Attribute(made[1].value)), "f32[2] (3.0, 4.0)");
  EXPECT_NE(print(module).text.find("func @main(%x: f32[2], %n: i64[], %w: f32[2], %u: f32[2])"), std::string::npos);
}

TEST(Parameters, AreChosenByName) {
  Module module = parse(kLoop);
  const std::vector<Parameter> made = lift_constants(module.main(), {.names = {"h"}});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].name, "h");
  try {
    lift_constants(module.main(), {.names = {"ww"}});
    FAIL();
  } catch (const Error& fault) {
    EXPECT_STREQ(fault.what(), "ww: no float constant of the model has this name; did you mean w?");
  }
}

}  // namespace
}  // namespace cairn
