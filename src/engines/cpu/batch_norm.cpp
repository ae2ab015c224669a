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

const Value* behind_casts(const Value* value) {
  while (value->producer && value->producer->is("cast") && value->producer->inputs[0]->type.dtype.is_float())
    value = value->producer->inputs[0];
  return value;
}

/// Whether each element is representable in the type.
bool is_rounded(const Value* value, DType dtype) {
  return value->type.dtype == dtype ||
         (value->producer && value->producer->is("cast") && value->producer->inputs[0]->type.dtype == dtype);
}

bool has_elements(const Value* value) { return count_of(value->type.shape.sizes()) > 0; }

// A batch_norm_gradient, its incoming gradient, and the operand of the relu that gates it (or null).
struct Gated {
  const Node* node = nullptr;
  const Value *dy = nullptr, *gate = nullptr;
};
std::optional<Gated> read_gradient(const Group& group) {
  const auto found = std::find_if(group.nodes.begin(), group.nodes.end(),
                                  [](const Node* node) { return node->is("batch_norm_gradient"); });
  if (found == group.nodes.end()) return std::nullopt;
  const Node& node = **found;
  for (const Value* output : group.outputs)
    if (output->producer != &node && !(output->producer->is("cast") && output->producer->inputs[0] == node.result(0)))
      return std::nullopt;
  const Node* select = behind_casts(node.inputs[0])->producer;
  const bool gated = select && std::find(group.nodes.begin(), group.nodes.end(), select) != group.nodes.end();
  if (!gated) return Gated{&node, node.inputs[0], nullptr};
  if (!select->is("select")) return std::nullopt;
  return Gated{&node, select->inputs[1], select->inputs[0]->producer->inputs[0]};
}

// Why the kernel does not take these types and this layout, or nothing.
Refusal refuses_forms(const Group& group, const ChannelPlanes& planes) {
  if (!not_f32(group)) return std::nullopt;
  if (auto reason = not_floats(group)) return reason;
  if (planes.inner > 1) return "elements of 16 bits have channels that are not last";
  if (planes.c > kMostNarrowChannels) return fmt::format("takes {} channels of 16 bits at most", kMostNarrowChannels);
  return std::nullopt;
}

/// The value that replaces the node's first result: that of a cast in the group, or itself.
const Value* first_result(const Group& group, const Node& node) {
  for (const Value* output : group.outputs)
    if (output->producer->is("cast")) return output;
  return node.result(0);
}

// Inputs that an output may overwrite, since each element is read where it is written. Not with one position per
// channel: then a vector of parameters has the same size.
std::vector<size_t> aligned(const ChannelPlanes& planes, std::vector<size_t> inputs) {
  return planes.outer * planes.inner > 1 ? inputs : std::vector<size_t>{};
}

}  // namespace

std::vector<const Node*> relu_gate(const Value* gradient, const Uses& uses) {
  // Rounding what is chosen among rounded values changes nothing.
  std::vector<const Node*> casts;
  while (gradient->producer && gradient->producer->is("cast") && uses.single(gradient) &&
         gradient->producer->inputs[0]->type.dtype.is_float()) {
    casts.push_back(gradient->producer);
    gradient = gradient->producer->inputs[0];
  }
  const Node* select = gradient->producer;
  if (!casts.empty() &&
      (!select || !select->is("select") || !is_rounded(select->inputs[1], casts.back()->result()->type.dtype)))
    return {};
  if (!select || !select->is("select") || !uses.single(gradient) || !is_zero(select->inputs[2])) return {};
  const Node* greater = select->inputs[0]->producer;
  if (!greater || !greater->is("greater") || !uses.single(greater->result()) || !is_zero(greater->inputs[1])) return {};
  if (greater->inputs[0]->type.shape != gradient->type.shape || select->inputs[1]->type != gradient->type) return {};
  std::vector<const Node*> nodes{greater, select};
  for (const Value* operand : {greater->inputs[0], select->inputs[1]})
    if (operand->producer && is_widening(*operand->producer) && uses.single(operand))
      nodes.push_back(operand->producer);
  nodes.insert(nodes.end(), casts.begin(), casts.end());
  return nodes;
}

namespace {

Refusal refuses_normalisation(const Group& group, const std::optional<Contraction>& extended) {
  if (!extended) return "is another operation";
  if (auto reason = refuses_forms(group, planes_of(*extended->node, extended->node->inputs[0]))) return reason;
  for (size_t i = 1; i < extended->node->inputs.size(); ++i)
    if (form_in(group, extended->node->inputs[i]) != Form::floats) return "has parameters of 16 bits";
  if (extended->epilogue.bias || activation_of(extended->epilogue).kind == Activation::Kind::clip)
    return "takes no bias and no activation but relu";
  return has_elements(extended->node->inputs[0]) ? Refusal() : "has no elements";
}

// Options that let y overwrite x or the residual.
CallOptions in_place_of(const ChannelPlanes& planes, const BatchNorm& forms, size_t x, size_t residual,
                        size_t workspace) {
  const int64_t bytes = bytes_of(forms.narrow.result);
  std::vector<size_t> places;
  if (residual != x && bytes_of(forms.narrow.residual) == bytes && !forms.narrow.rounds_biased)
    places.push_back(residual);
  if (bytes_of(forms.x_form) == bytes) places.push_back(x);
  return {.in_place = aligned(planes, places), .workspace = workspace};
}

BatchNorm forms_of(const Group& group, const Contraction& extended) {
  BatchNorm forms{};
  forms.epsilon = static_cast<float>(extended.node->attr().number("epsilon"));
  forms.relu = extended.epilogue.activation != nullptr;
  forms.x_form = form_in(group, extended.node->inputs[0]);
  forms.narrow = narrow_of(group, extended.epilogue);
  return forms;
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
  const BatchNorm forms = forms_of(group, extended);
  const bool adds = extended.epilogue.residual != nullptr;
  std::array<size_t, 5> in{};
  for (size_t i = 0; i < in.size(); ++i) in[i] = index_of(group, node.inputs[i]);
  const size_t residual = adds ? index_of(group, extended.epilogue.residual) : in[0];
  const auto run = [=](const StepArgs& args) {
    BatchNorm b = forms;
    b.x = input(args, in[0]), b.scale = input(args, in[1]), b.offset = input(args, in[2]);
    b.mean = input(args, in[3]), b.variance = input(args, in[4]);
    b.residual = adds ? input(args, residual) : nullptr;
    b.y = output(args);
    batch_norm_inference(args.executor, planes, b, static_cast<float*>(args.workspace));
  };
  return call(name_of("batch_norm", extended.epilogue), run,
              in_place_of(planes, forms, in[0], residual, static_cast<size_t>(planes.c) * sizeof(float)));
}

std::unique_ptr<Step> make_batch_norm_training(const Group& group, MakeContext&) {
  const Contraction extended = *as_extended(group, "batch_norm_training");
  const Node& node = *extended.node;
  const ChannelPlanes planes = planes_of(node, node.inputs[0]);
  const BatchNorm forms = forms_of(group, extended);
  const bool adds = extended.epilogue.residual != nullptr;
  const Results results(group, node, batch_norm_workspace(planes), extended.result);
  const size_t x = index_of(group, node.inputs[0]), scale = index_of(group, node.inputs[1]),
               offset = index_of(group, node.inputs[2]);
  const size_t residual = adds ? index_of(group, extended.epilogue.residual) : x;
  const auto run = [=](const StepArgs& args) {
    BatchNorm b = forms;
    b.x = input(args, x), b.scale = input(args, scale), b.offset = input(args, offset);
    b.residual = adds ? input(args, residual) : nullptr;
    b.y = results.at(args, 0);
    float *mean = results.at(args, 1), *variance = results.at(args, 2);
    batch_norm_training(args.executor, planes, b, mean, variance, static_cast<float*>(args.workspace));
  };
  return call(name_of("batch_norm_training", extended.epilogue), run,
              in_place_of(planes, forms, x, residual, results.workspace()));
}

Refusal refuses_batch_norm_gradient(const Group& group) {
  const auto gated = read_gradient(group);
  if (!gated) return "is another operation";
  if (auto reason = refuses_forms(group, planes_of(*gated->node, gated->node->inputs[1]))) return reason;
  return has_elements(gated->dy) ? Refusal() : "has no elements";
}

std::unique_ptr<Step> make_batch_norm_gradient(const Group& group, MakeContext&) {
  const Gated gated = *read_gradient(group);
  const Node& node = *gated.node;
  const ChannelPlanes planes = planes_of(node, node.inputs[1]);
  const Value* dx = first_result(group, node);
  const Results results(group, node, batch_norm_workspace(planes), dx);
  BatchNormGradient forms{};
  forms.epsilon = static_cast<float>(node.attr().number("epsilon"));
  forms.dy_form = form_in(group, gated.dy), forms.x_form = form_in(group, node.inputs[1]);
  forms.gate_form = gated.gate ? form_in(group, gated.gate) : Form::floats, forms.dx_form = form_of(dx->type.dtype);
  const size_t dy = index_of(group, gated.dy), gate = gated.gate ? index_of(group, gated.gate) : dy;
  std::array<size_t, 4> in{};
  for (size_t i = 0; i < 4; ++i) in[i] = index_of(group, node.inputs[i + 1]);
  const bool gates = gated.gate != nullptr;
  const auto run = [=](const StepArgs& args) {
    BatchNormGradient b = forms;
    b.dy = input(args, dy), b.gate = gates ? input(args, gate) : nullptr;
    b.x = input(args, in[0]), b.scale = input(args, in[1]), b.mean = input(args, in[2]);
    b.variance = input(args, in[3]);
    b.dx = results.at(args, 0), b.dscale = results.at(args, 1), b.doffset = results.at(args, 2);
    batch_norm_gradient(args.executor, planes, b, static_cast<float*>(args.workspace));
  };
  std::vector<size_t> places;
  for (auto [i, form] :
       {std::pair(dy, forms.dy_form), {gate, gates ? forms.gate_form : forms.dy_form}, {in[0], forms.x_form}})
    if (std::find(places.begin(), places.end(), i) == places.end() && bytes_of(form) == bytes_of(forms.dx_form))
      places.push_back(i);
  return call(gates ? "batch_norm_gradient, gated" : "batch_norm_gradient", run,
              {.in_place = aligned(planes, places), .workspace = results.workspace()});
}

}  // namespace cairn
