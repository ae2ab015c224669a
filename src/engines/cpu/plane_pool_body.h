// The loops of plane_pool.cpp, included once for each instruction set, each time in another namespace.
#include "engines/cpu/vector_types.h"

/// What becomes of two numbers of a window: their sum, their maximum (NaN if either is), or, where there is no NaN, their maximum.
struct Sum {
  static constexpr float kNothing = 0.f;
  static constexpr bool kLosesNaN = false;
  static CAIRN_INLINE Floats of(Floats a, Floats b) { return a + b; }
};
struct Maximum {
  static constexpr float kNothing = -std::numeric_limits<float>::infinity();
  static constexpr bool kLosesNaN = false;
  static CAIRN_INLINE Floats of(Floats a, Floats b) { return choose((a > b) | (a != a), a, b); }
};
struct NumbersMaximum {
  static constexpr float kNothing = Maximum::kNothing;
  static constexpr bool kLosesNaN = true;
  static CAIRN_INLINE Floats of(Floats a, Floats b) { return choose(a > b, a, b); }
};

CAIRN_INLINE void fill(float* to, int64_t count, float value) {  // and up to a vector more
  for (int64_t i = 0; i < count; i += kFloats) store(to + i, spread(value));
}

/// One row down `count` rows of a plane (kCount of them, where it is not 0), with its borders, and what is written behind it; `end`:
/// where x ends. Adds all that was read to `seen`, where a NaN among it shows.
template <class Pool, size_t kCount>
CAIRN_INLINE void pool_down(const PlanePool& pool, const float* plane, const int64_t* offsets, size_t rows,
                            const float* end, float* to, Floats& seen) {
  const SlideSpec& s = pool.spec;
  const size_t count = kCount ? kCount : rows;
  fill(to, s.pad_left, Pool::kNothing);
  float* const inner = to + s.pad_left;
  for (int64_t at = 0; at < s.w; at += kFloats) {
    const auto down = [&](auto read) __attribute__((always_inline)) {
      Floats value = read(plane + offsets[0] + at);
      if constexpr (Pool::kLosesNaN) seen += value;
      for (size_t i = 1; i < count; ++i) {
        const Floats next = read(plane + offsets[i] + at);
        value = Pool::of(value, next);
        if constexpr (Pool::kLosesNaN) seen += next;
      }
      store(inner + at, value);
    };
    if (end - (plane + offsets[count - 1] + at) >= kFloats)
      down([](const float* from) __attribute__((always_inline)) { return load(from); });
    else
      down([&](const float* from) __attribute__((always_inline)) { return take(from, s.w - at); });
  }
  fill(inner + s.w, pool.columns - s.pad_left - s.w, Pool::kNothing);
}

/// kFloats windows that begin every kStride floats from here on.
template <class Pool, int kStride>
CAIRN_INLINE Floats windows_at(const SlideSpec& s, const float* from) {
  const int64_t step = s.dilation_w;
  Floats value;
  if constexpr (kStride == 1) {
    value = load(from);
    for (int64_t k = 1; k < s.kw; ++k) value = Pool::of(value, load(from + k * step));
  } else {
    Ints evens;
    for (int lane = 0; lane < kFloats; ++lane) evens[lane] = 2 * lane;
    const auto take_second = [&](const float* at, int offset) __attribute__((always_inline)) {
      return CAIRN_SHUFFLE(load(at), load(at + kFloats), evens + offset);
    };
    value = take_second(from, 0);
    for (int64_t k = 1; k < s.kw; ++k)
      value = Pool::of(value, step == 1 && k % 2 ? take_second(from + k - 1, 1) : take_second(from + k * step, 0));
  }
  return value;
}

/// Rows with their borders, behind each other, along their windows; those that begin between rows or steps are made and not taken.
template <class Pool, int kStride>
void pool_along(const PlanePool& pool, int64_t rows, const float* counts, const float* x, float* y) {
  const SlideSpec& s = pool.spec;
  const int64_t columns = pool.columns;
  const auto finish = [&](Floats value, int64_t row, int64_t at, int64_t count) __attribute__((always_inline)) {
    if constexpr (std::is_same_v<Pool, Sum>) value = value / (counts[row] * take(pool.counts.data() + at, count));
    put(y + row * s.ow + at, count, value);
  };
  if (s.ow >= kFloats && s.stride_w == kStride) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < s.ow; i += kFloats) {
        const int64_t at = std::min(i, s.ow - kFloats);
        finish(windows_at<Pool, kStride>(s, x + row * columns + at * kStride), row, at, kFloats);
      }
    return;
  }
  float made[kMostPlaneColumns + kBehind];
  const int64_t size = rows * columns / kStride, pitch = columns / kStride, step = s.stride_w / kStride;
  const int64_t last = (rows - 1) * pitch + (s.ow - 1) * step;
  for (int64_t i = 0; i <= last && i < size; i += kFloats)
    store(made + i, windows_at<Pool, kStride>(s, x + i * kStride));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t at = 0; at < s.ow; at += kFloats) {
      const int64_t count = std::min<int64_t>(kFloats, s.ow - at);
      const float* const from = made + row * pitch + at * step;
      Floats value{};
      if (step == 1)
        value = load(from);
      else
        for (int64_t lane = 0; lane < count; ++lane) value[lane] = from[lane * step];
      finish(value, row, at, count);
    }
}

/// Several rows go down before they go along: to read at once what was just written at other places would wait for it. Returns
/// false where there may be a NaN that was lost.
template <class Pool>
bool pool_together(const PlanePool& pool, int64_t first, int64_t count, const float* x, float* y) {
  const SlideSpec& s = pool.spec;
  const int64_t each = std::ssize(pool.rows), pixels = s.pixels();
  const float* const end = x + s.n * s.channels * pixels;
  float padded[kMostPlaneColumns + kBehind], counts[kMostTogether];
  Floats seen{};
  int64_t place = first % each;
  x += first / each * pixels;
  for (int64_t i = 0; i < count; ++i) {
    const PlanePool::Row& row = pool.rows[static_cast<size_t>(place)];
    const auto down = row.count == 0   ? nullptr
                      : row.count == 1 ? pool_down<Pool, 1>
                      : row.count == 2 ? pool_down<Pool, 2>
                      : row.count == 3 ? pool_down<Pool, 3>
                                       : pool_down<Pool, 0>;
    float* const to = padded + i * pool.columns;
    if (down)
      down(pool, x, pool.offsets.data() + row.first, row.count, end, to, seen);
    else
      fill(to, pool.columns, Pool::kNothing);
    counts[i] = row.counted;
    if (++place == each) place = 0, x += pixels;
  }
  const Ints lost = seen != seen;
  int32_t any = 0;
  for (int lane = 0; lane < kFloats; ++lane) any |= lost[lane];
  if (any) return false;
  fill(padded + count * pool.columns, kBehind, 0.f);
  const auto along = s.stride_w == 2 ? pool_along<Pool, 2> : pool_along<Pool, 1>;
  along(pool, count, counts, padded, y + first * s.ow);
  return true;
}

void pool_rows(const PlanePool& pool, int64_t first, int64_t last, const float* x, float* y) {
  const int64_t most = std::max<int64_t>(1, std::min(kMostTogether, kTogether / pool.columns));
  for (int64_t at = first; at < last; at += most) {
    const int64_t count = std::min(most, last - at);
    if (pool.spec.work == WindowWork::mean)
      pool_together<Sum>(pool, at, count, x, y);
    else if (!pool_together<NumbersMaximum>(pool, at, count, x, y))
      pool_together<Maximum>(pool, at, count, x, y);
  }
}
