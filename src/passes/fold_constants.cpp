// Constant folding: computes nodes whose results depend on constants alone.
#include <algorithm>

#include "ir/evaluate.h"
#include "passes/facts.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "support/stop.h"

namespace cairn {

namespace {

// Bounds of FLOPs, since the reference kernels are slow: for one node, and for all nodes that one call folds.
constexpr double kMostFlops = 1e9, kMostFlopsInAll = 2e10;
thread_local double flops_left = kMostFlopsInAll;

bool of_constants(const Node& node) {
  const OpDef& op = *node.op;
  if (!op.pure() || op.has(kNotFoldable | kControl | kHostValue) || !op.reference || node.results.empty()) return false;
  return std::all_of(node.results.begin(), node.results.end(),
                     [](const auto& result) { return result->type.is_tensor(); }) &&
         std::all_of(node.inputs.begin(), node.inputs.end(), constant_of);
}

// Whether the node repeats a few constant elements many times: it is not folded, since the result (for example a
// variable's initial content) would take memory in each plan, and steps that update it in place would copy it.
bool repeats(const Node& node) {
  constexpr int64_t kMuch = 1 << 20, kMuchOfOne = 1 << 14, kTimes = 16;  // bytes
  const Type& y = node.result()->type;
  if (!node.op->has_role(Role::shape) || !of_constants(node) || !y.is_static()) return false;
  const std::optional<int64_t> count = element_count(y.shape.sizes());
  if (!count || *count > INT64_MAX / 64) return false;
  const auto bytes = static_cast<int64_t>(storage_bytes(y.dtype, *count));
  return bytes > (constant_of(node.inputs[0])->count() == 1 ? kMuchOfOne : kMuch) &&
         bytes / kTimes > static_cast<int64_t>(constant_of(node.inputs[0])->bytes());
}

bool foldable(const Node& node) {
  const OpDef& op = *node.op;
  if (!op.pure() || op.has(kNotFoldable | kControl | kHostValue) || !op.reference || node.results.empty()) return false;
  for (const auto& result : node.results)
    if (!result->type.is_tensor()) return false;
  for (const Value* input : node.inputs)
    if (!constant_of(input) && !(input->producer && repeats(*input->producer)) &&
        !(op.has(kShapeOnly) && input->type.is_static() && element_count(input->type.shape.sizes())))
      return false;
  return !repeats(node);
}

bool too_costly(const Node& node) {
  if (!node.op->flops) return false;
  std::vector<Type> types;
  std::vector<const Tensor*> constants;
  for (const Value* input : node.inputs) {
    types.push_back(input->type);
    constants.push_back(constant_of(input));
  }
  InferContext context(*node.op, node.attributes, std::move(types), std::move(constants), {});
  node.op->infer(context);
  const double flops = node.op->flops(context);
  if (!(flops <= std::min(kMostFlops, flops_left))) return true;
  flops_left -= flops;
  return false;
}

std::unique_ptr<Node> detached_constant(std::unique_ptr<Value> value, Tensor tensor,
                                        const std::vector<SourceId>& sources) {
  auto constant = std::make_unique<Node>();
  constant->op = &op_named("constant");
  constant->attributes.set("value", Attribute(std::move(tensor)));
  constant->sources = sources;
  value->producer = constant.get();
  value->index = 0;
  constant->results.push_back(std::move(value));
  return constant;
}

// Turns the node into `constant` nodes. The Value objects are kept, so that users need no change.
void become_constants(Node& node, std::vector<HostValue> values, std::vector<std::unique_ptr<Node>>& place) {
  for (size_t i = 0; i < values.size(); ++i) node.result(i)->type = values[i].tensor.type();
  for (size_t i = 1; i < values.size(); ++i)
    place.push_back(detached_constant(std::move(node.results[i]), std::move(values[i].tensor), node.sources));
  node.results.resize(1);
  node.op = &op_named("constant");
  node.inputs.clear();
  node.attributes = Attributes{{"value", Attribute(std::move(values[0].tensor))}};
}

// Whether inference gains nothing. Results that contradict the inputs are found where the module is verified.
bool knows_all(const Node& node) {
  return std::all_of(node.results.begin(), node.results.end(),
                     [](const auto& result) { return result->type.is_static(); });
}

size_t fold_block(Block& block, Module* module, size_t largest_bytes) {
  size_t folded = 0;
  const auto expanded = expanded_operands(block, module == nullptr);
  PointerSet<const Value*> changed;
  PointerSet<const Node*> noted;  // shared constants may have thousands of sources
  std::vector<std::unique_ptr<Node>> nodes;
  nodes.reserve(block.nodes.size());
  for (auto& owned : block.nodes) {
    Node& node = *owned;
    const size_t place = nodes.size();
    nodes.push_back(std::move(owned));
    ++visits;
    stop_point();
    for (auto& region : node.regions) folded += fold_block(*region, module, largest_bytes);
    if (!module)
      infer_changed(node, changed, false);
    else if (!knows_all(node))
      infer_node(node, module);
    const std::vector<Value*> inputs = node.inputs;
    const bool shape_only = node.op->has(kShapeOnly);
    if (expanded.count(&node) || !fold_node(node, nodes, largest_bytes)) continue;
    ++folded;
    if (!module) {
      for (size_t i = place; i < nodes.size(); ++i) changed.insert(nodes[i]->result());
      continue;
    }
    for (const Value* input : inputs)
      if (input->producer && noted.insert(input->producer))
        for (SourceId id : input->producer->sources)
          ++visits,
              module->removed.emplace(id, constant_of(input) || !shape_only ? Removal::folded : Removal::shape_only);
  }
  block.nodes = std::move(nodes);
  return folded;
}

// The elements of an input of a foldable node; uninitialised when only its shape matters.
Tensor elements_of(const Value& input, bool needed, size_t largest_bytes) {
  if (const Tensor* constant = constant_of(&input)) return *constant;
  if (!needed) return Tensor::view(input.type.dtype, input.type.shape.sizes(), nullptr, nullptr);
  std::vector<HostValue> inputs;
  for (const Value* each : input.producer->inputs) inputs.push_back({*constant_of(each), {}});
  return evaluate(*input.producer, inputs, nullptr, largest_bytes)[input.index].tensor;
}

}  // namespace

bool fold_node(Node& node, std::vector<std::unique_ptr<Node>>& place, size_t largest_bytes) {
  if (!foldable(node)) return false;
  try {
    if (too_costly(node)) return false;
    std::vector<HostValue> inputs;
    size_t input_bytes = 0;
    for (const Value* input : node.inputs) {
      inputs.push_back({elements_of(*input, !node.op->has(kShapeOnly), largest_bytes), {}});
      input_bytes += inputs.back().tensor.bytes();
    }
    auto values = evaluate(node, inputs, nullptr, std::max(largest_bytes, input_bytes));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].tensor.defined()) return false;
      if (!compatible(values[i].tensor.type(), node.result(i)->type)) return false;
      values[i].tensor = values[i].tensor.owned();
    }
    become_constants(node, std::move(values), place);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) throw;
    return false;  // the error is reported at run time, with the node's name, if the node is ever run
  }
}

size_t fold_constants(Block& block, Module* module, size_t largest_bytes) {
  flops_left = kMostFlopsInAll;
  return fold_block(block, module, largest_bytes);
}

}  // namespace cairn
