#include "engines/cpu/isa.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace cairn {

namespace {

struct Machine {
  Isa isa = Isa::none;
  bool dot_products = false, brain_products = false, matrix_registers = false;
};

bool has_f16c() {  // by its bit: not every compiler knows the name
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}

bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}

// Linux gives the registers to processes that ask for them, once for all threads. It refuses where a thread's alternative signal stack
// could not hold them.
bool takes_matrix_registers() {
  constexpr unsigned kBrains = 1u << 22, kTiles = 1u << 24, kBytes = 1u << 25, kAll = kBrains | kTiles | kBytes;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kAll) != kAll) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Machine detect() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const char* asked = std::getenv("CAIRN_ISA");
  const std::string_view limit = asked ? asked : "";
  if (limit == "none" || !avx2) return {};
  if (!avx512 || limit.starts_with("avx2")) return {Isa::avx2, limit != "avx2" && has_avx_vnni()};
  Machine found{Isa::avx512};
  found.dot_products = limit != "avx512" && __builtin_cpu_supports("avx512vnni");
  found.brain_products = found.dot_products && limit != "avx512_vnni" && __builtin_cpu_supports("avx512bf16");
  found.matrix_registers = found.brain_products && limit != "avx512_bf16" && takes_matrix_registers();
  return found;
}

const Machine& machine() {
  static const Machine found = detect();
  return found;
}

struct alignas(64) RegisterShapes {
  uint8_t palette = 1, start = 0;
  std::array<uint8_t, 14> reserved{};
  std::array<uint16_t, 16> row_bytes{};
  std::array<uint8_t, 16> rows{};
};
constexpr RegisterShapes shapes_for(size_t elements) {
  RegisterShapes shapes;
  for (size_t i = 0; i < 8; ++i) {
    shapes.row_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? 4 * elements : 64);
    shapes.rows[i] = static_cast<uint8_t>(i == 6 || i == 7 ? elements : 16);
  }
  return shapes;
}
// In memory beforehand: GCC takes it that the intrinsic reads 8 bytes.
constexpr std::array<RegisterShapes, 17> kShapes = [] {
  std::array<RegisterShapes, 17> shapes;
  for (size_t i = 0; i < shapes.size(); ++i) shapes[i] = shapes_for(i);
  return shapes;
}();

__attribute__((target("amx-tile"))) void shape_registers(int elements) {
  _tile_loadconfig(&kShapes[static_cast<size_t>(elements)]);
}
__attribute__((target("amx-tile"))) void release_registers() { _tile_release(); }

}  // namespace

Isa machine_isa() { return machine().isa; }
bool machine_has_dot_products() { return machine().dot_products; }
bool machine_has_brain_products() { return machine().brain_products; }
bool machine_has_matrix_registers() { return machine().matrix_registers; }

const char* to_string(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "none"; }

MatrixRegisters::MatrixRegisters(bool used, int elements) : used_(used) {
  if (used_) shape_registers(elements);
}
MatrixRegisters::~MatrixRegisters() {
  if (used_) release_registers();
}

}  // namespace cairn
