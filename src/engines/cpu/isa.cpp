#include "engines/cpu/isa.h"

#include <cpuid.h>

#include <cstdlib>
#include <string_view>

namespace cairn {

namespace {

struct Machine {
  Isa isa = Isa::none;
  bool dot_products = false, brain_products = false;
};

bool has_f16c() {  // by its bit: not every compiler knows the name
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}

bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}

Machine detect() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const char* asked = std::getenv("CAIRN_ISA");
  const std::string_view limit = asked ? asked : "";
  if (limit == "none" || !avx2) return {};
  if (avx512 && !limit.starts_with("avx2"))
    return {Isa::avx512, limit != "avx512" && __builtin_cpu_supports("avx512vnni"),
            !limit.starts_with("avx512") && __builtin_cpu_supports("avx512bf16")};
  return {Isa::avx2, limit != "avx2" && has_avx_vnni()};
}

const Machine& machine() {
  static const Machine found = detect();
  return found;
}

}  // namespace

Isa machine_isa() { return machine().isa; }
bool machine_has_dot_products() { return machine().dot_products; }
bool machine_has_brain_products() { return machine().brain_products; }

const char* to_string(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "none"; }

}  // namespace cairn
