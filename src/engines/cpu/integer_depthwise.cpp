#include "engines/cpu/integer_depthwise.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/integers.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/window_row.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

constexpr int64_t kMostTaps = WindowRow::kMostTaps;
constexpr int64_t kMostExactTaps = 256;  // times 255 times 255 is less than 2^24
constexpr int64_t kBlock = 64;           // channels

struct Depthwise {
  IntegerContraction contraction;
  SlideSpec slide;

  const Value* operand(size_t i) const { return contraction.node->inputs[i]; }
};

Refusal read_depthwise_integers(const Group& group, Depthwise& problem) {
  const auto contraction = as_integer_contraction(group);
  if (!contraction || !contraction->node->is("conv2d_integer")) return "is no convolution of integers";
  if (contraction->later_bias) return "adds a bias after a rounding";
  problem.contraction = *contraction;
  const Node& node = *contraction->node;
  const Value *x = node.inputs[0], *kernel = node.inputs[1];
  const int64_t channels = last_dim(x);
  if (node.attr().integer("groups") != channels || last_dim(kernel) != channels) return "has not one filter a channel";
  if (!constant_of(kernel) || !constant_of(node.inputs[3])) return "weights are no constants";
  const int64_t zeros = constant_of(node.inputs[3])->count();
  if (count_of(node.inputs[2]->type.shape.sizes()) != 1 || (zeros != 1 && zeros != channels))
    return "zero points are not those of channels";
  problem.slide = slide_of(node, {dim(kernel, 0), dim(kernel, 1)});
  if (problem.slide.taps() > kMostExactTaps) return fmt::format("has {} taps", problem.slide.taps());
  return Slide::refuses(problem.slide, machine_isa());
}

/// Calls run(first pixel of the row in y, where its taps are) for each row of y.
template <class Run>
void for_output_rows(Executor& executor, const SlideSpec& s, Run&& run) {
  for_each(executor, s.n * s.od * s.oh, s.ow * s.channels * s.taps() / 8,
           [&](int64_t row) { run(row * s.ow, WindowRow(s, row / (s.od * s.oh), row / s.oh % s.od, row % s.oh)); });
}

int32_t byte_at(DType dtype, const void* data, int64_t i) {
  return dtype == kI8 ? static_cast<const int8_t*>(data)[i] : static_cast<const uint8_t*>(data)[i];
}

/// The centred weight of a tap and channel.
int32_t weight_of(const Depthwise& problem, int64_t tap, int64_t channel) {
  const Tensor &kernel = *constant_of(problem.operand(1)), &zero = *constant_of(problem.operand(3));
  return byte_at(kernel.dtype(), kernel.data(), tap * problem.slide.channels + channel) -
         byte_at(zero.dtype(), zero.data(), zero.count() == 1 ? 0 : channel);
}

// In floats, which hold all sums of so few products exactly: by the kernels of f32, any instruction set and epilogue.

#define CAIRN_CENTRED(name, T)                                                                             \
  CAIRN_VECTORISED(void, name, (int64_t count, const T* __restrict x, float zero, float* __restrict to)) { \
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(x[i]) - zero;                           \
  }
CAIRN_CENTRED(centre_unsigned, uint8_t)
CAIRN_CENTRED(centre_signed, int8_t)
#undef CAIRN_CENTRED

CAIRN_INLINE float clipped(float x, float low, float high) {
  x = x > low ? x : low;
  return x < high ? x : high;
}

/// To whole numbers below 2^22, by a sum whose last place is one.
CAIRN_INLINE float rounded(float x) { return (x + 12582912.f) - 12582912.f; }

template <class T>
CAIRN_INLINE void add_residual(int64_t count, const void* residual, float scale, float shift, float* __restrict y) {
  const T* from = static_cast<const T*>(residual);
  for (int64_t i = 0; i < count; ++i) y[i] += static_cast<float>(from[i]) * scale + shift;
}

/// y [pixels, channels].
CAIRN_VECTORISED(void, apply_epilogue,
                 (int64_t pixels, int64_t channels, const IntegerEpilogue& given, float factor,
                  const float* __restrict scale, const float* __restrict bias, const void* residual,
                  float* __restrict y)) {
  using Residual = IntegerEpilogue::Residual;
  const IntegerEpilogue e = given;  // which y does not alias
  const int64_t count = pixels * channels;
  for (int64_t pixel = 0; pixel < pixels; ++pixel)
    for (int64_t i = 0, at = pixel * channels; i < channels; ++i, ++at)
      y[at] = clipped((y[at] * scale[i] + bias[i]) * factor, e.first_low, e.first_high);
  for (int64_t i = 0; e.rounds && i < count; ++i)
    y[i] = rounded(clipped(y[i], e.round_low, e.round_high)) * e.round_scale;
  if (e.residual == Residual::floats) add_residual<float>(count, residual, e.residual_scale, e.residual_shift, y);
  if (e.residual == Residual::u8) add_residual<uint8_t>(count, residual, e.residual_scale, e.residual_shift, y);
  if (e.residual == Residual::i8) add_residual<int8_t>(count, residual, e.residual_scale, e.residual_shift, y);
  for (int64_t i = 0; i < count; ++i) y[i] = clipped(y[i], e.low, e.high);
}

CAIRN_VECTORISED(void, store_bytes, (int64_t count, const float* __restrict y, int32_t zero, uint8_t* __restrict to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(static_cast<int32_t>(rounded(y[i])) + zero);
}

/// The same two where nothing is rounded or added before: y [pixels, channels] to bytes.
CAIRN_VECTORISED(void, finish_bytes,
                 (int64_t pixels, int64_t channels, const IntegerEpilogue& given, float factor,
                  const float* __restrict scale, const float* __restrict bias, const float* __restrict y,
                  uint8_t* __restrict to)) {
  const float first_low = given.first_low, first_high = given.first_high, low = given.low, high = given.high;
  const int32_t zero = given.zero_point;
  for (int64_t pixel = 0; pixel < pixels; ++pixel, y += channels, to += channels)
    for (int64_t i = 0; i < channels; ++i) {
      const float sum = clipped((y[i] * scale[i] + bias[i]) * factor, first_low, first_high);
      to[i] = static_cast<uint8_t>(static_cast<int32_t>(rounded(clipped(sum, low, high))) + zero);
    }
}

CAIRN_VECTORISED(void, store_sums, (int64_t count, const float* __restrict y, int32_t* __restrict to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int32_t>(y[i]);
}

struct FloatKernel {
  FloatKernel(const SlideSpec& spec, const IntegerContraction& c)
      : s(spec), slide(spec, machine_isa()), e(c.epilogue), factor(c.factor), no_bias(slide.bias_size()),
        bands(count_bands()) {
    int64_t most = 0;
    for (int64_t i = 0; i < bands; ++i) most = std::max(most, band(i).end - band(i).begin);
    wide_floats = whole(bands == 1 ? of_x() : most * row_of_x());
    made_floats = in_place() ? 0 : whole(bands == 1 ? of_y() : ((s.oh - 1) / bands + 1) * row_of_y());
  }

  SlideSpec s;  // of one image
  Slide slide;
  IntegerEpilogue e;
  float factor;
  std::shared_ptr<const void> weights;
  std::vector<float> no_bias;
  int64_t bands, wide_floats, made_floats;  // parts of an image's rows, and the floats of x and y in one

  /// What a run reads and makes of one image.
  struct Image {
    DType dtype;
    const void* x;
    float zero;
    const float *scale, *bias;
    const char* residual;
    char* y;
  };

  static int64_t whole(int64_t floats) { return (floats + 15) / 16 * 16; }
  int64_t of_x() const { return s.pixels() * s.channels; }
  int64_t of_y() const { return s.out_pixels() * s.channels; }
  int64_t row_of_x() const { return s.w * s.channels; }
  int64_t row_of_y() const { return s.ow * s.channels; }
  bool in_place() const { return e.output == IntegerEpilogue::Output::floats; }

  /// An image's rows of results are made in so many parts, whose floats stay in the second-level cache.
  int64_t count_bands() const {
    constexpr int64_t kFloats = 64 << 10;
    if (!Slide::goes_by_rows(s) || s.d * s.od > 1) return 1;
    const int64_t rows = kFloats / (s.stride_h * row_of_x() + row_of_y());
    return (s.oh - 1) / std::max<int64_t>(1, rows) + 1;
  }
  /// Rows of y, and the rows of x under their windows.
  struct Band {
    int64_t first, last, begin, end;
  };
  Band band(int64_t i) const {
    const int64_t first = s.oh * i / bands, last = s.oh * (i + 1) / bands;
    return {first, last, std::clamp<int64_t>(first * s.stride_h - s.pad_top, 0, s.h),
            std::clamp<int64_t>((last - 1) * s.stride_h - s.pad_top + (s.kh - 1) * s.dilation_h + 1, 0, s.h)};
  }

  static void centre(const Image& image, int64_t first, int64_t count, float* to) {
    if (image.dtype == kU8)
      centre_unsigned(count, static_cast<const uint8_t*>(image.x) + first, image.zero, to);
    else
      centre_signed(count, static_cast<const int8_t*>(image.x) + first, image.zero, to);
  }

  /// The sums of these pixels become their results.
  void finish(const Image& image, int64_t first, int64_t pixels, float* sums) const {
    const int64_t at = first * s.channels, count = pixels * s.channels;
    if (e.output == IntegerEpilogue::Output::sums)
      return store_sums(count, sums, reinterpret_cast<int32_t*>(image.y) + at);
    if (!in_place() && !e.rounds && !image.residual)
      return finish_bytes(pixels, s.channels, e, factor, image.scale, image.bias, sums,
                          reinterpret_cast<uint8_t*>(image.y) + at);
    apply_epilogue(pixels, s.channels, e, factor, image.scale, image.bias,
                   image.residual ? image.residual + at * e.residual_bytes() : nullptr, sums);
    if (!in_place()) store_bytes(count, sums, e.zero_point, reinterpret_cast<uint8_t*>(image.y) + at);
  }

  /// `own` has wide_floats and made_floats for each worker.
  void run(Executor& executor, const Image& image, float* own) const {
    const auto* packed = static_cast<const float*>(weights.get());
    if (bands > 1)
      return executor.run(static_cast<int>(bands), [&](int i, int worker) {
        const auto [first, last, begin, end] = band(i);
        float* const wide = own + worker * (wide_floats + made_floats);
        float* const sums = in_place() ? reinterpret_cast<float*>(image.y) + first * row_of_y() : wide + wide_floats;
        centre(image, begin * row_of_x(), (end - begin) * row_of_x(), wide);
        slide.run_rows(first, last, wide - begin * row_of_x(), packed, no_bias.data(), sums - first * row_of_y());
        finish(image, first * s.ow, (last - first) * s.ow, sums);
      });
    for_ranges(executor, of_x(), 1,
               [&](int64_t first, int64_t last) { centre(image, first, last - first, own + first); });
    float* sums = in_place() ? reinterpret_cast<float*>(image.y) : own + wide_floats;
    slide.run(executor, own, packed, no_bias.data(), nullptr, sums);
    for_ranges(executor, s.out_pixels(), s.channels * 4,
               [&](int64_t first, int64_t last) { finish(image, first, last - first, sums + first * s.channels); });
  }
};

SlideSpec of_one_image(SlideSpec s) {
  s.n = 1;
  return s;
}

std::unique_ptr<Step> make_in_floats(const Group& group, const Depthwise& problem, MakeContext& context) {
  const IntegerContraction& c = problem.contraction;
  const SlideSpec s = of_one_image(problem.slide);
  auto kernel = std::make_shared<FloatKernel>(s, c);
  const Slide& slide = kernel->slide;
  const auto& zeros = *constant_of(problem.operand(3));
  std::string layout = "centred " + slide.layout();
  for (int64_t i = 0; i < zeros.count(); ++i) layout += fmt::format(",{}", byte_at(zeros.dtype(), zeros.data(), i));
  kernel->weights =
      context.packer.packed(*constant_of(problem.operand(1)), layout, slide.packed_size() * 4, [&](void* to) {
        std::vector<float> weights;
        for (int64_t tap = 0; tap < s.taps(); ++tap)
          for (int64_t o = 0; o < s.channels; ++o) weights.push_back(static_cast<float>(weight_of(problem, tap, o)));
        slide.pack(weights.data(), Form::floats, static_cast<float*>(to));
      });
  constexpr size_t kNone = SIZE_MAX;
  const auto place = [&](const Value* value) { return value ? index_of(group, value) : kNone; };
  const size_t x = place(problem.operand(0)), zero = place(problem.operand(2)), scale = place(c.scale),
               bias = place(c.bias), residual = place(c.residual);
  const auto is_row = [](const Value* value) { return value && count_of(value->type.shape.sizes()) > 1; };
  const bool scales = is_row(c.scale), biases = is_row(c.bias);
  const DType dtype = problem.operand(0)->type.dtype;
  const int64_t images = problem.slide.n, rows = 2 * FloatKernel::whole(s.channels);
  const int64_t own = kernel->wide_floats + kernel->made_floats, threads = std::max(1, context.threads);
  const bool at_once = images >= 2 * threads;  // images, else bands of one
  const auto run = [=](const StepArgs& args) {
    const FloatKernel& k = *kernel;
    auto* scratch = static_cast<float*>(args.workspace);
    float *one_scale = scratch, *one_bias = scratch + rows / 2;
    std::fill_n(one_scale, s.channels, scale == kNone ? 1.f : *input(args, scale));
    std::fill_n(one_bias, s.channels, bias == kNone ? 0.f : *input(args, bias));
    const auto offset = static_cast<float>(byte_at(dtype, args.inputs[zero], 0));
    const auto image = [&](int64_t i, Executor& executor, int worker) {
      k.run(executor,
            {dtype, input<char>(args, x) + i * k.of_x(), offset, scales ? input(args, scale) : one_scale,
             biases ? input(args, bias) : one_bias,
             residual == kNone ? nullptr : input<char>(args, residual) + i * k.of_y() * k.e.residual_bytes(),
             output<char>(args) + i * k.of_y() * k.e.output_bytes()},
            scratch + rows + worker * own);
    };
    Executor& executor = executor_for(args, threads);
    if (at_once)
      executor.run(static_cast<int>(images), [&](int i, int worker) { image(i, serial_executor(), worker); });
    else
      for (int64_t i = 0; i < images; ++i) image(i, executor, 0);
  };
  const int64_t workers = at_once || kernel->bands > 1 ? threads : 1;
  CallOptions options{.workspace = static_cast<size_t>(rows + workers * own) * sizeof(float),
                      .unread = {place(problem.operand(1)), place(problem.operand(3))}};
  return call("integer_depthwise floats " + slide.describe(), run, std::move(options));
}

// With dot products of 512 bits: four taps of 64 channels are interleaved to dwords, whose order within 16 channels the packing to
// bytes undoes. Outside the image is the zero point, so that all pixels have the same start value.

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12 sees its own intrinsics' undefined vectors (bug 105593)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define CAIRN_DOTS __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

struct alignas(64) DotBlock {
  int32_t starts[kBlock];
  float scale[kBlock], bias[kBlock];
};

struct DotKernel {
  SlideSpec s;
  IntegerEpilogue e;
  int64_t groups = 0;  // of four taps
  std::vector<DotBlock> blocks;
  std::vector<int8_t> weights;   // [block][group][64 dwords of 4 taps]
  std::vector<uint8_t> outside;  // a row of zero points
};

/// Of the dwords of a block: dword i of vector k is channel 16 (i / 4) + 4 k + i % 4.
int64_t channel_at(int64_t place) { return place % 16 / 4 * 16 + place / 16 * 4 + place % 4; }

namespace wide {
using Ints = __m512i;
using Floats = __m512;
using Mask = __mmask64;
#define CAIRN_MM(name) _mm512_##name
#define CAIRN_SI(name) _mm512_##name##_si512
#include "engines/cpu/integer_depthwise_body.h"
#undef CAIRN_MM
#undef CAIRN_SI
}  // namespace wide

// Half of each vector has the first 32 channels.
namespace half {
using Ints = __m256i;
using Floats = __m256;
using Mask = __mmask32;
#define CAIRN_MM(name) _mm256_##name
#define CAIRN_SI(name) _mm256_##name##_si256
#include "engines/cpu/integer_depthwise_body.h"
#undef CAIRN_MM
#undef CAIRN_SI
}  // namespace half

/// Pixels [first, first + count) of a row of y, for which the same taps are inside.
void run_pixels(const DotKernel& k, const WindowRow& row, const uint8_t* x, int64_t first, int64_t count, uint8_t* y) {
  const int64_t channels = k.s.channels;
  const uint8_t* taps[kMostTaps];
  for (int64_t block = 0; block < std::ssize(k.blocks); ++block) {
    for (int64_t tap = 0; tap < k.groups * 4; ++tap) {
      const int64_t under = tap < k.s.taps() ? row.pixel(tap, first) : -1;
      taps[tap] = under < 0 ? k.outside.data() : x + under * channels + block * kBlock;
    }
    const int64_t rest = std::min(kBlock, channels - block * kBlock);
    const bool clips = k.e.low + static_cast<float>(k.e.zero_point) != 0;
    const auto choose = [&](auto whole, auto part, auto whole_clipped, auto part_clipped) {
      const bool is_whole = rest % (kBlock / 2) == 0;
      return clips ? (is_whole ? whole_clipped : part_clipped) : is_whole ? whole : part;
    };
    const auto run = rest > kBlock / 2 ? choose(wide::run_block<true, false>, wide::run_block<false, false>,
                                                wide::run_block<true, true>, wide::run_block<false, true>)
                                       : choose(half::run_block<true, false>, half::run_block<false, false>,
                                                half::run_block<true, true>, half::run_block<false, true>);
    run(k, block, taps, k.s.stride_w * channels, count, ~uint64_t{0} >> (kBlock - rest),
        y + first * channels + block * kBlock);
  }
}

#undef CAIRN_DOTS
#pragma GCC diagnostic pop

/// The columns whose windows are inside the image, first and end.
std::pair<int64_t, int64_t> inner_columns(const SlideSpec& s) {
  const int64_t left = std::min(s.ow, (s.pad_left + s.stride_w - 1) / s.stride_w);
  const int64_t reach = s.w + s.pad_left - (s.kw - 1) * s.dilation_w;  // windows start below this
  return {left, std::clamp((reach + s.stride_w - 1) / s.stride_w, left, s.ow)};
}

bool takes_dots(const Depthwise& problem) {
  const IntegerContraction& c = problem.contraction;
  const auto [inner, end] = inner_columns(problem.slide);
  if (problem.slide.taps() > kMostTaps || 2 * (end - inner) < problem.slide.ow) return false;
  const auto fixed = [](const Value* value) { return !value || constant_of(value); };
  if (machine_isa() != Isa::avx512 || !machine_has_dot_products() || problem.operand(0)->type.dtype != kU8)
    return false;
  if (!fixed(problem.operand(2)) || !fixed(c.scale) || !fixed(c.bias) || c.residual || c.epilogue.rounds) return false;
  if (c.epilogue.output != IntegerEpilogue::Output::bytes) return false;
  for (int64_t tap = 0; tap < problem.slide.taps(); ++tap)
    for (int64_t o = 0; o < problem.slide.channels; ++o)
      if (const int32_t weight = weight_of(problem, tap, o); weight < -128 || weight > 127) return false;
  return true;
}

std::unique_ptr<Step> make_with_dots(const Group& group, const Depthwise& problem) {
  auto kernel = std::make_shared<DotKernel>();
  const IntegerContraction& c = problem.contraction;
  const SlideSpec& s = kernel->s = problem.slide;
  kernel->e = c.epilogue;
  kernel->groups = (s.taps() + 3) / 4;
  const int64_t blocks = (s.channels + kBlock - 1) / kBlock;
  kernel->blocks.resize(static_cast<size_t>(blocks));
  kernel->weights.resize(static_cast<size_t>(blocks * kernel->groups * 4 * kBlock));
  const int32_t zero = byte_at(kU8, constant_of(problem.operand(2))->data(), 0);
  kernel->outside.assign(static_cast<size_t>(s.ow * s.stride_w * s.channels + kBlock), static_cast<uint8_t>(zero));
  const auto each = [](const Value* value, int64_t o, float fallback) {
    const Tensor* all = value ? constant_of(value) : nullptr;
    return all ? all->values<float>()[all->count() == 1 ? 0 : static_cast<size_t>(o)] : fallback;
  };
  for (int64_t place = 0; place < blocks * kBlock; ++place) {
    const int64_t o = place / kBlock * kBlock + channel_at(place % kBlock);
    if (o >= s.channels) continue;
    DotBlock& block = kernel->blocks[static_cast<size_t>(place / kBlock)];
    block.scale[place % kBlock] = each(c.scale, o, 1) * c.factor;
    block.bias[place % kBlock] = each(c.bias, o, 0) * c.factor;
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      const int32_t weight = weight_of(problem, tap, o);
      block.starts[place % kBlock] -= zero * weight;
      const int64_t at = ((place / kBlock * kernel->groups + tap / 4) * kBlock + place % kBlock) * 4 + tap % 4;
      kernel->weights[static_cast<size_t>(at)] = static_cast<int8_t>(weight);
    }
  }
  const size_t x = index_of(group, problem.operand(0));
  CallOptions options;
  options.unread = inputs_but(group, {x});
  const auto run = [kernel, x](const StepArgs& args) {
    const DotKernel& k = *kernel;
    const SlideSpec& s = k.s;
    const auto [left, inner] = inner_columns(s);  // whose columns run together
    for_output_rows(args.executor, s, [&](int64_t pixel, const WindowRow& row) {
      const auto* from = input<uint8_t>(args, x);
      uint8_t* y = output<uint8_t>(args) + pixel * s.channels;
      for (int64_t column = 0; column < left; ++column) run_pixels(k, row, from, column, 1, y);
      if (inner > left) run_pixels(k, row, from, left, inner - left, y);
      for (int64_t column = inner; column < s.ow; ++column) run_pixels(k, row, from, column, 1, y);
    });
  };
  return call("integer_depthwise dot", run, std::move(options));
}

}  // namespace

Refusal refuses_integer_depthwise(const Group& group) {
  Depthwise problem;
  return read_depthwise_integers(group, problem);
}

std::unique_ptr<Step> make_integer_depthwise(const Group& group, MakeContext& context) {
  Depthwise problem;
  const Refusal refusal = read_depthwise_integers(group, problem);
  CHECK(!refusal, "{}", *refusal);
  return takes_dots(problem) ? make_with_dots(group, problem) : make_in_floats(group, problem, context);
}

}  // namespace cairn
