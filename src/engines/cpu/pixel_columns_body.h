// What kernels with pixels in the lanes share, included once for each instruction set behind vector_types.h.

/// Rows [first, first + count) of an image with borders, counted from above the border: its columns and channels apart, each
/// stride_w-th column side by side.
template <class Spec>
void spread_columns(const Spec& s, const float* x, int64_t first, int64_t count, float* to) {
  std::memset(to, 0, static_cast<size_t>(count * s.row) * sizeof(float));
  for (int64_t i = 0; i < count; ++i, to += s.row) {
    const int64_t h = first + i - s.pad_top;
    if (h < 0 || h >= s.h) continue;
    const float* from = x + h * s.w * s.ic;
    if (s.ic * s.stride_w == 1) {
      std::copy_n(from, std::min(s.w, s.pitch - s.pad_left), to + s.pad_left);
      continue;
    }
    for (int64_t c = 0; c < s.ic; ++c)
      for (int64_t w = 0; w < s.w; ++w) {
        const int64_t column = w + s.pad_left;
        const int64_t place = column / s.stride_w;
        if (place < s.pitch) to[(c * s.stride_w + column % s.stride_w) * s.pitch + place] = from[w * s.ic + c];
      }
  }
}

#if CAIRN_FLOATS > 4
/// A step of transposing blocks of eight by eight.
template <int kDistance>
CAIRN_INLINE void exchange_of_eight(Floats (&rows)[8]) {
  Ints low, high;
  for (int lane = 0; lane < kFloats; ++lane) {
    low[lane] = lane & kDistance ? kFloats + lane - kDistance : lane;
    high[lane] = lane & kDistance ? kFloats + lane : lane + kDistance;
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if (i & kDistance) continue;
    const Floats a = rows[i], b = rows[i + kDistance];
    rows[i] = CAIRN_SHUFFLE(a, b, low);
    rows[i + kDistance] = CAIRN_SHUFFLE(a, b, high);
  }
}
#endif
