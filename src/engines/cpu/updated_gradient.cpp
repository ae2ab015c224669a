#include "engines/cpu/updated_gradient.h"

#include <algorithm>
#include <array>

#include "engines/cpu/groups.h"
#include "engines/cpu/kernel_gradient.h"
#include "engines/cpu/kernel_gradient_work.h"
#include "engines/cpu/pixel_gradient.h"
#include "engines/cpu/program.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/training.h"
#include "engines/cpu/winograd_gradient.h"

namespace cairn {

namespace {

/// A plain product of a transposed matrix.
bool is_transposed_product(const Node& node) {
  if (!node.is("matmul") || !node.attr().boolean("transpose_a") || node.attr().boolean("transpose_b")) return false;
  return node.inputs[0]->type.shape.rank() == 2 && node.inputs[1]->type.shape.rank() == 2;
}

/// Whether it has so many rows that it pays to pack them. The step of a product of 784 by 512 and its update takes, of the time of
/// both apart, with 128 rows 0.96 by AVX-512 and 1.04 by AVX2; with 32 rows (400 by 120) 1.3.
bool has_many_rows(const Node& node) {
  const int64_t rows = machine_isa() == Isa::avx512 ? 2 * dim(node.inputs[0], 0) : dim(node.inputs[0], 0);
  return has_many_transposed_rows(rows, dim(node.inputs[0], 1), last_dim(node.inputs[1]));
}

/// The group of the node alone.
Group alone(const Node& node) {
  Group group{.nodes = {&node}, .outputs = {node.result()}};
  for (const Value* input : node.inputs)
    if (std::find(group.inputs.begin(), group.inputs.end(), input) == group.inputs.end()) group.inputs.push_back(input);
  return group;
}

/// The rest of a group, which reads the gradient as an input.
Group update_of(const Group& group, const Node& gradient) {
  Group update{.outputs = group.outputs};
  for (const Node* node : group.nodes)
    if (node != &gradient) update.nodes.push_back(node);
  const auto is_made = [&](const Value* value) {
    return std::any_of(update.nodes.begin(), update.nodes.end(),
                       [&](const Node* node) { return node->result() == value; });
  };
  for (const Node* node : update.nodes)
    for (const Value* input : node->inputs)
      if (!is_made(input) && std::find(update.inputs.begin(), update.inputs.end(), input) == update.inputs.end())
        update.inputs.push_back(input);
  return update;
}

bool may_make_weight_gradient(const Node& node) {
  if (node.results.size() != 1 || !node.result()->type.is_static() || node.result()->type.dtype != kF32) return false;
  for (size_t i = 0; i < std::min<size_t>(2, node.inputs.size()); ++i) {
    const Node* made = node.inputs[i]->producer;
    if (!node.inputs[i]->type.is_static() || (made && is_widening(*made)))
      return false;  // 16 bits are read as they are
  }
  if (is_transposed_product(node)) return true;
  if (!is_convolution(node, ConvRole::kernel_gradient)) return false;
  const Group group = alone(node);
  return refuses_depthwise_gradient(group) && refuses_winograd_gradient(group) && refuses_pixel_gradient(group) &&
         !refuses_kernel_gradient(group);
}

const Node* gradient_in(const Group& group) {
  const auto found = std::find_if(group.nodes.begin(), group.nodes.end(),
                                  [](const Node* node) { return may_make_weight_gradient(*node); });
  return found == group.nodes.end() ? nullptr : *found;
}

KernelGradient work_of(const Node& node, int threads) {
  if (!node.is("matmul")) return {node, Form::floats, Form::floats, threads, true};
  const Value *x = node.inputs[0], *dy = node.inputs[1];
  return {dim(x, 0), dim(x, 1), dim(dy, 1), Form::floats, Form::floats, threads, true};
}

}  // namespace

bool makes_weight_gradient(const Node& node) {
  return may_make_weight_gradient(node) && (!is_transposed_product(node) || has_many_rows(node));
}

Refusal refuses_updated_gradient(const Group& group) {
  const Node* gradient = group.nodes.size() > 1 ? gradient_in(group) : nullptr;
  if (gradient && !makes_weight_gradient(*gradient)) return "has few rows";
  return cannot_make_updated_gradient(group);
}

Refusal cannot_make_updated_gradient(const Group& group) {
  const Node* gradient = group.nodes.size() > 1 ? gradient_in(group) : nullptr;
  if (!gradient) return "is no gradient with an update";
  for (const Value* value : group.inputs)
    if (value->type.dtype != kF32 && !(constant_of(value) && value->type.dtype.is_integer()))
      return fmt::format("input is {}, takes f32", to_string(value->type.dtype));
  const Value* made = gradient->result();
  if (std::find(group.outputs.begin(), group.outputs.end(), made) != group.outputs.end())
    return "the gradient is read elsewhere";
  const Group update = update_of(group, *gradient);
  if (auto reason = ElementwiseProgram::refuses(update)) return reason;
  if (update.outputs[0]->type.shape != made->type.shape) return "the update has another shape";
  if (!ElementwiseProgram(update).goes_by_elements()) return "the update does not go element by element";
  return std::nullopt;
}

std::unique_ptr<Step> make_updated_gradient(const Group& group, MakeContext& context) {
  constexpr size_t kMade = SIZE_MAX;
  const Node& node = *gradient_in(group);
  const Group update = update_of(group, node);
  ElementwiseProgram program(update);
  const size_t x = index_of(group, node.inputs[0]), dy = index_of(group, node.inputs[1]);
  std::vector<size_t> inputs;  // of the program, among the group's
  for (const Value* value : update.inputs) inputs.push_back(value == node.result() ? kMade : index_of(group, value));
  CallOptions options;
  for (size_t each : program.aligned_inputs())
    if (inputs[each] != kMade && inputs[each] != x && inputs[each] != dy) options.in_place.push_back(inputs[each]);
  for (size_t i = 0; i < group.inputs.size(); ++i)
    if (i != x && i != dy && std::find(inputs.begin(), inputs.end(), i) == inputs.end()) options.unread.push_back(i);
  KernelGradient gradient = work_of(node, context.threads);
  options.workspace = gradient.workspace();
  std::string name = fmt::format("updated_gradient {}, elementwise {}", gradient.describe(), program.instructions());
  const auto run = [=, gradient = std::move(gradient), program = std::move(program),
                    inputs = std::move(inputs)](const StepArgs& args) {
    const auto finish = [&](const float* made, int64_t first, int64_t count) {
      std::array<const void*, ElementwiseProgram::kMostRegisters> from;
      for (size_t i = 0; i < inputs.size(); ++i) from[i] = inputs[i] == kMade ? made - first : args.inputs[inputs[i]];
      program.run_part(from.data(), args.outputs, first, first + count);
    };
    gradient.run_and_finish(args.executor, args.inputs[x], args.inputs[dy], static_cast<float*>(args.workspace),
                            finish);
  };
  return call(std::move(name), run, std::move(options));
}

}  // namespace cairn
