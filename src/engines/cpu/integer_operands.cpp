#include "engines/cpu/integer_operands.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engines/cpu/call_step.h"
#include "support/error.h"

namespace cairn {

namespace {

CAIRN_VECTORISED(void, flip_signs, (int64_t count, const uint8_t* from, uint8_t* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] ^ 0x80;
}
CAIRN_VECTORISED(void, centre_unsigned, (int64_t count, const uint8_t* from, int16_t zero, int16_t* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
}
CAIRN_VECTORISED(void, centre_signed, (int64_t count, const int8_t* from, int16_t zero, int16_t* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
}
// Pixels of three channels, as images have.
CAIRN_VECTORISED(void, widen_pixels, (int64_t rows, const uint8_t* from, uint32_t flip, uint32_t* to)) {
  for (int64_t i = 0; i < rows; ++i)
    to[i] = (static_cast<uint32_t>(from[3 * i]) | static_cast<uint32_t>(from[3 * i + 1]) << 8 |
             static_cast<uint32_t>(from[3 * i + 2]) << 16) ^
            flip;
}
template <class T>
CAIRN_INLINE void centre_pixels(int64_t rows, const T* from, int32_t zero, uint32_t* to) {
  for (int64_t i = 0; i < rows; ++i, from += 3) {
    to[2 * i] = (static_cast<uint32_t>(from[0] - zero) & 0xffff) | static_cast<uint32_t>(from[1] - zero) << 16;
    to[2 * i + 1] = static_cast<uint32_t>(from[2] - zero) & 0xffff;
  }
}
CAIRN_VECTORISED(void, centre_unsigned_pixels, (int64_t rows, const uint8_t* from, int32_t zero, uint32_t* to)) {
  centre_pixels(rows, from, zero, to);
}
CAIRN_VECTORISED(void, centre_signed_pixels, (int64_t rows, const int8_t* from, int32_t zero, uint32_t* to)) {
  centre_pixels(rows, from, zero, to);
}
CAIRN_VECTORISED(void, widen_grey_pixels, (int64_t rows, const uint8_t* from, uint32_t flip, uint32_t* to)) {
  for (int64_t i = 0; i < rows; ++i) to[i] = from[i] ^ flip;
}

// Two rows of weights as rows of pairs.
CAIRN_VECTORISED(void, pair_unsigned, (int64_t count, const uint8_t* a, const uint8_t* b, int32_t zero, uint32_t* to)) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = (static_cast<uint32_t>(a[i] - zero) & 0xffff) | static_cast<uint32_t>(b[i] - zero) << 16;
}
CAIRN_VECTORISED(void, pair_signed, (int64_t count, const int8_t* a, const int8_t* b, int32_t zero, uint32_t* to)) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = (static_cast<uint32_t>(a[i] - zero) & 0xffff) | static_cast<uint32_t>(b[i] - zero) << 16;
}

// Words with one zero point, whose rows or columns are contiguous.
template <class T, class Pair>
void pack_pairs(const IntegerMatrix& m, int64_t first, int64_t count, int64_t width, int32_t zero, Pair&& pair,
                uint32_t* to) {
  const T* from = static_cast<const T*>(m.data) + first * m.column_step;
  for (int64_t row = 0; row + 1 < m.rows; row += 2, to += width) {
    const T* a = from + row * m.row_step;
    if (m.column_step == 1)
      pair(count, a, a + m.row_step, zero, to);
    else
      for (int64_t o = 0; o < count; ++o, a += m.column_step)
        to[o] = (static_cast<uint32_t>(a[0] - zero) & 0xffff) | static_cast<uint32_t>(a[m.row_step] - zero) << 16;
    std::fill(to + count, to + width, 0);
  }
}

void stage(Arithmetic arithmetic, DType dtype, const uint8_t* from, int64_t count, int32_t zero, void* to) {
  if (arithmetic == Arithmetic::words)
    return dtype == kI8 ? centre_signed(count, reinterpret_cast<const int8_t*>(from), static_cast<int16_t>(zero),
                                        static_cast<int16_t*>(to))
                        : centre_unsigned(count, from, static_cast<int16_t>(zero), static_cast<int16_t*>(to));
  if (dtype == kI8)
    flip_signs(count, from, static_cast<uint8_t*>(to));
  else
    std::memcpy(to, from, static_cast<size_t>(count));
}

int32_t weight(const IntegerMatrix& m, int64_t at) {
  return m.dtype == kI8 ? static_cast<const int8_t*>(m.data)[at] : static_cast<const uint8_t*>(m.data)[at];
}

}  // namespace

void stage_rows(Executor& executor, Arithmetic arithmetic, DType dtype, const void* data, int64_t rows, int64_t columns,
                int32_t zero, uint32_t* to) {
  const int64_t steps = steps_in(arithmetic), elements = (columns + steps - 1) / steps;
  const auto* from = static_cast<const uint8_t*>(data);
  for_ranges(executor, rows, columns, [&](int64_t first, int64_t last) {
    if (columns % steps == 0)
      return stage(arithmetic, dtype, from + first * columns, (last - first) * columns, zero, to + first * elements);
    if (arithmetic == Arithmetic::bytes && columns == 3)
      return widen_pixels(last - first, from + first * 3, dtype == kI8 ? 0x808080 : 0, to + first);
    if (arithmetic == Arithmetic::bytes && columns == 1)
      return widen_grey_pixels(last - first, from + first, dtype == kI8 ? 0x80 : 0, to + first);
    if (arithmetic == Arithmetic::words && columns == 3) {
      uint32_t* const pixels = to + first * elements;
      return dtype == kI8
                 ? centre_signed_pixels(last - first, static_cast<const int8_t*>(data) + first * 3, zero, pixels)
                 : centre_unsigned_pixels(last - first, from + first * 3, zero, pixels);
    }
    for (int64_t row = first; row < last; ++row) {
      to[(row + 1) * elements - 1] = 0;
      stage(arithmetic, dtype, from + row * columns, columns, zero, to + row * elements);
    }
  });
}

void pack_integers(Arithmetic arithmetic, const IntegerMatrix& m, int64_t taps, int64_t first, int64_t count,
                   int64_t width, const int32_t* zeros, int64_t zero_step, uint32_t* to) {
  if (arithmetic == Arithmetic::words && zero_step == 0 && m.rows % 2 == 0 && taps == 1)
    return m.dtype == kU8 ? pack_pairs<uint8_t>(m, first, count, width, zeros[0], pair_unsigned, to)
                          : pack_pairs<int8_t>(m, first, count, width, zeros[0], pair_signed, to);
  const int64_t steps = steps_in(arithmetic), elements = (m.rows + steps - 1) / steps;
  const int bits = 32 / static_cast<int>(steps);
  const uint32_t mask = arithmetic == Arithmetic::bytes ? 0xff : 0xffff;
  const int32_t down = m.dtype == kU8 ? 128 : 0;
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t e = 0; e < elements; ++e, to += width) {
      std::fill_n(to, width, 0);
      for (int64_t step = 0; step < std::min(steps, m.rows - e * steps); ++step) {
        const int64_t row = (tap * m.rows + e * steps + step) * m.row_step;
        for (int64_t o = 0; o < count; ++o) {
          const int32_t less = arithmetic == Arithmetic::bytes ? down : zeros[(first + o) * zero_step];
          const int32_t value = weight(m, row + (first + o) * m.column_step) - less;
          to[o] |= (static_cast<uint32_t>(value) & mask) << (step * bits);
        }
      }
    }
}

void sum_taps(const IntegerMatrix& m, int64_t taps, int32_t* sums) {
  const int32_t down = m.dtype == kU8 ? 128 : 0;
  std::fill_n(sums, taps * m.columns, 0);
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t i = 0; i < m.rows; ++i)
      for (int64_t o = 0; o < m.columns; ++o)
        sums[tap * m.columns + o] += weight(m, (tap * m.rows + i) * m.row_step + o * m.column_step) - down;
}

}  // namespace cairn
