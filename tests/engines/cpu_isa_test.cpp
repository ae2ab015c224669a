// Loops of CAIRN_VECTORISED run as compiled for the instruction set that CAIRN_ISA asks for, not the best of the processor.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <type_traits>

#include "engines/cpu/isa.h"

namespace cairn {
namespace {

CAIRN_VECTORISED(float, times_plus, (float a, float b, float c)) { return a * b + c; }

/// What CAIRN_ISA asks of this processor.
Isa asked_isa() {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const char* asked = std::getenv("CAIRN_ISA");
  const std::string_view limit = asked ? asked : "";
  if (limit == "none" || !avx2) return Isa::none;
  return avx512 && !limit.starts_with("avx2") ? Isa::avx512 : Isa::avx2;
}

TEST(CpuIsa, ALoopRunsTheCloneThatIsAskedFor) {
  using Loop = std::remove_const_t<decltype(times_plus)>;
  const Isa isa = asked_isa();
  EXPECT_EQ(machine_isa(), isa);
  EXPECT_EQ(Loop::chosen(), isa == Isa::avx512 ? Loop::avx512 : isa == Isa::avx2 ? Loop::avx2 : Loop::plain);
  // Of the product's exact value 1 + 2^-22 + 2^-46 only a fused multiply-add keeps the last part.
  const volatile float factor = 1 + 0x1p-23f, addend = -1 - 0x1p-22f;
  EXPECT_EQ(times_plus(factor, factor, addend), isa == Isa::none ? 0.f : 0x1p-46f) << to_string(isa);
}

TEST(CpuIsa, EachIsAskedForInAProcessOfItsOwn) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  for (const char* isa : {"none", "avx2", "avx512"}) {
    const std::string command =
        std::string("CAIRN_ISA=") + isa + " '" + self + "' --gtest_filter=CpuIsa.ALoopRuns* --gtest_brief=1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

}  // namespace
}  // namespace cairn
