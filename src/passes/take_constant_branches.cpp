// Replaces an `if` with a known condition by the chosen region, and a `while` that has no iteration by its inputs.
#include "ir/control.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

std::optional<bool> known_condition(const Value* value) {
  const Tensor* tensor = constant_of(value);
  if (!tensor || tensor->dtype() != kBool || tensor->count() != 1) return {};
  return tensor->values<uint8_t>()[0] != 0;
}

}  // namespace

size_t take_constant_branches(Block& block, Module& module) {
  size_t inner = 0;
  Rewriter rewriter(block, &module);
  size_t changes = rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    for (auto& region : node.regions) inner += take_constant_branches(*region, module);
    if (node.regions.size() != 2) return {};
    bool loop = is_loop(node);
    auto condition = known_condition(loop ? node.regions[0]->results[0] : node.inputs[0]);
    if (!condition || (loop && *condition)) return {};
    rewriter.note(node, Removal::identity);
    if (!loop) return splice(rewriter, *node.regions[*condition ? 0 : 1], node, std::span(node.inputs).subspan(1));
    return std::vector<Value*>(node.inputs.begin(), node.inputs.begin() + static_cast<long>(node.results.size()));
  });
  return changes + inner;
}

}  // namespace cairn
