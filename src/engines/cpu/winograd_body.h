// The loops of winograd.cpp, included once for each instruction set, each time in another namespace. A transform goes over
// the columns of a tile, then over its rows; the matrices are those of the points in winograd.h.
#include "engines/cpu/vector_types.h"

#include "engines/cpu/narrow_vectors_body.h"

/// Finite points other than 0 come in pairs, +-kNear and +-kFar. kFirst is the index of the first pair: tiles of 4 x 4 also have 0.
template <int64_t kResults>
struct Points {
  static constexpr int64_t kFirst = kResults - 3;
  static constexpr double kNear = kResults == 4 ? 21. / 32 : 3. / 8, kFar = kResults == 4 ? 3. / 2 : 5. / 4;
  static constexpr double kNear2 = kNear * kNear, kFar2 = kFar * kFar;
  static constexpr double kSum = kNear2 + kFar2, kProduct = kNear2 * kFar2;
  /// What the kernel's values at them are divided by: the product of the differences from the other finite points.
  static constexpr double kOfNear = 2 * (kResults == 4 ? kNear2 : kNear) * (kNear2 - kFar2);
  static constexpr double kOfFar = 2 * (kResults == 4 ? kFar2 : kFar) * (kFar2 - kNear2);
};
/// All are fractions of powers of two, so that constants in f32 are exact.
constexpr float f32(double exact) { return static_cast<float>(exact); }

/// in: kSize elements `step` apart, made values of as many points.
template <int64_t kResults>
CAIRN_INLINE void to_points(const Floats* in, int64_t step, Floats* out) {
  const auto at = [&](int64_t i) { return in[i * step]; };
  if constexpr (kResults == 2) {
    out[0] = at(0) - at(2), out[1] = at(1) + at(2), out[2] = at(2) - at(1), out[3] = at(3) - at(1);
  } else {
    using P = Points<kResults>;
    constexpr int64_t k = P::kFirst;
    const auto pair = [&](Floats even, Floats odd, float point, Floats* to) {
      to[0] = even + point * odd;
      to[1] = kResults == 4 ? even - point * odd : point * odd - even;
    };
    const auto alone = [&](int64_t i) { return f32(P::kProduct) * at(i) + (at(i + 4) - f32(P::kSum) * at(i + 2)); };
    pair(at(k + 3) - f32(P::kFar2) * at(k + 1), at(k + 2) - f32(P::kFar2) * at(k), f32(P::kNear), out + k);
    pair(at(k + 3) - f32(P::kNear2) * at(k + 1), at(k + 2) - f32(P::kNear2) * at(k), f32(P::kFar), out + k + 2);
    if constexpr (kResults == 4) out[0] = alone(0);
    out[kResults + 1] = alone(k);
  }
}

/// Values at kSize points, `step` apart, made the results.
template <int64_t kResults>
CAIRN_INLINE void from_points(const Floats* in, int64_t step, Floats* out) {
  const auto at = [&](int64_t i) { return in[i * step]; };
  constexpr int64_t k = kResults == 2 ? 1 : kResults - 3;
  const Floats even_near = at(k) + at(k + 1), odd_near = at(k) - at(k + 1);
  if constexpr (kResults == 2) {
    out[0] = at(0) + even_near, out[1] = at(3) + odd_near;
  } else {
    using P = Points<kResults>;
    const Floats even_far = at(k + 2) + at(k + 3), odd_far = at(k + 2) - at(k + 3);
    out[0] = even_near + even_far;
    out[1] = f32(P::kNear) * odd_near + f32(P::kFar) * odd_far;
    out[2] = f32(P::kNear2) * even_near + f32(P::kFar2) * even_far;
    if constexpr (kResults == 4) {
      out[0] += at(0);
      out[3] = f32(P::kNear2 * P::kNear) * odd_near + (f32(P::kFar2 * P::kFar) * odd_far + at(5));
    } else {
      out[2] += at(4);
    }
  }
}

/// in: results, whose gradients by the values at the points are made: from_points() the other way round.
template <int64_t kResults>
CAIRN_INLINE void results_to_points(const Floats* in, int64_t step, Floats* out) {
  const auto at = [&](int64_t i) { return in[i * step]; };
  out[kResults + 1] = at(kResults - 1);
  if constexpr (kResults != 3) out[0] = at(0);
  if constexpr (kResults == 2) {
    out[1] = at(0) + at(1), out[2] = at(0) - at(1);
  } else {
    using P = Points<kResults>;
    const auto pair = [&](double point, Floats* to) {
      const Floats even = at(0) + f32(point * point) * at(2);
      Floats odd = at(1);
      if constexpr (kResults == 4) odd += f32(point * point) * at(3);
      to[0] = even + f32(point) * odd, to[1] = even - f32(point) * odd;
    };
    pair(P::kNear, out + P::kFirst), pair(P::kFar, out + P::kFirst + 2);
  }
}

// Kernels are transformed in f64, so that their values are rounded once.
typedef double Doubles __attribute__((vector_size(4 * CAIRN_FLOATS)));
typedef float HalfFloats __attribute__((vector_size(2 * CAIRN_FLOATS), aligned(4), may_alias));

/// in: three taps, made values of as many points as tiles have.
template <int64_t kResults>
CAIRN_INLINE void kernel_to_points(const Doubles* in, int64_t step, Doubles* out) {
  const Doubles first = in[0], middle = in[step], last = in[2 * step];
  const auto pair = [&](double point, double divisor, Doubles* to) {
    const Doubles even = 1 / divisor * (first + point * point * last), odd = point / divisor * middle;
    to[0] = even + odd, to[1] = even - odd;
  };
  out[kResults + 1] = last;
  if constexpr (kResults == 2) {
    out[0] = first, pair(1, 2, out + 1);
  } else {
    using P = Points<kResults>;
    if constexpr (kResults == 4) out[0] = 1 / P::kProduct * first;
    pair(P::kNear, P::kOfNear, out + P::kFirst), pair(P::kFar, P::kOfFar, out + P::kFirst + 2);
  }
}

template <int64_t kResults>
void transform_kernel(int64_t count, const float* taps, float* to, int64_t point_step) {
  constexpr int64_t kSize = kResults + 2;
  for (int64_t at = 0; at < count; at += kFloats / 2) {
    Doubles columns[3][kSize];
#pragma GCC unroll 3
    for (int64_t x = 0; x < 3; ++x) {
      Doubles in[3];
#pragma GCC unroll 3
      for (int64_t y = 0; y < 3; ++y)
        in[y] = __builtin_convertvector(*reinterpret_cast<const HalfFloats*>(taps + (3 * y + x) * count + at), Doubles);
      kernel_to_points<kResults>(in, 1, columns[x]);
    }
#pragma GCC unroll 6
    for (int64_t y = 0; y < kSize; ++y) {
      Doubles out[kSize];
      kernel_to_points<kResults>(&columns[0][y], kSize, out);
#pragma GCC unroll 6
      for (int64_t x = 0; x < kSize; ++x)
        *reinterpret_cast<HalfFloats*>(to + (y * kSize + x) * point_step + at) =
            __builtin_convertvector(out[x], HalfFloats);
    }
  }
}

/// A tile's elements made values at the points: of x by to_points(), of results by results_to_points().
template <int64_t kResults, bool kOfResults>
CAIRN_INLINE void element_points(const Floats* in, int64_t step, Floats* out) {
  if constexpr (kOfResults)
    results_to_points<kResults>(in, step, out);
  else
    to_points<kResults>(in, step, out);
}

/// to[point * s.v_point] for one vector of channels; `element(i)` loads element i of the tile.
template <int64_t kResults, bool kOfResults, class Element>
CAIRN_INLINE void transform_vector(const WinogradLoops& s, const Element& element, float* to) {
  constexpr int64_t kSize = kResults + 2, kIn = kOfResults ? kResults : kSize;
  Floats columns[kIn][kSize];  // [column][point]
#pragma GCC unroll 6
  for (int64_t x = 0; x < kIn; ++x) {
    Floats in[kIn];
#pragma GCC unroll 6
    for (int64_t y = 0; y < kIn; ++y) in[y] = element(y * kIn + x);
    element_points<kResults, kOfResults>(in, 1, columns[x]);
  }
#pragma GCC unroll 6
  for (int64_t y = 0; y < kSize; ++y) {
    Floats out[kSize];
    element_points<kResults, kOfResults>(&columns[0][y], kSize, out);
#pragma GCC unroll 6
    for (int64_t x = 0; x < kSize; ++x) store(to + (y * kSize + x) * s.v_point, out[x]);
  }
}

/// Tiles [first, last) of x as points: v[(tile - first) * s.v_tile + point * s.v_point + channel].
template <int64_t kResults, bool kOfResults, Form kForm>
void transform_tiles_of(const WinogradLoops& s, int64_t first, int64_t last, const ElementOf<kForm>* x,
                        const float* zeros, float* v) {
  const auto* no_pixel = reinterpret_cast<const ElementOf<kForm>*>(zeros);
  constexpr int64_t kIn = kOfResults ? kResults : kResults + 2;
  const int64_t whole = s.ic / kFloats * kFloats, rest = s.ic - whole;
  for (int64_t tile = first; tile < last; ++tile, v += s.v_tile) {
    const int64_t image = tile / (s.tiles_y * s.tiles_x), in_image = tile % (s.tiles_y * s.tiles_x);
    const int64_t top = in_image / s.tiles_x * kResults - s.pad_top,
                  left = in_image % s.tiles_x * kResults - s.pad_left;
    const ElementOf<kForm>* from[kIn * kIn];  // pixels outside the image are zeros
    for (int64_t y = 0; y < kIn; ++y)
      for (int64_t column = 0; column < kIn; ++column) {
        const int64_t row_at = top + y, column_at = left + column;
        const bool inside = row_at >= 0 && row_at < s.h && column_at >= 0 && column_at < s.w;
        from[y * kIn + column] = inside ? x + ((image * s.h + row_at) * s.w + column_at) * s.x_pixel : no_pixel;
      }
    for (int64_t c = 0; c < whole; c += kFloats)
      transform_vector<kResults, kOfResults>(
          s, [&](int64_t i) { return load_elements<kForm>(from[i] + c); }, v + c);
    if (rest)
      transform_vector<kResults, kOfResults>(
          s, [&](int64_t i) { return load_elements<kForm>(from[i] + whole, rest); }, v + whole);
  }
}
template <int64_t kResults, bool kOfResults>
void transform_tiles(const WinogradLoops& s, int64_t first, int64_t last, const void* x, const float* zeros, float* v) {
  with_form(s.x_form, [&]<Form kForm>() {
    transform_tiles_of<kResults, kOfResults, kForm>(s, first, last, static_cast<const ElementOf<kForm>*>(x), zeros, v);
  });
}

/// What is in the image of one tile's results.
template <Form kForm>
struct TileResults {
  int64_t rows, columns;
  ElementOf<kForm>* y;   // the first of them
  const char* residual;  // null: none
};

template <int64_t kResults, Form kForm>
CAIRN_INLINE void finish_vector(const WinogradLoops& s, const float* m, Floats bias, const TileResults<kForm>& results,
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
      Floats value = (s.narrow.rounds_sum ? rounded_to<kForm>(out[x]) : out[x]) + bias;
      if (results.residual) {
        if (s.narrow.rounds_biased) value = rounded_to<kForm>(value);
        with_form(s.narrow.residual, [&]<Form kResidual>() {
          value +=
              load_elements<kResidual>(reinterpret_cast<const ElementOf<kResidual>*>(results.residual) + at, count);
        });
      }
      value = choose(value > high, high, value);  // keeps NaN
      value = choose(value < low, low, value);
      store_elements<kForm>(results.y + at, count, value);
    }
  }
}

/// Channels [begin, end) of the results of tiles [first, last), from m[(tile - first) * s.m_tile + point * s.m_point + channel -
/// begin]. m and the bias have whole vectors of channels.
template <int64_t kResults, Form kForm>
void finish_tiles_of(const WinogradLoops& s, int64_t first, int64_t last, int64_t begin, int64_t end, const float* m,
                     const float* bias, const char* residual, ElementOf<kForm>* y) {
  for (int64_t tile = first; tile < last; ++tile, m += s.m_tile) {
    const int64_t image = tile / (s.tiles_y * s.tiles_x), in_image = tile % (s.tiles_y * s.tiles_x);
    const int64_t top = in_image / s.tiles_x * kResults, left = in_image % s.tiles_x * kResults;
    const int64_t at = ((image * s.oh + top) * s.ow + left) * s.oc;
    const TileResults<kForm> results{std::min(kResults, s.oh - top), std::min(kResults, s.ow - left), y + at,
                                     residual ? residual + at * bytes_of(s.narrow.residual) : nullptr};
    for (int64_t c = begin; c < end; c += kFloats)
      finish_vector<kResults>(s, m + c - begin, load(bias + c), results, c, std::min<int64_t>(kFloats, end - c));
  }
}
template <int64_t kResults>
void finish_tiles(const WinogradLoops& s, int64_t first, int64_t last, int64_t begin, int64_t end, const float* m,
                  const float* bias, const void* residual, void* y) {
  with_form(s.narrow.result, [&]<Form kForm>() {
    finish_tiles_of<kResults, kForm>(s, first, last, begin, end, m, bias, static_cast<const char*>(residual),
                                     static_cast<ElementOf<kForm>*>(y));
  });
}

/// kernel_to_points() the other way round: from values at the points, `step` apart, to three taps.
template <int64_t kResults>
CAIRN_INLINE void kernel_from_points(const Floats* in, int64_t step, Floats* out) {
  const auto at = [&](int64_t i) { return in[i * step]; };
  constexpr int64_t k = kResults == 2 ? 1 : kResults - 3;
  const Floats even = at(k) + at(k + 1), odd = at(k) - at(k + 1);
  if constexpr (kResults == 2) {
    out[0] = at(0) + 0.5f * even, out[1] = 0.5f * odd, out[2] = at(3) + 0.5f * even;
  } else {
    using P = Points<kResults>;
    const Floats even_far = at(k + 2) + at(k + 3), odd_far = at(k + 2) - at(k + 3);
    out[0] = f32(1 / P::kOfFar) * even_far + f32(1 / P::kOfNear) * even;
    if constexpr (kResults == 4) out[0] += f32(1 / P::kProduct) * at(0);
    out[1] = f32(P::kFar / P::kOfFar) * odd_far + f32(P::kNear / P::kOfNear) * odd;
    out[2] = at(kResults + 1) + (f32(P::kFar2 / P::kOfFar) * even_far + f32(P::kNear2 / P::kOfNear) * even);
  }
}

template <int64_t kResults>
void finish_kernel(int64_t count, int64_t parts, int64_t part_step, int64_t point_step, const float* m, float* to,
                   int64_t tap_step) {
  constexpr int64_t kSize = kResults + 2;
  for (int64_t at = 0; at < count; at += kFloats) {
    Floats columns[kSize][3];
#pragma GCC unroll 6
    for (int64_t x = 0; x < kSize; ++x) {
      Floats in[kSize];
#pragma GCC unroll 6
      for (int64_t y = 0; y < kSize; ++y) {
        const float* from = m + (y * kSize + x) * point_step + at;
        in[y] = load(from);
        for (int64_t part = 1; part < parts; ++part) in[y] += load(from + part * part_step);
      }
      kernel_from_points<kResults>(in, 1, columns[x]);
    }
    const int64_t lanes = std::min<int64_t>(kFloats, count - at);
#pragma GCC unroll 3
    for (int64_t y = 0; y < 3; ++y) {
      Floats out[3];
      kernel_from_points<kResults>(&columns[0][y], 3, out);
#pragma GCC unroll 3
      for (int64_t x = 0; x < 3; ++x) {
        float* place = to + (3 * y + x) * tap_step + at;
        lanes == kFloats ? store(place, out[x]) : store_first(place, lanes, out[x]);
      }
    }
  }
}

template <int64_t kResults>
WinogradCode code_of() {
  return {transform_kernel<kResults>, transform_tiles<kResults, false>, finish_tiles<kResults>,
          transform_tiles<kResults, true>, finish_kernel<kResults>};
}
WinogradCode code_for(int64_t results) {
  return results == 4 ? code_of<4>() : results == 3 ? code_of<3>() : code_of<2>();
}
