// Numbers of f16 as sums of two of bf16, for products on matrix registers.
#include <immintrin.h>

#include <algorithm>

#include "engines/cpu/isa.h"
#include "engines/cpu/narrow.h"
#include "support/error.h"

namespace cairn {

namespace {

// Forms with masks of all lanes: GCC warns of undefined operands in the others.
constexpr __mmask16 kEach = 0xffff;

#define CAIRN_SPLITS __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

/// In the upper half of each lane.
struct Parts16 {
  __m512i upper, rest, finite;
};

CAIRN_SPLITS __attribute__((always_inline)) inline Parts16 split(__m512 x) {
  constexpr int kNotFinite = 0x99;  // NaN of both kinds and infinities
  const __m512i upper = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(0xffff0000U)));
  const __mmask16 finite = static_cast<__mmask16>(~_mm512_fpclass_ps_mask(x, kNotFinite));
  const __m512 rest = _mm512_maskz_sub_ps(finite, x, _mm512_castsi512_ps(upper));
  return {upper, _mm512_castps_si512(rest), _mm512_maskz_mov_epi32(finite, upper)};
}
CAIRN_SPLITS __attribute__((always_inline)) inline void store_upper(uint16_t* to, __mmask16 mask, __m512i x) {
  _mm256_mask_storeu_epi16(to, mask, _mm512_maskz_cvtepi32_epi16(mask, _mm512_maskz_srli_epi32(mask, x, 16)));
}
CAIRN_SPLITS __attribute__((always_inline)) inline __m512i paired(__m512i even, __m512i odd) {
  return _mm512_or_si512(_mm512_maskz_srli_epi32(kEach, even, 16), odd);
}
CAIRN_SPLITS __attribute__((always_inline)) inline __mmask16 mask_of(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, 16)) - 1);
}

CAIRN_SPLITS void split_rows(int64_t pixels, int64_t channels, const uint16_t* from, uint16_t* to) {
  for (int64_t pixel = 0; pixel < pixels; ++pixel, from += channels, to += kSplitPlanes * channels)
    for (int64_t i = 0; i < channels; i += 16) {
      const __mmask16 mask = mask_of(channels - i);
      const Parts16 parts = split(_mm512_maskz_cvtph_ps(mask, _mm256_maskz_loadu_epi16(mask, from + i)));
      store_upper(to + i, mask, parts.upper);
      store_upper(to + channels + i, mask, parts.rest);
      store_upper(to + 2 * channels + i, mask, parts.finite);
    }
}

CAIRN_SPLITS void split_floats(int64_t pairs, int64_t width, const float* from, float* to, int64_t plane) {
  for (int64_t pair = 0; pair < pairs; ++pair, from += 2 * width, to += width)
    for (int64_t i = 0; i < width; i += 16) {
      const Parts16 even = split(_mm512_loadu_ps(from + i)), odd = split(_mm512_loadu_ps(from + width + i));
      _mm512_storeu_si512(to + i, paired(even.upper, odd.upper));
      _mm512_storeu_si512(to + plane + i, paired(even.rest, odd.rest));
      _mm512_storeu_si512(to + 2 * plane + i, paired(even.finite, odd.finite));
    }
}

CAIRN_SPLITS void split_pair(int64_t count, const uint16_t* even, const uint16_t* odd, uint32_t* to, int64_t plane) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = mask_of(count - i);
    const Parts16 a = split(_mm512_maskz_cvtph_ps(mask, _mm256_maskz_loadu_epi16(mask, even + i)));
    const Parts16 b = split(_mm512_maskz_cvtph_ps(mask, _mm256_maskz_loadu_epi16(mask, odd + i)));
    _mm512_mask_storeu_epi32(to + i, mask, paired(a.upper, b.upper));
    _mm512_mask_storeu_epi32(to + plane + i, mask, paired(a.rest, b.rest));
    _mm512_mask_storeu_epi32(to + 2 * plane + i, mask, paired(a.finite, b.finite));
  }
}

}  // namespace

void split_pixels(int64_t pixels, int64_t channels, const uint16_t* from, uint16_t* to) {
  split_rows(pixels, channels, from, to);
}

void split_pair_of_rows(int64_t count, const uint16_t* even, const uint16_t* odd, uint32_t* to, int64_t plane) {
  split_pair(count, even, odd, to, plane);
}

void pack_split_pairs(Form form, const void* from, int64_t pairs, int64_t row_step, int64_t columns, int64_t column_step,
                      int64_t width, float* to) {
  constexpr int64_t kPairs = 32, kWidest = 64;
  CHECK(width <= kWidest && width % 16 == 0, "panel of {} columns", width);
  float rows[2 * kPairs * kWidest];
  const auto* bytes = static_cast<const char*>(from);
  for (int64_t first = 0; first < pairs; first += kPairs) {
    const int64_t count = std::min(kPairs, pairs - first);
    pack_rows(form, bytes + 2 * first * row_step * bytes_of(form), 2 * count, row_step, columns, column_step, width, rows,
              form == Form::floats ? Form::halves : Form::floats);
    split_floats(count, width, rows, to + first * width, pairs * width);
  }
}

}  // namespace cairn
