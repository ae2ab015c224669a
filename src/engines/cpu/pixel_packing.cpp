#include "engines/cpu/pixel_packing.h"

#include <immintrin.h>

#include <cstring>

#include "engines/cpu/isa.h"

namespace cairn {

namespace {

CAIRN_INLINE void copy_floats(float* __restrict to, const float* __restrict from, int64_t count) {
  constexpr int64_t kStep = 8;
  if (count < kStep) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i < count - kStep; i += kStep) std::memcpy(to + i, from + i, kStep * sizeof(float));
  std::memcpy(to + count - kStep, from + count - kStep, kStep * sizeof(float));
}

CAIRN_VECTORISED(void, pack_floats,
                 (int64_t count, const float* from, int64_t step, std::span<const Range> channels, int64_t range_floats,
                  int64_t pitch, float* to)) {
  for (int64_t pixel = 0; pixel < count; ++pixel, from += step, to += pitch) {
    float* place = to;
    for (const Range& range : channels) {
      copy_floats(place, from + range.first, range.size());
      place += range_floats;
    }
  }
}

/// Elements of 16 bits are widened.
template <class Widen>
CAIRN_INLINE void pack_widened(int64_t count, const uint16_t* from, int64_t step, std::span<const Range> channels,
                               int64_t range_floats, int64_t pitch, float* to, Widen widen_range) {
  for (int64_t pixel = 0; pixel < count; ++pixel, from += step, to += pitch) {
    float* place = to;
    for (const Range& range : channels) {
      widen_range(range.size(), from + range.first, place);
      place += range_floats;
    }
  }
}
CAIRN_VECTORISED(void, pack_brains,
                 (int64_t count, const uint16_t* from, int64_t step, std::span<const Range> channels,
                  int64_t range_floats, int64_t pitch, float* to)) {
  const auto widen_range = [](int64_t size, const uint16_t* x, float* y) __attribute__((always_inline)) {
    for (int64_t i = 0; i < size; ++i) y[i] = __builtin_bit_cast(float, static_cast<uint32_t>(x[i]) << 16);
  };
  pack_widened(count, from, step, channels, range_floats, pitch, to, widen_range);
}
__attribute__((target("avx512f,avx512bw,avx512vl"))) void pack_halves_by_16(int64_t count, const uint16_t* from,
                                                                            int64_t step,
                                                                            std::span<const Range> channels,
                                                                            int64_t range_floats, int64_t pitch,
                                                                            float* to) {
  constexpr __mmask16 kAll = 0xffff;
  for (int64_t pixel = 0; pixel < count; ++pixel, from += step, to += pitch) {
    float* place = to;
    for (const Range& range : channels) {
      for (int64_t i = 0; i < range.size(); i += 16) {
        const auto lanes = static_cast<__mmask16>(range.size() - i < 16 ? (1u << (range.size() - i)) - 1 : kAll);
        const __m256i halves = _mm256_maskz_loadu_epi16(lanes, from + range.first + i);
        _mm512_mask_storeu_ps(place + i, lanes, _mm512_maskz_cvtph_ps(kAll, halves));
      }
      place += range_floats;
    }
  }
}
void pack_halves(int64_t count, const uint16_t* from, int64_t step, std::span<const Range> channels,
                 int64_t range_floats, int64_t pitch, float* to) {
  if (machine_isa() == Isa::avx512) return pack_halves_by_16(count, from, step, channels, range_floats, pitch, to);
  const auto widen_range = [](int64_t size, const uint16_t* x, float* y) { widen(Form::halves, size, x, y); };
  pack_widened(count, from, step, channels, range_floats, pitch, to, widen_range);
}

CAIRN_VECTORISED(void, pack_brains_in_pairs,
                 (int64_t count, const uint16_t* from, int64_t step, std::span<const Range> channels,
                  int64_t range_floats, int64_t pitch, float* to)) {
  for (int64_t pixel = 0; pixel < count; ++pixel, from += step, to += pitch) {
    float* place = to;
    for (const Range& range : channels) {
      const uint16_t *first = from + range.first, *second = first + step / 2;
      for (int64_t i = 0; i < range.size(); ++i)
        place[i] = __builtin_bit_cast(float, first[i] | static_cast<uint32_t>(second[i]) << 16);
      place += range_floats;
    }
  }
}

}  // namespace

void pack_pairs_of_pixels(int64_t count, const uint16_t* from, int64_t step, std::span<const Range> channels,
                          int64_t range_floats, int64_t pitch, float* to) {
  pack_brains_in_pairs(count, from, step, channels, range_floats, pitch, to);
}

void pack_pixels(Form form, int64_t count, const void* from, int64_t step, std::span<const Range> channels,
                 int64_t range_floats, int64_t pitch, float* to) {
  const auto* narrow = static_cast<const uint16_t*>(from);
  if (form == Form::brains) return pack_brains(count, narrow, step, channels, range_floats, pitch, to);
  if (form == Form::halves) return pack_halves(count, narrow, step, channels, range_floats, pitch, to);
  pack_floats(count, static_cast<const float*>(from), step, channels, range_floats, pitch, to);
}

}  // namespace cairn
