#include "engines/cpu/few_channels.h"

#include <fmt/format.h>

#include <limits>

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/narrow.h"
#include "engines/cpu/slides.h"
#include "support/memory.h"
#include "support/target.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

/// Each row of the image times the kernel's columns, one for each tap and output channel, gives what its pixels add to the
/// results around them.
struct FewChannels {
  int64_t n, h, w, ic, oc, oh, ow, kh, kw, dilation_h, dilation_w, pad_top, pad_left;
  int64_t columns, padded, step;  // of the kernel, whole vectors of them, floats between columns of products
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  Form x_form = Form::floats, weights_form = Form::floats, precision = Form::floats;  // as in ConvSpec
  NarrowEpilogue narrow;

  bool has_narrow_result() const { return is_narrow(narrow.result); }
  int64_t row() const { return w * ic; }  // elements of x
};

/// Memory of one worker.
struct FewScratch {
  float *products, *sums, *wide, *made;  // a row of x widened, and results before they are rounded
};

using ComputeRows = void (*)(const FewChannels&, int64_t, int64_t, const char*, const float*, const float*,
                             const FewScratch&, char*);

namespace few_plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/few_channels_body.h"
#undef CAIRN_FLOATS
}  // namespace few_plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace few_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/few_channels_body.h"
#undef CAIRN_FLOATS
}  // namespace few_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace few_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/few_channels_body.h"
#undef CAIRN_FLOATS
}  // namespace few_avx512
CAIRN_TARGET_END

ComputeRows compute_few_rows() {
  return machine_loop(few_plain::compute_rows, few_avx2::compute_rows, few_avx512::compute_rows);
}

Refusal read_few_channels(const Contraction& contraction, FewChannels& few) {
  constexpr int64_t kMostChannels = 4, kLeastInputs = 8, kMostInputs = 512, kLeastWidth = 16, kMostColumns = 256;
  const Node& node = *contraction.node;
  if (!is_convolution(node, ConvRole::forward) || node.attr().integer("groups") != 1) return "is another operation";
  if (contraction.epilogue.residual) return "adds a residual";
  const SlideSpec s = convolution_of(node, node.inputs[0], node.result(), node.inputs[1]);
  few = {s.n,          s.h,          s.w,       s.channels, last_dim(node.inputs[1]), s.oh, s.ow, s.kh, s.kw,
         s.dilation_h, s.dilation_w, s.pad_top, s.pad_left};
  few.columns = s.taps() * few.oc;
  const int64_t lane = lanes(machine_isa());
  few.padded = (few.columns + 2 * lane - 1) / (2 * lane) * 2 * lane;
  few.step = s.w + lane;
  if (few.oc > kMostChannels || few.oc == 0 || few.n == 0) return "has more than four output channels, or none";
  if (s.d * s.kd * s.od * s.stride_d * s.stride_h * s.stride_w != 1) return "has a stride or three dims";
  if (few.ic < kLeastInputs || few.ic > kMostInputs || few.w < kLeastWidth || few.columns > kMostColumns)
    return "is too small, or too large";
  if (2 * few.padded >= s.taps() * lane) return "has few taps";
  const Activation activation = activation_of(contraction.epilogue);
  if (activation.kind == Activation::Kind::relu) few.low = 0;
  if (activation.kind == Activation::Kind::clip) few.low = activation.low, few.high = activation.high;
  return std::nullopt;
}

/// Elements of 16 bits.
Refusal read_few_forms(const Group& group, const Contraction& contraction, FewChannels& few) {
  const Value *x = contraction.node->inputs[0], *weights = contraction.node->inputs[1];
  if (auto reason = not_floats(group)) return reason;
  few.x_form = form_in(group, x), few.weights_form = form_in(group, weights);
  few.precision = weights_precision(group, weights, few.x_form), few.narrow = narrow_of(group, contraction.epilogue);
  if (precision_in(group, x) != Form::floats) return "rounds what it does not pack";
  if (few.x_form == Form::brains && machine_has_matrix_registers()) return "matrix registers multiply bf16";
  return std::nullopt;
}

Refusal read_few(const Group& group, FewChannels& few) {
  const auto contraction = as_contraction(group);
  if (!contraction || contraction->stored) return "is another operation";
  if (auto reason = read_few_channels(*contraction, few)) return reason;
  return read_few_forms(group, *contraction, few);
}

/// [ic, padded], from a kernel [taps, ic, oc].
void pack_columns(const FewChannels& few, const void* elements, float* to) {
  std::vector<float> floats(static_cast<size_t>(few.columns * few.ic));
  widen(few.weights_form, std::ssize(floats), elements, floats.data());
  round_to(few.precision, std::ssize(floats), floats.data());
  const float* kernel = floats.data();
  std::fill_n(to, few.ic * few.padded, 0.f);
  for (int64_t tap = 0; tap < few.kh * few.kw; ++tap)
    for (int64_t i = 0; i < few.ic; ++i)
      for (int64_t c = 0; c < few.oc; ++c) to[i * few.padded + tap * few.oc + c] = *kernel++;
}

}  // namespace

Refusal refuses_few_channels(const Group& group) {
  FewChannels few;
  return read_few(group, few);
}

std::unique_ptr<Step> make_few_channels(const Group& group, MakeContext& context) {
  constexpr int64_t kMostChannels = 4;
  const Contraction contraction = *as_contraction(group);
  FewChannels few;
  read_few(group, few);
  const size_t x = index_of(group, contraction.node->inputs[0]), kernel = index_of(group, contraction.node->inputs[1]);
  const Value* bias = contraction.epilogue.bias;
  const size_t bias_at = bias ? index_of(group, bias) : 0;
  const Form bias_form = bias ? form_in(group, bias) : Form::floats;
  const int64_t threads = std::max(1, context.threads);
  const int64_t rows = std::clamp<int64_t>(few.oh / (4 * threads), 4, 32), bands = (few.oh + rows - 1) / rows;
  const auto bytes = [](int64_t floats) { return whole_lines(static_cast<size_t>(floats) * sizeof(float)); };
  const size_t packed = bytes(few.ic * few.padded), products = bytes(few.columns * few.step);
  const Tensor* constant = constant_of(contraction.node->inputs[1]);
  std::shared_ptr<const void> weights_kept;
  CallOptions options;
  if (constant) {
    weights_kept = context.packer.packed(
        *constant, fmt::format("few_channels {}x{} of {}", few.ic, few.padded, to_string(few.precision)), packed,
        [&](void* to) { pack_columns(few, constant->data(), static_cast<float*>(to)); });
    options.unread.push_back(kernel);
  }
  const size_t sums = bytes(few.oc * rows * few.ow), wide = is_narrow(few.x_form) ? bytes(few.row()) : 0;
  const size_t each = products + sums + wide + (few.has_narrow_result() ? sums : 0);
  const auto run = [=, compute = compute_few_rows()](const StepArgs& args) {
    char* const workspace = static_cast<char*>(args.workspace);
    const auto* weights = static_cast<const float*>(weights_kept.get());
    if (!weights) {
      pack_columns(few, args.inputs[kernel], reinterpret_cast<float*>(workspace));
      weights = reinterpret_cast<const float*>(workspace);
    }
    float start[kMostChannels] = {};
    if (bias) widen(bias_form, few.oc, args.inputs[bias_at], start);
    args.executor.run(static_cast<int>(few.n * bands), [&](int chunk, int worker) {
      const int64_t image = chunk / bands, first = chunk % bands * rows;
      char* const own = workspace + packed + static_cast<size_t>(worker) * each;
      const auto at = [&](size_t place) { return reinterpret_cast<float*>(own + place); };
      const FewScratch scratch{at(0), at(products), at(products + sums), at(products + sums + wide)};
      compute(few, first, std::min(few.oh, first + rows),
              input<char>(args, x) + image * few.h * few.row() * bytes_of(few.x_form), weights, bias ? start : nullptr,
              scratch, output<char>(args) + image * few.oh * few.ow * few.oc * bytes_of(few.narrow.result));
    });
  };
  options.workspace = packed + each * static_cast<size_t>(threads);
  return call("few_channels", run, std::move(options));
}

}  // namespace cairn
