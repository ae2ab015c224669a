// Replaces operators from users that are defined by other operators with these.
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

constexpr int kMostLevels = 64;  // nested operators from users

/// The decomposition of a node, with a param for each input that is not a constant.
std::unique_ptr<Block> decomposition(const Node& node, const Captures& captures) {
  Node inner;
  inner.op = node.op;
  inner.attributes = node.attributes;
  std::unique_ptr<Block> body = captures.open(inner.inputs);
  Builder builder(*body);
  builder.sources = node.sources;
  body->results = node.op->decompose(builder, inner);
  return body;
}

bool expands(const OpDef& op) { return op.user && op.decompose && !op.reference; }

}  // namespace

size_t expand_user_ops(Module& module) {
  size_t changes = 0;
  if (user_ops().empty()) return changes;
  for (int level = 0;; ++level) {
    size_t expanded = 0;
    auto expand = [&](Rewriter& rewriter, Node& node) -> std::optional<std::vector<Value*>> {
      if (!expands(*node.op)) return {};
      if (level == kMostLevels)
        fail(ErrorKind::invalid_argument, node.op->name, "its decompositions are nested deeper than {}", kMostLevels);
      const Captures captures(node.inputs);
      const std::unique_ptr<Block> body = decomposition(node, captures);
      return splice(rewriter, *body, node, captures.inputs());
    };
    for (const auto& function : module.functions)
      for_each_block(function->body, [&](Block& block) {
        Rewriter rewriter(block, &module);
        expanded += rewriter.run([&](Node& node) { return expand(rewriter, node); });
      });
    if (expanded == 0) return changes;
    changes += expanded;
  }
}

}  // namespace cairn
