#include "engines/cpu/winograd_step.h"

#include <cstring>
#include <utility>

#include "engines/cpu/call_step.h"
#include "engines/cpu/conv_parts.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/step_bias.h"
#include "engines/cpu/tile_step.h"
#include "engines/cpu/winograd.h"
#include "support/memory.h"

namespace cairn {

namespace {

struct WinogradProblem {
  Contraction contraction;
  WinogradSpec spec;
  int64_t results = 0;
  bool gradient = false;  // by the image
};

/// Types of the operands and the result.
std::optional<std::string> read_forms(const Group& group, WinogradProblem& problem) {
  if (auto reason = not_floats(group)) return reason;
  const Node& node = *problem.contraction.node;
  WinogradSpec& spec = problem.spec;
  spec.x_form = form_in(group, node.inputs[0]), spec.kernel_form = form_in(group, node.inputs[1]);
  spec.precision = weights_precision(group, node.inputs[1], spec.x_form);
  spec.narrow = narrow_of(group, problem.contraction.epilogue);
  if (precision_in(group, node.inputs[0]) != Form::floats) return "rounds what it does not pack";
  if (spec.x_form == Form::brains && machine_has_matrix_registers())
    return "matrix registers multiply bf16 by the definition";
  return std::nullopt;
}

std::optional<std::string> read_winograd(const Group& group, WinogradProblem& problem) {
  const auto contraction = as_contraction(group);
  if (!contraction || contraction->stored) return "is no convolution with bias, addition and activation";
  problem.contraction = *contraction;
  const Node& node = *contraction->node;
  problem.gradient = is_convolution(node, ConvRole::input_gradient);
  if (!problem.gradient && !is_convolution(node, ConvRole::forward)) return "is another operation";
  if (node.attr().integer("groups") != 1) return "has groups";
  const Value *x = node.inputs[0], *kernel = node.inputs[1], *y = node.result();
  if (problem.gradient) std::swap(x, y);
  const SlideSpec s = convolution_of(node, x, y, kernel);
  if (s.d * s.od * s.kd != 1 || s.kh != 3 || s.kw != 3) return "kernel is not 3 x 3";
  if (s.stride_h * s.stride_w * s.dilation_h * s.dilation_w != 1) return "has a stride or a dilation";
  WinogradSpec& spec = problem.spec;
  spec = {s.n, s.h, s.w, s.channels, last_dim(kernel), s.oh, s.ow, s.pad_top, s.pad_left};
  if (problem.gradient) {
    std::swap(spec.h, spec.oh), std::swap(spec.w, spec.ow), std::swap(spec.ic, spec.oc);
    spec.pad_top = 2 - spec.pad_top, spec.pad_left = 2 - spec.pad_left;
  }
  if (auto reason = read_forms(group, problem)) return reason;
  spec.residual = contraction->epilogue.residual != nullptr;
  spec.packed_in_run = !constant_of(kernel);
  if (!is_narrow(spec.x_form)) spec.most_results = WinogradSpec::most_results_of(spec.ic);
  spec.activation = activation_of(contraction->epilogue);
  if (spec.n * spec.oh * spec.ow * spec.ic * spec.oc == 0) return "has no elements";
  constexpr double kPairs = 0.5;  // of the time of floats that pairs of bf16 take by the definition
  const bool pairs = spec.x_form == Form::brains && machine_has_brain_products();
  problem.results = Winograd::best_results(spec, machine_isa(), pairs ? kPairs : Winograd::kGain);
  if (problem.results == 0) return "takes longer than the definition, by estimate";
  return problem.gradient ? refuses_input_gradient(group) : refuses_tile(group);  // which make_winograd() may make
}

class WinogradStep final : public Step {
 public:
  WinogradStep(const Group& group, const WinogradProblem& problem, MakeContext& context)
      : winograd_(problem.spec, problem.results, machine_isa(), context.threads), turned_(problem.gradient),
        same_size_(bytes_of(problem.spec.narrow.residual) == bytes_of(problem.spec.narrow.result)),
        workers_(context.threads) {
    static const Tensor zero = Tensor::zeros(kF32, {1});
    const Node& node = *problem.contraction.node;
    const Epilogue& epilogue = problem.contraction.epilogue;
    x_ = index_of(group, node.inputs[0]);
    if (epilogue.residual) residual_ = index_of(group, epilogue.residual);
    bias_.read(group, winograd_, epilogue, context);
    const size_t zeros = winograd_.zeros_size() * sizeof(float);
    zeros_ = context.packer.packed(zero, fmt::format("zeros{}", winograd_.zeros_size()), zeros,
                                   [&](void* to) { std::memset(to, 0, zeros); });
    if (const Tensor* kernel = constant_of(node.inputs[1])) {
      packed_ = context.packer.packed(*kernel, winograd_.layout() + (turned_ ? " turned" : ""), packed_bytes(),
                                      [&](void* to) { pack(serial_executor(), kernel->data(), to); });
      return;
    }
    kernel_ = index_of(group, node.inputs[1]);
    keeps_ = context.stays(source_of(group, node.inputs[1]));
  }

  void run(const StepArgs& args) const override {
    Executor& executor = executor_for(args, workers_);
    auto* scratch = static_cast<char*>(args.workspace);
    const float* bias = bias_.get(args, scratch);
    scratch += bias_.workspace();
    const void* packed = keeps_ ? args.kept : packed_.get();
    if (!packed) {
      pack(executor, args.inputs[kernel_], scratch);
      packed = std::exchange(scratch, scratch + whole_lines(packed_bytes()));
    }
    const void* residual = residual_ == kNone ? nullptr : args.inputs[residual_];
    winograd_.run(executor, args.inputs[x_], static_cast<const float*>(packed), bias,
                  static_cast<const float*>(zeros_.get()), residual, args.outputs[0],
                  reinterpret_cast<float*>(scratch));
  }

  std::string kernel() const override {
    return fmt::format("cpu/winograd {}{}{}", winograd_.describe(), turned_ ? ", of a gradient" : "",
                       packed_  ? ""
                       : keeps_ ? ", packed before the loop"
                                : ", packed in the run");
  }
  size_t workspace() const override {
    return bias_.workspace() + (packed_ || keeps_ ? 0 : whole_lines(packed_bytes())) +
           winograd_.scratch_size() * sizeof(float);
  }
  size_t kept() const override { return keeps_ ? packed_bytes() : 0; }
  void keep(const StepArgs& args) const override { pack(args.executor, args.inputs[kernel_], args.kept); }
  bool reads(size_t input) const override {
    return input == x_ || input == residual_ || input == bias_.input() || input == kernel_;
  }
  std::vector<size_t> in_place() const override {
    const bool alone =
        same_size_ && residual_ != kNone && residual_ != x_ && residual_ != kernel_ && residual_ != bias_.input();
    return alone ? std::vector<size_t>{residual_} : std::vector<size_t>{};
  }

 private:
  static constexpr size_t kNone = StepBias::kNone;
  size_t packed_bytes() const { return winograd_.packed_size() * sizeof(float); }
  void pack(Executor& executor, const void* kernel, void* to) const {
    winograd_.pack(executor, kernel, turned_, static_cast<float*>(to));
  }

  Winograd winograd_;
  bool turned_, same_size_;  // of elements of the addition and the result
  int workers_;
  size_t x_ = 0, kernel_ = kNone, residual_ = kNone;  // kernel_: none where it is a constant
  bool keeps_ = false;                                // the kernel is packed once for all turns of a loop
  StepBias bias_;
  std::shared_ptr<const void> packed_, zeros_;
};

}  // namespace

std::optional<std::string> refuses_winograd(const Group& group) {
  WinogradProblem problem;
  return read_winograd(group, problem);
}

std::unique_ptr<Step> make_winograd(const Group& group, MakeContext& context) {
  WinogradProblem problem;
  const auto refusal = read_winograd(group, problem);
  CHECK(!refusal, "{}", *refusal);
  if (!context.winograd) return problem.gradient ? make_input_gradient(group, context) : make_tile(group, context);
  return std::make_unique<WinogradStep>(group, problem, context);
}

}  // namespace cairn
