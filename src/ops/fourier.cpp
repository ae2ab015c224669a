// Discrete Fourier transforms of any length. A complex number is a pair (real, imaginary) along a last dim of 2. Computed
// in f64: lengths of small prime factors by a mixed-radix transform, others by Bluestein's algorithm (IEEE Trans. Audio
// Electroacoustics 18, 1970).
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

constexpr size_t kLargestRadix = 13;
constexpr int64_t kLongestTransform = int64_t{1} << 26;

struct Complex {
  double re = 0, im = 0;
  friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
};
using Line = std::vector<Complex>;

/// exp(-pi i k / n)
Complex root(size_t k, size_t n) {
  const double angle = M_PI * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

/// The forward transform of one length.
class Fourier {
 public:
  explicit Fourier(size_t n) : n_(n) {
    size_t rest = n;
    for (size_t radix : {4, 2, 3, 5, 7, 11, 13})
      for (; rest % radix == 0 && rest > 1; rest /= radix) radices_.push_back(radix);
    if (rest > 1) prepare_chirp();
    for (size_t k = 0; rest == 1 && k < n; ++k) roots_.push_back(root(2 * k, n));
  }

  /// `from` and `to` have n elements each and differ.
  void run(const Complex* from, Complex* to) {
    if (convolution_ == nullptr) return transform(from, to, n_, 1, 0);
    Line& work = buffers_[0];
    std::fill(work.begin(), work.end(), Complex());
    for (size_t k = 0; k < n_; ++k) work[k] = from[k] * chirp_[k];
    convolution_->run(work.data(), buffers_[1].data());
    // The inverse transform of the product is the conjugate of the forward transform of its conjugate.
    for (size_t k = 0; k < work.size(); ++k) {
      const Complex product = buffers_[1][k] * spectrum_[k];
      work[k] = {product.re, -product.im};
    }
    convolution_->run(work.data(), buffers_[1].data());
    const double scale = 1 / static_cast<double>(work.size());
    for (size_t k = 0; k < n_; ++k) to[k] = Complex{buffers_[1][k].re * scale, -buffers_[1][k].im * scale} * chirp_[k];
  }

 private:
  /// Every stride-th of the elements of `from`, n of them.
  void transform(const Complex* from, Complex* to, size_t n, size_t stride, size_t level) const {
    if (n == 1) {
      *to = *from;
      return;
    }
    const size_t radix = radices_[level], part = n / radix;
    for (size_t r = 0; r < radix; ++r) transform(from + r * stride, to + r * part, part, stride * radix, level + 1);
    std::array<Complex, kLargestRadix> terms;
    for (size_t k = 0; k < part; ++k) {
      for (size_t r = 0; r < radix; ++r) terms[r] = to[r * part + k] * roots_[r * k * stride];
      if (radix == 4) {
        const Complex a = terms[0] + terms[2], b = terms[0] - terms[2], c = terms[1] + terms[3],
                      d = terms[1] - terms[3];
        to[k] = a + c, to[k + 2 * part] = a - c;
        to[k + part] = {b.re + d.im, b.im - d.re}, to[k + 3 * part] = {b.re - d.im, b.im + d.re};
        continue;
      }
      for (size_t q = 0; q < radix; ++q) {
        Complex sum = terms[0];
        for (size_t r = 1; r < radix; ++r) sum = sum + terms[r] * roots_[r * q % radix * (n_ / radix)];
        to[q * part + k] = sum;
      }
    }
  }

  void prepare_chirp() {
    size_t longer = 1;
    while (longer < 2 * n_ - 1) longer *= 2;
    convolution_ = std::make_unique<Fourier>(longer);
    for (Line* line : {&buffers_[0], &buffers_[1], &spectrum_}) line->resize(longer);
    for (size_t k = 0; k < n_; ++k) {
      chirp_.push_back(root(k * k % (2 * n_), n_));
      buffers_[0][k] = buffers_[0][(longer - k) % longer] = {chirp_[k].re, -chirp_[k].im};
    }
    convolution_->run(buffers_[0].data(), spectrum_.data());
  }

  size_t n_;
  std::vector<size_t> radices_;
  Line roots_;
  std::unique_ptr<Fourier> convolution_;
  Line chirp_, spectrum_, buffers_[2];
};

/// Conjugates, divided by `divisor`.
void conjugate(Line& line, double divisor) {
  for (Complex& each : line) each = {each.re / divisor, -each.im / divisor};
}

/// The forward or the inverse transform; the inverse divides by the length.
void transform(Fourier& fourier, Line& line, Line& result, bool inverse) {
  if (inverse) conjugate(line, 1);
  fourier.run(line.data(), result.data());
  if (inverse) conjugate(result, static_cast<double>(line.size()));
}

void dft(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  if (x.count() == 0) return;
  const auto axis =
      static_cast<size_t>(context.attr.integer("axis") + (context.attr.integer("axis") < 0 ? std::ssize(x.dims()) : 0));
  const int64_t size = x.dims()[axis], inner = count_between(x.dims(), axis + 1, x.rank() - 1);
  Fourier fourier(static_cast<size_t>(size));
  Line line(static_cast<size_t>(size)), result(line.size());
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t row = 0; row < x.count() / 2 / size; ++row) {
      const int64_t base = row / inner * size * inner + row % inner;
      for (int64_t i = 0; i < size; ++i) {
        const T* from = data<T>(x) + 2 * (base + i * inner);
        line[static_cast<size_t>(i)] = {static_cast<double>(from[0]), static_cast<double>(from[1])};
      }
      transform(fourier, line, result, context.attr.boolean("inverse"));
      for (int64_t i = 0; i < size; ++i) {
        T* to = data<T>(context.output(0)) + 2 * (base + i * inner);
        to[0] = T(static_cast<Compute<T>>(result[static_cast<size_t>(i)].re));
        to[1] = T(static_cast<Compute<T>>(result[static_cast<size_t>(i)].im));
      }
    }
  });
}

void real_dft(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  if (y.count() == 0) return;
  const int64_t size = x.dims().back(), length = context.input(1).as_i64()[0], bins = y.dims()[y.rank() - 2];
  Fourier fourier(static_cast<size_t>(length));
  Line line(static_cast<size_t>(length)), result(line.size());
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t row = 0; row < y.count() / 2 / bins; ++row) {
      for (int64_t i = 0; i < length; ++i)
        line[static_cast<size_t>(i)] = {i < size ? static_cast<double>(data<T>(x)[row * size + i]) : 0, 0};
      fourier.run(line.data(), result.data());
      for (int64_t i = 0; i < bins; ++i) {
        T* to = data<T>(y) + 2 * (row * bins + i);
        to[0] = T(static_cast<Compute<T>>(result[static_cast<size_t>(i)].re));
        to[1] = T(static_cast<Compute<T>>(result[static_cast<size_t>(i)].im));
      }
    }
  });
}

void inverse_real_dft(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  if (y.count() == 0) return;
  const int64_t bins = x.dims()[x.rank() - 2], length = y.dims().back();
  Fourier fourier(static_cast<size_t>(length));
  Line line(static_cast<size_t>(length)), result(line.size());
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t row = 0; row < y.count() / length; ++row) {
      for (int64_t i = 0; i <= length / 2; ++i) {
        const T* from = data<T>(x) + 2 * (row * bins + i);
        const Complex value =
            i < bins ? Complex{static_cast<double>(from[0]), static_cast<double>(from[1])} : Complex();
        line[static_cast<size_t>(i)] = value;
        if (i > 0) line[static_cast<size_t>(length - i)] = {value.re, -value.im};
      }
      transform(fourier, line, result, true);
      for (int64_t i = 0; i < length; ++i)
        data<T>(y)[row * length + i] = T(static_cast<Compute<T>>(result[static_cast<size_t>(i)].re));
    }
  });
}

/// The shape of a tensor of pairs, whose last dim must be 2.
Shape pairs_shape(InferContext& context) {
  number_type(context, 0);
  const Shape& shape = context.shape(0);
  if (!shape.ranked) return shape;
  if (shape.rank() < 2) context.fail("input 0 must have at least 2 dims, found {}", to_string(context.input(0)));
  same_size(context, shape.dims.back(), Dim(2), "numbers of a complex element");
  return shape;
}

void infer_dft(InferContext& context) {
  Shape shape = pairs_shape(context);
  if (shape.ranked) {
    if (axis_of(context, context.attr.integer("axis"), shape.rank()) + 1 == shape.rank())
      context.fail("axis {} is that of the pairs", context.attr.integer("axis"));
    shape.dims.back() = Dim(2);
  }
  context.result(context.dtype(0), std::move(shape));
}

/// The length that operand 1, a scalar, gives; unknown unless it is a constant.
Dim length_told(InferContext& context) {
  require_scalar(context, 1);
  const auto value = constant_integers(context, 1);
  if (!value) return {};
  if ((*value)[0] < 0 || (*value)[0] > kLongestTransform) context.fail("the length is {}", (*value)[0]);
  return {(*value)[0]};
}
void infer_real_dft(InferContext& context) {
  number_type(context, 0);
  Shape shape = context.shape(0);
  const Dim length = length_told(context);
  if (shape.ranked) {
    if (shape.rank() == 0) context.fail("a scalar has no transform");
    shape.dims.back() = length.known() ? Dim(length.size == 0 ? 0 : length.size / 2 + 1) : Dim();
    shape.dims.push_back(Dim(2));
  }
  context.result(context.dtype(0), std::move(shape));
}
void infer_inverse_real_dft(InferContext& context) {
  Shape shape = pairs_shape(context);
  const Dim length = length_told(context);
  if (shape.ranked) {
    shape.dims.pop_back();
    shape.dims.back() = length;
  }
  context.result(context.dtype(0), std::move(shape));
}

double fourier_flops(const InferContext& context) {
  const auto count = static_cast<double>(known_count(context.shape(0)).value_or(0));
  return count < 2 ? count : 5 * count * std::log2(count);
}

// The adjoint of a transform is the inverse one without its division by the length.
void dft_rule(GradientContext& g) {
  const bool inverse = g.attr.boolean("inverse");
  const Sizes sizes = sizes_of(g, g.x(0));
  const Size& length = sizes[axis_from_start(g.attr.integer("axis"), sizes.size())];
  const Var back = g.dy().apply("dft", {}, {{"axis", g.attr.integer("axis")}, {"inverse", !inverse}});
  g.set(0, inverse ? divided(back, length) : multiplied(back, length));
}

// Cuts or zero-pads x along an axis from size `from` to size `to`.
Var resized(Var x, size_t axis, const Size& from, const Size& to) {
  const size_t rank = x.shape().rank();
  Builder& b = *x.builder;
  const bool known = from.dim().known() && to.dim().known();
  if (known && from.dim().size == to.dim().size) return x;
  if (!known || from.dim().size < to.dim().size) {  // as many zeros as the larger size is sure to fit in
    Sizes pads(2 * rank, Size(b, 0));
    pads[2 * axis + 1] = known ? to - from : to;
    x = x.apply("pad", {reshape(as_vector(b, pads), {Size(b, static_cast<int64_t>(rank)), Size(b, 2)})});
  }
  Sizes begin(rank, Size(b, 0)), end(rank, Size(b, std::numeric_limits<int64_t>::max()));
  end[axis] = to;
  Shape shape = x.shape();
  shape.dims[axis] = to.dim();
  const std::vector<Value*> operands = {x.value, as_vector(b, begin).value, as_vector(b, end).value};
  return {b, b.add_node(op_named("slice"), operands, {}, {}, {Type::tensor(x.dtype(), shape)})->result()};
}

// The real part of the adjoint transform, padded to the number of elements that were transformed.
void real_dft_rule(GradientContext& g) {
  const Sizes sizes = sizes_of(g, g.x(0)), bins = sizes_of(g, g.dy());
  const Size length = Size::element(reshape(g.x(1), {Size(g.b, 1)}), 0);
  const size_t axis = sizes.size() - 1;
  const Var full = resized(g.dy(), axis, bins[axis], length)
                       .apply("dft", {}, {{"axis", static_cast<int64_t>(axis)}, {"inverse", true}});
  const Var real = gather_rows(transpose(full,
                                         [&] {
                                           std::vector<int64_t> order(axis + 2);
                                           for (size_t i = 0; i < order.size(); ++i)
                                             order[i] = static_cast<int64_t>(i == 0 ? axis + 1 : i - 1);
                                           return order;
                                         }()),
                               g.x(1).number(0));
  g.set(0, resized(multiplied(real, length), axis, length, sizes[axis]));
}

// Each bin stands for itself and its mirror image, except the first and, for even lengths, the last.
void inverse_real_dft_rule(GradientContext& g) {
  const Sizes sizes = sizes_of(g, g.x(0));
  const size_t axis = sizes.size() - 2;
  const Size length = Size::element(reshape(g.x(1), {Size(g.b, 1)}), 0);
  const Var bins = g.dy().apply("real_dft", {g.x(1)});
  const Var number = counting(Size(bins, axis)), twice = number * 2;
  const Var single = number.apply("equal", {number.number(0)}).apply("or", {twice.apply("equal", {length.scalar()})});
  const Var weight = select(single, g.dy().number(1), g.dy().number(2));
  const Var weighted = divided(bins * reshape(weight, {Size(bins, axis), Size(g.b, 1)}), length);
  g.set(0, resized(weighted, axis, Size(bins, axis), sizes[axis]));
}

OpDef fourier_row(const char* name, const char* summary, void (*infer)(InferContext&),
                  void (*reference)(KernelContext&), void (*gradient)(GradientContext&), Oracle oracle,
                  std::vector<const char*> cases) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::floats}, shape_operand("length")},
          .traits = kReduction,
          .precision = Precision::accumulate_f32,
          .infer = infer,
          .flops = fourier_flops,
          .gradient = gradient,
          .reference = reference,
          .oracle = oracle,
          .cases = std::move(cases)};
}

std::vector<OpDef> make_fourier_rows() {
  OpDef both = fourier_row(
      "dft",
      "discrete Fourier transform along one axis of complex numbers, which are pairs along the last dim; the inverse "
      "divides by the length",
      infer_dft, dft, dft_rule,
      {"(lambda z: np.stack([z.real, z.imag], -1).astype(x.dtype))((np.fft.ifft if inverse else np.fft.fft)(x[..., 0] "
       "+ "
       "1j * x[..., 1], axis=axis if axis >= 0 else axis + 1))"},
      {"f32[8, 2] {axis = 0}", "f32[3, 12, 2] {axis = -2}", "f32[15, 4, 2] {axis = 0, inverse = true}",
       "f64[2, 97, 2] {axis = 1}", "f32[34, 2] {axis = 0, inverse = true}", "f32[1, 2] {axis = 0}",
       "f32[0, 4, 2] {axis = 1}", "f64[1001, 2] {axis = 0}"});
  both.inputs = {{"x", Accepts::floats}};
  both.attributes = {{"axis", AttrKind::integer}, flag("inverse")};
  both.traits = kReduction;
  return {
      both,
      fourier_row("real_dft",
                  "the first length / 2 + 1 numbers, as pairs along a new last dim, of the discrete Fourier transform "
                  "along the last axis, which is cut or filled with zeros to `length`",
                  infer_real_dft, real_dft, real_dft_rule,
                  {"(lambda z: np.stack([z.real, z.imag], -1).astype(x.dtype))(np.fft.rfft(x, int(length)))"},
                  {"f32[2, 8], i64[]=[8]", "f32[3, 7], i64[]=[12]", "f64[9], i32[]=[5]", "f32[2, 37], i64[]=[37]",
                   "f32[0, 4], i64[]=[4]", "f32[3], i64[]=[1]"}),
      fourier_row(
          "inverse_real_dft",
          "the `length` real numbers whose discrete Fourier transform along the last axis begins with the "
          "length / 2 + 1 given pairs; more are ignored, missing ones are 0, as are imaginary parts that no real "
          "numbers give",
          infer_inverse_real_dft, inverse_real_dft, inverse_real_dft_rule,
          {"np.fft.irfft(x[..., 0] + 1j * x[..., 1], int(length)).astype(x.dtype)"},
          {"f32[2, 5, 2], i64[]=[8]", "f32[3, 5, 2], i64[]=[9]", "f32[3, 7, 2], i64[]=[6]", "f64[3, 2], i32[]=[11]",
           "f32[0, 3, 2], i64[]=[4]", "f32[2, 1, 2], i64[]=[1]"}),
  };
}

}  // namespace

std::span<const OpDef> fourier_ops() {
  static const std::vector<OpDef> rows = make_fourier_rows();
  return rows;
}

}  // namespace cairn
