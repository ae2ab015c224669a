// Steps that fall to the reference engine are listed with their reason, and told once where they cost.
#include "plan/reference_steps.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "engines/cpu/engine.h"
#include "engines/reference/engine.h"
#include "ir/text.h"
#include "runtime/model.h"
#include "support/files.h"

namespace cairn {
namespace {

/// Grey dilation, which the fast engine has no kernel of.
std::string dilation_text(int64_t size, const char* name) {
  return fmt::format(R"(module @m {{
  source 0 = "tf" "{1}" "Dilation2D" "net.py:3"
  func @main(%x: f32[1, {0}, {0}, 1], %k: f32[9, 9, 1], %f: f32[{0}]) -> (%y: f32[*], %r: f32[{0}]) {{
    %y = dilation2d %x, %k {{padding = same}} #0
    %r = relu %f
    return %y, %r
  }}
}}
)",
                     size, name);
}

std::string said_while_planning(const std::string& text, std::vector<std::string> engines = {}) {
  auto model = Model::make(parse(text), {.threads = 1, .engines = std::move(engines)});
  std::vector<Dims> dims;
  for (const Port& port : model->inputs()) dims.push_back(port.type.shape.sizes());
  testing::internal::CaptureStderr();
  model->plan(dims);
  return testing::internal::GetCapturedStderr();
}

TEST(ReferenceSteps, AreToldOnceWithOperatorsAndReason) {
  EXPECT_EQ(said_while_planning(dilation_text(256, "asked"), {"reference"}), "") << "the caller wants that engine";
  EXPECT_EQ(said_while_planning(dilation_text(1, "small")), "") << "costs nothing";
  const std::string said = said_while_planning(dilation_text(256, "large"));
  EXPECT_TRUE(said.starts_with("cairn: about 100 % of a run's time and 100 % of its FLOPs are on the reference engine"))
      << said;
  EXPECT_NE(said.find(", which is slow: dilation2d of f32[1, 256, 256, 1], f32[9, 9, 1] at "
                      "large (net.py:3) (cpu has no kernel of it)\n"),
            std::string::npos)
      << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_EQ(said_while_planning(dilation_text(300, "again")), "");
}

TEST(ReferenceSteps, AreWrittenToAFile) {
  const std::string path = testing::TempDir() + "cairn_reference_steps";
  std::filesystem::remove(path);
  setenv("CAIRN_REFERENCE_STEPS", path.c_str(), 1);
  said_while_planning(dilation_text(3, "one"));
  said_while_planning(dilation_text(3, "two"));
  unsetenv("CAIRN_REFERENCE_STEPS");
  EXPECT_EQ(read_file(path),
            "dilation2d\tf32[1, 3, 3, 1], f32[9, 9, 1]\tone (net.py:3)\tcpu has no kernel of it\n"
            "dilation2d\tf32[1, 3, 3, 1], f32[9, 9, 1]\ttwo (net.py:3)\tcpu has no kernel of it\n");
}

}  // namespace
}  // namespace cairn
