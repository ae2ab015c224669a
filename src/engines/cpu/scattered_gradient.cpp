#include "engines/cpu/scattered_gradient.h"

#include <algorithm>
#include <cstring>

#include "engines/cpu/call_step.h"
#include "engines/cpu/conv.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/pixel_packing.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/training_loops.h"
#include "support/memory.h"
#include "support/target.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

struct ScatteredGradient {
  SlideSpec slide;
  int64_t n, h, w, ic, oc, oh, ow, kh, kw, stride_h, stride_w, dilation_h, pad_top, pad_left;
  int64_t segment, rows;  // floats of a row of taps, in whole vectors; rows of pixels in a product
  int64_t image_h, image_w,
      pitch;  // of an image with borders, as far as taps reach: rows, floats of a row, floats between rows

  int64_t columns() const { return kh * segment; }
  /// Whether the pixels of a column are a tile, which adds up all their taps before it stores any.
  bool by_columns() const { return stride_h == 1 && kh > 1; }
  bool has_borders() const { return pad_top || pad_left || image_h != h || image_w != w * ic; }
};

namespace scattered_plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/scattered_gradient_body.h"
#undef CAIRN_FLOATS
}  // namespace scattered_plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace scattered_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/scattered_gradient_body.h"
#undef CAIRN_FLOATS
}  // namespace scattered_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace scattered_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/scattered_gradient_body.h"
#undef CAIRN_FLOATS
}  // namespace scattered_avx512
CAIRN_TARGET_END

ConvSpec product_of(const ScatteredGradient& s) {
  ConvSpec product;
  product.w = product.ow = s.rows * s.ow, product.ic = s.oc, product.oc = s.columns();
  return product;
}

/// The convolution of a column of dy, along it alone, that makes all rows of the image as wide as a row of taps.
ConvSpec column_of(const ScatteredGradient& s) {
  ConvSpec column;
  column.h = s.oh, column.w = s.ow, column.ic = s.oc, column.oc = s.kw * s.ic;
  column.oh = s.image_h, column.kh = s.kh, column.dilation_h = s.dilation_h;
  column.pad_top = (s.kh - 1) * s.dilation_h;
  column.y_pixel = column.y_row = s.pitch, column.residual = true;
  return column;
}

Refusal read_scattered_gradient(const Group& group, ScatteredGradient& g) {
  constexpr int64_t kManyImages = 4, kMostImage = 256 << 10, kProductFloats = 24 << 10;
  const auto contraction = as_contraction(group);
  if (!contraction || !is_convolution(*contraction->node, ConvRole::input_gradient)) return "is another operation";
  if (const Epilogue& e = contraction->epilogue; e.residual || e.activation || e.low != kF32)
    return "has an epilogue other than a bias";
  const Node& node = *contraction->node;
  if (node.attr().integer("groups") != 1) return "has groups";
  const Value *dy = node.inputs[0], *kernel = node.inputs[1], *dx = node.result();
  for (const Value* value : {dy, kernel, dx})
    if (value->type.dtype != kF32) return "takes f32";
  const SlideSpec s = convolution_of(node, dx, dy, kernel);
  if (s.d * s.kd * s.od * s.stride_d * s.dilation_w != 1) return "has three dims, or wide windows";
  if (s.n * s.oh * s.ow * s.h * s.w * s.channels == 0) return "has no pixels";
  g = {s,    s.n,  s.h,        s.w,        s.channels,   last_dim(kernel), s.oh,      s.ow,
       s.kh, s.kw, s.stride_h, s.stride_w, s.dilation_h, s.pad_top,        s.pad_left};
  if (g.pad_top < 0 || g.pad_left < 0) return "has negative padding";
  const int64_t lane = loop_lanes(machine_isa());
  g.segment = ceil_div(g.kw * g.ic, lane) * lane;
  // Vectors of products, and here of sums in memory as well.
  constexpr int64_t kAdding = 8;  // products that take as long as to store and add one
  const int64_t usual = s.taps() * g.oc * ceil_div(g.ic, lane), here = g.columns() / lane * (g.oc + kAdding);
  if (s.n < kManyImages ? 4 * here > usual : 5 * here > 4 * usual)
    return "would save too little";  // a worker takes an image
  g.rows = std::clamp<int64_t>(kProductFloats / (g.ow * g.columns()), 1, g.oh);
  while (g.oh % g.rows != 0) --g.rows;
  g.image_h = (g.oh - 1) * g.stride_h + (g.kh - 1) * g.dilation_h + 1;
  g.image_w = ((g.ow - 1) * g.stride_w + g.kw) * g.ic;
  g.pitch = g.by_columns() ? g.image_w : (g.ow - 1) * g.stride_w * g.ic + g.segment;
  if (g.image_h * g.pitch > kMostImage) return "has large images";
  return Conv::refuses(g.by_columns() ? column_of(g) : product_of(g), machine_isa());
}

/// The kernel [taps, ic, oc] as [columns, oc].
void pad_taps(const ScatteredGradient& g, const float* kernel, float* to) {
  const int64_t row = g.kw * g.ic * g.oc, padded = g.segment * g.oc;
  for (int64_t ky = 0; ky < g.kh; ++ky, kernel += row, to += padded)
    std::fill(std::copy_n(kernel, row, to), to + padded, 0.f);
}

/// The image without its borders; 0 where no tap reaches.
void store_image(const ScatteredGradient& g, const float* image, float* dx) {
  const int64_t row = g.w * g.ic, left = g.pad_left * g.ic, inside = std::clamp<int64_t>(g.image_w - left, 0, row);
  for (int64_t h = 0; h < g.h; ++h, dx += row) {
    const bool reached = h + g.pad_top < g.image_h;
    if (reached) std::copy_n(image + (h + g.pad_top) * g.pitch + left, inside, dx);
    std::fill(dx + (reached ? inside : 0), dx + row, 0.f);
  }
}

void add_bias(const ScatteredGradient& g, const float* bias, float* dx) {
  for (int64_t i = 0; bias && i < g.h * g.w; ++i, dx += g.ic)
    for (int64_t c = 0; c < g.ic; ++c) dx[c] += bias[c];
}

/// An image's gradient by its definition: the 0 behind rows of taps would make NaN of infinities.
void sum_taps(const ScatteredGradient& g, const float* dy, const float* kernel, float* dx) {
  std::fill_n(dx, g.h * g.w * g.ic, 0.f);
  each_product(g.slide, [&](int64_t in, int64_t out, int64_t tap) {
    for (int64_t i = 0; i < g.ic * g.oc; ++i)
      dx[in * g.ic + i / g.oc] += kernel[tap * g.ic * g.oc + i] * dy[out * g.oc + i % g.oc];
  });
}

}  // namespace

Refusal refuses_scattered_gradient(const Group& group) {
  ScatteredGradient g;
  return read_scattered_gradient(group, g);
}

namespace {

std::unique_ptr<Step> make_gradient_by_columns(const ScatteredGradient& g, size_t dy, size_t kernel,
                                               std::optional<size_t> bias_at, int threads, CallOptions options) {
  const auto bytes = [](size_t floats) { return whole_lines(floats * sizeof(float)); };
  const Conv column(column_of(g), machine_isa(), 1);
  const size_t packed = bytes(column.packed_size()), bias = bytes(column.bias_size());
  const size_t image_size = g.has_borders() ? bytes(static_cast<size_t>(g.image_h * g.pitch)) : 0;
  options.workspace = packed + bias + static_cast<size_t>(threads) * image_size;
  std::vector<int64_t> taps;  // from the last row of the kernel to the first
  for (int64_t ky = g.kh; ky-- > 0;) taps.push_back(ky * g.kw * g.ic * g.oc);
  const auto run = [=, taps = std::move(taps)](const StepArgs& args) {
    auto* const scratch = static_cast<char*>(args.workspace);
    auto *const weights = reinterpret_cast<float*>(scratch), *const zeros = reinterpret_cast<float*>(scratch + packed);
    for (int panel = 0; panel < column.panels(); ++panel)
      column.pack_taps(panel, input(args, kernel), taps, 1, g.oc, weights);
    std::memset(zeros, 0, bias);
    Executor& executor = executor_for(args, threads);
    executor.run(static_cast<int>(g.n), [&](int i, int worker) {
      float* const dx = output(args) + i * g.h * g.w * g.ic;
      char* const own = scratch + packed + bias + static_cast<size_t>(worker) * image_size;
      float* const image = image_size ? reinterpret_cast<float*>(own) : dx;
      std::memset(image, 0, static_cast<size_t>(g.image_h * g.pitch) * sizeof(float));
      const float* from = input(args, dy) + i * g.oh * g.ow * g.oc;
      for (int64_t at = 0; at < g.ow; ++at, from += g.oc) {
        float* const to = image + at * g.stride_w * g.ic;
        column.run(serial_executor(), from, weights, zeros, to, to);
      }
      if (image_size) store_image(g, image, dx);
      add_bias(g, bias_at ? input(args, *bias_at) : nullptr, dx);
    });
  };
  return call(fmt::format("scattered_gradient by columns, {}", column.describe()), run, std::move(options));
}

}  // namespace

std::unique_ptr<Step> make_scattered_gradient(const Group& group, MakeContext& context) {
  ScatteredGradient g;
  read_scattered_gradient(group, g);
  const Contraction contraction = *as_contraction(group);
  const Node& node = *contraction.node;
  const size_t dy = index_of(group, node.inputs[0]), kernel = index_of(group, node.inputs[1]);
  std::optional<size_t> bias_at;
  if (contraction.epilogue.bias) bias_at = index_of(group, contraction.epilogue.bias);
  const size_t threads = static_cast<size_t>(std::max(1, context.threads));
  CallOptions options;
  options.unread = inputs_but(group, {dy, kernel, bias_at.value_or(dy)});
  if (g.by_columns())
    return make_gradient_by_columns(g, dy, kernel, bias_at, static_cast<int>(threads), std::move(options));
  const Conv product(product_of(g), machine_isa(), 1);
  const auto floats = [](int64_t count) {
    return whole_lines(static_cast<size_t>(count) * sizeof(float)) / sizeof(float);
  };
  const size_t taps = floats(g.columns() * g.oc), packed = floats(static_cast<int64_t>(product.packed_size()));
  const size_t bias = floats(static_cast<int64_t>(product.bias_size())), made = floats(g.rows * g.ow * g.columns());
  const size_t each = made + floats(g.image_h * g.pitch);
  options.workspace = (std::max(taps, bias) + packed + threads * each) * sizeof(float);
  const auto add = machine_loop(scattered_plain::add_pixels, scattered_avx2::add_pixels, scattered_avx512::add_pixels);
  std::string name = fmt::format("scattered_gradient {}", product.describe());
  const auto run = [=](const StepArgs& args) {
    auto* const weights = static_cast<float*>(args.workspace);
    float* const zeros = weights + packed;  // which stand for a bias; before, the kernel with whole rows of taps
    pad_taps(g, input(args, kernel), zeros);
    product.pack(zeros, weights, true);
    std::fill_n(zeros, bias, 0.f);
    float* const scratch = zeros + std::max(taps, bias);
    Executor& executor = executor_for(args, static_cast<int>(threads));
    executor.run(static_cast<int>(g.n), [&](int i, int worker) {
      float *const products = scratch + static_cast<size_t>(worker) * each, *const image = products + made;
      std::memset(image, 0, static_cast<size_t>(g.image_h * g.pitch) * sizeof(float));
      const float* from = input(args, dy) + i * g.oh * g.ow * g.oc;
      for (int64_t first = 0; first < g.oh; first += g.rows, from += g.rows * g.ow * g.oc) {
        product.run(serial_executor(), from, weights, zeros, products, products);
        for (int64_t row = 0; row < g.rows; ++row)
          add(g, products + row * g.ow * g.columns(), image + (first + row) * g.stride_h * g.pitch);
      }
      float* const dx = output(args) + i * g.h * g.w * g.ic;
      store_image(g, image, dx);
      if (!all_finite(g.h * g.w * g.ic, dx))
        sum_taps(g, input(args, dy) + i * g.oh * g.ow * g.oc, input(args, kernel), dx);
      add_bias(g, bias_at ? input(args, *bias_at) : nullptr, dx);
    });
  };
  return call(std::move(name), run, std::move(options));
}

}  // namespace cairn
