// The loop of row_sums.cpp, included once for each instruction set, each time in another namespace.
#include "engines/cpu/vector_types.h"

/// Adds `kVectors` vectors of the named rows to as many of `to`.
template <int kVectors, bool kWeighs>
CAIRN_INLINE void add_columns(const RowSums& s, int64_t first, int64_t last, int64_t column, bool begins, float* to) {
  Floats sums[kVectors] = {};
  for (int v = 0; v < kVectors && !begins; ++v) sums[v] = load(to + v * kFloats);
  for (int64_t k = first; k < last; ++k) {
    const float* from = s.from + s.sources[k] * s.inner + column;
    for (int v = 0; v < kVectors; ++v)
      sums[v] += kWeighs ? load(from + v * kFloats) * s.weights[k] : load(from + v * kFloats);
  }
  for (int v = 0; v < kVectors; ++v) store(to + v * kFloats, sums[v]);
}

template <bool kWeighs>
CAIRN_INLINE void add_rest(const RowSums& s, int64_t first, int64_t last, int64_t column, bool begins, float* to) {
  const int64_t count = s.inner - column;
#if CAIRN_FLOATS == 16
  Floats sums = begins ? Floats{} : load_first(to, count);
  for (int64_t k = first; k < last; ++k) {
    const Floats more = load_first(s.from + s.sources[k] * s.inner + column, count);
    sums += kWeighs ? more * s.weights[k] : more;
  }
  store_first(to, count, sums);
#else
  if (begins) std::fill_n(to, count, 0.f);
  for (int64_t k = first; k < last; ++k) {
    const float* from = s.from + s.sources[k] * s.inner + column;
    for (int64_t j = 0; j < count; ++j) to[j] += kWeighs ? from[j] * s.weights[k] : from[j];
  }
#endif
}

template <bool kWeighs>
CAIRN_INLINE void add_all(const RowSums& s) {
  for (int64_t first = 0, last = 0; first < s.count; first = last) {
    const int64_t row = s.rows[first];
    while (last < s.count && s.rows[last] == row) ++last;
    if (row < 0) continue;
    float* const to = s.to + row * s.inner;
    const bool begins = s.begun && *s.begun <= row;
    if (begins) {
      std::fill(s.to + *s.begun * s.inner, to, 0.f);
      *s.begun = row + 1;
    }
    int64_t column = 0;
    for (; column + 4 * kFloats <= s.inner; column += 4 * kFloats)
      add_columns<4, kWeighs>(s, first, last, column, begins, to + column);
    for (; column + 2 * kFloats <= s.inner; column += 2 * kFloats)
      add_columns<2, kWeighs>(s, first, last, column, begins, to + column);
    for (; column + kFloats <= s.inner; column += kFloats)
      add_columns<1, kWeighs>(s, first, last, column, begins, to + column);
    if (column < s.inner) add_rest<kWeighs>(s, first, last, column, begins, to + column);
  }
}

void add_rows(const RowSums& s) { s.weights ? add_all<true>(s) : add_all<false>(s); }
