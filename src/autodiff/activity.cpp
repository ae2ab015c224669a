#include "autodiff/activity.h"

#include <algorithm>

#include "ir/control.h"

namespace cairn {

bool is_differentiable(const Type& type) {
  if (type.kind == Type::Kind::list) return type.elements.size() == 1 && is_differentiable(type.elements[0]);
  return type.is_tensor() && (type.dtype.is_float() || type.dtype.kind == DType::Kind::complex_float);
}

bool carries_gradient(const Node& node, size_t i) {
  return is_differentiable(node.inputs[i]->type) && (node.op->has(kControl) || node.op->role(i) == Role::data);
}

void Activity::spread(const Block& block) {
  for (const auto& node : block.nodes) spread(*node);
}

void Activity::spread(const Node& node) {
  if (is_loop(node)) {
    while (spread_loop(node)) {
    }
    return;
  }
  if (!node.regions.empty()) {
    for (const auto& region : node.regions) {
      for (size_t i = 0; i < region->params.size(); ++i)
        if ((*this)(node.inputs[i + 1])) mark(region->params[i].get());
      spread(*region);
      for (size_t i = 0; i < region->results.size(); ++i)
        if ((*this)(region->results[i])) mark(node.result(i));
    }
    return;
  }
  bool any = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) any = any || ((*this)(node.inputs[i]) && carries_gradient(node, i));
  for (const auto& result : node.results)
    if (any && is_differentiable(result->type)) mark(result.get());
}

// Propagates through one iteration of the loop. Returns whether a new carried value became active, so that another
// iteration is necessary (fixed point).
bool Activity::spread_loop(const Node& node) {
  const Block& body = *node.regions[1];
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if ((*this)(node.inputs[i])) mark(body.params[i].get());
  spread(body);
  bool changed = false;
  for (size_t i = 0; i < body.results.size(); ++i) {
    if ((*this)(body.results[i]) && active_.insert(body.params[i].get()).second) changed = true;
    if ((*this)(body.params[i].get())) mark(node.result(i));
  }
  return changed;
}

std::vector<bool> params_reaching(const Block& block, const std::vector<bool>& results) {
  std::unordered_set<const Value*> useful;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i]) useful.insert(block.results[i]);
  for (size_t n = block.nodes.size(); n-- > 0;) {
    const Node& node = *block.nodes[n];
    if (std::none_of(node.results.begin(), node.results.end(),
                     [&](const auto& result) { return useful.count(result.get()) != 0; }))
      continue;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (carries_gradient(node, i)) useful.insert(node.inputs[i]);
  }
  std::vector<bool> reaching;
  for (const auto& param : block.params) reaching.push_back(useful.count(param.get()) != 0);
  return reaching;
}

}  // namespace cairn
