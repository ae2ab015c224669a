#include "engines/cpu/pixel_lanes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/narrow.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/tile_step.h"
#include "engines/cpu/vector_loops.h"
#include "support/memory.h"
#include "support/target.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

constexpr int64_t kMostOutputs = 8, kMostPlaces = 64;

struct PixelLanes {
  int64_t n, h, w, ic, oc, oh, ow, kh, kw, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  bool pools = false;      // two by two sums make one result
  bool checks = false;     // the tile computes where the kernel, which is no constant, is not finite
  int64_t made_h, made_w;  // results
  int64_t pitch, row,
      step;  // floats of a channel's every stride_w-th column, of a row of them all, of a channel's sums
  std::array<int64_t, kMostPlaces> places;  // of each column of the window and channel, in a row
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  Form x_form = Form::floats, weights_form = Form::floats, precision = Form::floats;  // as in ConvSpec
  Form result = Form::floats;

  int64_t taps() const { return kh * kw * ic; }
  /// The rows of the image that rows [first, last) of results read.
  std::pair<int64_t, int64_t> read_by(int64_t first, int64_t last) const {
    const int64_t begin = first * (pools ? 2 : 1) * stride_h - pad_top;
    return {std::clamp<int64_t>(begin, 0, h), std::clamp<int64_t>(begin + rows_of(last - first), 0, h)};
  }
  /// Rows of the image, with its border, that so many rows of results read.
  int64_t rows_of(int64_t count) const { return (count * (pools ? 2 : 1) - 1) * stride_h + (kh - 1) * dilation_h + 1; }
};

/// The rows of an image.
struct ImageRows {
  const char* data;
  Form form;
  int64_t row;  // elements

  /// The address of the image as floats, of which those rows are there; `wide` has room for them.
  const float* floats(std::pair<int64_t, int64_t> rows, float* wide) const {
    if (form == Form::floats) return reinterpret_cast<const float*>(data);
    widen(form, (rows.second - rows.first) * row, data + rows.first * row * bytes_of(form), wide);
    return wide - rows.first * row;
  }
};

using ComputePixels = void (*)(const PixelLanes&, int64_t, int64_t, const float*, const float*, const float*, float*,
                               float*, float*);

namespace pixels_plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/pixel_lanes_body.h"
#undef CAIRN_FLOATS
}  // namespace pixels_plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace pixels_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/pixel_lanes_body.h"
#undef CAIRN_FLOATS
}  // namespace pixels_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace pixels_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/pixel_lanes_body.h"
#undef CAIRN_FLOATS
}  // namespace pixels_avx512
CAIRN_TARGET_END

ComputePixels compute_pixels() {
  return machine_loop(pixels_plain::compute_pixel_rows, pixels_avx2::compute_pixel_rows,
                      pixels_avx512::compute_pixel_rows);
}

int64_t rounded_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

/// The largest of two by two pixels that the group's last node takes, or nothing.
const Node* pairing(const Group& group) {
  const Node& last = group.last();
  if (group.nodes.size() < 2 || !last.is("max_pool2d")) return nullptr;
  const SlideSpec s = pooling_of(last);
  const bool pairs = s.kd == 1 && s.kh == 2 && s.kw == 2 && s.stride_h == 2 && s.stride_w == 2 && s.pad_top == 0 &&
                     s.pad_left == 0 && s.dilation_h == 1 && s.dilation_w == 1 && 2 * s.oh <= s.h && 2 * s.ow <= s.w;
  return pairs ? &last : nullptr;
}

std::optional<Contraction> pixel_contraction(const Group& group, const Node* pool) {
  if (!pool) return as_contraction(group);
  Group before = group;
  before.nodes.pop_back();
  before.outputs = {pool->inputs[0]};
  return as_contraction(before);
}

bool is_padded(const SlideSpec& s) {
  return s.pad_top > 0 || s.pad_left > 0 || (s.oh - 1) * s.stride_h + (s.kh - 1) * s.dilation_h - s.pad_top >= s.h ||
         (s.ow - 1) * s.stride_w + (s.kw - 1) * s.dilation_w - s.pad_left >= s.w;
}

bool is_finite(const float* values, int64_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

bool is_finite(const Tensor& kernel) {
  std::vector<float> values(static_cast<size_t>(kernel.count()));
  widen(form_of(kernel.dtype()), kernel.count(), kernel.data(), values.data());
  return is_finite(values.data(), kernel.count());
}

Refusal read_pixel_lanes(const Contraction& contraction, const Node* pool, PixelLanes& p) {
  constexpr int64_t kMostInputs = 4, kMostStride = 4, kLeastSaved = 6;
  const Node& node = *contraction.node;
  if (!is_convolution(node, ConvRole::forward) || node.attr().integer("groups") != 1) return "is another operation";
  if (contraction.epilogue.residual) return "adds a residual";
  const SlideSpec s = convolution_of(node, node.inputs[0], node.result(), node.inputs[1]);
  p = {s.n,        s.h,          s.w,          s.channels, last_dim(node.inputs[1]),
       s.oh,       s.ow,         s.kh,         s.kw,       s.stride_h,
       s.stride_w, s.dilation_h, s.dilation_w, s.pad_top,  s.pad_left};
  p.pools = pool != nullptr;
  p.made_h = pool ? s.oh / 2 : s.oh, p.made_w = pool ? s.ow / 2 : s.ow;
  if (s.d * s.kd * s.od * s.stride_d != 1 || s.n * p.made_h * p.made_w == 0) return "has three dims, or no results";
  if (p.ic > kMostInputs || p.oc > kMostOutputs || p.ic * p.oc == 0)
    return "has more than four channels, or makes more than eight";
  if (s.kw * p.ic > kMostPlaces || s.stride_w > kMostStride || s.pad_left < 0) return "has wide windows or strides";
  const Tensor* kernel = constant_of(node.inputs[1]);
  p.checks = is_padded(s) && !kernel;  // the border is multiplied as well: no 0 times infinity
  if (kernel && is_padded(s) && !is_finite(*kernel)) return "has padding, and a kernel with infinities";
  const int64_t lane = loop_lanes(machine_isa());
  p.pitch = rounded_up(s.ow, lane) + lane + (s.kw - 1) * s.dilation_w / s.stride_w + 1;
  p.row = p.ic * s.stride_w * p.pitch;
  p.step = std::max(rounded_up(s.ow, lane) + lane, 2 * rounded_up(p.made_w, lane));
  for (int64_t kx = 0; kx < s.kw; ++kx)
    for (int64_t c = 0; c < p.ic; ++c) {
      const int64_t column = kx * s.dilation_w;
      p.places[static_cast<size_t>(kx * p.ic + c)] =
          (c * s.stride_w + column % s.stride_w) * p.pitch + column / s.stride_w;
    }
  // Vectors of products and sums: one a tap and pixel with channels in the lanes, and here, where results change their order.
  const int64_t usual = p.taps() * s.ow * ((p.oc + lane - 1) / lane);
  const int64_t here = p.taps() * rounded_up(p.oc, 2) * rounded_up(s.ow, lane) / lane;
  if (usual - here < kLeastSaved * s.ow) return "would save too little";
  const Activation activation = activation_of(contraction.epilogue);
  if (activation.kind == Activation::Kind::relu) p.low = 0;
  if (activation.kind == Activation::Kind::clip) p.low = activation.low, p.high = activation.high;
  return std::nullopt;
}

/// Elements of 16 bits.
Refusal read_pixel_forms(const Group& group, const Contraction& contraction, PixelLanes& p) {
  const Value *x = contraction.node->inputs[0], *weights = contraction.node->inputs[1];
  if (auto reason = not_floats(group)) return reason;
  const NarrowEpilogue narrow = narrow_of(group, contraction.epilogue);
  p.x_form = form_in(group, x), p.weights_form = form_in(group, weights), p.result = narrow.result;
  p.precision = weights_precision(group, weights, p.x_form);
  if (precision_in(group, x) != Form::floats) return "rounds what it does not pack";
  if (p.x_form == Form::brains && machine_has_brain_products()) return "bf16 is multiplied in pairs";
  if (narrow.rounds_sum) return "a sum is rounded before the bias";
  return std::nullopt;
}

Refusal read_pixels(const Group& group, PixelLanes& p) {
  const Node* pool = pairing(group);
  const auto contraction = pixel_contraction(group, pool);
  if (!contraction || contraction->stored) return "is another operation";
  if (auto reason = not_floats(group)) return reason;
  if (auto reason = read_pixel_lanes(*contraction, pool, p)) return reason;
  if (p.checks && refuses_tile(group)) return "has padding, and a kernel that may have infinities";
  return read_pixel_forms(group, *contraction, p);
}

/// [taps, kMostOutputs], from a kernel [taps, oc].
void pack_pixel_weights(const PixelLanes& p, const void* elements, float* to) {
  const auto* from = static_cast<const char*>(elements);
  for (int64_t tap = 0; tap < p.taps(); ++tap, from += p.oc * bytes_of(p.weights_form), to += kMostOutputs) {
    widen(p.weights_form, p.oc, from, to);
    round_to(p.precision, p.oc, to);
    std::fill(to + p.oc, to + kMostOutputs, 0.f);
  }
}

}  // namespace

Refusal refuses_pixel_lanes(const Group& group) {
  PixelLanes p;
  return read_pixels(group, p);
}

std::unique_ptr<Step> make_pixel_lanes(const Group& group, MakeContext& context) {
  constexpr int64_t kRows = 16, kBriefTaps = 16 << 10;
  const Node* pool = pairing(group);
  const Contraction contraction = *pixel_contraction(group, pool);
  PixelLanes p;
  read_pixels(group, p);
  const size_t x = index_of(group, contraction.node->inputs[0]), kernel = index_of(group, contraction.node->inputs[1]);
  const Value* bias = contraction.epilogue.bias;
  const size_t bias_at = bias ? index_of(group, bias) : 0;
  const Form bias_form = bias ? form_in(group, bias) : Form::floats;
  const size_t weights_size = whole_lines(static_cast<size_t>(p.taps() * kMostOutputs) * sizeof(float));
  const Tensor* constant = constant_of(contraction.node->inputs[1]);
  std::shared_ptr<const void> packed;
  CallOptions options;
  if (constant) {
    packed = context.packer.packed(*constant, "pixel_lanes", weights_size,
                                   [&](void* to) { pack_pixel_weights(p, constant->data(), static_cast<float*>(to)); });
    options.unread.push_back(kernel);
  }
  const int64_t threads = std::max(1, context.threads), rows = std::min(kRows, p.made_h);
  const int64_t bands = (p.made_h + rows - 1) / rows;
  const bool brief = p.n * p.oh * p.ow * p.taps() / 16 * p.oc < kBriefTaps;
  const auto bytes = [](int64_t floats) { return whole_lines(static_cast<size_t>(floats) * sizeof(float)); };
  const size_t columns = bytes(p.rows_of(rows) * p.row), sums = bytes(3 * kMostOutputs * p.step);
  const size_t wide = is_narrow(p.x_form) ? bytes(p.rows_of(rows) * p.w * p.ic) : 0;
  const size_t each = columns + sums + wide + (is_narrow(p.result) ? bytes(rows * p.made_w * p.oc) : 0);
  options.workspace = weights_size + each * static_cast<size_t>(threads);
  const std::shared_ptr<const Step> usual = p.checks ? make_tile(group, context) : nullptr;
  if (usual) options.workspace = std::max(options.workspace, usual->workspace());
  const auto run = [=, compute = compute_pixels()](const StepArgs& args) {
    char* const workspace = static_cast<char*>(args.workspace);
    const auto* weights = static_cast<const float*>(packed.get());
    if (!weights) {
      pack_pixel_weights(p, args.inputs[kernel], reinterpret_cast<float*>(workspace));
      weights = reinterpret_cast<const float*>(workspace);
    }
    if (usual && !is_finite(weights, p.taps() * kMostOutputs)) return usual->run(args);
    float start[kMostOutputs] = {};
    if (bias) widen(bias_form, p.oc, args.inputs[bias_at], start);
    Executor& executor = brief ? serial_executor() : executor_for(args, threads);
    executor.run(static_cast<int>(p.n * bands), [&](int chunk, int worker) {
      const int64_t image = chunk / bands, first = chunk % bands * rows, last = std::min(p.made_h, first + rows);
      char* const own = workspace + weights_size + static_cast<size_t>(worker) * each;
      const auto at = [&](size_t place) { return reinterpret_cast<float*>(own + place); };
      const ImageRows from{input<char>(args, x) + image * p.h * p.w * p.ic * bytes_of(p.x_form), p.x_form, p.w * p.ic};
      const int64_t made = p.made_w * p.oc;
      char* const to = output<char>(args) + (image * p.made_h + first) * made * bytes_of(p.result);
      float* const y = is_narrow(p.result) ? at(columns + sums + wide) : reinterpret_cast<float*>(to);
      compute(p, first, last, from.floats(p.read_by(first, last), at(columns + sums)), weights, start, at(0),
              at(columns), y - first * made);
      if (is_narrow(p.result)) narrow(p.result, (last - first) * made, y, to);
    });
  };
  return call(pool ? "pixel_lanes and max_pool" : "pixel_lanes", run, std::move(options));
}

}  // namespace cairn
