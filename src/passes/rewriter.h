// Rewrites a block in one walk in program order. Users are never searched: a map of replaced values is applied to the
// inputs of every node as the walk reaches it, and uses are counted once, so time is linear in nodes.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/builder.h"

namespace cairn {

class Rewriter {
 public:
  /// `module` receives reasons for removal, may be null.
  explicit Rewriter(Block& block, Module* module);

  /// What replaces the node's results, one value each; none keeps the node.
  using Visit = std::function<std::optional<std::vector<Value*>>(Node& node)>;
  /// Visits every node of the block (not of its regions) once its inputs are up to date. Nodes made by add() stand
  /// before the visited one and are not visited. Returns how many nodes were replaced.
  size_t run(const Visit& visit);

  /// A new node with the sources set by inherit(); `known` is what is known of its type beyond inference.
  Value* add(const OpDef& op, std::vector<Value*> inputs, Attributes attributes = {},
             const std::vector<Type>& known = {});
  Value* add(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {}) {
    return add(op_named(op), std::move(inputs), std::move(attributes));
  }
  Value* constant(Tensor value) { return add("constant", {}, {{"value", Attribute(std::move(value))}}); }
  /// The same op and attributes on other inputs.
  Value* like(const Node& node, std::vector<Value*> inputs) {
    return add(*node.op, std::move(inputs), node.attributes);
  }

  /// Sources of the nodes that add() makes from now on, and during one visit.
  void inherit(std::vector<SourceId> sources) { sources_ = std::move(sources); }
  const std::vector<SourceId>& inherited() const { return sources_; }
  /// Notes why the sources of this node may have no node in the end.
  void note(const Node& node, Removal removal);

  /// How often a value is used by nodes that are alive, and as a result of the block.
  size_t uses(const Value* value) const;
  /// True for values of nodes that add() made during the current visit.
  bool fresh(const Value* value) const { return fresh_.count(value) != 0; }
  /// The value as it stands now.
  Value* current(Value* value) const;

  /// Where new nodes go, for code that makes nodes itself; call adopt() for each.
  std::vector<std::unique_ptr<Node>>& place() { return nodes_; }
  void adopt(Node& node);
  /// The node's inputs lose a use each.
  void disown(const std::vector<Value*>& inputs);

 private:
  bool replace(Node& node, const std::vector<Value*>& values);

  Block& block_;
  Module* module_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Node>> replaced_nodes_;  // kept until the end: their values are keys
  std::unordered_map<const Value*, Value*> replaced_;
  std::unordered_map<const Value*, size_t> uses_;
  std::unordered_set<const Value*> fresh_;
  std::unordered_set<const Node*> noted_;  // the first note counts
  std::vector<SourceId> sources_;
};

/// Ids of both, each once, in the order of the model: the first names the node.
std::vector<SourceId> merged(std::vector<SourceId> a, const std::vector<SourceId>& b);

}  // namespace cairn
