// Type inference: applies the shape rules in program order, also through regions.
#include "ir/control.h"
#include "passes/facts.h"
#include "passes/passes.h"
#include "passes/pipeline.h"

namespace cairn {

namespace {

constexpr int kTrialDepth = 3;  // nested loops whose carried types are narrowed by trial

void infer_nodes(Block& block, const Module* module, int depth);

void narrow(Value& value, const Type& type) {
  if (compatible(value.type, type)) value.type = meet(value.type, type);
}

// Finds types of carried values that hold in every iteration (fixed point): starts with the types at loop entry and
// joins them with those that the body returns until these imply the params' types. Trials use a copy, because types are
// never widened in place.
bool carry(Node& node, size_t carried, std::vector<Type> entering, int depth) {
  for (int trial = 0; trial < 3; ++trial) {
    std::unordered_map<const Value*, Value*> map;
    for (Value* input : node.inputs) map[input] = input;
    auto copy = clone(node, map);
    Block& body = *copy->regions[1];
    for (size_t i = 0; i < carried; ++i) body.params[i]->type = entering[i];
    for (size_t i = carried; i < body.params.size(); ++i) narrow(*body.params[i], node.inputs[i]->type);
    try {
      infer_nodes(body, nullptr, depth + 1);
    } catch (const Error&) {
      return false;  // the first iteration would fail, if there is one
    }
    bool stable = true;
    for (size_t i = 0; i < carried; ++i) {
      const Type& returned = body.results[i]->type;
      if (implies(returned, entering[i])) continue;
      if (entering[i].kind != returned.kind || entering[i].dtype != returned.dtype) return false;
      entering[i] = join(entering[i], returned);
      stable = false;
    }
    if (!stable) continue;
    for (auto& region : node.regions)
      for (size_t i = 0; i < carried; ++i) narrow(*region->params[i], entering[i]);
    return true;
  }
  return false;
}

void infer_loop(Node& node, const Module* module, int depth) {
  const auto carried = carried_count(node);
  std::vector<Type> entering;
  bool gains = false;
  for (size_t i = 0; i < carried; ++i) {
    const Type& declared = node.regions[1]->params[i]->type;
    const Type& given = node.inputs[i]->type;
    entering.push_back(compatible(declared, given) ? meet(declared, given) : declared);
    gains = gains || entering.back() != declared;
  }
  if (gains && depth < kTrialDepth) carry(node, carried, std::move(entering), depth);
  for (auto& region : node.regions) {
    for (size_t i = carried; i < node.inputs.size(); ++i) narrow(*region->params[i], node.inputs[i]->type);
    infer_nodes(*region, module, depth + 1);
  }
}

void infer_branches(Node& node, const Module* module, int depth) {
  for (auto& region : node.regions) {
    for (size_t i = 0; i < region->params.size(); ++i) narrow(*region->params[i], node.inputs[i + 1]->type);
    infer_nodes(*region, module, depth + 1);
  }
}

void infer_regions(Node& node, const Module* module, int depth) {
  if (node.regions.empty()) return;
  is_loop(node) ? infer_loop(node, module, depth) : infer_branches(node, module, depth);
}

void infer_nodes(Block& block, const Module* module, int depth) {
  for (auto& node : block.nodes) {
    ++visits;
    infer_regions(*node, module, depth);
    infer_node(*node, module);
  }
}

}  // namespace

bool infer_node(Node& node, const Module* module) {
  std::vector<Type> known, types;
  for (const auto& result : node.results) known.push_back(result->type);
  try {
    types = refine(*node.op, infer_types(*node.op, node.inputs, node.attributes, node.regions), known);
  } catch (const Error& fault) {
    if (!module) throw;
    throw Error(fault.kind(), where(*module, node), fault.what());
  }
  bool gained = false;
  for (size_t i = 0; i < types.size(); ++i) {
    gained = gained || types[i] != known[i];
    node.result(i)->type = std::move(types[i]);
  }
  return gained;
}

void infer_block(Block& block, const Module* module) { infer_nodes(block, module, 0); }

void infer_changed(Node& node, PointerSet<const Value*>& changed, bool inside) {
  const bool known = std::all_of(node.results.begin(), node.results.end(),
                                 [](const auto& result) { return result->type.is_static(); });
  if (known && node.regions.empty() &&
      std::none_of(node.inputs.begin(), node.inputs.end(), [&](const Value* value) { return changed.count(value); }))
    return;
  ++visits;
  if (inside) infer_regions(node, nullptr, 0);
  if (!infer_node(node)) return;
  for (const auto& result : node.results) changed.insert(result.get());
}

}  // namespace cairn
