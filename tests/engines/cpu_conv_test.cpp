// The generated convolution and matrix product of the CPU engine against naive loops: channel tails, strides, dilation,
// uneven padding, batches, bias, residual and activation.
#include "engines/cpu/conv.h"

#include <limits>

#include "engines/cpu_reference.h"

namespace cairn {
namespace {

struct Data {
  std::vector<float> x, kernel, bias, residual;
};

double activated(double value, const Activation& activation) {
  if (activation.kind == Activation::Kind::none || std::isnan(value)) return value;
  const bool clip = activation.kind == Activation::Kind::clip;
  value = std::max<double>(value, clip ? activation.low : 0);
  return clip ? std::min<double>(value, activation.high) : value;
}

double sum_at(const ConvSpec& s, const Data& data, int64_t volume, int64_t pixel, int64_t o) {
  double sum = data.bias.empty() ? 0 : data.bias[static_cast<size_t>(o)];
  const int64_t oz = pixel / (s.oh * s.ow), oy = pixel / s.ow % s.oh, ox = pixel % s.ow;
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    const int64_t z = oz * s.stride_d + tap / (s.kh * s.kw) * s.dilation_d - s.pad_front;
    const int64_t y = oy * s.stride_h + tap / s.kw % s.kh * s.dilation_h - s.pad_top;
    const int64_t x = ox * s.stride_w + tap % s.kw * s.dilation_w - s.pad_left;
    if (z < 0 || z >= s.d || y < 0 || y >= s.h || x < 0 || x >= s.w) continue;
    const float* from = data.x.data() + (((volume * s.d + z) * s.h + y) * s.w + x) * s.ic;
    const float* weights = data.kernel.data() + tap * s.ic * s.oc + o;
    const int64_t step = s.transposed_x ? s.w : 1;
    if (s.transposed_x) from = data.x.data() + x;
    for (int64_t i = 0; i < s.ic; ++i) sum += static_cast<double>(from[i * step]) * weights[i * s.oc];
  }
  return sum;
}

std::vector<double> expected_of(const ConvSpec& s, const Data& data) {
  std::vector<double> expected;
  for (int64_t volume = 0; volume < s.n; ++volume)
    for (int64_t pixel = 0; pixel < s.od * s.oh * s.ow; ++pixel)
      for (int64_t o = 0; o < s.oc; ++o) {
        const double sum = sum_at(s, data, volume, pixel, o);
        expected.push_back(activated(s.residual ? sum + data.residual[expected.size()] : sum, s.activation));
      }
  return expected;
}

std::vector<Isa> isas_and_none() {
  std::vector<Isa> isas = machine_isas();
  isas.push_back(Isa::none);
  return isas;
}

ConvSpec random_spec(Random& random) {
  ConvSpec s;
  s.n = random.between(1, 3);
  s.ic = random.one_of({1, 3, 4, 16, 17, 31, 64});
  s.oc = random.one_of({1, 6, 8, 10, 16, 17, 24, 32, 33, 40, 48, 63, 64, 96, 100});
  s.kh = random.one_of({1, 1, 2, 3, 5}), s.kw = random.one_of({1, 1, 2, 3, 7});
  s.stride_h = random.between(1, 2), s.stride_w = random.between(1, 3);
  s.dilation_h = random.between(1, 2), s.dilation_w = random.between(1, 3);
  const int64_t reach_h = (s.kh - 1) * s.dilation_h + 1, reach_w = (s.kw - 1) * s.dilation_w + 1;
  s.h = reach_h + random.between(0, 8), s.w = reach_w + random.one_of({0, 1, 2, 6, 13, 29});
  s.pad_top = random.between(0, s.kh - 1), s.pad_left = random.between(0, s.kw - 1);
  s.oh = (s.h + s.pad_top + random.between(0, s.kh - 1) - reach_h) / s.stride_h + 1;
  s.ow = (s.w + s.pad_left + random.between(0, s.kw - 1) - reach_w) / s.stride_w + 1;
  if (random.coin()) {
    s.kd = random.between(1, 3), s.stride_d = random.between(1, 2), s.dilation_d = random.between(1, 2);
    s.d = (s.kd - 1) * s.dilation_d + 1 + random.between(0, 3);
    s.pad_front = random.between(0, s.kd - 1);
    s.od = (s.d + s.pad_front + random.between(0, s.kd - 1) - (s.kd - 1) * s.dilation_d - 1) / s.stride_d + 1;
  }
  s.residual = random.coin();
  s.activation = {static_cast<Activation::Kind>(random.between(0, 2)), -0.5f, 0.75f};
  return s;
}

ConvSpec random_product(Random& random) {
  ConvSpec s;
  s.w = s.ow = random.one_of({1, 2, 3, 5, 6, 7, 13, 14, 15, 49, 97});
  s.ic = random.one_of({1, 2, 7, 25, 26, 64, 129, 300, 385, 1030});
  s.oc = random.one_of({1, 7, 10, 16, 30, 48, 64, 72, 128, 130, 1000});
  s.transposed_x = random.coin();
  s.residual = random.coin();
  s.activation = {static_cast<Activation::Kind>(random.between(0, 2)), -0.5f, 0.75f};
  return s;
}

Data random_data(Random& random, const ConvSpec& s) {
  const float scale = 1 / std::sqrt(static_cast<float>(s.taps() * s.ic));
  Data data{random.floats(s.n * s.d * s.h * s.w * s.ic), random.floats(s.taps() * s.ic * s.oc, -scale, scale), {}, {}};
  if (random.coin()) data.bias = random.floats(s.oc);
  data.residual = random.floats(s.n * s.od * s.oh * s.ow * s.oc);
  return data;
}

std::vector<float> run(const ConvSpec& s, Isa isa, const Data& data, Executor& executor) {
  const Conv conv(s, isa, executor.width());
  std::vector<float> packed(conv.packed_size()), bias(conv.bias_size());
  conv.pack(data.kernel.data(), packed.data());
  conv.pack_bias(data.bias.empty() ? nullptr : data.bias.data(), bias.data());
  Guarded y(s.n * s.od * s.oh * s.ow * s.oc);
  conv.run(executor, data.x.data(), packed.data(), bias.data(), data.residual.data(), y.data());
  EXPECT_TRUE(y.intact());
  return y.values();
}

void expect_right(const ConvSpec& spec, Random& random, unsigned seed) {
  static const auto pool2 = make_pool(2), pool5 = make_pool(5);
  const Data data = random_data(random, spec);
  const auto expected = expected_of(spec, data);
  for (Isa isa : isas_and_none()) {
    const std::vector<float> one = run(spec, isa, data, serial_executor());
    EXPECT_LT(worst_difference(one, expected, 1), 1e-5) << to_string(isa) << " seed " << seed;
    EXPECT_EQ(one, run(spec, isa, data, *pool2)) << "2 threads, seed " << seed;
    EXPECT_EQ(one, run(spec, isa, data, *pool5)) << "5 threads, seed " << seed;
  }
}

TEST(CpuConv, agrees_with_naive_loops_on_random_shapes) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Random random(seed);
    expect_right(random_spec(random), random, seed);
  }
}

TEST(CpuConv, multiplies_matrices_of_any_size) {
  for (unsigned seed = 0; seed < 80; ++seed) {
    Random random(1000 + seed);
    expect_right(random_product(random), random, seed);
  }
}

TEST(CpuConv, rounds_long_sums_as_those_of_a_block) {
  // A long run, many short ones, some that not all pixels have, and a product of two matrices.
  const ConvSpec specs[] = {
      {.w = 1030, .ic = 64, .oc = 20, .ow = 6, .kw = 1025},
      {.h = 103, .ic = 96, .oc = 20, .oh = 3, .kh = 101},
      {.h = 9, .w = 9, .ic = 128, .oc = 20, .oh = 7, .ow = 7, .kh = 9, .kw = 9, .pad_top = 3, .pad_left = 3},
      {.w = 7, .ic = 70000, .oc = 20, .ow = 7}};
  for (const ConvSpec& spec : specs) {
    Random random(11);
    Data data = random_data(random, spec);
    for (auto* values : {&data.x, &data.kernel})
      for (float& value : *values) value = std::abs(value);
    data.bias.clear();
    const auto expected = expected_of(spec, data);
    for (Isa isa : isas_and_none()) {
      const std::vector<float> found = run(spec, isa, data, serial_executor());
      double squares = 0;
      for (size_t i = 0; i < found.size(); ++i) squares += std::pow(found[i] / expected[i] - 1, 2);
      EXPECT_LT(std::sqrt(squares / static_cast<double>(found.size())), 3e-7) << to_string(isa) << " " << spec.taps();
    }
  }
}

TEST(CpuConv, adds_onto_the_residual_in_place) {
  for (Isa isa : isas_and_none()) {
    ConvSpec spec{
        .h = 5, .w = 11, .ic = 20, .oc = 40, .oh = 5, .ow = 11, .kh = 3, .kw = 3, .pad_top = 1, .pad_left = 1};
    spec.residual = true;
    Random random(7);
    const Data data = random_data(random, spec);
    const Conv conv(spec, isa, 1);
    std::vector<float> packed(conv.packed_size()), bias(conv.bias_size()), y = data.residual;
    conv.pack(data.kernel.data(), packed.data());
    conv.pack_bias(data.bias.empty() ? nullptr : data.bias.data(), bias.data());
    conv.run(serial_executor(), data.x.data(), packed.data(), bias.data(), y.data(), y.data());
    EXPECT_EQ(y, run(spec, isa, data, serial_executor()));
  }
}

TEST(CpuConv, packs_a_transposed_matrix) {
  for (Isa isa : isas_and_none()) {
    Random random(3);
    const ConvSpec spec{.w = 9, .ic = 33, .oc = 50, .ow = 9};
    Data data = random_data(random, spec);
    std::vector<float> transposed(data.kernel.size());
    for (size_t i = 0; i < 33; ++i)
      for (size_t o = 0; o < 50; ++o) transposed[o * 33 + i] = data.kernel[i * 50 + o];
    const Conv conv(spec, isa, 1);
    std::vector<float> a(conv.packed_size()), b(conv.packed_size());
    conv.pack(data.kernel.data(), a.data());
    conv.pack(transposed.data(), b.data(), true);
    EXPECT_EQ(a, b);
  }
}

TEST(CpuConv, keeps_nan_through_the_activation) {
  for (Isa isa : isas_and_none())
    for (auto kind : {Activation::Kind::none, Activation::Kind::relu, Activation::Kind::clip}) {
      ConvSpec spec{.w = 3, .ic = 2, .oc = 19, .ow = 3};
      spec.activation = {kind, 0, 6};
      Data data{std::vector<float>(6, 1), std::vector<float>(2 * 19, 1), {}, {}};
      data.x[2] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_EQ(worst_difference(run(spec, isa, data, serial_executor()), expected_of(spec, data), 1), 0);
    }
}

TEST(CpuConv, refuses_in_words) {
  EXPECT_EQ(Conv::refuses({.arithmetic = Arithmetic::bytes}, Isa::none), "needs a processor with AVX2 and FMA");
  EXPECT_TRUE(Conv::refuses({.ic = int64_t{1} << 40}, Isa::avx2).has_value());
}

}  // namespace
}  // namespace cairn
