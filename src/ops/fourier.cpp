// Discrete Fourier transforms of any length. A complex number is a pair (real, imaginary) along a last dim of 2.
#include "ops/fourier.h"

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

Root Root::of(size_t k, size_t n) {
  const double angle = M_PI * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

namespace {

constexpr int64_t kLongestTransform = int64_t{1} << 26;

#define CAIRN_DOUBLES 1
#include "ops/fourier_body.h"
#undef CAIRN_DOUBLES

/// Line by line.
void by_lines(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  if (y.count() == 0) return;
  const int64_t length = context.input_count() > 1 ? context.input(1).as_i64()[0] : 0;
  const FourierLines lines = FourierLines::of(context.op(), context.attr, x.dims(), y.dims(), length);
  const Fourier fourier(lines.worked());
  std::vector<Complex> buffer(2 * lines.worked() + fourier.scratch());
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const auto work = static_cast<int64_t>(fourier.scratch() + 8 * lines.worked());
    for (const int64_t line : turns(lines.count, work))
      transform_lines(fourier, lines, line, 1, data<T>(x), data<T>(y), buffer.data());
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
                  void (*gradient)(GradientContext&), Oracle oracle, std::vector<const char*> cases) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::floats}, shape_operand("length")},
          .traits = kReduction,
          .precision = Precision::accumulate_f32,
          .infer = infer,
          .flops = fourier_flops,
          .gradient = gradient,
          .reference = by_lines,
          .oracle = oracle,
          .cases = std::move(cases)};
}

std::vector<OpDef> make_fourier_rows() {
  OpDef both = fourier_row(
      "dft",
      "discrete Fourier transform along one axis of complex numbers, which are pairs along the last dim; the inverse "
      "divides by the length",
      infer_dft, dft_rule,
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
                  infer_real_dft, real_dft_rule,
                  {"(lambda z: np.stack([z.real, z.imag], -1).astype(x.dtype))(np.fft.rfft(x, int(length)))"},
                  {"f32[2, 8], i64[]=[8]", "f32[3, 7], i64[]=[12]", "f64[9], i32[]=[5]", "f32[2, 37], i64[]=[37]",
                   "f32[0, 4], i64[]=[4]", "f32[3], i64[]=[1]"}),
      fourier_row(
          "inverse_real_dft",
          "the `length` real numbers whose discrete Fourier transform along the last axis begins with the "
          "length / 2 + 1 given pairs; more are ignored, missing ones are 0, as are imaginary parts that no real "
          "numbers give",
          infer_inverse_real_dft, inverse_real_dft_rule,
          {"np.fft.irfft(x[..., 0] + 1j * x[..., 1], int(length)).astype(x.dtype)"},
          {"f32[2, 5, 2], i64[]=[8]", "f32[3, 5, 2], i64[]=[9]", "f32[3, 7, 2], i64[]=[6]", "f64[3, 2], i32[]=[11]",
           "f32[0, 3, 2], i64[]=[4]", "f32[2, 1, 2], i64[]=[1]"}),
  };
}

/// The roots of one level, for a transform of radix * part elements.
Fourier::Level level_of(size_t radix, size_t part) {
  Fourier::Level level{radix, part, {}, {}};
  for (const size_t k : turns(part, static_cast<int64_t>(32 * radix)))
    for (size_t r = 1; r < radix; ++r) level.twiddles.push_back(Root::of(2 * r * k, radix * part));
  if (radix % 2 == 1)
    for (size_t q = 1; q <= radix / 2; ++q)
      for (size_t r = 1; r <= radix / 2; ++r) level.turns.push_back(Root::of(2 * (r * q % radix), radix));
  return level;
}

}  // namespace

Fourier::Fourier(size_t n) : length(n) {
  size_t rest = n;
  for (size_t radix : {4, 2, 3, 5, 7, 11, 13})
    for (; rest % radix == 0 && rest > 1; rest /= radix) levels.push_back(level_of(radix, rest / radix));
  if (rest == 1) return;
  levels.clear();
  size_t longer = 1;
  while (longer < 2 * n - 1) longer *= 2;
  convolution = std::make_unique<Fourier>(longer);
  std::vector<Complex> reversed(longer), made(longer);
  for (const size_t k : turns(n, 64)) {
    chirp.push_back(Root::of(k * k % (2 * n), n));
    reversed[k] = reversed[(longer - k) % longer] = {chirp[k].re, -chirp[k].im};
  }
  run(*convolution, reversed.data(), made.data(), nullptr);
  for (const Complex& each : made) spectrum.push_back({each.re, each.im});
}

FourierLines FourierLines::of(const OpDef& op, const AttributeView& attributes, const Dims& x, const Dims& y,
                              int64_t length) {
  if (op.has_role(Role::shape)) {
    const bool inverse = x.size() > y.size();  // pairs come from or go to a dim of their own
    const int64_t given = inverse ? x[x.size() - 2] : x.back(), made = inverse ? y.back() : y[y.size() - 2];
    FourierLines lines{inverse ? FourierKind::inverse_real : FourierKind::real, static_cast<size_t>(length), given,
                       made, count_of(y) / made / (inverse ? 1 : 2)};
    for (int64_t k = 0; length % 2 == 0 && k <= length / 2; ++k)
      lines.halves.push_back(Root::of(static_cast<size_t>(2 * k), lines.length));
    return lines;
  }
  const auto axis = axis_from_start(attributes.integer("axis"), x.size());
  return {attributes.boolean("inverse") ? FourierKind::inverse_complex : FourierKind::complex,
          static_cast<size_t>(x[axis]),
          x[axis],
          x[axis],
          count_of(x) / 2 / x[axis],
          count_between(x, axis + 1, x.size() - 1)};
}

std::span<const OpDef> fourier_ops() {
  static const std::vector<OpDef> rows = make_fourier_rows();
  return rows;
}

}  // namespace cairn
