#include "plan/decompose.h"

#include <algorithm>
#include <unordered_map>

#include "ir/builder.h"
#include "passes/pipeline.h"
#include "plan/batch_slices.h"
#include "plan/items.h"
#include "plan/keep_narrow.h"
#include "plan/narrow_scans.h"
#include "plan/scans.h"

namespace cairn {

namespace {

constexpr size_t kDeepest = 4;  // nested decompositions

bool is_narrow(const Type& type) { return type.is_tensor() && type.dtype.is_float() && type.dtype.bits < 32; }

/// Whether the node's op can be computed on f32 instead of narrower floats.
bool can_widen(const Node& node) {
  const bool narrow =
      std::any_of(node.inputs.begin(), node.inputs.end(), [](const Value* x) { return is_narrow(x->type); });
  const bool typed = std::any_of(node.op->attributes.begin(), node.op->attributes.end(), [](const AttrDef& attribute) {
    return attribute.kind == AttrKind::dtype || attribute.kind == AttrKind::type || attribute.kind == AttrKind::tensor;
  });
  return narrow && !typed && node.op->pure() && !node.op->has(kControl | kHostValue | kNotFoldable);
}

std::vector<Value*> widen(Builder& builder, const Node& node) {
  std::vector<Value*> inputs = node.inputs, results;
  for (Value*& input : inputs)
    if (is_narrow(input->type)) input = builder.add("cast", {input}, {{"dtype", kF32}});
  const Node* wide = builder.add_node(*node.op, std::move(inputs), node.attributes);
  for (const auto& result : node.results) {
    Value* made = wide->result(result->index);
    results.push_back(is_narrow(result->type) ? builder.add("cast", {made}, {{"dtype", result->type.dtype}}) : made);
  }
  return results;
}

/// The replacement of a node: for narrow floats the op on f32, so that no intermediate result is rounded, else its
/// decomposition. `block.results` replace the results of the node.
Block parts_of(const Module& module, const Node& node) {
  Block block;
  Builder builder(block);
  builder.sources = node.sources;
  block.results = can_widen(node) ? widen(builder, node) : node.op->decompose(builder, node);
  bool same = block.results.size() == node.results.size();
  for (size_t i = 0; same && i < node.results.size(); ++i) same = block.results[i]->type == node.result(i)->type;
  if (!same)
    fail(ErrorKind::invalid_model, where(module, node), "the decomposition of {} makes other types than the op",
         node.op->name);
  return block;
}

/// Whether parts_of() has a replacement. The kernel of a user's operator is preferred to its decomposition.
bool has_parts(const Node& node) {
  return (node.op->decompose && !(node.op->user && node.op->reference)) || can_widen(node);
}

bool all_static(const Node& node) {
  return std::none_of(node.inputs.begin(), node.inputs.end(), [](const Value* x) { return is_host_object(x->type); }) &&
         std::none_of(node.results.begin(), node.results.end(), [](const auto& y) { return is_host_object(y->type); });
}

class Decomposer {
 public:
  Decomposer(const Module& module, Block& block, const PlanOptions& options)
      : module_(module), block_(block), fast_(options.engines.begin(), options.engines.end() - 1),
        last_(*options.engines.back()) {}

  /// The positions of the nodes that it replaced; those in `chosen`, if given, without asking the engines.
  std::vector<size_t> run(const std::vector<size_t>* chosen) {
    std::vector<size_t> replaced;
    if (!chosen) find_refused();
    if (chosen ? chosen->empty() : refused_.empty()) return replaced;
    std::vector<std::unique_ptr<Node>> nodes;
    for (size_t place = 0; place < block_.nodes.size(); ++place) {
      auto& node = block_.nodes[place];
      for (Value*& input : node->inputs) input = current(input);
      if (!(chosen ? has_parts(*node) && std::binary_search(chosen->begin(), chosen->end(), place) : wanted(*node))) {
        nodes.push_back(std::move(node));
        continue;
      }
      replaced.push_back(place);
      Block parts = parts_of(module_, *node);
      for (size_t i = 0; i < node->results.size(); ++i) {
        if (parts.results[i]->producer && parts.results[i]->name.empty())
          parts.results[i]->name = node->result(i)->name;
        replaced_[node->result(i)] = parts.results[i];
      }
      std::move(parts.nodes.begin(), parts.nodes.end(), std::back_inserter(nodes));
      gone_.push_back(std::move(node));
    }
    block_.nodes = std::move(nodes);
    for (Value*& result : block_.results) result = current(result);
    return replaced;
  }

 private:
  bool wanted(const Node& node) const {
    const auto refused = refused_.find(&node);
    return refused != refused_.end() && (refused->second || pays(node, 0));
  }

  void find_refused() {
    const Uses uses(block_);
    for (const auto& node : block_.nodes)
      if (has_parts(*node) && !taken(*node, uses))
        refused_.emplace(node.get(), !last_.takes(make_group({node.get()}, uses)));
    if (refused_.empty()) return;
    for (const Engine* engine : fast_)
      for (const Group& group : engine->propose(block_, uses))
        for (const Node* node : group.nodes) refused_.erase(node);
  }

  bool taken(const Node& node, const Uses& uses) const {
    const Group group = make_group({&node}, uses);
    return std::any_of(fast_.begin(), fast_.end(), [&](const Engine* engine) { return engine->takes(group); });
  }

  /// Whether the fast engines take all nodes of the node's decomposition.
  bool pays(const Node& node, size_t depth) const {
    if (fast_.empty() || depth == kDeepest || !all_static(node)) return false;
    const Block parts = parts_of(module_, node);
    const Uses uses(parts);
    return std::all_of(parts.nodes.begin(), parts.nodes.end(), [&](const auto& part) {
      const bool free = part->op->inputs.empty() || is_view(*part);
      return free || taken(*part, uses) || (has_parts(*part) && pays(*part, depth + 1));
    });
  }

  Value* current(Value* value) const {
    const auto found = replaced_.find(value);
    return found == replaced_.end() ? value : found->second;
  }

  const Module& module_;
  Block& block_;
  const std::vector<const Engine*> fast_;
  const Engine& last_;
  std::unordered_map<const Node*, bool> refused_;  // nodes that the fast engines refuse; true: so does the last one
  std::unordered_map<const Value*, Value*> replaced_;
  std::vector<std::unique_ptr<Node>> gone_;
};

}  // namespace

Decomposed decompose(const Module& module, Function& function, const PlanOptions& options, const Decomposed* like) {
  Decomposed rounds;
  for (size_t round = 0; round < (like ? like->size() : kDeepest); ++round) {
    auto replaced = Decomposer(module, function.body, options).run(like ? &(*like)[round] : nullptr);
    if (replaced.empty()) break;
    rounds.push_back(std::move(replaced));
  }
  if (rounds.empty()) return rounds;
  fold_constants(function.body, nullptr);
  remove_dead(function.body, nullptr);
  return rounds;
}

bool prepare(const Module& module, Function& function, const PlanOptions& options, Decomposed& decomposed,
             const Decomposed* like) {
  const bool on_host = std::all_of(options.engines.begin(), options.engines.end(),
                                   [](const Engine* engine) { return engine->memory().is_host(); });
  bool changed = on_host && make_scans(function.body);
  decomposed = decompose(module, function, options, like);
  changed = !decomposed.empty() || changed;
  changed = keep_narrow(function.body) || changed;
  if (on_host && narrow_scans(function.body)) {
    keep_narrow(function.body);
    changed = true;
  }
  const bool in_loop = options.first_that_stays != SIZE_MAX;
  if (on_host && !in_loop && !options.every_value && function.updates.empty())
    changed = slice_batches(function.body) || changed;
  return changed;
}

}  // namespace cairn
