#include "engines/cpu/training.h"

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/overlapping_pool.h"
#include "engines/cpu/results.h"
#include "engines/cpu/row_filter.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/training_loops.h"
#include "ops/kernels.h"
#include "passes/facts.h"

namespace cairn {

namespace {

Dims sizes(const Value* value) { return value->type.shape.sizes(); }

/// A refusal when one of the values is not f32, or nothing.
Refusal others_than_f32(std::initializer_list<const Value*> values) {
  for (const Value* value : values)
    if (value->type.dtype != kF32) return fmt::format("elements are {}, takes f32", to_string(value->type.dtype));
  return std::nullopt;
}

bool is_max_pool_gradient(const Node& node) { return node.is("max_pool2d_gradient") || node.is("max_pool3d_gradient"); }

/// Whether it is select(x > 0, gradient, 0) of a maximum pooling's gradient and the x that was pooled.
bool is_gate_of(const Node& gradient, const Node& select) {
  if (!select.is("select") || select.inputs[1] != gradient.result() || !is_zero(select.inputs[2])) return false;
  const Node* greater = select.inputs[0]->producer;
  return select.result()->type == gradient.result()->type && greater && greater->is("greater") &&
         greater->inputs[0] == gradient.inputs[0] && is_zero(greater->inputs[1]);
}

/// The gradient of a pooling in the group, alone or with the relu's gradient behind it; or null.
const Node* pool_gradient_in(const Group& group) {
  constexpr size_t kGated = 3;
  const Node& last = group.last();
  if (group.nodes.size() == 1)
    return is_max_pool_gradient(last) || last.is("avg_pool2d_gradient") || last.is("avg_pool3d_gradient") ? &last
                                                                                                          : nullptr;
  const Node* made = last.is("select") ? last.inputs[1]->producer : nullptr;
  const bool gated = group.nodes.size() == kGated && group.outputs.size() == 1 && made && is_max_pool_gradient(*made);
  return gated && is_gate_of(*made, last) ? made : nullptr;
}

}  // namespace

std::vector<const Node*> gated_pool_gradient(const Node& gradient, const Uses& uses) {
  if (!is_max_pool_gradient(gradient) || !uses.single(gradient.result())) return {};
  const Node* select = uses.users(gradient.result()).front();
  if (!is_gate_of(gradient, *select) || !uses.single(select->inputs[0])) return {};
  return {&gradient, select->inputs[0]->producer, select};
}

Refusal refuses_cross_entropy(const Group& group) {
  const bool sparse = single_node(group, "sparse_softmax_cross_entropy") != nullptr;
  if (!sparse && !single_node(group, "softmax_cross_entropy")) return "is another operation";
  const Node& node = group.last();
  const DType labels = node.inputs[1]->type.dtype;
  if (sparse && labels != kI32 && labels != kI64) return fmt::format("labels are {}", to_string(labels));
  return others_than_f32({node.inputs[0], node.result(0), node.result(1)});
}

std::unique_ptr<Step> make_cross_entropy(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = sizes(node.inputs[0]);
  const int64_t c = dims.back(), rows = count_between(dims, 0, dims.size() - 1);
  const bool sparse = node.is("sparse_softmax_cross_entropy"), wide = node.inputs[1]->type.dtype == kI64;
  const Results results(group, node, 0);
  const size_t logits = index_of(group, node.inputs[0]), labels = index_of(group, node.inputs[1]);
  const auto run = [=](const StepArgs& args) {
    const auto* classes = sparse && !wide ? input<int32_t>(args, labels) : nullptr;
    const auto* wide_classes = sparse && wide ? input<int64_t>(args, labels) : nullptr;
    for (int64_t row = 0; sparse && row < rows; ++row) {
      const int64_t label = wide ? wide_classes[row] : classes[row];
      if (label < 0 || label >= c)
        fail(ErrorKind::invalid_argument, "sparse_softmax_cross_entropy", "label {} is out of range for {} classes",
             label, c);
    }
    cross_entropy(args.executor, rows, c, input(args, logits), sparse ? nullptr : input(args, labels), wide_classes,
                  classes, results.at(args, 0), results.at(args, 1));
  };
  return call(node.op->name, run, {.workspace = results.workspace()});
}

Refusal refuses_pool_gradient(const Group& group) {
  const Node* node = pool_gradient_in(group);
  if (!node) return "is another operation";
  const bool most = is_max_pool_gradient(*node);
  return others_than_f32({node->inputs[0], most ? node->inputs[1] : node->result(), node->result()});
}

std::unique_ptr<Step> make_pool_gradient(const Group& group, MakeContext& context) {
  const Node& node = *pool_gradient_in(group);
  const bool most = is_max_pool_gradient(node);
  SlideSpec spec = slide_of(node, node.result(), node.inputs[most ? 1 : 0], node.attr().integers("window"));
  spec.work = most ? WindowWork::maximum : WindowWork::mean;
  spec.count_padding = !most && node.attr().boolean("count_padding");
  const Winners winners{most && node.attr().has("ties") && node.attr().text("ties") == "all", group.nodes.size() > 1};
  const size_t x = index_of(group, node.inputs[0]), dy = index_of(group, node.inputs[most ? 1 : 0]);
  CallOptions options;
  options.unread = inputs_but(group, {x, dy});
  const bool overlaps = most && !winners.all && has_overlapping_windows(spec);
  const int threads = std::max(1, context.threads);
  if (overlaps) options.workspace = overlapping_pool_workspace(spec, threads);
  const auto run = [=](const StepArgs& args) {
    if (overlaps)
      return overlapping_pool_gradient(executor_for(args, threads), spec, winners.gated, input(args, x),
                                       input(args, dy), output(args), args.workspace);
    pool_gradient(args.executor, spec, winners, most ? input(args, x) : nullptr, input(args, dy), output(args));
  };
  return call(fmt::format("{}{}", node.op->name, winners.gated ? " and relu's" : ""), run, std::move(options));
}

namespace {

/// A depthwise gradient of one group, with what follows that by the image.
std::optional<Contraction> depthwise_gradient_in(const Group& group) {
  auto found = as_contraction(group);
  if (!found || found->node != group.nodes.front() || found->epilogue.residual || found->epilogue.rounded)
    return std::nullopt;
  const Epilogue& epilogue = found->epilogue;
  const bool alone = !epilogue.bias && !epilogue.activation;
  const bool known = !epilogue.activation || epilogue.activation->is("relu") || epilogue.activation->is("clip");
  if (is_convolution(*found->node, ConvRole::kernel_gradient)) return alone ? found : std::nullopt;
  return known && is_convolution(*found->node, ConvRole::input_gradient) ? found : std::nullopt;
}

/// dx where the kernel is not finite.
void gradient_inside(Executor& executor, const SlideSpec& s, const RowFilter& f, const float* dy, const float* kernel,
                     const float* bias, float* dx) {
  depthwise_input_gradient(executor, s, dy, kernel, dx);
  const int64_t channels = s.in_channels();
  for (int64_t i = 0; i < s.n * s.pixels() * channels; ++i) {
    const float value = dx[i] + (bias ? bias[i % channels] : 0.f);
    dx[i] = value < f.low ? f.low : value > f.high ? f.high : value;
  }
}

std::unique_ptr<Step> make_depthwise_input_gradient(const Group& group, const Contraction& gradient,
                                                    const SlideSpec& spec, int threads) {
  const size_t first = index_of(group, gradient.node->inputs[0]), second = index_of(group, gradient.node->inputs[1]);
  const Value* bias = gradient.epilogue.bias;
  const size_t bias_at = bias ? index_of(group, bias) : 0;
  const Activation activation = activation_of(gradient.epilogue);
  RowFilter bounds{};
  if (activation.kind != Activation::Kind::none) bounds.low = 0;
  if (activation.kind == Activation::Kind::clip) bounds.low = activation.low, bounds.high = activation.high;
  std::vector<PhaseFilter> phases = phase_filters(spec);
  for (PhaseFilter& phase : phases) phase.filter.low = bounds.low, phase.filter.high = bounds.high;
  CallOptions options{.workspace = phase_filters_workspace(phases, threads)};
  options.unread = inputs_but(group, {first, second, bias ? bias_at : first});
  const auto run = [=](const StepArgs& args) {
    const float *dy = input(args, first), *kernel = input(args, second), *start = bias ? input(args, bias_at) : nullptr;
    if (phases.empty() || !all_finite(spec.taps() * spec.channels, kernel))
      return gradient_inside(args.executor, spec, bounds, dy, kernel, start, output(args));
    filter_phases(executor_for(args, threads), spec, phases, dy, kernel, start, output(args), args.workspace);
  };
  return call("depthwise_input_gradient", run, std::move(options));
}

}  // namespace

Refusal refuses_depthwise_gradient(const Group& group) {
  const auto gradient = depthwise_gradient_in(group);
  if (!gradient) return "is another operation";
  const Node& node = *gradient->node;
  const bool of_image = is_convolution(node, ConvRole::input_gradient);
  const Value *x = of_image ? node.result() : node.inputs[0], *dy = node.inputs[of_image ? 0 : 1];
  constexpr int64_t kManyFilters = 8;  // from so many on, the channels of a group fill half a vector of a product
  const int64_t channels = last_dim(x), filters = channels ? last_dim(dy) / channels : 0;
  if (node.attr().integer("groups") != channels || (filters != 1 && (channels == 1 || filters >= kManyFilters)))
    return "has not one group and a few filters a channel";
  const Value* bias = gradient->epilogue.bias;
  if (filters > 1 && (bias || gradient->epilogue.activation)) return "adds up filters before an epilogue";
  return others_than_f32({node.inputs[0], node.inputs[1], node.result(), gradient->result, bias ? bias : x});
}

std::unique_ptr<Step> make_depthwise_gradient(const Group& group, MakeContext& context) {
  const Contraction gradient = *depthwise_gradient_in(group);
  const Node& node = *gradient.node;
  const bool of_image = is_convolution(node, ConvRole::input_gradient);
  const Value *x = of_image ? node.result() : node.inputs[0], *dy = node.inputs[of_image ? 0 : 1];
  Dims window = sizes(of_image ? node.inputs[1] : node.result());
  window.resize(window.size() - 2);
  SlideSpec spec = slide_of(node, x, dy, window);
  spec.channels = last_dim(dy), spec.multiplier = last_dim(dy) / last_dim(x);
  const int threads = std::max(1, context.threads);
  if (of_image) return make_depthwise_input_gradient(group, gradient, spec, threads);
  const size_t first = index_of(group, node.inputs[0]), second = index_of(group, node.inputs[1]);
  const auto filter = row_filter(spec);
  const int64_t count = spec.n * spec.out_pixels() * spec.channels;
  const auto run = [=](const StepArgs& args) {
    const float *x = input(args, first), *dy = input(args, second);
    if (filter && all_finite(count, dy))
      return row_kernel_gradient(executor_for(args, threads), *filter, x, dy, output(args), args.workspace);
    depthwise_kernel_gradient(args.executor, spec, x, dy, output(args), static_cast<float*>(args.workspace));
  };
  const size_t workspace = filter ? row_kernel_gradient_workspace(*filter, threads) : 0;
  return call("depthwise_kernel_gradient", run, {.workspace = std::max(depthwise_workspace(spec), workspace)});
}

}  // namespace cairn
