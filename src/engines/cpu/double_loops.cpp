#include "engines/cpu/double_loops.h"

#include <cmath>

#include "engines/cpu/isa.h"
#include "ops/special.h"

// With this attribute loops call the vector functions of glibc's libmvec, which are within 4 units of the last place.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
extern "C" {
#define CAIRN_IN_LIBRARY(name) __attribute__((simd("notinbranch"))) double name(double) noexcept;
CAIRN_IN_LIBRARY(exp)
CAIRN_IN_LIBRARY(expm1)
CAIRN_IN_LIBRARY(log)
CAIRN_IN_LIBRARY(log1p)
CAIRN_IN_LIBRARY(tanh)
CAIRN_IN_LIBRARY(erf)
CAIRN_IN_LIBRARY(erfc)
CAIRN_IN_LIBRARY(sin)
CAIRN_IN_LIBRARY(cos)
CAIRN_IN_LIBRARY(tan)
CAIRN_IN_LIBRARY(asin)
CAIRN_IN_LIBRARY(acos)
CAIRN_IN_LIBRARY(atan)
CAIRN_IN_LIBRARY(sinh)
CAIRN_IN_LIBRARY(cosh)
CAIRN_IN_LIBRARY(asinh)
CAIRN_IN_LIBRARY(acosh)
CAIRN_IN_LIBRARY(atanh)
#undef CAIRN_IN_LIBRARY
}
#endif

namespace cairn {

namespace {

// What the formulas of element_table.h name, for doubles.
CAIRN_INLINE double spread(double value) { return value; }
CAIRN_INLINE double choose(bool mask, double yes, double no) { return mask ? yes : no; }
CAIRN_INLINE double larger(double a, double b) { return (a > b) | (a != a) ? a : b; }
CAIRN_INLINE double smaller(double a, double b) { return (a < b) | (a != a) ? a : b; }
CAIRN_INLINE double magnitude_of(double x) { return std::fabs(x); }
CAIRN_INLINE double expm1_of(double x) { return std::expm1(x); }
CAIRN_INLINE double atan2_of(double y, double x) { return std::atan2(y, x); }
CAIRN_INLINE double pow_of(double x, double y) { return std::pow(x, y); }
CAIRN_INLINE double truncate_mod_of(double x, double y) { return std::fmod(x, y); }
CAIRN_INLINE double mod_of(double x, double y) {
  const double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
CAIRN_INLINE double floor_div_of(double x, double y) { return std::floor(x / y); }
CAIRN_INLINE double gelu_of(double x) { return 0.5 * x * std::erfc(x * -0.70710678118654752); }
CAIRN_INLINE double gelu_by_tanh_of(double x) {
  return 0.5 * x * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

#define CAIRN_LOOP(instruction, formula)                                                                           \
  CAIRN_VECTORISED(void, instruction##_doubles,                                                                    \
                   (int64_t count, [[maybe_unused]] double low, [[maybe_unused]] double high, const double* first, \
                    const double* second, const double* third, double* to)) {                                      \
    [[maybe_unused]] constexpr double one = 1, zero = 0;                                                           \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < count * kDoubles; ++i) {                                          \
      [[maybe_unused]] const double x = first[i], y = second[i], z = third[i];                                     \
      to[i] = formula;                                                                                             \
    }                                                                                                              \
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdouble-promotion"
#define CAIRN_VECTOR(name, instruction, f32) CAIRN_LOOP(instruction, f32)
#define CAIRN_NARROW(name, instruction, f32)
#define CAIRN_FUNCTION(name, instruction, f32, wide) CAIRN_LOOP(instruction, wide)
#include "engines/cpu/element_table.h"
#pragma GCC diagnostic pop

}  // namespace

DoubleLoop double_loop(ElementOp op) {
  switch (op) {
#define CAIRN_VECTOR(name, instruction, f32) \
  case ElementOp::instruction:               \
    return instruction##_doubles;
#define CAIRN_NARROW(name, instruction, f32)
#include "engines/cpu/element_table.h"
    default: return nullptr;
  }
}

}  // namespace cairn
