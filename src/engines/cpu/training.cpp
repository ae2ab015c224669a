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
  for (size_t i = 0; i < group.inputs.size(); ++i)
    if (i != x && i != dy) options.unread.push_back(i);
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

Refusal refuses_depthwise_gradient(const Group& group) {
  const Node& node = group.last();
  const bool of_image = is_convolution(node, ConvRole::input_gradient);
  if (group.nodes.size() != 1 || (!of_image && !is_convolution(node, ConvRole::kernel_gradient)))
    return "is another operation";
  const Value *x = of_image ? node.result() : node.inputs[0], *dy = node.inputs[of_image ? 0 : 1];
  constexpr int64_t kManyFilters = 8;  // from so many on, the channels of a group fill half a vector of a product
  const int64_t channels = last_dim(x), filters = channels ? last_dim(dy) / channels : 0;
  if (node.attr().integer("groups") != channels || (filters != 1 && (channels == 1 || filters >= kManyFilters)))
    return "has not one group and a few filters a channel";
  return others_than_f32({node.inputs[0], node.inputs[1], node.result()});
}

std::unique_ptr<Step> make_depthwise_gradient(const Group& group, MakeContext& context) {
  const Node& node = group.last();
  const bool of_image = is_convolution(node, ConvRole::input_gradient);
  const Value *x = of_image ? node.result() : node.inputs[0], *dy = node.inputs[of_image ? 0 : 1];
  Dims window = sizes(of_image ? node.inputs[1] : node.result());
  window.resize(window.size() - 2);
  SlideSpec spec = slide_of(node, x, dy, window);
  spec.channels = last_dim(dy), spec.multiplier = last_dim(dy) / last_dim(x);
  const size_t first = index_of(group, node.inputs[0]), second = index_of(group, node.inputs[1]);
  const int threads = std::max(1, context.threads);
  if (of_image) {
    const int64_t count = spec.taps() * spec.channels;
    const std::vector<PhaseFilter> phases = phase_filters(spec);
    const auto run = [=](const StepArgs& args) {
      const float *dy = input(args, first), *kernel = input(args, second);
      if (phases.empty() || !all_finite(count, kernel))
        return depthwise_input_gradient(args.executor, spec, dy, kernel, output(args));
      filter_phases(executor_for(args, threads), spec, phases, dy, kernel, output(args), args.workspace);
    };
    return call("depthwise_input_gradient", run, {.workspace = phase_filters_workspace(phases, threads)});
  }
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
