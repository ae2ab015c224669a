#include "engines/cpu/narrow.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "engines/cpu/isa.h"
#include "engines/cpu/vector_loops.h"
#include "support/error.h"

namespace cairn {

namespace {

CAIRN_INLINE float as_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }
CAIRN_INLINE uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

CAIRN_VECTORISED(void, expand_brains, (int64_t count, const uint16_t* from, float* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = as_float(static_cast<uint32_t>(from[i]) << 16);
}

CAIRN_VECTORISED(void, expand_rows_of_brains,
                 (int64_t rows, int64_t columns, const uint16_t* from, int64_t step, float* to)) {
  for (int64_t row = 0; row < rows; ++row, from += step, to += columns)
    for (int64_t i = 0; i < columns; ++i) to[i] = as_float(static_cast<uint32_t>(from[i]) << 16);
}

void expand_halves_plainly(int64_t count, const uint16_t* from, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = wide_half(from[i]);
}

/// The bits of the nearest element of bf16, in the upper half.
CAIRN_INLINE uint32_t rounded_to_brain(float value) {
  const uint32_t bits = bits_of(value), usual = bits + 0x7fff + (bits >> 16 & 1);
  return ((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : usual) & 0xffff0000;
}
CAIRN_VECTORISED(void, round_brains, (int64_t count, const float* from, uint16_t* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint16_t>(rounded_to_brain(from[i]) >> 16);
}
CAIRN_VECTORISED(void, round_to_brains, (int64_t count, float* values)) {
  for (int64_t i = 0; i < count; ++i) values[i] = as_float(rounded_to_brain(values[i]));
}
constexpr __mmask16 kAll = 0xffff;
__mmask16 first_lanes(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }

/// Pairs of rows of floats, rounded by the instruction that products of pairs come with; as in these, denormals are 0. What stands behind
/// the columns is fetched, as it is wanted next.
#define CAIRN_BRAINS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
CAIRN_BRAINS void interleave_rounded(int64_t pairs, const float* from, int64_t row_step, int64_t columns, int64_t width,
                                     float* to) {
  for (int64_t row = 0; row < pairs; ++row, from += 2 * row_step, to += width)
    for (int64_t o = 0; o < width; o += 16) {
      __builtin_prefetch(from + width + o);
      __builtin_prefetch(from + row_step + width + o);
      const __mmask16 mask = first_lanes(std::clamp<int64_t>(columns - o, 0, 16));
      const auto even = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + o)));
      const auto odd = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + row_step + o)));
      const __m512i high = _mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, odd), 16);
      _mm512_storeu_si512(to + o, _mm512_or_si512(_mm512_maskz_cvtepu16_epi32(kAll, even), high));
    }
}

/// 16 pairs of each of 16 columns, whose floats lie side by side.
CAIRN_BRAINS void transpose_rounded(const float* from, int64_t column_step, float* to, int64_t width) {
  constexpr int64_t kAhead = 64;  // floats that are wanted next
  alignas(64) float pairs[kLanes * kLanes];
  for (int64_t o = 0; o < kLanes; ++o) {
    const float* column = from + o * column_step;
    __builtin_prefetch(column + kAhead);
    __builtin_prefetch(column + kAhead + kLanes);
    const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(column + kLanes), _mm512_loadu_ps(column));
    _mm512_store_si512(pairs + o * kLanes, reinterpret_cast<__m512i>(both));
  }
  vector_loops().transpose(pairs, kLanes, to, width);
}
#undef CAIRN_BRAINS

// As float_to_half, without branches.
CAIRN_VECTORISED(void, round_halves_plainly, (int64_t count, const float* from, uint16_t* to)) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = bits_of(from[i]), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    const uint32_t tiny = bits_of(as_float(magnitude) * 0x1p24f + 0x1p23f) - 0x4b000000;
    const uint32_t usual = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
    uint32_t half = magnitude < 0x38800000 ? tiny : usual;
    half = magnitude >= 0x477ff000 ? 0x7c00 : half;
    half = magnitude > 0x7f800000 ? 0x7e00 : half;
    to[i] = static_cast<uint16_t>(half | sign);
  }
}

// The processor's own conversions give denormals also where it flushes these elsewhere. AVX2 does whole
// registers and returns how many elements these were.
#define CAIRN_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))
CAIRN_AVX512 CAIRN_INLINE void expand_16(__mmask16 lanes, const uint16_t* from, float* to) {
  _mm512_mask_storeu_ps(to, lanes, _mm512_maskz_cvtph_ps(kAll, _mm256_maskz_loadu_epi16(lanes, from)));
}
CAIRN_AVX512 void expand_by_16(int64_t count, const uint16_t* from, float* to) {
  for (; count >= 16; count -= 16, from += 16, to += 16) expand_16(kAll, from, to);
  if (count > 0) expand_16(first_lanes(count), from, to);
}
CAIRN_AVX512 CAIRN_INLINE void round_16(__mmask16 lanes, const float* from, uint16_t* to) {
  const __m512 floats = _mm512_maskz_loadu_ps(lanes, from);
  _mm256_mask_storeu_epi16(to, lanes, _mm512_maskz_cvtps_ph(kAll, floats, _MM_FROUND_TO_NEAREST_INT));
}
CAIRN_AVX512 void round_by_16(int64_t count, const float* from, uint16_t* to) {
  for (; count >= 16; count -= 16, from += 16, to += 16) round_16(kAll, from, to);
  if (count > 0) round_16(first_lanes(count), from, to);
}
__attribute__((target("avx,f16c"))) int64_t expand_by_8(int64_t count, const uint16_t* from, float* to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  return i;
}
__attribute__((target("avx,f16c"))) int64_t round_by_8(int64_t count, const float* from, uint16_t* to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}

void expand_halves(int64_t count, const uint16_t* from, float* to) {
  const Isa isa = machine_isa();
  if (isa == Isa::avx512) return expand_by_16(count, from, to);
  const int64_t done = isa == Isa::avx2 ? expand_by_8(count, from, to) : 0;
  expand_halves_plainly(count - done, from + done, to + done);
}
void round_halves(int64_t count, const float* from, uint16_t* to) {
  const Isa isa = machine_isa();
  if (isa == Isa::avx512) return round_by_16(count, from, to);
  const int64_t done = isa == Isa::avx2 ? round_by_8(count, from, to) : 0;
  round_halves_plainly(count - done, from + done, to + done);
}

CAIRN_AVX512 CAIRN_INLINE void round_to_halves_16(__mmask16 lanes, float* values) {
  const __m256i halves = _mm512_maskz_cvtps_ph(kAll, _mm512_maskz_loadu_ps(lanes, values), _MM_FROUND_TO_NEAREST_INT);
  _mm512_mask_storeu_ps(values, lanes, _mm512_maskz_cvtph_ps(kAll, halves));
}
CAIRN_AVX512 void round_to_halves_by_16(int64_t count, float* values) {
  for (; count >= 16; count -= 16, values += 16) round_to_halves_16(kAll, values);
  if (count > 0) round_to_halves_16(first_lanes(count), values);
}
CAIRN_AVX512 void copy_rows_as_halves(const float* from, int64_t rows, int64_t row_step, int64_t columns, int64_t width,
                                      float* to) {
  for (int64_t row = 0; row < rows; ++row, from += row_step, to += width)
    for (int64_t o = 0; o < width; o += 16) {
      const __m512 floats = _mm512_maskz_loadu_ps(first_lanes(std::clamp<int64_t>(columns - o, 0, 16)), from + o);
      const __m256i halves = _mm512_maskz_cvtps_ph(kAll, floats, _MM_FROUND_TO_NEAREST_INT);
      _mm512_storeu_ps(to + o, _mm512_maskz_cvtph_ps(kAll, halves));
    }
}
void round_to_halves(int64_t count, float* values) {
  if (machine_isa() == Isa::avx512) return round_to_halves_by_16(count, values);
  constexpr int64_t kBlock = 256;
  uint16_t halves[kBlock];
  for (int64_t i = 0; i < count; i += kBlock) {
    round_halves(std::min(kBlock, count - i), values + i, halves);
    expand_halves(std::min(kBlock, count - i), halves, values + i);
  }
}

// Packs rows of `width` floats from a matrix with any strides; missing columns are 0.
void pack_float_rows(const float* from, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step,
                     int64_t width, float* to) {
  constexpr int64_t kBlock = 16;  // rows whose lines stay in the first-level cache while columns are transposed
  const auto transpose = vector_loops().transpose;
  const bool in_squares = transpose && row_step == 1 && rows >= kLanes && columns >= kLanes;
  if (column_step == 1 && columns == width) return vector_loops().copy_rows(rows, width, from, row_step, to);
  for (int64_t o = 0; in_squares && o < columns; o += kLanes)  // the last of them overlap those before
    for (int64_t row = 0; row < rows; row += kLanes) {
      const int64_t column = std::min(o, columns - kLanes), at = std::min(row, rows - kLanes);
      transpose(from + at + column * column_step, column_step, to + at * width + column, width);
    }
  for (int64_t block = 0; block < rows; block += kBlock) {
    const int64_t end = std::min(rows, block + kBlock);
    for (int64_t o = 0; column_step != 1 && !in_squares && o < columns; ++o)
      for (int64_t row = block; row < end; ++row) to[row * width + o] = from[row * row_step + o * column_step];
    for (int64_t row = block; row < end; ++row) {
      if (column_step == 1)
        std::memcpy(to + row * width, from + row * row_step, static_cast<size_t>(columns) * sizeof(float));
      std::fill(to + row * width + columns, to + (row + 1) * width, 0.f);
    }
  }
}

constexpr int64_t kRows = 64, kColumns = 64;  // of a block that is packed and rounded or widened together

void pack_rounded_rows(Form precision, const float* from, int64_t rows, int64_t row_step, int64_t columns,
                       int64_t column_step, int64_t width, float* to) {
  if (precision == Form::halves && column_step == 1 && width % 16 == 0 && machine_isa() == Isa::avx512)
    return copy_rows_as_halves(from, rows, row_step, columns, width, to);
  for (int64_t first = 0; first < rows; first += kRows, to += kRows * width) {
    const int64_t count = std::min(kRows, rows - first);
    pack_float_rows(from + first * row_step, count, row_step, columns, column_step, width, to);
    round_to(precision, count * width, to);
  }
}

CAIRN_VECTORISED(void, interleave_rows, (int64_t columns, const uint16_t* even, const uint16_t* odd, uint32_t* to)) {
  for (int64_t o = 0; o < columns; ++o) to[o] = even[o] | static_cast<uint32_t>(odd[o]) << 16;
}

}  // namespace

void widen(Form form, int64_t count, const void* from, float* to) {
  if (form == Form::halves) return expand_halves(count, static_cast<const uint16_t*>(from), to);
  if (form == Form::brains) return expand_brains(count, static_cast<const uint16_t*>(from), to);
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

void widen_rows(Form form, int64_t rows, int64_t columns, const uint16_t* from, int64_t step, float* to) {
  if (form == Form::brains) return expand_rows_of_brains(rows, columns, from, step, to);
  for (int64_t row = 0; row < rows; ++row) expand_halves(columns, from + row * step, to + row * columns);
}

void narrow(Form form, int64_t count, const float* from, void* to) {
  if (form == Form::halves) return round_halves(count, from, static_cast<uint16_t*>(to));
  if (form == Form::brains) return round_brains(count, from, static_cast<uint16_t*>(to));
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

void round_to(Form form, int64_t count, float* values) {
  if (form == Form::halves) return round_to_halves(count, values);
  if (form == Form::brains) round_to_brains(count, values);
}

void pack_rows(Form form, const void* from, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step,
               int64_t width, float* to, Form precision) {
  if (form == Form::floats && precision != Form::floats)
    return pack_rounded_rows(precision, static_cast<const float*>(from), rows, row_step, columns, column_step, width,
                             to);
  if (form == Form::floats)
    return pack_float_rows(static_cast<const float*>(from), rows, row_step, columns, column_step, width, to);
  const auto* elements = static_cast<const uint16_t*>(from);
  if (column_step == 1) {
    for (int64_t row = 0; row < rows; ++row, to += width) {
      widen(form, columns, elements + row * row_step, to);
      std::fill(to + columns, to + width, 0.f);
    }
    return;
  }
  CHECK(row_step == 1, "strides {} and {}", row_step, column_step);
  float block[kRows * kColumns];
  CHECK(width <= kColumns, "panel of {} columns", width);
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t count = std::min(kRows, rows - first);
    for (int64_t o = 0; o < columns; ++o) widen(form, count, elements + first + o * column_step, block + o * kRows);
    pack_float_rows(block, count, 1, columns, kRows, width, to + first * width);
  }
}

void pack_rounded_pairs(const float* from, int64_t pairs, int64_t row_step, int64_t columns, int64_t column_step,
                        int64_t width, float* to) {
  if (column_step == 1) return interleave_rounded(pairs, from, row_step, columns, width, to);
  float wide[kRows * kColumns];
  CHECK(width <= kColumns, "panel of {} columns", width);
  const int64_t whole = row_step == 1 && columns == width && width % kLanes == 0 ? pairs / kLanes * kLanes : 0;
  for (int64_t first = 0; first < whole; first += kLanes)
    for (int64_t o = 0; o < width; o += kLanes)
      transpose_rounded(from + 2 * first + o * column_step, column_step, to + first * width + o, width);
  for (int64_t first = whole; first < pairs; first += kRows / 2) {
    const int64_t count = std::min(kRows / 2, pairs - first);
    pack_float_rows(from + 2 * first * row_step, 2 * count, row_step, columns, column_step, width, wide);
    interleave_rounded(count, wide, width, width, width, to + first * width);
  }
}

void pack_pairs(const uint16_t* from, int64_t pairs, int64_t row_step, int64_t columns, int64_t column_step,
                int64_t width, float* to) {
  if (row_step == 1) {  // pairs lie side by side
    CHECK(columns == 1 || column_step % 2 == 0, "stride {}", column_step);
    return pack_float_rows(reinterpret_cast<const float*>(from), pairs, 1, columns, column_step / 2, width, to);
  }
  CHECK(column_step == 1, "strides {} and {}", row_step, column_step);
  for (int64_t row = 0; row < pairs; ++row, from += 2 * row_step, to += width) {
    interleave_rows(columns, from, from + row_step, reinterpret_cast<uint32_t*>(to));
    std::fill(to + columns, to + width, 0.f);
  }
}

#undef CAIRN_AVX512

}  // namespace cairn
