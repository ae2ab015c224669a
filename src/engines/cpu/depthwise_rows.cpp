#include "engines/cpu/depthwise_rows.h"

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/row_filter.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/tile_step.h"
#include "engines/cpu/training_loops.h"

namespace cairn {

namespace {

Refusal read_rows(const Group& group, SlideSpec& slide, RowFilter& filter) {
  // Where a pixel's channels fill more than two thirds of the lanes that hold them, the generated kernel is as fast.
  constexpr int64_t kMostUsed = 2;
  const auto contraction = as_contraction(group);
  if (!contraction || contraction->stored) return "is another operation";
  if (auto reason = read_any_depthwise(group, slide)) return reason;
  if (slide.is_narrow() || form_in(group, contraction->node->inputs[1]) != Form::floats) return "has 16 bits";
  if (contraction->epilogue.bias && form_in(group, contraction->epilogue.bias) != Form::floats) return "has 16 bits";
  if (slide.residual) return "adds a residual";
  const auto found = row_filter(slide);
  if (!found || found->stride_h * found->stride_w != 1) return "has strides or three dims";
  filter = *found;
  const int64_t lane = lanes(machine_isa()), used = (filter.channels + lane - 1) / lane * lane;
  if (3 * filter.channels > kMostUsed * used && !Slide::refuses(slide, machine_isa()))
    return "has channels that fill vectors";
  if (filter.ow * filter.channels < 2 * lane) return "has short rows";
  if (slide.activation.kind == Activation::Kind::relu) filter.low = 0;
  if (slide.activation.kind == Activation::Kind::clip)
    filter.low = slide.activation.low, filter.high = slide.activation.high;
  return std::nullopt;
}

/// One image with weights that are not finite, which must not meet the zeros around it.
void filter_inside(const SlideSpec& s, const RowFilter& f, const float* x, const float* kernel, const float* bias,
                   float* y) {
  std::fill_n(y, s.out_pixels() * s.channels, 0.f);
  each_product(s, [&](int64_t in, int64_t out, int64_t tap) {
    for (int64_t c = 0; c < s.channels; ++c)
      y[out * s.channels + c] += x[in * s.in_channels() + c / s.multiplier] * kernel[tap * s.channels + c];
  });
  for (int64_t i = 0; i < s.out_pixels() * s.channels; ++i) {
    if (bias) y[i] += bias[i % s.channels];
    y[i] = y[i] < f.low ? f.low : y[i] > f.high ? f.high : y[i];
  }
}

}  // namespace

Refusal refuses_depthwise_rows(const Group& group) {
  SlideSpec slide;
  RowFilter filter;
  return read_rows(group, slide, filter);
}

std::unique_ptr<Step> make_depthwise_rows(const Group& group, MakeContext& context) {
  const Contraction contraction = *as_contraction(group);
  SlideSpec slide;
  RowFilter filter;
  read_rows(group, slide, filter);
  const size_t x = index_of(group, contraction.node->inputs[0]), kernel = index_of(group, contraction.node->inputs[1]);
  const Value* bias = contraction.epilogue.bias;
  const size_t bias_at = bias ? index_of(group, bias) : 0;
  const int threads = std::max(1, context.threads);
  const auto run = [=](const StepArgs& args) {
    const float *images = input(args, x), *weights = input(args, kernel),
                *start = bias ? input(args, bias_at) : nullptr;
    Executor& executor = executor_for(args, threads);
    if (all_finite(filter.taps() * filter.channels, weights))
      return filter_images(executor, filter, images, weights, start, output(args), args.workspace);
    for_each(executor, slide.n, slide.out_pixels() * filter.channels * filter.taps(), [&](int64_t image) {
      filter_inside(slide, filter, images + image * slide.pixels() * slide.in_channels(), weights, start,
                    output(args) + image * slide.out_pixels() * slide.channels);
    });
  };
  return call("depthwise_rows", run, {.workspace = row_filter_workspace(filter, threads)});
}

}  // namespace cairn
