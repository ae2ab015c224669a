#include "engines/cpu/isa.h"

#include <cstdlib>
#include <string_view>

namespace cairn {

namespace {

Isa detect() {
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const char* asked = std::getenv("CAIRN_ISA");
  std::string_view limit = asked ? asked : "";
  if (limit == "none") return Isa::none;
  if (avx512 && limit != "avx2") return Isa::avx512;
  return avx2 ? Isa::avx2 : Isa::none;
}

}  // namespace

Isa machine_isa() {
  static const Isa isa = detect();
  return isa;
}

const char* to_string(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "none"; }

}  // namespace cairn
