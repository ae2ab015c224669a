// The loops of winograd.cpp, included once for each instruction set, each time in another namespace. A transform goes over
// the columns of a tile, then over its rows; the matrices are those of the points in winograd.h.
#include "engines/cpu/vector_types.h"

constexpr float kNear = 0.70710678f, kFar = 1.41421356f;  // the points of 4 x 4 results

/// in: kSize elements `step` apart, made values of as many points.
template <int64_t kResults>
CAIRN_INLINE void to_points(const Floats* in, int64_t step, Floats* out) {
  const auto at = [&](int64_t i) { return in[i * step]; };
  if constexpr (kResults == 4) {
    const Floats even_near = at(4) - 2.f * at(2), odd_near = kNear * (at(3) - 2.f * at(1));
    const Floats even_far = at(4) - 0.5f * at(2), odd_far = kFar * (at(3) - 0.5f * at(1));
    out[0] = at(0) + at(4) - 2.5f * at(2);
    out[1] = even_near + odd_near, out[2] = even_near - odd_near;
    out[3] = even_far + odd_far, out[4] = even_far - odd_far;
    out[5] = at(1) + at(5) - 2.5f * at(3);
  } else {
    out[0] = at(0) - at(2), out[1] = at(1) + at(2), out[2] = at(2) - at(1), out[3] = at(3) - at(1);
  }
}

/// Values at kSize points, `step` apart, made the results.
template <int64_t kResults>
CAIRN_INLINE void from_points(const Floats* in, int64_t step, Floats* out) {
  const auto at = [&](int64_t i) { return in[i * step]; };
  if constexpr (kResults == 4) {
    const Floats even_near = at(1) + at(2), odd_near = at(1) - at(2), even_far = at(3) + at(4), odd_far = at(3) - at(4);
    out[0] = at(0) + (even_near + even_far);
    out[1] = kNear * odd_near + kFar * odd_far;
    out[2] = 0.5f * even_near + 2.f * even_far;
    out[3] = at(5) + (0.5f * kNear * odd_near + 2.f * kFar * odd_far);
  } else {
    const Floats sum = at(1) + at(2), difference = at(1) - at(2);
    out[0] = at(0) + sum, out[1] = at(3) + difference;
  }
}

/// to[point * s.v_point] for one vector of channels; `element(i)` loads element i of the tile.
template <int64_t kResults, class Element>
CAIRN_INLINE void transform_vector(const WinogradLoops& s, const Element& element, float* to) {
  constexpr int64_t kSize = kResults + 2;
  Floats columns[kSize][kSize];  // [column][point]
#pragma GCC unroll 6
  for (int64_t x = 0; x < kSize; ++x) {
    Floats in[kSize];
#pragma GCC unroll 6
    for (int64_t y = 0; y < kSize; ++y) in[y] = element(y * kSize + x);
    to_points<kResults>(in, 1, columns[x]);
  }
#pragma GCC unroll 6
  for (int64_t y = 0; y < kSize; ++y) {
    Floats out[kSize];
    to_points<kResults>(&columns[0][y], kSize, out);
#pragma GCC unroll 6
    for (int64_t x = 0; x < kSize; ++x) store(to + (y * kSize + x) * s.v_point, out[x]);
  }
}

/// Tiles [first, last) of x as points: v[(tile - first) * s.v_tile + point * s.v_point + channel].
template <int64_t kResults>
void transform_tiles(const WinogradLoops& s, int64_t first, int64_t last, const float* x, const float* zeros,
                     float* v) {
  constexpr int64_t kSize = kResults + 2;
  const int64_t whole = s.ic / kFloats * kFloats, rest = s.ic - whole;
  for (int64_t tile = first; tile < last; ++tile, v += s.v_tile) {
    const int64_t image = tile / (s.tiles_y * s.tiles_x), in_image = tile % (s.tiles_y * s.tiles_x);
    const int64_t top = in_image / s.tiles_x * kResults - s.pad_top,
                  left = in_image % s.tiles_x * kResults - s.pad_left;
    const float* from[kSize * kSize];  // pixels outside the image are zeros
    for (int64_t y = 0; y < kSize; ++y)
      for (int64_t column = 0; column < kSize; ++column) {
        const int64_t row_at = top + y, column_at = left + column;
        const bool inside = row_at >= 0 && row_at < s.h && column_at >= 0 && column_at < s.w;
        from[y * kSize + column] = inside ? x + ((image * s.h + row_at) * s.w + column_at) * s.ic : zeros;
      }
    for (int64_t c = 0; c < whole; c += kFloats)
      transform_vector<kResults>(
          s, [&](int64_t i) { return load(from[i] + c); }, v + c);
    if (rest)
      transform_vector<kResults>(
          s, [&](int64_t i) { return load_first(from[i] + whole, rest); }, v + whole);
  }
}

/// What is in the image of one tile's results.
struct TileResults {
  int64_t rows, columns;
  float* y;               // the first of them
  const float* residual;  // null: none
};

template <int64_t kResults>
CAIRN_INLINE void finish_vector(const WinogradLoops& s, const float* m, Floats bias, const TileResults& results,
                                int64_t c, int64_t count) {
  constexpr int64_t kSize = kResults + 2;
  Floats columns[kSize][kResults];
#pragma GCC unroll 6
  for (int64_t x = 0; x < kSize; ++x) {
    Floats in[kSize];
#pragma GCC unroll 6
    for (int64_t y = 0; y < kSize; ++y) in[y] = load(m + (y * kSize + x) * s.m_point);
    from_points<kResults>(in, 1, columns[x]);
  }
  const Floats low = spread(s.low), high = spread(s.high);
#pragma GCC unroll 4
  for (int64_t y = 0; y < kResults; ++y) {
    if (y >= results.rows) break;
    Floats out[kResults];
    from_points<kResults>(&columns[0][y], kResults, out);
#pragma GCC unroll 4
    for (int64_t x = 0; x < kResults; ++x) {
      if (x >= results.columns) break;
      const int64_t at = (y * s.ow + x) * s.oc + c;
      Floats value = out[x] + bias;
      if (results.residual)
        value += count == kFloats ? load(results.residual + at) : load_first(results.residual + at, count);
      value = choose(value > high, high, value);  // keeps NaN
      value = choose(value < low, low, value);
      count == kFloats ? store(results.y + at, value) : store_first(results.y + at, count, value);
    }
  }
}

/// Channels [begin, end) of the results of tiles [first, last), from m[(tile - first) * s.m_tile + point * s.m_point + channel -
/// begin]. m and the bias have whole vectors of channels.
template <int64_t kResults>
void finish_tiles(const WinogradLoops& s, int64_t first, int64_t last, int64_t begin, int64_t end, const float* m,
                  const float* bias, const float* residual, float* y) {
  for (int64_t tile = first; tile < last; ++tile, m += s.m_tile) {
    const int64_t image = tile / (s.tiles_y * s.tiles_x), in_image = tile % (s.tiles_y * s.tiles_x);
    const int64_t top = in_image / s.tiles_x * kResults, left = in_image % s.tiles_x * kResults;
    const int64_t at = ((image * s.oh + top) * s.ow + left) * s.oc;
    const TileResults results{std::min(kResults, s.oh - top), std::min(kResults, s.ow - left), y + at,
                              residual ? residual + at : nullptr};
    for (int64_t c = begin; c < end; c += kFloats)
      finish_vector<kResults>(s, m + c - begin, load(bias + c), results, c, std::min<int64_t>(kFloats, end - c));
  }
}

WinogradCode winograd_code(int64_t results) {
  if (results == 4) return {transform_tiles<4>, finish_tiles<4>};
  return {transform_tiles<2>, finish_tiles<2>};
}
