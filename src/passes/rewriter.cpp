#include "passes/rewriter.h"

#include <algorithm>

#include "ir/result_marks.h"
#include "passes/passes.h"
#include "passes/refusals.h"

namespace cairn {

std::vector<SourceId> merged(std::vector<SourceId> a, const std::vector<SourceId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

Rewriter::Rewriter(Block& block, Module* module) : block_(block), module_(module) {
  for (const auto& node : block.nodes)
    for (const Value* input : node->inputs) ++uses_[input], ++visits;
  for (const Value* result : block.results) ++uses_[result];
}

size_t Rewriter::uses(const Value* value) const {
  auto found = uses_.find(value);
  return found == uses_.end() ? 0 : found->second;
}

Value* Rewriter::current(Value* value) const {
  auto found = replaced_.find(value);
  return found == replaced_.end() ? value : found->second;
}

size_t Rewriter::run(const Visit& visit) {
  size_t changes = 0;
  nodes_.reserve(block_.nodes.size());
  for (auto& owned : block_.nodes) {
    Node& node = *owned;
    ++visits;
    for (Value*& input : node.inputs) input = current(input);
    fresh_.clear();
    inherit(module_ && node.results.size() > 1 ? plain_sources(*module_, node.sources) : node.sources);
    auto values = visit(node);
    if (values && replace(node, *values)) {
      ++changes;
      replaced_nodes_.push_back(std::move(owned));
    } else {
      nodes_.push_back(std::move(owned));
    }
  }
  block_.nodes = std::move(nodes_);
  for (Value*& result : block_.results) result = current(result);
  return changes;
}

Value* Rewriter::add(const OpDef& op, std::vector<Value*> inputs, Attributes attributes,
                     const std::vector<Type>& known) {
  Block scratch;
  Builder builder(scratch);
  builder.sources = sources_;
  builder.add_node(op, std::move(inputs), std::move(attributes), {}, known);
  nodes_.push_back(std::move(scratch.nodes.front()));
  adopt(*nodes_.back());
  return nodes_.back()->result();
}

void Rewriter::adopt(Node& node) {
  for (const Value* input : node.inputs) ++uses_[input];
  for (const auto& result : node.results) fresh_.insert(result.get());
}

void Rewriter::disown(const std::vector<Value*>& inputs) {
  std::vector<Node*> dead;
  auto drop = [&](const Value* value) {
    ++visits;
    if (--uses_[value] > 0 || !value->producer || !value->producer->op->pure()) return;
    for (const auto& result : value->producer->results)
      if (uses(result.get()) > 0) return;
    dead.push_back(value->producer);
  };
  for (const Value* input : inputs) drop(input);
  while (!dead.empty()) {
    Node* node = dead.back();
    dead.pop_back();
    for (const Value* input : node->inputs) drop(input);
  }
}

void Rewriter::note(const Node& node, Removal removal) {
  if (!module_ || !noted_.insert(&node).second) return;
  visits += node.sources.size();
  for (SourceId id : node.sources) module_->removed.emplace(id, removal);
}

bool Rewriter::replace(Node& node, const std::vector<Value*>& values) {
  CHECK(values.size() == node.results.size(), "{} values for {} results of {}", values.size(), node.results.size(),
        node.op->name);
  for (size_t i = 0; i < values.size(); ++i) {
    const Type& known = node.result(i)->type;
    if (!compatible(values[i]->type, known)) {
      note_refusal(
          "rewriter", node,
          Error(ErrorKind::invalid_model, "", fmt::format("{} for {}", to_string(values[i]->type), to_string(known))));
      return false;
    }
    if (!values[i]->producer && meet(values[i]->type, known) != values[i]->type)
      return false;  // the type of a param cannot be narrowed
  }
  for (size_t i = 0; i < values.size(); ++i) {
    Value* old = node.result(i);
    if (values[i]->producer) values[i]->type = meet(values[i]->type, old->type);
    if (fresh(values[i]) || values[i]->name.empty()) values[i]->name = old->name;
    uses_[values[i]] += uses(old);
    uses_[old] = 0;
    replaced_[old] = values[i];
  }
  if (module_ && values.size() > 1)
    carry_marks(*module_, node, values, [&](const Value* value) { return fresh(value); });
  disown(node.inputs);
  return true;
}

}  // namespace cairn
