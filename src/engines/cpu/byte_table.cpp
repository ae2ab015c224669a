#include "engines/cpu/byte_table.h"

#include <immintrin.h>

#include "engines/cpu/isa.h"

namespace cairn {

namespace {

void look_up_plainly(int64_t count, const uint8_t* from, const uint8_t* table, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = table[from[i]];
}

// Parts of 16 entries, each after the first of a half of the table combined by "exclusive or" with the one before. A shuffle gives 0 for
// indices below 0, where the saturated difference stays: what all the others give, combined, is the entry wanted.
void find_parts(const uint8_t* table, uint8_t* parts) {
  for (int i = 0; i < 256; ++i) parts[i] = static_cast<uint8_t>(i % 128 < 16 ? table[i] : table[i] ^ table[i - 16]);
}

__attribute__((target("avx2"))) void look_up_avx2(int64_t count, const uint8_t* from, const uint8_t* table,
                                                  uint8_t* to) {
  alignas(16) uint8_t parts[256];
  find_parts(table, parts);
  const __m256i sixteen = _mm256_set1_epi8(16), top = _mm256_set1_epi8(-128);
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    __m256i x[4], made[2] = {};  // two vectors, as indices of each half of the table
    for (int k = 0; k < 2; ++k) {
      x[k] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i) + k);
      x[2 + k] = _mm256_xor_si256(x[k], top);
    }
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part)
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const auto* entries = reinterpret_cast<const __m128i*>(parts) + 8 * (k / 2) + part;
        const __m256i each = _mm256_broadcastsi128_si256(_mm_load_si128(entries));
        made[k % 2] = _mm256_xor_si256(made[k % 2], _mm256_shuffle_epi8(each, x[k]));
        x[k] = _mm256_subs_epi8(x[k], sixteen);
      }
    for (int k = 0; k < 2; ++k) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i) + k, made[k]);
  }
  look_up_plainly(count - i, from + i, table, to + i);
}

__attribute__((target("avx512f,avx512bw"))) void look_up_avx512(int64_t count, const uint8_t* from,
                                                                const uint8_t* table, uint8_t* to) {
  alignas(16) uint8_t parts[256];
  find_parts(table, parts);
  const __m512i sixteen = _mm512_set1_epi8(16), top = _mm512_set1_epi8(-128);
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    __m512i low = _mm512_loadu_si512(from + i), high = _mm512_xor_si512(low, top), made = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part) {
      const auto* entries = reinterpret_cast<const __m128i*>(parts) + part;
      const __m512i a = _mm512_maskz_broadcast_i32x4(0xffff, _mm_load_si128(entries));
      const __m512i b = _mm512_maskz_broadcast_i32x4(0xffff, _mm_load_si128(entries + 8));
      made = _mm512_ternarylogic_epi32(made, _mm512_shuffle_epi8(a, low), _mm512_shuffle_epi8(b, high), 0x96);
      low = _mm512_subs_epi8(low, sixteen), high = _mm512_subs_epi8(high, sixteen);
    }
    _mm512_storeu_si512(to + i, made);
  }
  look_up_plainly(count - i, from + i, table, to + i);
}

// A permutation of two registers picks among 128 entries; the highest bit tells which half of the table it is.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void look_up_vbmi(int64_t count, const uint8_t* from,
                                                                         const uint8_t* table, uint8_t* to) {
  __m512i parts[4];
  for (int part = 0; part < 4; ++part) parts[part] = _mm512_loadu_si512(table + 64 * part);
  for (int64_t i = 0; i < count; i += 64) {
    const __mmask64 some = count - i < 64 ? (uint64_t{1} << (count - i)) - 1 : ~uint64_t{0};
    const __m512i x = _mm512_maskz_loadu_epi8(some, from + i);
    const __m512i low = _mm512_permutex2var_epi8(parts[0], x, parts[1]);
    const __m512i high = _mm512_permutex2var_epi8(parts[2], x, parts[3]);
    _mm512_mask_storeu_epi8(to + i, some, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
  }
}

auto chosen() {
  if (machine_isa() == Isa::none) return look_up_plainly;
  if (machine_isa() == Isa::avx2) return look_up_avx2;
  return machine_has_dot_products() && __builtin_cpu_supports("avx512vbmi") ? look_up_vbmi : look_up_avx512;
}

}  // namespace

void look_up(int64_t count, const uint8_t* from, const uint8_t* table, uint8_t* to) {
  static const auto loop = chosen();
  loop(count, from, table, to);
}

}  // namespace cairn
