// TensorFlow's Fourier transforms, parts of complex numbers, and features of sound.
#include <cmath>

#include "frontends/reshape.h"
#include "frontends/tensorflow/complex.h"

namespace cairn::tensorflow {
namespace {

Value* number(OpContext& c, int64_t value) { return c.b.constant(Tensor::scalar_i64(value)); }

// How many of the last dims the op transforms.
int64_t axes_of(const OpContext& c) { return c.node().op.ends_with("2D") ? 2 : c.node().op.ends_with("3D") ? 3 : 1; }

void fft(OpContext& c) {
  c.expect_inputs(1);
  if (!is_complex(c.in[0]))
    fail(ErrorKind::invalid_model, "", "takes complex numbers, found {}", to_string(c.in[0]->type));
  const bool inverse = c.node().op.find("IFFT") != std::string_view::npos;
  Value* pairs = pairs_of(c, c.in[0]);
  for (int64_t axis = -2; axis >= -1 - axes_of(c); --axis)
    pairs = c.b.add("dft", {pairs}, {{"axis", axis}, {"inverse", inverse}});
  c.out = {from_pairs(c, pairs)};
}

/// x cut, or filled with zeros, to `length` (a vector of one number) elements along the axis.
Value* fitted(OpContext& c, Value* x, size_t axis, Value* length) {
  const size_t rank = x->type.shape.rank();
  const Dim size = x->type.shape.dims[axis];
  if (const Tensor* told = constant_of(length);
      told && size.known() && told->count() == 1 && told->as_i64()[0] == size.size)
    return x;
  std::vector<Value*> begins(rank, c.b.ints({0})), ends(rank, c.b.ints({kToTheEnd})), pads(2 * rank, c.b.ints({0}));
  ends[axis] = length;
  const Var missing = folded(by_number(Var(c.b, length) - Var(c.b, dim_of(x, axis, c.b)), "maximum", 0));
  pads[2 * axis + 1] = missing.value;
  Value* part = c.b.add("slice", {x, folded(joined(begins, c.b), c.b), folded(joined(ends, c.b), c.b)});
  Value* table = folded(c.b.add("reshape", {folded(joined(pads, c.b), c.b), c.b.ints({-1, 2})}), c.b);
  return c.b.add("pad", {part, table});
}

/// Operand 1 is the lengths of the transformed dims.
Value* length_of(OpContext& c, int64_t axis) {
  Value* length = folded(part_of(cast_to(c.in[1], kI64, c.b), axis, axis + 1, c.b), c.b);
  const Tensor* told = constant_of(length);
  if (told != nullptr && (told->count() != 1 || told->as_i64()[0] < 0))
    fail(ErrorKind::invalid_model, "", "the length of transformed dim {} is missing or negative", axis);
  return length;
}
Value* as_scalar(OpContext& c, Value* vector) { return folded(c.b.add("reshape", {vector, c.b.ints({})}), c.b); }

void real_fft(OpContext& c) {
  c.expect_inputs(2);
  const int64_t axes = axes_of(c);
  Value* x = c.in[0];
  const auto rank = static_cast<int64_t>(c.rank(0));
  if (rank < axes) fail(ErrorKind::invalid_model, "", "transforms {} dims of {}", axes, rank);
  for (int64_t i = 0; i + 1 < axes; ++i) x = fitted(c, x, static_cast<size_t>(rank - axes + i), length_of(c, i));
  Value* pairs = c.b.add("real_dft", {x, as_scalar(c, length_of(c, axes - 1))});
  for (int64_t axis = rank - 2; axis >= rank - axes; --axis) pairs = c.b.add("dft", {pairs}, {{"axis", axis}});
  c.out = {from_pairs(c, pairs)};
}

void inverse_real_fft(OpContext& c) {
  c.expect_inputs(2);
  if (!is_complex(c.in[0]))
    fail(ErrorKind::invalid_model, "", "takes complex numbers, found {}", to_string(c.in[0]->type));
  const int64_t axes = axes_of(c);
  const auto rank = static_cast<int64_t>(c.rank(0));
  if (rank < axes) fail(ErrorKind::invalid_model, "", "transforms {} dims of {}", axes, rank);
  Value* pairs = pairs_of(c, c.in[0]);
  for (int64_t i = 0; i + 1 < axes; ++i) {
    const int64_t axis = rank - axes + i;
    pairs = fitted(c, pairs, static_cast<size_t>(axis), length_of(c, i));
    pairs = c.b.add("dft", {pairs}, {{"axis", axis}, {"inverse", true}});
  }
  c.out = {c.b.add("inverse_real_dft", {pairs, as_scalar(c, length_of(c, axes - 1))})};
}

void make_complex(OpContext& c) {
  c.expect_inputs(2);
  if (c.in[0]->type.dtype != kF32 && c.in[0]->type.dtype != kF64)
    c.refuse("parts of {} are not supported", to_string(c.in[0]->type.dtype));
  c.out = {joined_parts(c, {Var(c.b, c.in[0]), Var(c.b, c.in[1])})};
}

void real_part(OpContext& c) {
  c.expect_inputs(1);
  c.out = {parts_of(c, c.in[0]).re.value};
}
void imaginary_part(OpContext& c) {
  c.expect_inputs(1);
  c.out = {parts_of(c, c.in[0]).im.value};
}
void angle(OpContext& c) {
  c.expect_inputs(1);
  const Parts z = parts_of(c, c.in[0]);
  c.out = {z.im.apply("atan2", {z.re}).value};
}
void complex_abs(OpContext& c) {
  c.expect_inputs(1);
  c.out = {magnitude(parts_of(c, c.in[0])).value};
}
Value* conjugate(OpContext& c, Value* z) {
  if (!is_complex(z)) return z;
  const Parts parts = parts_of(c, z);
  return joined_parts(c, {parts.re, parts.im.apply("neg")});
}
void conj(OpContext& c) {
  c.expect_inputs(1);
  c.out = {conjugate(c, c.in[0])};
}
void conjugate_transpose(OpContext& c) {
  c.expect_inputs(2);
  c.out = {transposed(conjugate(c, c.in[0]), c.constant_integers(1, "the permutation"), c.b)};
}

void bitcast(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("bitcast", c.in, {{"dtype", c.dtype("type")}})};
}

/// Magnitudes of the Fourier transforms of overlapping parts of [samples, channels] under a Hann window.
void audio_spectrogram(OpContext& c) {
  c.expect_inputs(1);
  const int64_t window = c.integer("window_size"), stride = c.integer("stride");
  if (c.rank(0) != 2) fail(ErrorKind::invalid_model, "", "the sound has {} dims, expected 2", c.rank(0));
  if (window < 2 || window > (1 << 20) || stride < 1)
    fail(ErrorKind::invalid_model, "", "window_size is {}, stride {}", window, stride);
  int64_t length = 1;
  while (length < window) length *= 2;
  std::vector<double> hann, offsets;
  for (int64_t i = 0; i < window; ++i) {
    hann.push_back(0.5 - 0.5 * std::cos(2 * M_PI * static_cast<double>(i) / static_cast<double>(window)));
    offsets.push_back(static_cast<double>(i));
  }
  Value* sound = transposed(c.in[0], {1, 0}, c.b);
  const Var samples(c.b, scalar_dim(sound, 1, c.b));
  const Var frames =
      folded(by_number(by_number(samples + double(stride - window), "maximum", 0), "floor_div", double(stride)));
  const Var begins = Var(c.b, expand_dims(counted(frames.value, c.b), {1}, c.b)) * double(stride);
  const Var at =
      folded(begins + Var(c.b, cast_to(c.b.constant(Tensor::of<double>(kF64, {window}, offsets)), kI64, c.b)));
  Value* parts = c.b.add("gather", {sound, at.value}, {{"axis", int64_t{1}}});
  Value* weights = cast_to(c.b.constant(Tensor::of<double>(kF64, {window}, hann)), kF32, c.b);
  Value* pairs = c.b.add("real_dft", {c.b.add("mul", {parts, weights}), number(c, length)});
  const Var power(c.b, c.b.add("reduce_sum", {c.b.add("square", {pairs})}, {{"axes", std::vector<int64_t>{-1}}}));
  c.out = {(c.boolean("magnitude_squared", false) ? power : power.apply("sqrt")).value};
}

double mel(double frequency) { return 1127 * std::log1p(frequency / 700); }

/// Weights [bins, channels] of overlapping triangles, evenly spaced in mel between the limits. Bin 0 has weight 0.
std::vector<double> mel_triangles(OpContext& c, int64_t bins, int64_t channels, double rate) {
  const double lower = c.real("lower_frequency_limit", 20), upper = c.real("upper_frequency_limit", 4000);
  const double spacing = (mel(upper) - mel(lower)) / static_cast<double>(channels + 1);
  const double width = 0.5 * rate / static_cast<double>(bins - 1);  // of a bin
  if (!(lower > 0 && upper > lower && rate > 0))
    fail(ErrorKind::invalid_model, "", "the frequency limits are {} and {}", lower, upper);
  std::vector<double> weights(static_cast<size_t>(bins * channels), 0);
  const auto first = static_cast<int64_t>(1.5 + lower / width), last = static_cast<int64_t>(upper / width);
  for (int64_t bin = first; bin <= std::min(last, bins - 1); ++bin) {
    const double place =
        (mel(static_cast<double>(bin) * width) - mel(lower)) / spacing;  // triangle k has its top at k + 1
    const auto channel = static_cast<int64_t>(std::ceil(place)) - 2;     // whose right side this is; -1: of none
    const double right = std::ceil(place) - place;
    if (channel >= 0 && channel < channels) weights[static_cast<size_t>(bin * channels + channel)] += right;
    if (channel + 1 >= 0 && channel + 1 < channels)
      weights[static_cast<size_t>(bin * channels + channel + 1)] += 1 - right;
  }
  return weights;
}

/// The cosine transform of the logarithms of magnitudes under mel triangles; the spectrogram is of squared magnitudes.
void mfcc(OpContext& c) {
  c.expect_inputs(2);
  const Tensor rate = c.constant(1, "the sample rate");
  if (rate.count() != 1 || !rate.dtype().is_integer())
    fail(ErrorKind::invalid_model, "", "the sample rate must be one integer");
  const int64_t channels = c.integer("filterbank_channel_count", 40),
                coefficients = c.integer("dct_coefficient_count", 13);
  if (c.rank(0) != 3) fail(ErrorKind::invalid_model, "", "the spectrogram has {} dims, expected 3", c.rank(0));
  const Dim bins = c.in[0]->type.shape.dims[2];
  if (!bins.known()) c.refuse("the number of frequencies is not known");
  if (channels < 1 || coefficients < 1 || bins.size < 2 || !element_count({bins.size, channels}) ||
      *element_count({bins.size, channels}) > (1 << 22) || coefficients > channels)
    fail(ErrorKind::invalid_model, "", "makes {} coefficients from {} channels of {} bins", coefficients, channels,
         bins.size);
  std::vector<double> cosines(static_cast<size_t>(channels * coefficients));
  for (int64_t i = 0; i < channels; ++i)
    for (int64_t k = 0; k < coefficients; ++k)
      cosines[static_cast<size_t>(i * coefficients + k)] =
          std::sqrt(2.0 / static_cast<double>(channels)) *
          std::cos(static_cast<double>(k) * M_PI / static_cast<double>(channels) * (static_cast<double>(i) + 0.5));
  auto matrix = [&](int64_t rows, int64_t columns, const std::vector<double>& numbers) {
    return cast_to(c.b.constant(Tensor::of<double>(kF64, {rows, columns}, numbers)), kF32, c.b);
  };
  const auto triangles = mel_triangles(c, bins.size, channels, static_cast<double>(rate.as_i64()[0]));
  const Var energies(c.b, c.b.add("matmul", {c.b.add("sqrt", {c.in[0]}), matrix(bins.size, channels, triangles)}));
  c.out = {c.b.add(
      "matmul", {by_number(energies, "maximum", 1e-12).apply("log").value, matrix(channels, coefficients, cosines)})};
}

constexpr Row kSignalRows[] = {
    {"Angle", angle},
    {"AudioSpectrogram", audio_spectrogram},
    {"BatchFFT", fft},
    {"BatchFFT2D", fft},
    {"BatchFFT3D", fft},
    {"BatchIFFT", fft},
    {"BatchIFFT2D", fft},
    {"BatchIFFT3D", fft},
    {"Bitcast", bitcast},
    {"Complex", make_complex},
    {"ComplexAbs", complex_abs},
    {"Conj", conj},
    {"ConjugateTranspose", conjugate_transpose},
    {"FFT", fft},
    {"FFT2D", fft},
    {"FFT3D", fft},
    {"IFFT", fft},
    {"IFFT2D", fft},
    {"IFFT3D", fft},
    {"IRFFT", inverse_real_fft},
    {"IRFFT2D", inverse_real_fft},
    {"IRFFT3D", inverse_real_fft},
    {"Imag", imaginary_part},
    {"Mfcc", mfcc},
    {"RFFT", real_fft},
    {"RFFT2D", real_fft},
    {"RFFT3D", real_fft},
    {"Real", real_part},
};

}  // namespace

std::span<const Row> signal_rows() { return kSignalRows; }

}  // namespace cairn::tensorflow
