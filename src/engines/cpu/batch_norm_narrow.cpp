#include "engines/cpu/batch_norm_narrow.h"

#include <immintrin.h>

#include <algorithm>

#include "engines/cpu/isa.h"

namespace cairn {

namespace {

#define CAIRN_WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define CAIRN_WIDE_INLINE CAIRN_WIDE CAIRN_INLINE

constexpr int64_t kWide = 16;
constexpr int64_t kTogether =
    4;  // rows: more lines of them would share a set of the first-level cache with 2048 channels
constexpr __mmask16 kEach = 0xffff;

__mmask16 lanes_of(int64_t count) { return static_cast<__mmask16>(count < kWide ? (1u << count) - 1 : kEach); }

// Stores behind a mask would not be forwarded to the next loads, hence the two cases.
CAIRN_WIDE_INLINE __m512 floats_at(const float* from, int64_t count) {
  return count < kWide ? _mm512_maskz_loadu_ps(lanes_of(count), from) : _mm512_loadu_ps(from);
}
CAIRN_WIDE_INLINE void set_floats(float* to, int64_t count, __m512 value) {
  count < kWide ? _mm512_mask_storeu_ps(to, lanes_of(count), value) : _mm512_storeu_ps(to, value);
}

template <Form kForm>
CAIRN_WIDE_INLINE __m512 widened(__m256i elements) {
  if constexpr (kForm == Form::halves) return _mm512_maskz_cvtph_ps(kEach, elements);
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kEach, _mm512_maskz_cvtepu16_epi32(kEach, elements), 16));
}
template <Form kForm>
CAIRN_WIDE_INLINE __m512 elements_at(const float* data, int64_t at, int64_t count) {
  const uint16_t* from = reinterpret_cast<const uint16_t*>(data) + at;
  return widened<kForm>(count < kWide ? _mm256_maskz_loadu_epi16(lanes_of(count), from)
                                      : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
template <Form kForm>
CAIRN_WIDE_INLINE __m256i rounded(__m512 value) {
  if constexpr (kForm == Form::halves) return _mm512_maskz_cvtps_ph(kEach, value, _MM_FROUND_TO_NEAREST_INT);
  const __m512i bits = _mm512_castps_si512(value), one = _mm512_set1_epi32(1);
  const __m512i odd = _mm512_and_si512(_mm512_maskz_srli_epi32(kEach, bits, 16), one);
  const __m512i usual = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i all = _mm512_mask_or_epi32(usual, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_maskz_cvtepi32_epi16(kEach, _mm512_maskz_srli_epi32(kEach, all, 16));
}
template <Form kForm>
CAIRN_WIDE_INLINE void set_elements(float* data, int64_t at, int64_t count, __m256i value) {
  uint16_t* to = reinterpret_cast<uint16_t*>(data) + at;
  count < kWide ? _mm256_mask_storeu_epi16(to, lanes_of(count), value)
                : _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}

template <Form kForm>
CAIRN_WIDE void sum_rows(int64_t rows, int64_t c, const BatchNorm& b, int64_t first, float* sum) {
  for (int64_t i = 0; i < c; i += kWide) {
    __m512 all = floats_at(sum + i, c - i);
    for (int64_t row = 0; row < rows; ++row)
      all = _mm512_add_ps(all, elements_at<kForm>(b.x, (first + row) * c + i, c - i));
    set_floats(sum + i, c - i, all);
  }
}

template <Form kForm>
CAIRN_WIDE void sum_moments(int64_t rows, int64_t c, const BatchNorm& b, int64_t first, const float* mean, float* sum,
                            float* squares) {
  for (const int64_t end = first + rows; first < end; first += kTogether)
    for (int64_t i = 0; i < c; i += kWide) {
      const __m512 middle = floats_at(mean + i, c - i);
      __m512 flat = floats_at(sum + i, c - i), around = floats_at(squares + i, c - i);
      for (int64_t row = first; row < std::min(end, first + kTogether); ++row) {
        const __m512 distance = _mm512_sub_ps(elements_at<kForm>(b.x, row * c + i, c - i), middle);
        flat = _mm512_add_ps(flat, distance);
        around = _mm512_fmadd_ps(distance, distance, around);
      }
      set_floats(sum + i, c - i, flat);
      set_floats(squares + i, c - i, around);
    }
}

template <Form kForm>
CAIRN_WIDE void normalise_in_registers(int64_t rows, int64_t c, const BatchNorm& b, int64_t first,
                                       const float* factor) {
  for (const int64_t end = first + rows; first < end; first += kTogether)
    for (int64_t i = 0; i < c; i += kWide) {
      const __m512 mean = floats_at(b.mean + i, c - i), times = floats_at(factor + i, c - i);
      const __m512 offset = floats_at(b.offset + i, c - i);
      for (int64_t row = first; row < std::min(end, first + kTogether); ++row) {
        const int64_t at = row * c + i;
        __m512 y = _mm512_fmadd_ps(_mm512_sub_ps(elements_at<kForm>(b.x, at, c - i), mean), times, offset);
        if (b.residual && b.narrow.rounds_biased) y = widened<kForm>(rounded<kForm>(y));
        if (b.residual) y = _mm512_add_ps(y, elements_at<kForm>(b.residual, at, c - i));
        if (b.relu) y = _mm512_maskz_max_ps(kEach, _mm512_setzero_ps(), y);  // NaN and -0 stay
        set_elements<kForm>(b.y, at, c - i, rounded<kForm>(y));
      }
    }
}

/// dy where the gate is open.
template <Form kForm>
CAIRN_WIDE_INLINE __m512 gated(const BatchNormGradient& b, int64_t at, int64_t count) {
  const __m512 dy = elements_at<kForm>(b.dy, at, count);
  if (!b.gate) return dy;
  const __m512 gate = elements_at<kForm>(b.gate, at, count);
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(gate, _mm512_setzero_ps(), _CMP_GT_OQ), dy);
}

template <Form kForm>
CAIRN_WIDE void sum_slopes(int64_t rows, int64_t c, const BatchNormGradient& b, int64_t first, float* level,
                           float* slope) {
  for (const int64_t end = first + rows; first < end; first += kTogether)
    for (int64_t i = 0; i < c; i += kWide) {
      const __m512 mean = floats_at(b.mean + i, c - i);
      __m512 flat = floats_at(level + i, c - i), steep = floats_at(slope + i, c - i);
      for (int64_t row = first; row < std::min(end, first + kTogether); ++row) {
        const __m512 dy = gated<kForm>(b, row * c + i, c - i);
        flat = _mm512_add_ps(flat, dy);
        steep = _mm512_fmadd_ps(dy, _mm512_sub_ps(elements_at<kForm>(b.x, row * c + i, c - i), mean), steep);
      }
      set_floats(level + i, c - i, flat);
      set_floats(slope + i, c - i, steep);
    }
}

template <Form kForm>
CAIRN_WIDE void input_gradient_in_registers(int64_t rows, int64_t c, const BatchNormGradient& b, int64_t first,
                                            const float* factor, const float* level, const float* slope) {
  for (const int64_t end = first + rows; first < end; first += kTogether)
    for (int64_t i = 0; i < c; i += kWide) {
      const __m512 mean = floats_at(b.mean + i, c - i), times = floats_at(factor + i, c - i);
      const __m512 flat = floats_at(level + i, c - i), steep = floats_at(slope + i, c - i);
      for (int64_t row = first; row < std::min(end, first + kTogether); ++row) {
        const int64_t at = row * c + i;
        const __m512 distance = _mm512_sub_ps(elements_at<kForm>(b.x, at, c - i), mean);
        const __m512 rest = _mm512_fnmadd_ps(distance, steep, _mm512_sub_ps(gated<kForm>(b, at, c - i), flat));
        set_elements<kForm>(b.dx, at, c - i, rounded<kForm>(_mm512_mul_ps(times, rest)));
      }
    }
}

template <Form kForm>
constexpr NarrowRows kNarrowRows{sum_rows<kForm>, sum_moments<kForm>, normalise_in_registers<kForm>, sum_slopes<kForm>,
                                 input_gradient_in_registers<kForm>};

#undef CAIRN_WIDE_INLINE
#undef CAIRN_WIDE

}  // namespace

const NarrowRows* narrow_rows(Form form) {
  if (machine_isa() != Isa::avx512 || !is_narrow(form)) return nullptr;
  return form == Form::halves ? &kNarrowRows<Form::halves> : &kNarrowRows<Form::brains>;
}

}  // namespace cairn
