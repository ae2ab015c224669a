#include "judge/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/target.h"

namespace cairn::judge {

namespace {

constexpr size_t kLanes = 8, kBlock = 128, kChunk = 8192;
constexpr double kEpsilon = 2.22e-16;
constexpr float kFloor = 1.1920929e-07f;

#define INLINE inline __attribute__((always_inline))

namespace baseline {
#define CAIRN_FMA 0
#include "judge/kernels_body.h"
#undef CAIRN_FMA
}  // namespace baseline

#if defined(__x86_64__)
CAIRN_TARGET_BEGIN("avx2,fma")
namespace avx2 {
#define CAIRN_FMA 1
#include "judge/kernels_body.h"
#undef CAIRN_FMA
}  // namespace avx2
CAIRN_TARGET_END

// The same 256-bit vectors with twice the registers. (Clang knows no such preference for a function.)
#ifdef __clang__
CAIRN_TARGET_BEGIN("avx2,fma,avx512f,avx512vl,avx512dq")
#else
CAIRN_TARGET_BEGIN("avx2,fma,avx512f,avx512vl,avx512dq,prefer-vector-width=256")
#endif
namespace avx512 {
#define CAIRN_FMA 1
#include "judge/kernels_body.h"
#undef CAIRN_FMA
}  // namespace avx512
CAIRN_TARGET_END

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() { return has_avx2() && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"); }
#define CHOOSE(call) (has_avx512() ? avx512::call : has_avx2() ? avx2::call : baseline::call)
#else
#define CHOOSE(call) baseline::call
#endif

}  // namespace

FirstPass first_pass(const float* x, const float* y, size_t count) { return CHOOSE(first(x, y, count)); }

SecondPass second_pass(const float* x, const float* y, size_t count, const SecondScales& scales) {
  return CHOOSE(second(x, y, count, scales));
}

void half_to_floats(const uint16_t* from, float* to, size_t count) { CHOOSE(halves(from, to, count)); }

}  // namespace cairn::judge
