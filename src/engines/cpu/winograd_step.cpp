#include "engines/cpu/winograd_step.h"

#include <algorithm>

#include "engines/cpu/groups.h"
#include "engines/cpu/tile_step.h"
#include "engines/cpu/winograd.h"
#include "support/memory.h"

namespace cairn {

namespace {

struct WinogradProblem {
  Contraction contraction;
  WinogradSpec spec;
  int64_t results = 0;
};

std::optional<std::string> read_winograd(const Group& group, WinogradProblem& problem) {
  const auto contraction = as_contraction(group);
  if (!contraction || contraction->stored || !is_convolution(*contraction->node, ConvRole::forward))
    return "is no convolution with bias, addition and activation";
  problem.contraction = *contraction;
  const Node& node = *contraction->node;
  const Value* bias = contraction->epilogue.bias;
  const auto is_constant = [](const Value* value) {
    const Tensor* constant = constant_of(value);
    return constant && constant->dtype() == kF32;
  };
  if (!is_constant(node.inputs[1]) || (bias && !is_constant(bias))) return "weights or bias are no constants of f32";
  if (auto reason = not_f32(group)) return reason;
  if (node.attr().integer("groups") != 1) return "has groups";
  const SlideSpec s = convolution_of(node, node.inputs[0], node.result(), node.inputs[1]);
  if (s.d * s.od * s.kd != 1 || s.kh != 3 || s.kw != 3) return "kernel is not 3 x 3";
  if (s.stride_h * s.stride_w * s.dilation_h * s.dilation_w != 1) return "has a stride or a dilation";
  WinogradSpec& spec = problem.spec;
  spec = {s.n,
          s.h,
          s.w,
          s.channels,
          last_dim(node.inputs[1]),
          s.oh,
          s.ow,
          s.pad_top,
          s.pad_left,
          contraction->epilogue.residual != nullptr,
          activation_of(contraction->epilogue)};
  if (spec.n * spec.oh * spec.ow * spec.ic * spec.oc == 0) return "has no elements";
  problem.results = Winograd::best_results(spec, machine_isa());
  if (problem.results == 0) return "takes longer than the definition, by estimate";
  return std::nullopt;
}

class WinogradStep final : public Step {
 public:
  WinogradStep(const Group& group, const WinogradProblem& problem, MakeContext& context)
      : winograd_(problem.spec, problem.results, machine_isa(), context.threads), workers_(context.threads) {
    static const Tensor zero = Tensor::zeros(kF32, {1});
    const Node& node = *problem.contraction.node;
    const Epilogue& epilogue = problem.contraction.epilogue;
    x_ = index_of(group, node.inputs[0]);
    if (epilogue.residual) residual_ = index_of(group, epilogue.residual);
    const Tensor &kernel = *constant_of(node.inputs[1]), *bias = epilogue.bias ? constant_of(epilogue.bias) : nullptr;
    packed_ = context.packer.packed(kernel, winograd_.layout(), winograd_.packed_size() * sizeof(float), [&](void* to) {
      winograd_.pack(kernel.values<float>().data(), static_cast<float*>(to));
    });
    const auto rows = [&](const Tensor* from, size_t count) {
      const std::string layout = fmt::format("{}{}", from ? "bias" : "zeros", count);
      return context.packer.packed(from ? *from : zero, layout, count * sizeof(float), [&](void* to) {
        std::fill_n(static_cast<float*>(to), count, 0.f);
        if (from) std::copy_n(from->values<float>().data(), from->count(), static_cast<float*>(to));
      });
    };
    bias_ = rows(bias, winograd_.bias_size());
    zeros_ = rows(nullptr, winograd_.zeros_size());
  }

  void run(const StepArgs& args) const override {
    Executor& executor =
        args.executor.width() > workers_ ? serial_executor() : args.executor;  // scratch is for so many
    const void* residual = residual_ == kNone ? nullptr : args.inputs[residual_];
    winograd_.run(executor, static_cast<const float*>(args.inputs[x_]), static_cast<const float*>(packed_.get()),
                  static_cast<const float*>(bias_.get()), static_cast<const float*>(zeros_.get()),
                  static_cast<const float*>(residual), static_cast<float*>(args.outputs[0]),
                  static_cast<float*>(args.workspace));
  }

  std::string kernel() const override { return "cpu/winograd " + winograd_.describe(); }
  size_t workspace() const override { return winograd_.scratch_size() * sizeof(float); }
  bool reads(size_t input) const override { return input == x_ || input == residual_; }
  std::vector<size_t> in_place() const override {
    return residual_ != kNone && residual_ != x_ ? std::vector<size_t>{residual_} : std::vector<size_t>{};
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  Winograd winograd_;
  int workers_;
  size_t x_ = 0, residual_ = kNone;
  std::shared_ptr<const void> packed_, bias_, zeros_;
};

}  // namespace

std::optional<std::string> refuses_winograd(const Group& group) {
  WinogradProblem problem;
  return read_winograd(group, problem);
}

std::unique_ptr<Step> make_winograd(const Group& group, MakeContext& context) {
  if (!context.winograd) return make_tile(group, context);
  WinogradProblem problem;
  const auto refusal = read_winograd(group, problem);
  CHECK(!refusal, "{}", *refusal);
  return std::make_unique<WinogradStep>(group, problem, context);
}

}  // namespace cairn
