// The loops of overlapping_pool.cpp, included once for each instruction set, each time in another namespace.
#include "engines/cpu/vector_types.h"

/// The pixels that get the gradients of a row of windows.
CAIRN_INLINE void find_largest(const SlideSpec& s, bool gated, int64_t channels, int64_t row, const float* x,
                               int32_t* kept) {
  const Taps rows = taps_of(row, s.kh, s.stride_h, 1, s.pad_top, s.h);
  for (int64_t column = 0; column < s.ow; ++column, kept += kSlice) {
    const Taps columns = taps_of(column, s.kw, s.stride_w, 1, s.pad_left, s.w);
    for (int64_t c = 0; c < channels; c += kFloats) {
      Floats most{};
      Ints winner = Ints{} - 1;
      bool first = true;
      for (int64_t h = rows.first; h < rows.last; ++h)
        for (int64_t w = columns.first; w < columns.last; ++w, first = false) {
          const int64_t pixel = (rows.at + h) * s.w + columns.at + w;
          const Floats value = take(x + pixel * s.channels + c, channels - c);
          const Ints wins = first ? Ints{} - 1 : most < value;
          most = choose(wins, value, most);
          winner = wins ? Ints{} + static_cast<int32_t>(pixel) : winner;
        }
      if (gated) winner = most > 0.f ? winner : Ints{} - 1;
      *reinterpret_cast<Ints*>(kept + c) = winner;
    }
  }
}

/// The gradient of one image's first `channels` channels, row by row behind the rows of windows that hold it.
void gradient_of(const SlideSpec& s, bool gated, int64_t channels, const float* x, const float* dy, float* dx,
                 int32_t* kept) {
  const int64_t ring = rows_kept(s), row_floats = s.ow * kSlice;
  int64_t found = 0;
  for (int64_t y = 0; y < s.h; ++y) {
    const Windows rows = windows_of(y, s.kh, s.stride_h, s.pad_top, s.oh);
    for (; found < rows.last; ++found) find_largest(s, gated, channels, found, x, kept + found % ring * row_floats);
    for (int64_t column = 0; column < s.w; ++column, dx += s.channels) {
      const Windows columns = windows_of(column, s.kw, s.stride_w, s.pad_left, s.ow);
      const Ints pixel = Ints{} + static_cast<int32_t>(y * s.w + column);
      for (int64_t c = 0; c < channels; c += kFloats) {
        Floats sum{};
        for (int64_t row = rows.first; row < rows.last; ++row)
          for (int64_t window = columns.first; window < columns.last; ++window) {
            const Ints winner = *reinterpret_cast<const Ints*>(kept + row % ring * row_floats + window * kSlice + c);
            const Floats gradient = take(dy + (row * s.ow + window) * s.channels + c, channels - c);
            sum = choose(winner == pixel, sum + gradient, sum);
          }
        put(dx + c, channels - c, sum);
      }
    }
    stop_point_after(s.w * channels * s.kh * s.kw / 4);
  }
}

/// What is largest in one row of the image, in the columns of each window, and in which column; returns whether there is a NaN.
CAIRN_INLINE bool find_in_row(const SlideSpec& s, int64_t channels, const float* x, float* values, int32_t* places) {
  Ints nan{};
  for (int64_t window = 0; window < s.ow; ++window, values += kSlice, places += kSlice) {
    const Taps columns = taps_of(window, s.kw, s.stride_w, 1, s.pad_left, s.w);
    for (int64_t c = 0; c < channels; c += kFloats) {
      Floats most = spread(-std::numeric_limits<float>::infinity());
      Ints place = Ints{} + static_cast<int32_t>(columns.at + columns.first);
      for (int64_t w = columns.first; w < columns.last; ++w) {
        const int64_t column = columns.at + w;
        const Floats value = take(x + column * s.channels + c, channels - c);
        const Ints wins = most < value;
        most = choose(wins, value, most);
        place = wins ? Ints{} + static_cast<int32_t>(column) : place;
        nan |= value != value;
      }
      store(values + c, most);
      *reinterpret_cast<Ints*>(places + c) = place;
    }
  }
  int32_t any = 0;
  for (int lane = 0; lane < kFloats; ++lane) any |= nan[lane];
  return any != 0;
}

/// The rows that get the gradients of a row of windows: the first of those with the largest maximum.
CAIRN_INLINE void find_rows(const SlideSpec& s, bool gated, int64_t channels, int64_t row, const float* values,
                            int32_t* kept) {
  const Taps rows = taps_of(row, s.kh, s.stride_h, 1, s.pad_top, s.h);
  for (int64_t window = 0; window < s.ow; ++window)
    for (int64_t c = 0; c < channels; c += kFloats) {
      Floats most{};
      Ints winner = Ints{} - 1;
      for (int64_t h = rows.first; h < rows.last; ++h) {
        const int64_t y = rows.at + h;
        const Floats value = load(values + (y % s.kh * s.ow + window) * kSlice + c);
        const Ints wins = h == rows.first ? Ints{} - 1 : most < value;
        most = choose(wins, value, most);
        winner = wins ? Ints{} + static_cast<int32_t>(y) : winner;
      }
      if (gated) winner = most > 0.f ? winner : Ints{} - 1;
      *reinterpret_cast<Ints*>(kept + window * kSlice + c) = winner;
    }
}

/// The gradients of all windows whose row is y, by window.
CAIRN_INLINE void add_rows(const SlideSpec& s, int64_t channels, int64_t y, Windows rows, const int32_t* kept,
                           const float* dy, float* sums) {
  const int64_t ring = rows_kept(s);
  const Ints here = Ints{} + static_cast<int32_t>(y);
  for (int64_t window = 0; window < s.ow; ++window)
    for (int64_t c = 0; c < channels; c += kFloats) {
      Floats sum{};
      for (int64_t row = rows.first; row < rows.last; ++row) {
        const Ints winner = *reinterpret_cast<const Ints*>(kept + (row % ring * s.ow + window) * kSlice + c);
        const Floats gradient = take(dy + (row * s.ow + window) * s.channels + c, channels - c);
        sum = choose(winner == here, sum + gradient, sum);
      }
      store(sums + window * kSlice + c, sum);
    }
}

/// gradient_of by the maxima of rows; returns whether it was made, which it is not where there is a NaN.
bool gradient_by_rows(const SlideSpec& s, bool gated, int64_t channels, const float* x, const float* dy, float* dx,
                      const RowMaxima& maxima) {
  const int64_t ring = rows_kept(s);
  int64_t found = 0, seen = 0;
  for (int64_t y = 0; y < s.h; ++y) {
    const Windows rows = windows_of(y, s.kh, s.stride_h, s.pad_top, s.oh);
    const int64_t end = std::min(s.h, y + s.kh);
    for (; seen < end; ++seen) {
      const int64_t at = seen % s.kh * row_elements(s);
      if (find_in_row(s, channels, x + seen * s.w * s.channels, maxima.values + at, maxima.columns + at)) return false;
    }
    for (; found < rows.last; ++found)
      find_rows(s, gated, channels, found, maxima.values, maxima.rows + found % ring * row_elements(s));
    add_rows(s, channels, y, rows, maxima.rows, dy, maxima.sums);
    for (int64_t column = 0; column < s.w; ++column, dx += s.channels) {
      const Windows columns = windows_of(column, s.kw, s.stride_w, s.pad_left, s.ow);
      const Ints here = Ints{} + static_cast<int32_t>(column);
      for (int64_t c = 0; c < channels; c += kFloats) {
        Floats sum{};
        for (int64_t window = columns.first; window < columns.last; ++window) {
          const int64_t at = window * kSlice + c;
          const Ints winner = *reinterpret_cast<const Ints*>(maxima.columns + y % s.kh * row_elements(s) + at);
          sum = choose(winner == here, sum + load(maxima.sums + at), sum);
        }
        put(dx + c, channels - c, sum);
      }
    }
    stop_point_after(s.w * channels * (s.kh + s.kw) / 4);
  }
  return true;
}
