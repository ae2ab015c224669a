// Products of bytes and of pairs of bf16, on matrix registers where the processor has them, against naive loops: all tails, strides,
// padding, epilogues, nothing read or written beyond the operands.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <map>
#include <span>

#include "engines/cpu/conv.h"
#include "engines/cpu/integer_operands.h"
#include "engines/cpu_reference.h"
#include "ir/tensor.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

constexpr size_t kPage = 4096;

/// Memory between pages that nobody may touch, at the end of its own pages or at their start.
class Fenced {
 public:
  Fenced(size_t bytes, bool at_end) : whole_((bytes + kPage - 1) / kPage * kPage + 2 * kPage) {
    void* pages = mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(pages, MAP_FAILED);
    pages_ = static_cast<char*>(pages);
    EXPECT_EQ(mprotect(pages_, kPage, PROT_NONE) | mprotect(pages_ + whole_ - kPage, kPage, PROT_NONE), 0);
    data_ = at_end ? pages_ + whole_ - kPage - bytes : pages_ + kPage;
    std::memset(data_, 0xff, bytes);  // NaN in all forms of floats
  }
  ~Fenced() { munmap(pages_, whole_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  template <class T = float>
  T* data() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  size_t whole_;
  char *pages_ = nullptr, *data_ = nullptr;
};

ConvSpec random_conv(Random& random) {
  ConvSpec s;
  s.n = random.between(1, 3);
  s.ic = random.one_of({1, 2, 3, 4, 7, 8, 15, 16, 17, 24, 32, 40});
  s.oc = random.one_of({1, 5, 16, 17, 24, 31, 32, 33, 48, 64, 65, 80});
  s.kh = random.one_of({1, 1, 2, 3, 5}), s.kw = random.one_of({1, 1, 2, 3, 7});
  s.stride_h = random.between(1, 2), s.stride_w = random.between(1, 3);
  s.dilation_h = random.between(1, 2), s.dilation_w = random.between(1, 2);
  const int64_t reach_h = (s.kh - 1) * s.dilation_h + 1, reach_w = (s.kw - 1) * s.dilation_w + 1;
  s.h = reach_h + random.between(0, 9), s.w = reach_w + random.one_of({0, 1, 2, 6, 9, 13, 15, 17, 31, 40});
  s.pad_top = random.between(0, s.kh - 1), s.pad_left = random.between(0, s.kw - 1);
  s.oh = (s.h + s.pad_top + random.between(0, s.kh - 1) - reach_h) / s.stride_h + 1;
  s.ow = (s.w + s.pad_left + random.between(0, s.kw - 1) - reach_w) / s.stride_w + 1;
  if (random.between(0, 2) == 0) {
    s.kd = random.between(1, 3), s.stride_d = random.between(1, 2), s.dilation_d = random.between(1, 2);
    s.d = (s.kd - 1) * s.dilation_d + 1 + random.between(0, 3);
    s.pad_front = random.between(0, s.kd - 1);
    s.od = (s.d + s.pad_front + random.between(0, s.kd - 1) - (s.kd - 1) * s.dilation_d - 1) / s.stride_d + 1;
  }
  if (random.coin()) return s;
  s = {};
  s.w = s.ow = random.one_of({1, 5, 8, 13, 15, 16, 17, 31, 32, 33, 49, 64, 97});
  s.ic = random.one_of({1, 3, 8, 15, 16, 17, 33, 48, 129, 260});
  s.oc = random.one_of({1, 7, 16, 30, 32, 48, 64, 130});
  return s;
}

/// Calls each(tap, pixel of x) for the taps of an output pixel, counted over all images, that are inside the image.
template <class Each>
void for_taps(const ConvSpec& s, int64_t pixel, Each&& each) {
  const int64_t slice = s.oh * s.ow, image = s.od * slice;
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    const int64_t z = pixel % image / slice * s.stride_d + tap / (s.kh * s.kw) * s.dilation_d - s.pad_front;
    const int64_t y = pixel % slice / s.ow * s.stride_h + tap / s.kw % s.kh * s.dilation_h - s.pad_top;
    const int64_t x = pixel % s.ow * s.stride_w + tap % s.kw * s.dilation_w - s.pad_left;
    if (z >= 0 && z < s.d && y >= 0 && y < s.h && x >= 0 && x < s.w)
      each(tap, ((pixel / image * s.d + z) * s.h + y) * s.w + x);
  }
}
int64_t pixels_of(const ConvSpec& s) { return s.n * s.od * s.oh * s.ow; }

IntegerEpilogue random_epilogue(Random& random) {
  using Output = IntegerEpilogue::Output;
  IntegerEpilogue e;
  e.output = static_cast<Output>(random.between(0, 2));
  if (e.output == Output::sums) return e;
  if (random.coin()) e.first_low = 0, e.first_high = random.coin() ? 90.F : IntegerEpilogue::kNone;
  if (random.coin()) e.rounds = true, e.round_low = -100, e.round_high = 27, e.round_scale = 0.75F;
  e.later_bias = e.rounds && random.coin();
  e.residual = static_cast<IntegerEpilogue::Residual>(random.between(0, 3));
  if (e.residual != IntegerEpilogue::Residual::none)
    e.residual_scale = random.coin() ? 1.F : 0.5F, e.residual_shift = random.coin() ? 0.F : -3.F;
  if (random.coin()) e.low = 0;
  if (e.output == Output::floats) return e;
  const bool is_signed = random.coin();
  e.zero_point = static_cast<int32_t>(is_signed ? random.between(-128, 127) : random.between(0, 255));
  if (random.coin()) e.zero_point = 0;
  const auto zero = static_cast<float>(e.zero_point);
  e.low = std::max(e.low, (is_signed ? -128.F : 0.F) - zero), e.high = (is_signed ? 127.F : 255.F) - zero;
  return e;
}

float clipped(float value, float low, float high) { return std::min(std::max(value, low), high); }

/// A product of bytes with all its operands.
struct Bytes {
  Bytes(const ConvSpec& spec, Random& random) : s(spec) {
    for (int64_t i = 0; i < s.n * s.d * s.h * s.w * s.ic * 4; ++i)
      x.push_back(static_cast<uint8_t>(random.between(0, 255)));
    for (int64_t i = 0; i < s.taps() * s.ic * 4 * s.oc; ++i)
      weights.push_back(static_cast<int8_t>(random.between(-128, 127)));
    const float scale = 40 / (127.F * 128 * std::sqrt(static_cast<float>(s.taps() * s.ic * 4)));
    scales = random.floats(s.oc, scale / 2, scale), bias = random.floats(s.oc, -20, 20), later = random.floats(s.oc);
    residual.resize(static_cast<size_t>(pixels_of(s) * s.oc * s.epilogue.residual_bytes()));
    const auto floats = random.floats(pixels_of(s) * s.oc, -50, 50);
    for (char& each : residual) each = static_cast<char>(random.between(-128, 127));
    if (s.epilogue.residual_bytes() == 4) std::memcpy(residual.data(), floats.data(), residual.size());
  }

  float residual_at(size_t i) const {
    if (s.epilogue.residual_bytes() == 4) {
      float value;
      std::memcpy(&value, residual.data() + 4 * i, 4);
      return value;
    }
    const char byte = residual[i];
    return s.epilogue.residual == IntegerEpilogue::Residual::i8 ? static_cast<float>(static_cast<int8_t>(byte))
                                                                : static_cast<float>(static_cast<uint8_t>(byte));
  }

  /// What the epilogue makes of a sum, as bits of an element.
  uint32_t finished(int32_t sum, int64_t channel, size_t at) const {
    const IntegerEpilogue& e = s.epilogue;
    const auto o = static_cast<size_t>(channel);
    if (e.output == IntegerEpilogue::Output::sums) return static_cast<uint32_t>(sum);
    float y = clipped(std::fma(static_cast<float>(sum), scales[o], bias[o]), e.first_low, e.first_high);
    if (e.rounds) y = clipped(std::nearbyint(y), e.round_low, e.round_high) * e.round_scale;
    if (e.later_bias) y += later[o];
    if (e.residual != IntegerEpilogue::Residual::none) {
      y = e.residual_scale != 1 ? std::fma(residual_at(at), e.residual_scale, y) : y + residual_at(at);
      y += e.residual_shift;
    }
    y = clipped(y, e.low, e.high);
    if (e.output == IntegerEpilogue::Output::floats) return __builtin_bit_cast(uint32_t, y + 0.F);
    return static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(y)) + e.zero_point) & 0xff;
  }

  std::vector<uint32_t> expected(const std::map<std::string, int32_t>& starts) const {
    std::vector<uint32_t> all;
    for (int64_t pixel = 0; pixel < pixels_of(s); ++pixel) {
      std::string set(static_cast<size_t>(s.taps()), '0');
      for_taps(s, pixel, [&](int64_t tap, int64_t) { set[static_cast<size_t>(tap)] = '1'; });
      for (int64_t o = 0; o < s.oc; ++o) {
        int32_t sum = starts.at(set) * static_cast<int32_t>(o + 1);
        for_taps(s, pixel, [&](int64_t tap, int64_t at) {
          for (int64_t i = 0; i < s.ic * 4; ++i)
            sum += x[static_cast<size_t>(at * s.ic * 4 + i)] *
                   weights[static_cast<size_t>((tap * s.ic * 4 + i) * s.oc + o)];
        });
        all.push_back(finished(sum, o, all.size()));
      }
    }
    return all;
  }

  std::vector<uint32_t> run(const Conv& conv, const std::map<std::string, int32_t>& starts, Executor& executor,
                            bool at_end) const {
    const Fenced from(x.size(), at_end), packed(conv.packed_size() * 4, at_end),
        parameters(conv.bias_size() * 4, at_end);
    std::memcpy(from.data(), x.data(), x.size());
    const int32_t none = 0;
    const IntegerMatrix matrix{kI8, weights.data(), s.ic * 4, s.oc, s.oc, 1};
    for (int panel = 0; panel < conv.panels(); ++panel) {
      const int64_t first = panel * conv.panel_width();
      pack_integers(Arithmetic::bytes, matrix, s.taps(), first, std::min(conv.panel_width(), s.oc - first),
                    conv.panel_width(), &none, 0, reinterpret_cast<uint32_t*>(conv.start_panel(panel, packed.data())));
    }
    std::vector<int32_t> start_rows;
    for (const std::string& set : conv.tap_sets())
      for (int64_t o = 0; o < s.oc; ++o) start_rows.push_back(starts.at(set) * static_cast<int32_t>(o + 1));
    const Conv::Row rows[] = {{scales.data(), false, 1}, {bias.data(), false, 1}, {later.data(), false, 1}};
    conv.pack_parameters(start_rows.data(), std::span(rows, s.epilogue.later_bias ? 3 : 2), parameters.data());
    const auto count = static_cast<size_t>(pixels_of(s) * s.oc);
    const auto width = static_cast<size_t>(s.epilogue.output_bytes());
    const Fenced added(residual.size(), at_end), to(count * width, at_end);
    std::memcpy(added.data(), residual.data(), residual.size());
    conv.run(executor, from.data(), packed.data(), parameters.data(), added.data(), to.data());
    std::vector<uint32_t> found(count, 0);
    for (size_t i = 0; i < count; ++i) std::memcpy(&found[i], to.data<char>() + i * width, width);
    if (s.epilogue.output == IntegerEpilogue::Output::floats)
      for (uint32_t& each : found) each = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, each) + 0.F);
    return found;
  }

  ConvSpec s;
  std::vector<uint8_t> x;
  std::vector<int8_t> weights;
  std::vector<float> scales, bias, later;
  std::vector<char> residual;
};

std::string text_of(const ConvSpec& s) {
  return fmt::format("x [{}, {}, {}, {}, {}], kernel [{}, {}, {}], {} channels, strides {} {} {}, padding {} {} {}",
                     s.n, s.d, s.h, s.w, s.ic, s.kd, s.kh, s.kw, s.oc, s.stride_d, s.stride_h, s.stride_w, s.pad_front,
                     s.pad_top, s.pad_left);
}

TEST(CpuMatrixRegisters, sums_of_bytes_and_all_that_follows_are_exact) {
  if (!machine_has_dot_products()) GTEST_SKIP() << "hardware: no dot products of integers";
  const auto pool = make_pool(3);
  for (unsigned seed = 0; seed < 150; ++seed) {
    Random random(seed);
    ConvSpec spec = random_conv(random);
    spec.arithmetic = Arithmetic::bytes;
    spec.epilogue = random_epilogue(random);
    const Conv conv(spec, machine_isa(), 1), threaded(spec, machine_isa(), 3);
    std::map<std::string, int32_t> starts;
    const bool padded = random.coin();
    for (const std::string& set : conv.tap_sets())
      starts[set] = padded ? static_cast<int32_t>(random.between(-999, 999)) : 5;
    const Bytes product(spec, random);
    const auto expected = product.expected(starts);
    for (const bool at_end : {true, false}) {
      ASSERT_EQ(product.run(conv, starts, serial_executor(), at_end), expected) << seed << " " << text_of(spec);
      ASSERT_EQ(product.run(threaded, starts, *pool, at_end), expected) << seed << " " << text_of(spec);
    }
  }
}

TEST(CpuMatrixRegisters, sums_of_bf16_are_those_of_floats) {
  if (!machine_has_brain_products()) GTEST_SKIP() << "hardware: no dot products of bf16";
  const auto pool = make_pool(3);
  for (unsigned seed = 0; seed < 150; ++seed) {
    Random random(seed);
    ConvSpec spec = random_conv(random);
    spec.arithmetic = Arithmetic::pairs;
    spec.x_form = spec.weights_form = Form::brains;
    spec.residual = random.coin();
    spec.activation = {static_cast<Activation::Kind>(random.between(0, 2)), -0.5F, 0.75F};
    std::vector<uint16_t> x, weights;
    const float scale = 1 / std::sqrt(static_cast<float>(spec.taps() * spec.ic * 2));
    for (float value : random.floats(spec.n * spec.d * spec.h * spec.w * spec.ic * 2))
      x.push_back(float_to_bfloat(value));
    for (float value : random.floats(spec.taps() * spec.ic * 2 * spec.oc, -scale, scale))
      weights.push_back(float_to_bfloat(value));
    const auto bias = random.floats(spec.oc), residual = random.floats(pixels_of(spec) * spec.oc);
    std::vector<double> expected;
    for (int64_t pixel = 0; pixel < pixels_of(spec); ++pixel)
      for (int64_t o = 0; o < spec.oc; ++o) {
        double sum = bias[static_cast<size_t>(o)];
        for_taps(spec, pixel, [&](int64_t tap, int64_t at) {
          for (int64_t i = 0; i < spec.ic * 2; ++i)
            sum += static_cast<double>(bfloat_to_float(x[static_cast<size_t>(at * spec.ic * 2 + i)])) *
                   bfloat_to_float(weights[static_cast<size_t>((tap * spec.ic * 2 + i) * spec.oc + o)]);
        });
        if (spec.residual) sum += residual[expected.size()];
        if (spec.activation.kind != Activation::Kind::none) {
          const bool clip = spec.activation.kind == Activation::Kind::clip;
          sum = std::max(sum, clip ? -0.5 : 0.);
          if (clip) sum = std::min(sum, 0.75);
        }
        expected.push_back(sum);
      }
    std::vector<float> one;
    for (const bool at_end : {true, false})
      for (const int threads : {1, 3}) {
        const Conv conv(spec, machine_isa(), threads);
        const Fenced from(x.size() * 2, at_end), packed(conv.packed_size() * 4, at_end),
            row(conv.bias_size() * 4, at_end);
        const Fenced added(residual.size() * 4, at_end), to(expected.size() * 4, at_end);
        std::memcpy(from.data(), x.data(), x.size() * 2);
        std::memcpy(added.data(), residual.data(), residual.size() * 4);
        conv.pack(weights.data(), packed.data());
        conv.pack_bias(bias.data(), row.data());
        conv.run(threads == 1 ? serial_executor() : *pool, from.data(), packed.data(), row.data(), added.data(),
                 to.data());
        const std::vector<float> found(to.data(), to.data() + expected.size());
        ASSERT_LT(worst_difference(found, expected, 1), 1e-5) << seed << " " << text_of(spec);
        if (one.empty()) one = found;
        ASSERT_EQ(found, one) << seed << " " << text_of(spec);
      }
  }
}

// Weights that are packed in the run go into memory that holds anything.
TEST(CpuMatrixRegisters, constants_of_bf16_are_multiplied_in_pairs) {
  if (!machine_has_brain_products()) GTEST_SKIP() << "hardware: no dot products of bf16";
  for (const auto& [number, pairs] : {std::pair("1.5", true), {"1.501", false}}) {
    const std::string text = fmt::format(R"(module @m {{ func @main(%x: bf16[1, 5, 5, 4]) -> (%y: f32[1, 5, 5, 2]) {{
      %w = constant {{value = f32[1, 1, 4, 2] ({}, -2.0, 0.25, 3.0, -1.0, 0.5, 7.0, -0.125)}}
      %f = cast %x {{dtype = f32}}
      %y = conv2d %f, %w
      return %y }} }})",
                                         number);
    const auto fast = Model::make(parse(text), {.threads = 1, .optimise = false});
    const auto slow = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
    EXPECT_EQ(kernels_of(*fast).find("in pairs") != std::string::npos, pairs) << kernels_of(*fast);
    std::mt19937_64 random(5);
    const std::vector<Tensor> inputs{random_tensor(fast->inputs()[0].type, random)};
    const auto wrong = difference(slow->run(inputs)[0], fast->run(inputs)[0], Precision::accumulate_f32);
    EXPECT_FALSE(wrong) << *wrong;
  }
}

TEST(CpuMatrixRegisters, odd_channels_are_multiplied_in_pairs_with_zeros) {
  if (!machine_has_brain_products()) GTEST_SKIP() << "hardware: no dot products of bf16";
  struct Case {
    const char *x, *weights;
    int count;  // of weights
    const char* attributes;
  };
  constexpr Case kCases[] = {
      {"2, 13, 19, 3", "7, 7, 3, 5", 735, "padding = same, strides = [2, 2]"},
      {"1, 9, 8, 5", "1, 1, 5, 4", 20, "padding = valid, strides = [2, 3]"},
      {"1, 12, 11, 3", "3, 2, 3, 33", 594, "padding = explicit, pads = [2, 1, 0, 2], dilations = [2, 3]"}};
  std::mt19937_64 random(5);
  for (const Case& each : kCases) {
    std::vector<double> numbers;
    for (int i = 0; i < each.count; ++i) numbers.push_back(std::uniform_int_distribution<int>(-16, 16)(random) / 8.);
    const std::string text = fmt::format(R"(module @m {{ func @main(%x: bf16[{}]) -> (%y: f32[*]) {{
      %w = constant {{value = f32[{}] ({:.3f})}}
      %f = cast %x {{dtype = f32}}
      %y = conv2d %f, %w {{{}}}
      return %y }} }})",
                                         each.x, each.weights, fmt::join(numbers, ", "), each.attributes);
    const auto slow = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
    for (const int threads : {1, 3}) {
      const auto fast = Model::make(parse(text), {.threads = threads, .optimise = false});
      EXPECT_NE(kernels_of(*fast).find("in pairs"), std::string::npos) << kernels_of(*fast);
      const std::vector<Tensor> inputs{random_tensor(fast->inputs()[0].type, random)};
      const auto wrong = difference(slow->run(inputs)[0], fast->run(inputs)[0], Precision::accumulate_f32);
      EXPECT_FALSE(wrong) << each.x << ": " << *wrong;
    }
  }
}

TEST(CpuMatrixRegisters, what_lies_behind_a_panel_of_bf16_adds_nothing) {
  if (!machine_has_brain_products()) GTEST_SKIP() << "hardware: no dot products of bf16";
  for (const int64_t oc : {20, 100}) {
    ConvSpec spec{.w = 40, .ic = 23, .oc = oc, .ow = 40};
    spec.arithmetic = Arithmetic::pairs, spec.packed_in_run = true, spec.plain_weights = true;
    spec.x_form = spec.weights_form = Form::brains;
    const std::vector<uint16_t> x(40 * 46, float_to_bfloat(1)),
        weights(static_cast<size_t>(46 * oc), float_to_bfloat(0.5F));
    const Conv conv(spec, machine_isa(), 2);
    const std::vector<float> bias(conv.bias_size(), 0.F);
    const auto pool = make_pool(2);
    for (const bool transposed : {true, false}) {
      const Fenced packed(conv.scratch_size() * 4, true);
      std::vector<float> y(static_cast<size_t>(40 * oc), -1);
      conv.pack_and_run(*pool, x.data(), weights.data(), transposed, packed.data(), bias.data(), y.data(), y.data());
      EXPECT_EQ(y, std::vector<float>(y.size(), 23.F));
    }
  }
}

}  // namespace
}  // namespace cairn
