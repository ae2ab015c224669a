// Which instruction set the kernels use: the best of this machine, or less when
// CAIRN_ISA=avx512_bf16|avx512_vnni|avx512|avx2_vnni|avx2|none asks for it.
#pragma once

#include <string>

namespace cairn {

enum class Isa { none, avx2, avx512 };

/// Determined once per process. `avx2` means AVX2, FMA and F16C; `avx512` means F, BW, DQ and VL.
Isa machine_isa();
/// Whether registers of machine_isa() have dot products of integers (VNNI); not with CAIRN_ISA=avx512|avx2.
bool machine_has_dot_products();
/// Whether registers of machine_isa() have dot products of bf16; with AVX-512, and not with CAIRN_ISA=avx512_vnni or less.
bool machine_has_brain_products();
/// Whether there are matrix registers (AMX) for products of bytes and of bf16, and the system lets the process use them; with the two
/// above, and not with CAIRN_ISA=avx512_bf16 or less.
bool machine_has_matrix_registers();
const char* to_string(Isa isa);
/// Floats in one vector register.
inline int lanes(Isa isa) { return isa == Isa::avx512 ? 16 : 8; }
/// Floats that loops compiled for each instruction set take at once (CAIRN_FLOATS).
inline int loop_lanes(Isa isa) { return isa == Isa::none ? 4 : lanes(isa); }
/// The loop for machine_isa(), of one compiled three times.
template <class Loop>
Loop machine_loop(Loop plain, Loop avx2, Loop avx512) {
  const Isa isa = machine_isa();
  return isa == Isa::avx512 ? avx512 : isa == Isa::avx2 ? avx2 : plain;
}

/// While it lives, the thread's matrix registers have the shapes that code for them needs: registers 4 and 5 (A) 16 rows of so many
/// elements of 4 bytes, 6 and 7 (B) so many rows of 16, the others 16 rows of 16. Does nothing unless `used`.
class MatrixRegisters {
 public:
  explicit MatrixRegisters(bool used, int elements = 16);
  ~MatrixRegisters();
  MatrixRegisters(const MatrixRegisters&) = delete;
  MatrixRegisters& operator=(const MatrixRegisters&) = delete;

 private:
  bool used_;
};

#define CAIRN_INLINE inline __attribute__((always_inline))

/// A loop compiled for every instruction set, of which machine_isa() picks one at the first call.
template <auto kLoop>
class Vectorised;

#define CAIRN_CLONE(...) __attribute__((__VA_ARGS__ optimize("O3", "no-math-errno", "no-trapping-math"))) static Result
template <class Result, class... Args, Result (*kLoop)(Args...)>
class Vectorised<kLoop> {
 public:
  using Function = Result (*)(Args...);

  /// By processor features: a processor's name would leave out all others.
  CAIRN_CLONE(target("arch=x86-64-v4"), ) avx512(Args... args) { return kLoop(args...); }
  CAIRN_CLONE(target("arch=x86-64-v3"), ) avx2(Args... args) { return kLoop(args...); }
  CAIRN_CLONE() plain(Args... args) { return kLoop(args...); }

  static Function chosen() {
    static const Function function = machine_isa() == Isa::avx512 ? avx512 : machine_isa() == Isa::avx2 ? avx2 : plain;
    return function;
  }
  Result operator()(Args... args) const { return chosen()(args...); }
  operator Function() const { return chosen(); }
};
#undef CAIRN_CLONE

}  // namespace cairn

/// Defines the function `name`, whose body follows, for every instruction set; the loops inside vectorise.
#define CAIRN_VECTORISED(result, name, parameters) \
  CAIRN_INLINE result name##_loop parameters;      \
  constexpr Vectorised<name##_loop> name;          \
  CAIRN_INLINE result name##_loop parameters
