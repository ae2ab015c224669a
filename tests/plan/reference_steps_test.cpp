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

/// A product of integers, which the fast engine has no kernel of.
std::string product_text(int64_t size, const char* name) {
  return fmt::format(R"(module @m {{
  source 0 = "tf" "{1}" "MatMul" "net.py:3"
  func @main(%x: i32[{0}, {0}], %f: f32[{0}, {0}]) -> (%y: i32[{0}, {0}], %r: f32[{0}, {0}]) {{
    %y = matmul %x, %x #0
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
  EXPECT_EQ(said_while_planning(product_text(256, "asked"), {"reference"}), "") << "the caller wants that engine";
  EXPECT_EQ(said_while_planning(product_text(2, "small")), "") << "costs nothing";
  const std::string said = said_while_planning(product_text(256, "large"));
  EXPECT_TRUE(
      said.starts_with("cairn: about 100 % of a run's time and 99.8 % of its FLOPs are on the reference engine"))
      << said;
  EXPECT_NE(said.find(", which is slow: matmul of i32[256, 256], i32[256, 256] at "
                      "large (net.py:3) (input is i32, takes f32)\n"),
            std::string::npos)
      << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_EQ(said_while_planning(product_text(300, "again")), "");
}

TEST(ReferenceSteps, AreWrittenToAFile) {
  const std::string path = testing::TempDir() + "cairn_reference_steps";
  std::filesystem::remove(path);
  setenv("CAIRN_REFERENCE_STEPS", path.c_str(), 1);
  said_while_planning(product_text(3, "one"));
  said_while_planning(product_text(3, "two"));
  unsetenv("CAIRN_REFERENCE_STEPS");
  EXPECT_EQ(read_file(path),
            "matmul\ti32[3, 3], i32[3, 3]\tone (net.py:3)\tinput is i32, takes f32\n"
            "matmul\ti32[3, 3], i32[3, 3]\ttwo (net.py:3)\tinput is i32, takes f32\n");
}

}  // namespace
}  // namespace cairn
