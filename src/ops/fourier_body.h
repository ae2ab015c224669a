// The transforms of fourier.h on several lines at once, one in each lane of a vector: included once for each instruction set, each time
// in another namespace, with CAIRN_DOUBLES lanes.
#if CAIRN_DOUBLES == 1
using Lanes = double;
#else
typedef double Lanes __attribute__((vector_size(8 * CAIRN_DOUBLES), may_alias));
#endif

constexpr size_t kManyParts = 1024;

struct Complex {
  Lanes re, im;
};
inline Complex plus(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
inline Complex minus(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
inline Complex times(const Complex& a, const Root& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

void join_pairs(const Fourier::Level& level, Complex* y) {
  const size_t part = level.part;
  for (size_t k = 0; k < part; ++k) {
    const Complex a = y[k], b = times(y[part + k], level.twiddles[k]);
    y[k] = plus(a, b), y[part + k] = minus(a, b);
  }
}

void join_fours(const Fourier::Level& level, Complex* y) {
  const size_t part = level.part;
  const Root* w = level.twiddles.data();
  for (size_t k = 0; k < part; ++k, w += 3) {
    const Complex x1 = times(y[part + k], w[0]), x2 = times(y[2 * part + k], w[1]), x3 = times(y[3 * part + k], w[2]);
    const Complex a = plus(y[k], x2), b = minus(y[k], x2), c = plus(x1, x3), d = minus(x1, x3);
    y[k] = plus(a, c), y[k + 2 * part] = minus(a, c);
    y[k + part] = {b.re + d.im, b.im - d.re}, y[k + 3 * part] = {b.re - d.im, b.im + d.re};
  }
}

/// An odd radix: terms r and radix - r together give what they add to results q and radix - q.
void join_odd(const Fourier::Level& level, Complex* y) {
  const size_t radix = level.radix, part = level.part, pairs = radix / 2;
  const Root* w = level.twiddles.data();
  for (size_t k = 0; k < part; ++k, w += radix - 1) {
    Complex sums[Fourier::kLargestRadix / 2], differences[Fourier::kLargestRadix / 2];
    const Complex first = y[k];
    Complex all = first;
    for (size_t r = 0; r < pairs; ++r) {
      const Complex a = times(y[(r + 1) * part + k], w[r]), b = times(y[(radix - 1 - r) * part + k], w[radix - 2 - r]);
      sums[r] = plus(a, b), differences[r] = minus(a, b);
      all = plus(all, sums[r]);
    }
    y[k] = all;
    for (size_t q = 0; q < pairs; ++q) {
      Complex even = first, odd = {Lanes{}, Lanes{}};
      for (size_t r = 0; r < pairs; ++r) {
        const Root& turn = level.turns[q * pairs + r];
        even.re += sums[r].re * turn.re, even.im += sums[r].im * turn.re;
        odd.re -= differences[r].im * turn.im, odd.im += differences[r].re * turn.im;
      }
      y[(q + 1) * part + k] = plus(even, odd), y[(radix - 1 - q) * part + k] = minus(even, odd);
    }
  }
}

/// The transform of every stride-th of the elements of `from`.
void transform(const Fourier& fourier, size_t number, const Complex* from, size_t stride, Complex* to) {
  if (number == fourier.levels.size()) {
    *to = *from;
    return;
  }
  const Fourier::Level& level = fourier.levels[number];
  if (level.part >= kManyParts) stop_point_after(static_cast<int64_t>(2 * level.part * level.radix));
  for (size_t r = 0; r < level.radix; ++r) {
    if (level.part == 1)
      to[r] = from[r * stride];
    else
      transform(fourier, number + 1, from + r * stride, stride * level.radix, to + r * level.part);
  }
  if (level.radix == 4)
    join_fours(level, to);
  else if (level.radix == 2)
    join_pairs(level, to);
  else
    join_odd(level, to);
}

/// The forward transform. `from` and `to` differ.
void run(const Fourier& fourier, const Complex* from, Complex* to, Complex* scratch) {
  if (!fourier.convolution) return transform(fourier, 0, from, 1, to);
  const size_t longer = fourier.convolution->length;
  Complex *work = scratch, *made = scratch + longer;
  for (size_t k = 0; k < longer; ++k)
    work[k] = k < fourier.length ? times(from[k], fourier.chirp[k]) : Complex{Lanes{}, Lanes{}};
  transform(*fourier.convolution, 0, work, 1, made);
  // The inverse transform of the product is the conjugate of the forward transform of its conjugate.
  for (size_t k = 0; k < longer; ++k) {
    const Complex product = times(made[k], fourier.spectrum[k]);
    work[k] = {product.re, -product.im};
  }
  transform(*fourier.convolution, 0, work, 1, made);
  const double scale = 1 / static_cast<double>(longer);
  for (size_t k = 0; k < fourier.length; ++k)
    to[k] = times(Complex{made[k].re * scale, -made[k].im * scale}, fourier.chirp[k]);
}

inline double& lane(Lanes& lanes, [[maybe_unused]] int64_t i) {
#if CAIRN_DOUBLES == 1
  return lanes;
#else
  return reinterpret_cast<double*>(&lanes)[i];
#endif
}

/// Reads a line into lane i, conjugated for the inverse transform. What is not given is 0.
template <class T>
void read_line(const FourierLines& lines, const T* x, int64_t i, Complex* line) {
  const int64_t step = 2 * lines.inner;
  const auto number = [&](int64_t k) { return k < lines.given ? static_cast<double>(x[k]) : 0.0; };
  const auto pair = [&](int64_t k, int part) {
    return k < lines.given ? static_cast<double>(x[k * step + part]) : 0.0;
  };
  const auto length = static_cast<int64_t>(lines.length), worked = static_cast<int64_t>(lines.worked());
  for (int64_t k = 0; k < worked; ++k) {
    double re = 0, im = 0;
    if (lines.kind == FourierKind::real) {
      re = lines.half() ? number(2 * k) : number(k), im = lines.half() ? number(2 * k + 1) : 0;
    } else if (lines.kind == FourierKind::complex) {
      re = pair(k, 0), im = pair(k, 1);
    } else if (lines.kind == FourierKind::inverse_complex) {
      re = pair(k, 0), im = -pair(k, 1);
    } else if (lines.half()) {  // e + i o of the halves' spectra, conjugated
      const Root w = lines.halves[static_cast<size_t>(k)];
      const int64_t other = worked - k;
      const double im_k = k == 0 ? 0 : pair(k, 1), im_other = other == worked ? 0 : pair(other, 1);
      const double er = pair(k, 0) + pair(other, 0), ei = im_k - im_other;
      const double dr = pair(k, 0) - pair(other, 0), di = im_k + im_other;
      const double odd_re = dr * w.re + di * w.im, odd_im = di * w.re - dr * w.im;  // d times conj(w)
      re = er - odd_im, im = -(ei + odd_re);
    } else {
      const int64_t from = k <= length / 2 ? k : length - k;
      re = pair(from, 0), im = k == 0 ? 0 : k <= length / 2 ? -pair(from, 1) : pair(from, 1);
    }
    lane(line[k].re, i) = re, lane(line[k].im, i) = im;
  }
}

template <class T>
void write_line(const FourierLines& lines, Complex* line, int64_t i, T* y) {
  const auto put = [](T& to, double value) { to = T(static_cast<Compute<T>>(value)); };
  const int64_t step = 2 * lines.inner;
  const auto worked = static_cast<int64_t>(lines.worked());
  const double scale = 1 / static_cast<double>(lines.length);
  for (int64_t k = 0; k < lines.made; ++k) {
    if (lines.kind == FourierKind::complex || (lines.kind == FourierKind::real && !lines.half())) {
      put(y[k * step], lane(line[k].re, i)), put(y[k * step + 1], lane(line[k].im, i));
    } else if (lines.kind == FourierKind::inverse_complex) {
      put(y[k * step], lane(line[k].re, i) * scale), put(y[k * step + 1], -lane(line[k].im, i) * scale);
    } else if (lines.kind == FourierKind::real) {  // the spectra of even and odd numbers apart, then together
      Complex &a = line[k % worked], &b = line[(worked - k) % worked];
      const double ar = lane(a.re, i), ai = lane(a.im, i), br = lane(b.re, i), bi = -lane(b.im, i);
      const Root w = lines.halves[static_cast<size_t>(k)];
      const double odd_re = (ai - bi) / 2, odd_im = -(ar - br) / 2;
      put(y[2 * k], (ar + br) / 2 + odd_re * w.re - odd_im * w.im);
      put(y[2 * k + 1], (ai + bi) / 2 + odd_re * w.im + odd_im * w.re);
    } else if (lines.half()) {
      put(y[k], (k % 2 == 0 ? lane(line[k / 2].re, i) : -lane(line[k / 2].im, i)) * scale);
    } else {
      put(y[k], lane(line[k].re, i) * scale);
    }
  }
}

/// Lines first, first + 1, ..., at most CAIRN_DOUBLES. `buffer` holds 2 * worked() + scratch() complex numbers.
template <class T>
void transform_lines(const Fourier& fourier, const FourierLines& lines, int64_t first, int64_t count, const T* x, T* y,
                     void* buffer) {
  auto* from = static_cast<Complex*>(buffer);
  Complex *to = from + fourier.length, *scratch = to + fourier.length;
  const bool pairs_given = lines.kind != FourierKind::real, pairs_made = lines.kind != FourierKind::inverse_real;
  for (int64_t i = 0; i < CAIRN_DOUBLES; ++i)
    read_line(lines, x + lines.start(first + std::min(i, count - 1), lines.given, pairs_given ? 2 : 1), i, from);
  run(fourier, from, to, scratch);
  for (int64_t i = 0; i < count; ++i)
    write_line(lines, to, i, y + lines.start(first + i, lines.made, pairs_made ? 2 : 1));
}
