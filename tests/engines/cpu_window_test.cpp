// Depthwise convolution and pooling of the CPU engine against naive loops: tails, strides, dilation, uneven padding.
#include "engines/cpu/window.h"

#include <limits>

#include "engines/cpu_reference.h"

namespace cairn {
namespace {

double activated(double value, const Activation& activation) {
  if (activation.kind == Activation::Kind::none || std::isnan(value)) return value;
  const bool clip = activation.kind == Activation::Kind::clip;
  value = std::max<double>(value, clip ? activation.low : 0);
  return clip ? std::min<double>(value, activation.high) : value;
}

struct Data {
  std::vector<float> x, kernel, bias, residual;
};

double expected_at(const SlideSpec& s, const Data& data, int64_t volume, int64_t pixel, int64_t c) {
  double sum = s.work == WindowWork::multiply_add && !data.bias.empty() ? data.bias[static_cast<size_t>(c)] : 0;
  double most = -std::numeric_limits<double>::infinity();
  int64_t inside = 0, padded = 0;
  const int64_t oz = pixel / (s.oh * s.ow), oy = pixel / s.ow % s.oh, ox = pixel % s.ow;
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    const int64_t z = oz * s.stride_d + tap / (s.kh * s.kw) * s.dilation_d - s.pad_front;
    const int64_t y = oy * s.stride_h + tap / s.kw % s.kh * s.dilation_h - s.pad_top;
    const int64_t x = ox * s.stride_w + tap % s.kw * s.dilation_w - s.pad_left;
    if (z < s.d + s.pad_back && y < s.h + s.pad_bottom && x < s.w + s.pad_right) ++padded;
    if (z < 0 || z >= s.d || y < 0 || y >= s.h || x < 0 || x >= s.w) continue;
    ++inside;
    const double value =
        data.x[static_cast<size_t>((((volume * s.d + z) * s.h + y) * s.w + x) * s.in_channels() + c / s.multiplier)];
    sum += s.work == WindowWork::multiply_add ? value * data.kernel[static_cast<size_t>(tap * s.channels + c)] : value;
    most = std::isnan(value) || value > most ? value : most;
  }
  if (s.work == WindowWork::maximum) return most;
  if (s.work == WindowWork::mean) return sum / static_cast<double>(s.count_padding ? padded : inside);
  const auto at = static_cast<size_t>((volume * s.out_pixels() + pixel) * s.channels + c);
  return activated(sum + (s.residual ? data.residual[at] : 0), s.activation);
}

std::vector<double> expected_of(const SlideSpec& s, const Data& data) {
  std::vector<double> expected;
  for (int64_t image = 0; image < s.n; ++image)
    for (int64_t pixel = 0; pixel < s.out_pixels(); ++pixel)
      for (int64_t c = 0; c < s.channels; ++c) expected.push_back(expected_at(s, data, image, pixel, c));
  return expected;
}

SlideSpec random_spec(Random& random, WindowWork work) {
  SlideSpec s;
  s.work = work;
  s.n = random.between(1, 3);
  s.channels = random.one_of({1, 3, 7, 8, 15, 16, 17, 24, 32, 40, 67});
  s.kh = random.between(1, 5), s.kw = random.between(1, 5);
  s.stride_h = random.between(1, 3), s.stride_w = random.between(1, 3);
  const bool plain = work == WindowWork::mean;
  s.dilation_h = plain ? 1 : random.between(1, 2), s.dilation_w = plain ? 1 : random.between(1, 2);
  const int64_t reach_h = (s.kh - 1) * s.dilation_h + 1, reach_w = (s.kw - 1) * s.dilation_w + 1;
  s.h = reach_h + random.between(0, 12), s.w = reach_w + random.one_of({0, 1, 3, 9, 17, 30});
  s.pad_top = random.between(0, s.kh - 1), s.pad_left = random.between(0, s.kw - 1);
  s.pad_bottom = random.between(0, s.kh - 1), s.pad_right = random.between(0, s.kw - 1);
  s.oh = (s.h + s.pad_top + s.pad_bottom - reach_h) / s.stride_h + 1;
  s.ow = (s.w + s.pad_left + s.pad_right - reach_w) / s.stride_w + 1;
  if (random.coin()) {
    s.kd = random.between(1, 3), s.stride_d = random.between(1, 2), s.dilation_d = plain ? 1 : random.between(1, 2);
    s.d = (s.kd - 1) * s.dilation_d + 1 + random.between(0, 3);
    s.pad_front = random.between(0, s.kd - 1), s.pad_back = random.between(0, s.kd - 1);
    s.od = (s.d + s.pad_front + s.pad_back - (s.kd - 1) * s.dilation_d - 1) / s.stride_d + 1;
  }
  s.count_padding = plain && random.coin();
  if (work != WindowWork::multiply_add) return s;
  s.multiplier = random.one_of({1, 1, 2, 4, 8}), s.channels *= s.multiplier;
  s.residual = random.coin();
  const auto kind = static_cast<Activation::Kind>(random.between(0, 2));
  s.activation = {kind, -0.25f, 0.75f};
  return s;
}

Data random_data(Random& random, const SlideSpec& s) {
  Data data{random.floats(s.n * s.pixels() * s.in_channels()), random.floats(s.taps() * s.channels), {}, {}};
  if (random.coin()) data.bias = random.floats(s.channels);
  data.residual = random.floats(s.n * s.out_pixels() * s.channels);
  return data;
}

std::vector<Isa> isas_and_none() {
  std::vector<Isa> isas = machine_isas();
  isas.push_back(Isa::none);
  return isas;
}

std::vector<float> run(const SlideSpec& s, Isa isa, const Data& data, Executor& executor) {
  const Slide slide(s, isa);
  std::vector<float> packed(slide.packed_size()), bias(slide.bias_size());
  slide.pack(data.kernel.data(), Form::floats, packed.data());
  slide.pack_bias(data.bias.empty() ? nullptr : data.bias.data(), bias.data());
  Guarded y(s.n * s.out_pixels() * s.channels);
  slide.run(executor, data.x.data(), packed.data(), bias.data(), s.residual ? data.residual.data() : nullptr, y.data());
  EXPECT_TRUE(y.intact());
  return y.values();
}

TEST(CpuWindow, agrees_with_naive_loops_on_random_shapes) {
  const auto pool2 = make_pool(2), pool5 = make_pool(5);
  for (Isa isa : isas_and_none())
    for (WindowWork work : {WindowWork::multiply_add, WindowWork::maximum, WindowWork::mean})
      for (unsigned seed = 0; seed < 60; ++seed) {
        Random random(seed);
        const SlideSpec spec = random_spec(random, work);
        const Data data = random_data(random, spec);
        const std::vector<float> one = run(spec, isa, data, serial_executor());
        EXPECT_LT(worst_difference(one, expected_of(spec, data), 1), 2e-6) << to_string(isa) << " seed " << seed;
        EXPECT_EQ(one, run(spec, isa, data, *pool2)) << "2 threads, seed " << seed;
        EXPECT_EQ(one, run(spec, isa, data, *pool5)) << "5 threads, seed " << seed;
      }
}

TEST(CpuWindow, answers_nan_where_a_tap_is_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Isa isa : isas_and_none())
    for (WindowWork work : {WindowWork::multiply_add, WindowWork::maximum, WindowWork::mean}) {
      SlideSpec spec{.work = work, .h = 4, .w = 4, .channels = 19, .oh = 3, .ow = 3, .kh = 2, .kw = 2};
      if (work == WindowWork::multiply_add) spec.activation = {Activation::Kind::clip, 0, 6};
      Data data{std::vector<float>(4 * 4 * 19, 1), std::vector<float>(4 * 19, 1), {}, {}};
      data.x[(1 * 4 + 1) * 19 + 18] = data.x[2] = nan;
      const auto expected = expected_of(spec, data);
      EXPECT_EQ(worst_difference(run(spec, isa, data, serial_executor()), expected, 1), 0);
      EXPECT_TRUE(std::isnan(expected[18]) && std::isnan(expected[2]) && !std::isnan(expected[1]));
    }
}

// Small integers, whose sums are exact.
std::vector<float> random_integers(Random& random, int64_t count) {
  std::vector<float> values = random.floats(count, -12, 12);
  for (float& value : values) value = std::nearbyint(value);
  return values;
}

std::vector<char> stored_as(Form form, const std::vector<float>& values) {
  std::vector<char> stored(values.size() * static_cast<size_t>(bytes_of(form)));
  narrow(form, std::ssize(values), values.data(), stored.data());
  return stored;
}
std::vector<float> loaded_from(Form form, const void* stored, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  widen(form, count, stored, values.data());
  return values;
}
float as_rounded(Form form, float value) { return loaded_from(form, stored_as(form, {value}).data(), 1)[0]; }

TEST(CpuWindow, rounds_elements_of_16_bits_where_each_operation_does) {
  for (Isa isa : machine_isas())
    for (WindowWork work : {WindowWork::multiply_add, WindowWork::maximum, WindowWork::mean})
      for (unsigned seed = 0; seed < 60; ++seed) {
        Random random(seed);
        SlideSpec spec = random_spec(random, work);
        spec.channels /= std::exchange(spec.multiplier, 1);
        const auto form = [&] { return random.coin() ? Form::brains : random.coin() ? Form::halves : Form::floats; };
        spec.x_form = form(), spec.narrow.result = form();
        const bool rounds = is_narrow(spec.narrow.result) && work == WindowWork::multiply_add;
        spec.narrow.rounds_sum = rounds && random.coin();
        spec.narrow.residual = spec.residual ? form() : Form::floats;
        spec.narrow.rounds_biased = rounds && spec.residual && random.coin();
        Data data{random_integers(random, spec.n * spec.pixels() * spec.channels),
                  random_integers(random, spec.taps() * spec.channels),
                  random_integers(random, spec.channels),
                  {}};
        const int64_t count = spec.n * spec.out_pixels() * spec.channels;
        data.residual = random_integers(random, count);
        const Slide slide(spec, isa);
        std::vector<float> packed(slide.packed_size()), bias(slide.bias_size());
        slide.pack(stored_as(spec.x_form, data.kernel).data(), spec.x_form, packed.data());
        slide.pack_bias(data.bias.data(), bias.data());
        const std::vector<char> x = stored_as(spec.x_form, data.x),
                                residual = stored_as(spec.narrow.residual, data.residual);
        Guarded y((count * bytes_of(spec.narrow.result) + 3) / 4);
        slide.run(serial_executor(), x.data(), packed.data(), bias.data(), spec.residual ? residual.data() : nullptr,
                  y.data());
        EXPECT_TRUE(y.intact());
        SlideSpec sums = spec;
        sums.residual = false, sums.activation = {};
        const std::vector<float> biases = std::exchange(data.bias, {});
        const auto expected = expected_of(sums, data);
        const auto found = loaded_from(spec.narrow.result, y.data(), count);
        for (int64_t i = 0; i < count; ++i) {
          const auto at = static_cast<size_t>(i);
          auto value = static_cast<float>(expected[at]);
          const auto round_if = [&](bool rounds) { value = rounds ? as_rounded(spec.narrow.result, value) : value; };
          round_if(spec.narrow.rounds_sum);
          if (work == WindowWork::multiply_add) value += biases[at % static_cast<size_t>(spec.channels)];
          round_if(spec.narrow.rounds_biased);
          if (spec.residual) value += data.residual[at];
          value = as_rounded(spec.narrow.result, static_cast<float>(activated(value, spec.activation)));
          ASSERT_EQ(found[at], value) << to_string(isa) << " seed " << seed << " element " << i;
        }
      }
}

TEST(CpuWindow, refuses_in_words) {
  EXPECT_EQ(Slide::refuses({.h = 100, .w = 100, .oh = 1, .ow = 1, .kh = 100, .kw = 100}, Isa::avx2),
            "a window of 10000 taps would be too much code");
}

}  // namespace
}  // namespace cairn
