#include "engines/cpu/batch_norm.h"

#include "engines/cpu/batch_norm_loops.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/results.h"
#include "passes/facts.h"

namespace cairn {

namespace {

ChannelPlanes planes_of(const Node& node, const Value* x) {
  const Dims dims = x->type.shape.sizes();
  const int64_t given = node.attr().integer("axis");
  const auto axis = static_cast<size_t>(given < 0 ? given + std::ssize(dims) : given);
  return {count_between(dims, 0, axis), dims[axis], count_between(dims, axis + 1, dims.size())};
}

bool has_elements(const Value* value) { return count_of(value->type.shape.sizes()) > 0; }

// A batch_norm_gradient, its incoming gradient, and the operand of the relu that gates it (or null).
struct Gated {
  const Node* node = nullptr;
  const Value *dy = nullptr, *gate = nullptr;
};
std::optional<Gated> read_gradient(const Group& group) {
  const Node& node = group.last();
  if (!node.is("batch_norm_gradient")) return std::nullopt;
  if (group.nodes.size() == 1) return Gated{&node, node.inputs[0], nullptr};
  const Node* select = node.inputs[0]->producer;
  if (group.nodes.size() != 3 || select != group.nodes[1] || !select->is("select")) return std::nullopt;
  return Gated{&node, select->inputs[1], select->inputs[0]->producer->inputs[0]};
}

// Inputs that an output may overwrite, since each element is read where it is written. Not with one position per
// channel: then a vector of parameters has the same size.
std::vector<size_t> aligned(const ChannelPlanes& planes, std::vector<size_t> inputs) {
  return planes.outer * planes.inner > 1 ? inputs : std::vector<size_t>{};
}

}  // namespace

std::vector<const Node*> relu_gate(const Value* gradient, const Uses& uses) {
  const Node* select = gradient->producer;
  if (!select || !select->is("select") || !uses.single(gradient) || !is_zero(select->inputs[2])) return {};
  const Node* greater = select->inputs[0]->producer;
  if (!greater || !greater->is("greater") || !uses.single(greater->result()) || !is_zero(greater->inputs[1])) return {};
  if (greater->inputs[0]->type != gradient->type || select->inputs[1]->type != gradient->type) return {};
  return {greater, select};
}

namespace {

Refusal refuses_normalisation(const Group& group, const std::optional<Contraction>& extended) {
  if (!extended) return "is another operation";
  if (auto reason = not_f32(group)) return reason;
  if (extended->epilogue.bias || activation_of(extended->epilogue).kind == Activation::Kind::clip)
    return "takes no bias and no activation but relu";
  return has_elements(extended->node->inputs[0]) ? Refusal() : "has no elements";
}

// Options that let y overwrite x or the residual.
CallOptions in_place_of(const ChannelPlanes& planes, size_t x, size_t residual, size_t workspace) {
  std::vector<size_t> places = residual != x ? std::vector<size_t>{residual, x} : std::vector<size_t>{x};
  return {.in_place = aligned(planes, places), .workspace = workspace};
}

std::string name_of(const char* op, const Epilogue& epilogue) {
  return fmt::format("{}{}{}", op, epilogue.residual ? ", added" : "", epilogue.activation ? ", relu" : "");
}

}  // namespace

Refusal refuses_batch_norm_training(const Group& group) {
  return refuses_normalisation(group, as_extended(group, "batch_norm_training"));
}

Refusal refuses_batch_norm_inference(const Group& group) {
  return refuses_normalisation(group, as_extended(group, "batch_norm"));
}

std::unique_ptr<Step> make_batch_norm_inference(const Group& group, MakeContext&) {
  const Contraction extended = *as_extended(group, "batch_norm");
  const Node& node = *extended.node;
  const ChannelPlanes planes = planes_of(node, node.inputs[0]);
  const auto epsilon = static_cast<float>(node.attr().number("epsilon"));
  const bool relu = extended.epilogue.activation != nullptr, adds = extended.epilogue.residual != nullptr;
  std::array<size_t, 5> in{};
  for (size_t i = 0; i < in.size(); ++i) in[i] = index_of(group, node.inputs[i]);
  const size_t residual = adds ? index_of(group, extended.epilogue.residual) : in[0];
  const auto run = [=](const StepArgs& args) {
    BatchNorm b;
    b.epsilon = epsilon, b.relu = relu;
    b.x = input(args, in[0]), b.scale = input(args, in[1]), b.offset = input(args, in[2]);
    b.mean = input(args, in[3]), b.variance = input(args, in[4]);
    b.residual = adds ? input(args, residual) : nullptr;
    b.y = output(args);
    batch_norm_inference(args.executor, planes, b, static_cast<float*>(args.workspace));
  };
  return call(name_of("batch_norm", extended.epilogue), run,
              in_place_of(planes, in[0], residual, static_cast<size_t>(planes.c) * sizeof(float)));
}

std::unique_ptr<Step> make_batch_norm_training(const Group& group, MakeContext&) {
  const Contraction extended = *as_extended(group, "batch_norm_training");
  const Node& node = *extended.node;
  const ChannelPlanes planes = planes_of(node, node.inputs[0]);
  const auto epsilon = static_cast<float>(node.attr().number("epsilon"));
  const bool relu = extended.epilogue.activation != nullptr, adds = extended.epilogue.residual != nullptr;
  const Results results(group, node, batch_norm_workspace(planes), extended.result);
  const size_t x = index_of(group, node.inputs[0]), scale = index_of(group, node.inputs[1]),
               offset = index_of(group, node.inputs[2]);
  const size_t residual = adds ? index_of(group, extended.epilogue.residual) : x;
  const auto run = [=](const StepArgs& args) {
    BatchNorm b;
    b.epsilon = epsilon, b.relu = relu;
    b.x = input(args, x), b.scale = input(args, scale), b.offset = input(args, offset);
    b.residual = adds ? input(args, residual) : nullptr;
    b.y = results.at(args, 0);
    float *mean = results.at(args, 1), *variance = results.at(args, 2);
    batch_norm_training(args.executor, planes, b, mean, variance, static_cast<float*>(args.workspace));
  };
  return call(name_of("batch_norm_training", extended.epilogue), run,
              in_place_of(planes, x, residual, results.workspace()));
}

Refusal refuses_batch_norm_gradient(const Group& group) {
  const auto gated = read_gradient(group);
  if (!gated) return "is another operation";
  if (auto reason = not_f32(group)) return reason;
  return has_elements(gated->dy) ? Refusal() : "has no elements";
}

std::unique_ptr<Step> make_batch_norm_gradient(const Group& group, MakeContext&) {
  const Gated gated = *read_gradient(group);
  const Node& node = *gated.node;
  const ChannelPlanes planes = planes_of(node, node.inputs[1]);
  const auto epsilon = static_cast<float>(node.attr().number("epsilon"));
  const Results results(group, node, batch_norm_workspace(planes));
  const size_t dy = index_of(group, gated.dy), gate = gated.gate ? index_of(group, gated.gate) : dy;
  std::array<size_t, 4> in{};
  for (size_t i = 0; i < 4; ++i) in[i] = index_of(group, node.inputs[i + 1]);
  const bool gates = gated.gate != nullptr;
  const auto run = [=](const StepArgs& args) {
    BatchNormGradient b;
    b.epsilon = epsilon;
    b.dy = input(args, dy), b.gate = gates ? input(args, gate) : nullptr;
    b.x = input(args, in[0]), b.scale = input(args, in[1]), b.mean = input(args, in[2]);
    b.variance = input(args, in[3]);
    b.dx = results.at(args, 0), b.dscale = results.at(args, 1), b.doffset = results.at(args, 2);
    batch_norm_gradient(args.executor, planes, b, static_cast<float*>(args.workspace));
  };
  std::vector<size_t> places{dy};
  for (size_t i : {gate, in[0]})
    if (std::find(places.begin(), places.end(), i) == places.end()) places.push_back(i);
  return call(gates ? "batch_norm_gradient, gated" : "batch_norm_gradient", run,
              {.in_place = aligned(planes, places), .workspace = results.workspace()});
}

}  // namespace cairn
