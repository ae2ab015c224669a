// Rewrites a block in one walk in program order, in linear time: instead of searching the users of a replaced value,
// the walk applies the map of replaced values to the inputs of every node that it reaches. Uses are counted once.
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
  /// `module` receives the reasons for removals; may be null.
  explicit Rewriter(Block& block, Module* module);

  /// Returns one value per result that replaces it, or nothing to keep the node.
  using Visit = std::function<std::optional<std::vector<Value*>>(Node& node)>;
  /// Visits every node of the block (not of its regions) with updated inputs. Nodes made by add() are inserted before
  /// the visited one and are not visited. Returns the number of replaced nodes.
  size_t run(const Visit& visit);

  /// The result of a new node with the sources set by inherit(); `known`: what is known of its type beyond inference.
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

  /// Sets the sources of nodes that add() makes during the rest of the visit.
  void inherit(std::vector<SourceId> sources) { sources_ = std::move(sources); }
  const std::vector<SourceId>& inherited() const { return sources_; }
  /// Records why the sources of this node may have no node in the end.
  void note(const Node& node, Removal removal);

  /// The number of uses of a value by live nodes and as a result of the block.
  size_t uses(const Value* value) const;
  /// True for values of nodes that add() made during the current visit.
  bool fresh(const Value* value) const { return fresh_.count(value) != 0; }
  /// The value that replaces `value` now; itself if it was not replaced.
  Value* current(Value* value) const;

  /// The list to which code that makes nodes itself appends them; call adopt() for each.
  std::vector<std::unique_ptr<Node>>& place() { return nodes_; }
  void adopt(Node& node);
  /// Decrements the use count of each input.
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
  std::unordered_set<const Node*> noted_;  // nodes with a recorded reason; the first one is kept
  std::vector<SourceId> sources_;
};

/// The union of both in the order of the model; the first one names the node.
std::vector<SourceId> merged(std::vector<SourceId> a, const std::vector<SourceId>& b);

}  // namespace cairn
