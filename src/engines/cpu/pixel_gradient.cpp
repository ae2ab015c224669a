#include "engines/cpu/pixel_gradient.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engines/cpu/call_step.h"
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

constexpr int64_t kMostTaps = 128;

struct PixelGradient {
  SlideSpec slide;
  int64_t n, h, w, ic, oc, oh, ow, kh, kw, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  int64_t made;  // channels of the result, an even number
  int64_t pitch, row,
      step;  // floats of a channel's every stride_w-th column of x, of a row of them all, of a row of the result
  int64_t rows, bands;                    // rows of the result in a band; bands of an image
  std::array<int64_t, kMostTaps> places;  // of each tap and channel of x

  int64_t taps() const { return kh * kw * ic; }
};

namespace gradient_plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/pixel_gradient_body.h"
#undef CAIRN_FLOATS
}  // namespace gradient_plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace gradient_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/pixel_gradient_body.h"
#undef CAIRN_FLOATS
}  // namespace gradient_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace gradient_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/pixel_gradient_body.h"
#undef CAIRN_FLOATS
}  // namespace gradient_avx512
CAIRN_TARGET_END

int64_t whole(int64_t count, int64_t of) { return ceil_div(count, of) * of; }

Refusal read_pixel_gradient(const Group& group, PixelGradient& p) {
  constexpr int64_t kMostInputs = 4, kMostOutputs = 8, kMostStride = 4, kBandFloats = 6 << 10;
  const Node& node = group.last();
  if (group.nodes.size() != 1 || !is_convolution(node, ConvRole::kernel_gradient)) return "is another operation";
  if (node.attr().integer("groups") != 1) return "has groups";
  for (const Value* value : {node.inputs[0], node.inputs[1], node.result()})
    if (value->type.dtype != kF32) return "takes f32";
  const SlideSpec s = convolution_of(node, node.inputs[0], node.inputs[1], node.result());
  p = {s,
       s.n,
       s.h,
       s.w,
       s.channels,
       last_dim(node.inputs[1]),
       s.oh,
       s.ow,
       s.kh,
       s.kw,
       s.stride_h,
       s.stride_w,
       s.dilation_h,
       s.dilation_w,
       s.pad_top,
       s.pad_left};
  if (s.d * s.kd * s.od * s.stride_d != 1 || s.n * s.oh * s.ow == 0) return "has three dims, or no pixels";
  if (p.ic > kMostInputs || p.oc > kMostOutputs || p.ic * p.oc == 0 || p.taps() > kMostTaps || p.stride_w > kMostStride)
    return "has many channels, taps or strides";
  if (p.pad_left < 0 || p.pad_left > (s.kw - 1) * s.dilation_w) return "has wide padding";
  const int64_t lane = loop_lanes(machine_isa());
  p.made = whole(p.oc, 2), p.step = whole(p.ow, lane);
  // Vectors of products: one a tap and pixel with channels in the lanes, where fewer than kChains wait for each other.
  constexpr int64_t kChains = 8;
  const int64_t usual = p.taps() * p.ow * std::max<int64_t>(1, kChains / (p.kw * p.ic));
  if (4 * (p.taps() * p.made + 2 * lane) * p.step / lane > 3 * usual) return "would save too little";
  const int64_t beyond = (s.kw - 1) * s.dilation_w;
  p.pitch = p.step + beyond / s.stride_w + 1, p.row = p.ic * s.stride_w * p.pitch;
  p.rows = std::clamp<int64_t>(kBandFloats / (p.made * p.step), 1, p.oh), p.bands = ceil_div(p.oh, p.rows);
  size_t next = 0;
  for (int64_t ky = 0; ky < s.kh; ++ky)
    for (int64_t kx = 0; kx < s.kw; ++kx)
      for (int64_t c = 0; c < p.ic; ++c) {
        const int64_t column = kx * s.dilation_w;
        p.places[next++] =
            ky * s.dilation_h * p.row + (c * s.stride_w + column % s.stride_w) * p.pitch + column / s.stride_w;
      }
  return std::nullopt;
}

/// The gradient by its definition: from pixels inside the image alone, where 0 around it would make NaN of infinities.
void sum_inside(const PixelGradient& p, const float* x, const float* dy, float* gradient) {
  std::fill_n(gradient, p.taps() * p.oc, 0.f);
  for (int64_t image = 0; image < p.n; ++image, x += p.h * p.w * p.ic, dy += p.oh * p.ow * p.oc)
    each_product(p.slide, [&](int64_t in, int64_t out, int64_t tap) {
      for (int64_t i = 0; i < p.ic * p.oc; ++i)
        gradient[tap * p.ic * p.oc + i] += x[in * p.ic + i / p.oc] * dy[out * p.oc + i % p.oc];
    });
}

}  // namespace

Refusal refuses_pixel_gradient(const Group& group) {
  PixelGradient p;
  return read_pixel_gradient(group, p);
}

std::unique_ptr<Step> make_pixel_gradient(const Group& group, MakeContext& context) {
  constexpr int64_t kMostParts = 16;  // with sums of their own
  PixelGradient p;
  read_pixel_gradient(group, p);
  const Node& node = group.last();
  const size_t x = index_of(group, node.inputs[0]), dy = index_of(group, node.inputs[1]);
  const int64_t items = p.n * p.bands, parts = std::min(kMostParts, items), threads = std::max(1, context.threads);
  const auto bytes = [](int64_t floats) { return whole_lines(static_cast<size_t>(floats) * sizeof(float)); };
  const int64_t part_floats = p.taps() * p.made * loop_lanes(machine_isa());
  const size_t columns = bytes(((p.rows - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1) * p.row);
  const size_t each = columns + bytes(p.made * p.rows * p.step), sums_size = bytes(parts * part_floats);
  CallOptions options{.workspace = sums_size + each * static_cast<size_t>(threads)};
  options.unread = inputs_but(group, {x, dy});
  const auto add = machine_loop(gradient_plain::add_band, gradient_avx2::add_band, gradient_avx512::add_band);
  const auto sum = machine_loop(gradient_plain::sum_parts, gradient_avx2::sum_parts, gradient_avx512::sum_parts);
  const auto run = [=](const StepArgs& args) {
    auto* const sums = static_cast<float*>(args.workspace);
    const float* const end = input(args, dy) + p.n * p.oh * p.ow * p.oc;
    Executor& executor = executor_for(args, threads);
    executor.run(static_cast<int>(parts), [&](int part, int worker) {
      char* const own = static_cast<char*>(args.workspace) + sums_size + static_cast<size_t>(worker) * each;
      float* const to = sums + part * part_floats;
      std::fill_n(to, part_floats, 0.f);
      const Range range = part_of(items, parts, part);
      for (int64_t i = range.first; i < range.last; ++i) {
        const int64_t image = i / p.bands, first = i % p.bands * p.rows;
        add(p, first, std::min(p.rows, p.oh - first), input(args, x) + image * p.h * p.w * p.ic,
            input(args, dy) + image * p.oh * p.ow * p.oc, end, reinterpret_cast<float*>(own),
            reinterpret_cast<float*>(own + columns), to);
      }
    });
    sum(p, parts, sums, output(args));
    if (!all_finite(p.taps() * p.oc, output(args))) sum_inside(p, input(args, x), input(args, dy), output(args));
  };
  return call(fmt::format("pixel_gradient {}", to_string(machine_isa())), run, std::move(options));
}

}  // namespace cairn
