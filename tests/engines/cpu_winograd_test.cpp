// Convolutions by Winograd's method: near naive loops for all sizes and borders, the same bits at any number of threads, chosen
// only where nobody asks for the definition.
#include "engines/cpu/winograd.h"

#include "engines/cpu/winograd_gradient.h"
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

struct WinogradData {
  std::vector<float> x, kernel, bias, residual;
};

WinogradSpec random_winograd(Random& random) {
  WinogradSpec s;
  s.n = random.between(1, 3);
  s.ic = random.one_of({1, 3, 8, 15, 16, 17, 33, 64});
  s.oc = random.one_of({1, 7, 8, 16, 17, 32, 40, 63, 64, 100});
  s.h = random.between(1, 19), s.w = random.between(1, 23);
  s.pad_top = random.between(0, 2), s.pad_left = random.between(0, 2);
  s.oh = std::max<int64_t>(1, s.h + s.pad_top + random.between(0, 2) - 2);
  s.ow = std::max<int64_t>(1, s.w + s.pad_left + random.between(0, 2) - 2);
  s.residual = random.coin();
  s.activation = {static_cast<Activation::Kind>(random.between(0, 2)), -0.5f, 0.75f};
  return s;
}

WinogradData random_winograd_data(Random& random, const WinogradSpec& s) {
  const float scale = 1 / std::sqrt(static_cast<float>(9 * s.ic));
  WinogradData data{random.floats(s.n * s.h * s.w * s.ic), random.floats(9 * s.ic * s.oc, -scale, scale), {}, {}};
  data.bias = random.coin() ? random.floats(s.oc) : std::vector<float>(static_cast<size_t>(s.oc));
  data.residual = random.floats(s.n * s.oh * s.ow * s.oc);
  return data;
}

std::vector<double> definition(const WinogradSpec& s, const WinogradData& data) {
  std::vector<double> results;
  for (int64_t place = 0; place < s.n * s.oh * s.ow; ++place)
    for (int64_t o = 0; o < s.oc; ++o) {
      double sum = data.bias[static_cast<size_t>(o)];
      for (int64_t tap = 0; tap < 9; ++tap) {
        const int64_t y = place / s.ow % s.oh + tap / 3 - s.pad_top, x = place % s.ow + tap % 3 - s.pad_left;
        if (y < 0 || y >= s.h || x < 0 || x >= s.w) continue;
        const float* from = data.x.data() + ((place / s.ow / s.oh * s.h + y) * s.w + x) * s.ic;
        for (int64_t i = 0; i < s.ic; ++i)
          sum += static_cast<double>(from[i]) * data.kernel[static_cast<size_t>((tap * s.ic + i) * s.oc + o)];
      }
      if (s.residual) sum += data.residual[results.size()];
      const bool clip = s.activation.kind == Activation::Kind::clip;
      if (s.activation.kind != Activation::Kind::none) sum = std::max<double>(sum, clip ? s.activation.low : 0);
      results.push_back(clip ? std::min<double>(sum, s.activation.high) : sum);
    }
  return results;
}

std::vector<float> run_winograd(const WinogradSpec& s, int64_t results, Isa isa, const WinogradData& data,
                                Executor& executor, bool in_place = false) {
  const Winograd winograd(s, results, isa, executor.width());
  std::vector<float> packed(winograd.packed_size()), bias(winograd.bias_size()), zeros(winograd.zeros_size());
  std::vector<float> scratch(winograd.scratch_size() + 16, NAN);
  winograd.pack(executor, data.kernel.data(), false, packed.data());
  std::copy(data.bias.begin(), data.bias.end(), bias.begin());
  Guarded y(s.n * s.oh * s.ow * s.oc);
  if (in_place) std::copy(data.residual.begin(), data.residual.end(), y.data());
  winograd.run(executor, data.x.data(), packed.data(), bias.data(), zeros.data(),
               in_place ? y.data() : data.residual.data(), y.data(), scratch.data());
  EXPECT_TRUE(y.intact());
  return y.values();
}

TEST(CpuWinograd, agrees_with_naive_loops_on_random_shapes) {
  const auto pool2 = make_pool(2), pool5 = make_pool(5);
  for (unsigned seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const WinogradSpec spec = random_winograd(random);
    const WinogradData data = random_winograd_data(random, spec);
    const auto expected = definition(spec, data);
    for (Isa isa : machine_isas())
      for (int64_t results : {2, 3, 4}) {
        const std::vector<float> one = run_winograd(spec, results, isa, data, serial_executor());
        EXPECT_LT(worst_difference(one, expected, 1), 1e-5) << to_string(isa) << " " << results;
        EXPECT_EQ(one, run_winograd(spec, results, isa, data, *pool2));
        EXPECT_EQ(one, run_winograd(spec, results, isa, data, *pool5));
        if (spec.residual) {
          EXPECT_EQ(one, run_winograd(spec, results, isa, data, *pool2, true));
        }
      }
  }
}

TEST(CpuWinograd, sums_of_many_channels_and_many_blocks_round_as_well) {
  const auto pool3 = make_pool(3);
  for (WinogradSpec spec :
       {WinogradSpec{.n = 1, .h = 14, .w = 14, .ic = 520, .oc = 40, .oh = 14, .ow = 14, .pad_top = 1, .pad_left = 1},
        WinogradSpec{.n = 2, .h = 70, .w = 50, .ic = 24, .oc = 24, .oh = 68, .ow = 48}}) {
    Random random(3);
    const WinogradData data = random_winograd_data(random, spec);
    const auto expected = definition(spec, data);
    for (Isa isa : machine_isas())
      for (int64_t results : {2, 3, 4}) {
        const std::vector<float> one = run_winograd(spec, results, isa, data, serial_executor());
        EXPECT_LT(worst_difference(one, expected, 1), 4e-6) << to_string(isa) << " " << results;
        EXPECT_EQ(one, run_winograd(spec, results, isa, data, *pool3));
      }
  }
}

double root_mean_square_off(const std::vector<float>& found, const std::vector<double>& exact) {
  double sum = 0;
  for (size_t i = 0; i < found.size(); ++i) sum += (found[i] - exact[i]) * (found[i] - exact[i]);
  return std::sqrt(sum / static_cast<double>(found.size()));
}

TEST(CpuWinograd, errs_at_most_half_again_as_much_as_one_sum_in_f32) {
  for (auto [channels, results] : {std::pair<int64_t, int64_t>{8, 2}, {24, 3}, {40, 3}, {64, 4}, {96, 4}, {256, 4}}) {
    WinogradSpec spec{.n = 1, .h = 16, .w = 16, .ic = channels, .oc = 16, .oh = 14, .ow = 14};
    Random random(3);
    WinogradData data = random_winograd_data(random, spec);
    data.bias.assign(data.bias.size(), 0);
    std::vector<float> plain;
    for (int64_t place = 0; place < spec.oh * spec.ow; ++place)
      for (int64_t o = 0; o < spec.oc; ++o) {
        float sum = 0;
        for (int64_t i = 0; i < 9 * channels; ++i) {
          const int64_t y = place / spec.ow + i / channels / 3, x = place % spec.ow + i / channels % 3;
          sum = std::fma(data.x[static_cast<size_t>((y * spec.w + x) * channels + i % channels)],
                         data.kernel[static_cast<size_t>(i * spec.oc + o)], sum);
        }
        plain.push_back(sum);
      }
    const auto exact = definition(spec, data);
    for (Isa isa : machine_isas())
      EXPECT_LE(root_mean_square_off(run_winograd(spec, results, isa, data, serial_executor()), exact),
                1.5 * root_mean_square_off(plain, exact))
          << channels << " channels, " << to_string(isa);
  }
}

/// The gradient by the kernel, [9, ic, oc].
std::vector<double> kernel_definition(const WinogradSpec& s, const WinogradData& data) {
  std::vector<double> gradient(static_cast<size_t>(9 * s.ic * s.oc));
  for (int64_t place = 0; place < s.n * s.oh * s.ow; ++place)
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t y = place / s.ow % s.oh + tap / 3 - s.pad_top, x = place % s.ow + tap % 3 - s.pad_left;
      if (y < 0 || y >= s.h || x < 0 || x >= s.w) continue;
      const float* from = data.x.data() + ((place / s.ow / s.oh * s.h + y) * s.w + x) * s.ic;
      const float* dy = data.residual.data() + place * s.oc;
      for (int64_t i = 0; i < s.ic * s.oc; ++i)
        gradient[static_cast<size_t>(tap * s.ic * s.oc + i)] += static_cast<double>(from[i / s.oc]) * dy[i % s.oc];
    }
  return gradient;
}

std::vector<float> run_gradient(const WinogradSpec& s, int64_t results, Isa isa, const WinogradData& data,
                                Executor& executor) {
  const WinogradGradient gradient(s, results, isa, executor.width());
  std::vector<float> scratch(gradient.scratch_size(), NAN);
  Guarded to(9 * s.ic * s.oc);
  gradient.run(executor, data.x.data(), data.residual.data(), to.data(), scratch.data());
  EXPECT_TRUE(to.intact());
  return to.values();
}

TEST(CpuWinograd, gradients_by_the_kernel_agree_with_naive_loops) {
  const auto pool2 = make_pool(2), pool5 = make_pool(5);
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    WinogradSpec spec = random_winograd(random);
    spec.n *= seed % 8 == 0 ? 8 : 1;
    const WinogradData data = random_winograd_data(random, spec);
    const auto expected = kernel_definition(spec, data);
    double largest = 1;
    for (double each : expected) largest = std::max(largest, std::abs(each));
    for (Isa isa : machine_isas())
      for (int64_t results : {2, 3, 4}) {
        const std::vector<float> one = run_gradient(spec, results, isa, data, serial_executor());
        EXPECT_LT(worst_difference(one, expected, 1), 1e-5 * largest) << to_string(isa) << " " << results;
        EXPECT_EQ(one, run_gradient(spec, results, isa, data, *pool2));
        EXPECT_EQ(one, run_gradient(spec, results, isa, data, *pool5));
      }
  }
}

std::vector<uint16_t> rounded(Form form, const std::vector<float>& from) {
  std::vector<uint16_t> to(from.size());
  narrow(form, std::ssize(from), from.data(), to.data());
  return to;
}
std::vector<float> widened(Form form, const std::vector<uint16_t>& from) {
  std::vector<float> to(from.size());
  widen(form, std::ssize(from), from.data(), to.data());
  return to;
}
std::vector<float> after_rounding(Form form, const std::vector<float>& values) {
  return is_narrow(form) ? widened(form, rounded(form, values)) : values;
}

/// What the epilogue of `s` makes of the sums.
std::vector<float> epilogue(const WinogradSpec& s, std::vector<float> sums, const WinogradData& data) {
  const auto round = [&](bool acts) {
    if (acts) sums = after_rounding(s.narrow.result, sums);
  };
  round(s.narrow.rounds_sum);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += data.bias[i % data.bias.size()];
  round(s.residual && s.narrow.rounds_biased);
  for (size_t i = 0; s.residual && i < sums.size(); ++i) sums[i] += data.residual[i];
  for (float& each : sums)
    if (s.activation.kind == Activation::Kind::relu)
      each = std::max(each, 0.f);
    else if (s.activation.kind == Activation::Kind::clip)
      each = std::clamp(each, s.activation.low, s.activation.high);
  round(true);
  return sums;
}

/// Compilers fuse other products with sums in other code, which may then round to another neighbour.
void expect_nearly_all_equal(const std::vector<float>& found, const std::vector<float>& wanted) {
  size_t others = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    others += std::abs(found[i] - wanted[i]) > 1e-6f;
    ASSERT_NEAR(found[i], wanted[i], 0.02f * std::max(1.f, std::abs(wanted[i]))) << i;
  }
  EXPECT_LE(others, found.size() / 50 + 1);
}

TEST(CpuWinograd, elements_of_16_bits_are_widened_on_load_and_rounded_on_store) {
  const auto pool3 = make_pool(3);
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    WinogradSpec spec = random_winograd(random);
    const Form form = random.coin() ? Form::halves : Form::brains;
    WinogradData data = random_winograd_data(random, spec);
    spec.x_form = form, spec.narrow.result = random.coin() ? Form::floats : form;
    spec.narrow.residual = random.coin() ? Form::floats : form;
    if (is_narrow(spec.narrow.result))
      spec.narrow.rounds_sum = random.coin(), spec.narrow.rounds_biased = random.coin();
    (random.coin() ? spec.precision : spec.kernel_form) = form;
    data.x = after_rounding(form, data.x), data.kernel = after_rounding(form, data.kernel);
    data.residual = after_rounding(spec.narrow.residual, data.residual);
    const auto x = rounded(form, data.x), kernel = rounded(form, data.kernel), residual = rounded(form, data.residual);
    WinogradSpec plain = spec;
    plain.x_form = plain.kernel_form = plain.precision = Form::floats;
    plain.residual = false, plain.narrow = {}, plain.activation = {};
    WinogradData sums = data;
    std::fill(sums.bias.begin(), sums.bias.end(), 0.f);
    for (Isa isa : machine_isas())
      for (int64_t results : {2, 3, 4}) {
        const auto wanted = epilogue(spec, run_winograd(plain, results, isa, sums, serial_executor()), data);
        const Winograd winograd(spec, results, isa, 3);
        std::vector<float> packed(winograd.packed_size()), bias(winograd.bias_size()), zeros(winograd.zeros_size());
        std::vector<float> scratch(winograd.scratch_size() + 16, NAN);
        const bool floats = spec.kernel_form == Form::floats;
        winograd.pack(*pool3, floats ? static_cast<const void*>(data.kernel.data()) : kernel.data(), false,
                      packed.data());
        std::copy(data.bias.begin(), data.bias.end(), bias.begin());
        std::vector<float> y(wanted.size());
        std::vector<uint16_t> low(wanted.size());
        const bool is_low = is_narrow(spec.narrow.result);
        winograd.run(*pool3, x.data(), packed.data(), bias.data(), zeros.data(),
                     is_narrow(spec.narrow.residual) ? static_cast<const void*>(residual.data()) : data.residual.data(),
                     is_low ? static_cast<void*>(low.data()) : y.data(), scratch.data());
        expect_nearly_all_equal(is_low ? widened(form, low) : y, wanted);

        WinogradSpec back = spec;
        back.narrow.result = form;
        const auto gradient = [&](const WinogradSpec& s, const void* from, const void* dy) {
          const WinogradGradient made(s, results, isa, 3);
          std::vector<float> space(made.scratch_size(), NAN), to(static_cast<size_t>(9 * s.ic * s.oc));
          made.run(*pool3, from, dy, to.data(), space.data());
          return to;
        };
        const auto found = gradient(back, x.data(), residual.data());
        const auto by_floats = gradient(plain, data.x.data(), widened(form, residual).data());
        float largest = 1;
        for (float each : by_floats) largest = std::max(largest, std::abs(each));
        for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], by_floats[i], 1e-5f * largest) << i;
      }
  }
}

std::string constant_text(Random& random, const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  std::string all;
  for (float number : random.floats(count, -0.1f, 0.1f))
    all += fmt::format("{}{:.6f}", all.empty() ? "" : ", ", number);
  return fmt::format("{} = constant {{value = f32[{}] ({})}} ", name, fmt::join(dims, ", "), all);
}

/// A convolution of 32 channels with bias, an addition and relu.
std::string convolution_text(const std::string& attributes = "padding = same", const std::string& flags = "") {
  Random random(1);
  return fmt::format(
      "module @m {{ {} func @main(%x: f32[2, 28, 28, 32], %r: f32[*]) -> (%y: f32[*]) {{ {}{}%c = conv2d %x, %k {{{}}} "
      "%d = add %c, %b %e = add %d, %r %y = relu %e return %y }} }}",
      flags, constant_text(random, "%k", {3, 3, 32, 32}), constant_text(random, "%b", {32}), attributes);
}

std::string with_residual(std::string text, const std::string& dims) {
  return text.replace(text.find("%r: f32[*]"), 10, "%r: f32[" + dims + "]");
}

TEST(CpuWinograd, is_one_step_with_its_epilogue_near_the_reference) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: needs AVX2";
  std::mt19937_64 random(5);
  for (const auto& [attributes, dims] :
       std::vector<std::pair<std::string, std::string>>{{"padding = same", "2, 28, 28, 32"},
                                                        {"padding = valid", "2, 26, 26, 32"},
                                                        {"padding = explicit, pads = [0, 2, 1, 0]", "2, 28, 27, 32"}}) {
    const std::string text = with_residual(convolution_text(attributes), dims);
    const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
    std::vector<Tensor> inputs;
    for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
    const Tensor wanted = expected->run(inputs)[0];
    for (int threads : {1, 3}) {
      const auto model = Model::make(parse(text), {.threads = threads});
      const std::string kernels = kernels_of(*model);
      EXPECT_TRUE(kernels.starts_with("cpu/winograd F(") && kernels.find("cpu", 1) == kernels.npos) << kernels;
      const Tensor found = model->run(inputs)[0];
      for (size_t i = 0; i < static_cast<size_t>(wanted.count()); ++i)
        ASSERT_NEAR(found.values<float>()[i], wanted.values<float>()[i], 2e-5) << i;
    }
  }
}

TEST(CpuWinograd, is_left_out_where_the_definition_is_asked_for) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: needs AVX2";
  const std::string same = "2, 28, 28, 32", text = with_residual(convolution_text(), same);
  const auto takes = [](const std::string& module, const ModelOptions& options) {
    return kernels_of(*Model::make(parse(module), options)).starts_with("cpu/winograd");
  };
  EXPECT_TRUE(takes(text, {.threads = 1}));
  EXPECT_FALSE(takes(text, {.threads = 1, .deterministic = true}));
  EXPECT_TRUE(takes(text, {.threads = 1, .bind_state = true}));
  EXPECT_FALSE(
      takes(with_residual(convolution_text("padding = same", "metadata deterministic = \"1\""), same), {.threads = 1}));
  EXPECT_FALSE(
      takes(with_residual(convolution_text("padding = same, strides = [2, 2]"), "2, 14, 14, 32"), {.threads = 1}));
  EXPECT_FALSE(takes(with_residual(convolution_text("padding = same, dilations = [2, 2]"), same), {.threads = 1}));
}

TEST(CpuWinograd, takes_kernels_that_change_and_gradients) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: needs AVX2";
  std::mt19937_64 random(5);
  const std::string forward = R"(module @m { func @main(%x: f32[3, 27, 22, 48], %k: f32[3, 3, 48, 40], %b: f32[40])
    -> (%y: f32[*]) { %c = conv2d %x, %k {padding = explicit, pads = [2, 0, 1, 1]} %d = add %c, %b %y = relu %d return %y } })";
  const std::string image =
      R"(module @m { func @main(%dy: f32[3, 27, 22, 40], %k: f32[3, 3, 48, 40], %r: f32[3, 27, 22, 48])
    -> (%y: f32[*]) { %s = constant {value = i64[4] (3, 27, 22, 48)}
    %c = conv2d_input_gradient %dy, %k, %s {padding = explicit, pads = [2, 0, 1, 1]} %y = add %c, %r return %y } })";
  const auto kernel = [](int64_t ic, int64_t oc) {
    return fmt::format(
        R"(module @m {{ func @main(%x: f32[16, 27, 22, {0}], %dy: f32[16, 27, 22, {1}]) -> (%y: f32[*]) {{
      %s = constant {{value = i64[4] (3, 3, {0}, {1})}}
      %y = conv2d_kernel_gradient %x, %dy, %s {{padding = explicit, pads = [2, 0, 1, 1]}} return %y }} }})",
        ic, oc);
  };
  for (const std::string& text : {forward, image, kernel(64, 96)}) {
    SCOPED_TRACE(text);
    const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
    std::vector<Tensor> inputs, first;
    for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
    const Tensor wanted = expected->run(inputs)[0];
    float largest = 0;
    for (float each : wanted.values<float>()) largest = std::max(largest, std::abs(each));
    for (int threads : {1, 3, 5}) {
      const auto model = Model::make(parse(text), {.threads = threads, .bind_state = true});
      const std::string kernels = kernels_of(*model);
      EXPECT_TRUE(kernels.starts_with("cpu/winograd") && kernels.find("cpu", 1) == kernels.npos) << kernels;
      const std::vector<Tensor> found = model->run(inputs);
      for (size_t i = 0; i < static_cast<size_t>(wanted.count()); ++i)
        ASSERT_NEAR(found[0].values<float>()[i], wanted.values<float>()[i], 1e-5 * largest) << i;
      EXPECT_TRUE(threads == 1 || found[0].same_bits(first[0]));
      first = found;
      const auto plain = Model::make(parse(text), {.threads = threads, .bind_state = true, .deterministic = true});
      EXPECT_EQ(kernels_of(*plain).find("winograd"), std::string::npos) << kernels_of(*plain);
    }
  }
}

/// Looks at values, and keeps the names of the kernels.
class Watcher final : public Observer {
 public:
  bool needs_values() const override { return true; }
  void step_ends(const Plan& plan, size_t step, void* const* /*buffers*/) override {
    kernels += plan.steps[step].kernel;
  }
  std::string kernels;
};

TEST(CpuWinograd, is_left_out_of_runs_whose_values_are_looked_at) {
  const auto model = Model::make(parse(with_residual(convolution_text(), "2, 28, 28, 32")), {.threads = 1});
  std::mt19937_64 random(5);
  std::vector<Tensor> inputs;
  for (const Port& port : model->inputs()) inputs.push_back(random_tensor(port.type, random));
  model->run(inputs);  // whose steps the other plan must not take over
  Watcher watcher;
  model->run(inputs, {.observer = &watcher});
  EXPECT_NE(watcher.kernels.find("cpu/tile"), std::string::npos);
  EXPECT_EQ(watcher.kernels.find("winograd"), std::string::npos) << watcher.kernels;
}

TEST(CpuWinograd, spreads_a_nan_over_its_tile_and_not_beyond) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: needs AVX2";
  const auto model = Model::make(parse(with_residual(convolution_text(), "2, 28, 28, 32")), {.threads = 1});
  Tensor x = Tensor::zeros(kF32, {2, 28, 28, 32});
  x.mutable_values<float>()[(9 * 28 + 9) * 32] = NAN;
  const auto y = model->run({x, Tensor::zeros(kF32, {2, 28, 28, 32})});
  for (int64_t i = 0; i < y[0].count(); ++i) {
    const int64_t row = i / 32 / 28, column = i / 32 % 28;
    const float found = y[0].values<float>()[static_cast<size_t>(i)];
    if (std::abs(row - 9) <= 1 && std::abs(column - 9) <= 1) {
      EXPECT_TRUE(std::isnan(found)) << i;
    }
    if (row < 4 || row > 15 || column < 4 || column > 15) {
      EXPECT_FALSE(std::isnan(found)) << i;
    }
  }
}

}  // namespace
}  // namespace cairn
