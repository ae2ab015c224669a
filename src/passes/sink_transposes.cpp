// Chooses a layout for every region of connected layout-agnostic nodes, such that transposes at its border cancel if
// this moves fewer elements. A model in NCHW, whose convolutions are NHWC between transposes, becomes NHWC throughout.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "passes/facts.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/refusals.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

/// How a node's parameters refer to dims.
enum class Moves { no, freely, axis, axes, drops_axes, rows, bounds };

struct Movable {
  const char* op;
  Moves moves;
  size_t takes = 1;  // the first inputs, which have the permuted dims, as has the first result
};

// Ops that are not element-wise and can work on permuted dims.
constexpr Movable kMovable[] = {
    {"softmax", Moves::axis},
    {"log_softmax", Moves::axis},
    {"cumsum", Moves::axis},
    {"batch_norm", Moves::axis},
    {"concat", Moves::axis},
    {"reduce_sum", Moves::axes},
    {"reduce_mean", Moves::axes},
    {"reduce_max", Moves::axes},
    {"reduce_min", Moves::axes},
    {"reduce_prod", Moves::axes},
    {"reduce_all", Moves::axes},
    {"reduce_any", Moves::axes},
    {"reverse", Moves::axes},
    {"pad", Moves::rows},
    {"tile", Moves::rows},
    {"slice", Moves::bounds},
    {"batch_norm_training", Moves::axis},
    {"batch_norm_gradient", Moves::axis, 2},
};

const Movable& table_entry(const Node& node) {
  static const auto table = [] {
    std::unordered_map<const OpDef*, const Movable*> entries;
    for (const Movable& row : kMovable) entries[&op_named(row.op)] = &row;
    return entries;
  }();
  static constexpr Movable kNone{"", Moves::no};
  auto found = table.find(node.op);
  return found == table.end() ? kNone : *found->second;
}

bool ranked(const Value* value) { return value->type.is_tensor() && value->type.shape.ranked; }

size_t rank_of(const Value* value) { return value->type.shape.rank(); }

Moves moves_of(const Node& node) {
  if (node.results.empty() || node.inputs.empty() || !ranked(node.result())) return Moves::no;
  for (const Value* input : node.inputs)
    if (!ranked(input)) return Moves::no;
  size_t rank = rank_of(node.inputs[0]);
  if (node.op->has(kElementwise)) {
    if (node.results.size() != 1) return Moves::no;
    rank = rank_of(node.result());
    for (const Value* input : node.inputs)
      if (rank_of(input) < rank && !reshape_operand(input->type.shape.dims)) return Moves::no;
    return rank >= 2 ? Moves::freely : Moves::no;
  }
  Moves moves = rank >= 2 ? table_entry(node).moves : Moves::no;
  if (moves == Moves::axes && node.op->find_attribute("keep_dims") && !node.attr().boolean("keep_dims"))
    return Moves::drops_axes;
  if (moves == Moves::rows || moves == Moves::bounds)
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (!constant_of(node.inputs[i])) return Moves::no;
  return moves;
}

/// Whether input i has the permuted dims.
bool takes_layout(const Node& node, size_t i) {
  return node.op->has(kElementwise) || node.op->inputs[0].arity == InputDef::Arity::variadic ||
         i < table_entry(node).takes;
}

double cost_of(const Value* value) {
  double elements = 1;
  for (const Dim& dim : value->type.shape.dims) elements *= dim.known() ? static_cast<double>(dim.size) : 16;
  return elements;
}

bool is_transpose(const Node* node) { return node && node->is("transpose"); }

/// The permutation of the dims that a reduction keeps when its input is permuted: result = transpose(new result, this).
Permutation remaining(const Node& node, const Permutation& permutation) {
  std::set<size_t> dropped;
  for (int64_t axis : node.attr().integers("axes")) dropped.insert(axis_of(axis, permutation.size()));
  std::map<int64_t, int64_t> place;  // position of each kept new axis
  for (size_t i = 0; i < permutation.size(); ++i)
    if (!dropped.count(i)) place[permutation[i]] = 0;
  int64_t next = 0;
  for (auto& [axis, at] : place) at = next++;
  Permutation result;
  for (size_t i = 0; i < permutation.size(); ++i)
    if (!dropped.count(i)) result.push_back(place[permutation[i]]);
  return result;
}

/// Connected nodes that must agree on a layout.
class Regions {
 public:
  explicit Regions(const Block& block) {
    for (const auto& node : block.nodes) {
      size_t index = parent_.size();
      nodes_[node.get()] = index;
      parent_.push_back(index);
      moves_.push_back(moves_of(*node));
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        users_[node->inputs[i]].push_back(node.get());
        ++visits;
        if (moves_[index] != Moves::no && takes_layout(*node, i) && inside(node->inputs[i], rank(*node)))
          join(index, nodes_[node->inputs[i]->producer]);
      }
    }
    for (const Value* result : block.results) users_[result].push_back(nullptr);
  }

  Moves moves(const Node& node) const { return moves_[nodes_.at(&node)]; }

  /// The permutations of the regions that are better computed as y' with y = transpose(y', permutation). Chosen by
  /// largest gain; of two regions joined by a transpose only one changes, since that transpose can be removed only
  /// once.
  std::map<size_t, Permutation> choose(const Block& block) {
    std::map<size_t, std::vector<const Node*>> regions;
    for (const auto& node : block.nodes)
      if (moves(*node) != Moves::no) regions[root(nodes_.at(node.get()))].push_back(node.get());
    std::vector<std::tuple<double, size_t, Permutation>> wishes;
    for (const auto& [region, members] : regions)
      for (const Permutation& permutation : candidates(members))
        if (double gain = gain_of(region, members, permutation); gain > 0)
          wishes.emplace_back(-gain, region, permutation);
    std::sort(wishes.begin(), wishes.end());
    std::map<size_t, Permutation> chosen;
    std::set<size_t> locked;
    for (const auto& [loss, region, permutation] : wishes) {
      if (locked.count(region) || !chosen.emplace(region, permutation).second) continue;
      for (const Node* node : regions[region]) lock_neighbours(*node, locked);
    }
    return chosen;
  }

  size_t region(const Node& node) { return root(nodes_.at(&node)); }

 private:
  static size_t rank(const Node& node) {
    return node.op->has(kElementwise) ? rank_of(node.result()) : rank_of(node.inputs[0]);
  }

  // Whether the value is computed by a movable node and has the region's rank.
  bool inside(const Value* value, size_t rank) const {
    auto found = nodes_.find(value->producer);
    if (found == nodes_.end() || rank_of(value) != rank) return false;
    return moves_[found->second] != Moves::no && moves_[found->second] != Moves::drops_axes;
  }

  size_t root(size_t index) {
    for (; parent_[index] != index; ++visits) index = parent_[index] = parent_[parent_[index]];
    return index;
  }
  void join(size_t a, size_t b) { parent_[root(a)] = root(b); }

  bool belongs(const Node* node, size_t region) {
    ++visits;
    return node && moves(*node) != Moves::no && root(nodes_.at(node)) == region;
  }

  void lock(const Node* node, std::set<size_t>& locked) {
    ++visits;
    if (auto found = nodes_.find(node); found != nodes_.end() && moves_[found->second] != Moves::no)
      locked.insert(root(found->second));
  }

  void lock_neighbours(const Node& node, std::set<size_t>& locked) {
    for (const Value* input : node.inputs)
      if (is_transpose(input->producer)) lock(input->producer->inputs[0]->producer, locked);
    for (const Node* user : users_[node.result()])
      if (is_transpose(user))
        for (const Node* next : users_[user->result()]) lock(next, locked);
  }

  std::vector<Permutation> candidates(const std::vector<const Node*>& members) {
    std::set<Permutation> found;
    for (const Node* node : members) {
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (takes_layout(*node, i) && is_transpose(node->inputs[i]->producer) &&
            rank_of(node->inputs[i]) == rank(*node))
          found.insert(permutation_of(*node->inputs[i]->producer));
      if (moves(*node) != Moves::drops_axes)
        for (const Node* user : users_[node->result()])
          if (is_transpose(user)) found.insert(inverse(permutation_of(*user)));
      if (found.size() > 4) break;
    }
    return {found.begin(), found.end()};
  }

  double gain_of(size_t region, const std::vector<const Node*>& members, const Permutation& permutation) {
    double gain = 0;
    std::set<const Value*> seen;
    for (const Node* node : members) {
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (takes_layout(*node, i) && seen.insert(node->inputs[i]).second)
          gain += gain_at_input(region, *node, node->inputs[i], permutation);
      gain += gain_at_result(region, *node, permutation);
    }
    return gain;
  }

  // Whether a transpose before this reshape would be one with that behind it, or behind it with that before it.
  bool takes_transposes(const Node* node, bool before) {
    if (!node || !node->is("reshape") || users_[node->result()].size() != 1) return false;
    const Node* other = before ? users_[node->result()].front() : node->inputs[0]->producer;
    return is_transpose(other) && common_dims(node->inputs[0]->type.shape, node->result()->type.shape).has_value();
  }

  double gain_at_input(size_t region, const Node& node, const Value* value, const Permutation& permutation) {
    if (constant_of(value) || rank_of(value) == 0 || inside(value, rank(node))) return 0;
    if (rank_of(value) < rank(node)) return rank_of(value) == 1 ? 0 : -cost_of(value);  // rank 1: only a reshape
    if (takes_transposes(value->producer, false)) return 0;
    if (!is_transpose(value->producer)) return -cost_of(value);
    const auto& users = users_[value];
    bool vanishes = std::all_of(users.begin(), users.end(), [&](const Node* user) { return belongs(user, region); });
    bool cancels =
        permutation_of(*value->producer) == permutation && !belongs(value->producer->inputs[0]->producer, region);
    return (vanishes ? cost_of(value) : 0) - (cancels ? 0 : cost_of(value));
  }

  bool feeds(const Node& node, size_t region) {
    const auto& users = users_[node.result()];
    return std::any_of(users.begin(), users.end(), [&](const Node* user) { return belongs(user, region); });
  }

  double gain_at_result(size_t region, const Node& node, const Permutation& permutation) {
    if (moves(node) == Moves::drops_axes)
      return is_identity(remaining(node, permutation)) ? 0 : -cost_of(node.result());
    double gain = 0;
    bool needed = false;
    for (const Node* user : users_[node.result()]) {
      if (belongs(user, region) || (user && user->op->has(kShapeOnly)) || takes_transposes(user, true)) continue;
      if (!is_transpose(user))
        needed = true;
      else if (!feeds(*user, region) && is_identity(compose(permutation, permutation_of(*user))))
        gain += cost_of(node.result());
    }
    return gain - (needed ? cost_of(node.result()) : 0);
  }

  std::unordered_map<const Node*, size_t> nodes_;
  std::vector<size_t> parent_;
  std::vector<Moves> moves_;
  std::unordered_map<const Value*, std::vector<const Node*>> users_;
};

/// Rebuilds the nodes of the chosen regions in their new layout.
class Relayout {
 public:
  explicit Relayout(Rewriter& rewriter) : rewriter_(rewriter) {}

  std::vector<Value*> rebuild(Node& node, Moves moves, const Permutation& permutation) {
    std::vector<Value*> inputs = node.inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (takes_layout(node, i)) inputs[i] = moved(inputs[i], permutation);
    Attributes attributes = node.attributes;
    move_parameters(node, moves, permutation, inputs, attributes);
    Permutation back = moves == Moves::drops_axes ? remaining(node, permutation) : permutation;
    std::vector<Type> types{moved(node.result()->type, inverse(back))};
    for (size_t i = 1; i < node.results.size(); ++i) types.push_back(node.result(i)->type);
    Value* made = rewriter_.add(*node.op, std::move(inputs), std::move(attributes), types);
    std::vector<Value*> results = results_of(*made->producer);
    for (size_t i = 0; i < results.size(); ++i) results[i]->name = node.result(i)->name;
    if (is_identity(back)) return results;
    results[0] = rewriter_.add("transpose", {made}, {{"permutation", back}});
    if (moves != Moves::drops_axes) inner_[results[0]] = made;
    return results;
  }

 private:
  static Type moved(const Type& type, const Permutation& permutation) {
    Type result = type;
    for (size_t i = 0; i < permutation.size(); ++i)
      result.shape.dims[i] = type.shape.dims[static_cast<size_t>(permutation[i])];
    return result;
  }

  Value* folded(Value* value) {
    fold_node(*value->producer, rewriter_.place(), size_t{1} << 30);
    return value;
  }

  // transpose(value, inverse(permutation)), simplified.
  Value* moved(Value* value, const Permutation& permutation) {
    if (auto found = inner_.find(value); found != inner_.end()) return found->second;
    if (rank_of(value) == 0) return value;
    auto [entry, fresh] = border_.try_emplace({value, permutation}, nullptr);
    if (!fresh) return entry->second;
    Permutation back = inverse(permutation);
    Value* from = value;
    if (rank_of(value) < permutation.size()) {
      std::vector<Dim> dims(permutation.size() - rank_of(value), Dim(1));
      dims.insert(dims.end(), value->type.shape.dims.begin(), value->type.shape.dims.end());
      from = folded(rewriter_.add("reshape", {value, rewriter_.constant(Tensor::of_i64(*reshape_operand(dims)))}));
    } else if (is_transpose(value->producer)) {
      rewriter_.note(*value->producer, Removal::identity);
      back = compose(permutation_of(*value->producer), back);
      from = value->producer->inputs[0];
    }
    if (!is_identity(back)) from = folded(rewriter_.add("transpose", {from}, {{"permutation", back}}));
    return entry->second = from;
  }

  void move_parameters(const Node& node, Moves moves, const Permutation& permutation, std::vector<Value*>& inputs,
                       Attributes& attributes) {
    size_t rank = permutation.size();
    if (moves == Moves::axis) {
      int64_t axis = permutation[axis_of(node.attr().integer("axis"), rank)];
      attributes.set("axis",
                     node.op->find_attribute("epsilon") && axis + 1 == static_cast<int64_t>(rank) ? int64_t{-1} : axis);
    } else if (moves == Moves::axes || moves == Moves::drops_axes) {
      std::vector<int64_t> axes;
      for (int64_t axis : node.attr().integers("axes")) axes.push_back(permutation[axis_of(axis, rank)]);
      std::sort(axes.begin(), axes.end());
      attributes.set("axes", axes);
    } else if (moves == Moves::rows || moves == Moves::bounds) {
      for (size_t i = 1; i < inputs.size(); ++i) inputs[i] = moved_rows(*constant_of(inputs[i]), permutation);
      const Attribute* steps = attributes.find("steps");
      if (steps && !std::get<std::vector<int64_t>>(*steps).empty()) {
        std::vector<int64_t> moved_steps(rank);
        for (size_t i = 0; i < rank; ++i)
          moved_steps[static_cast<size_t>(permutation[i])] = std::get<std::vector<int64_t>>(*steps)[i];
        attributes.set("steps", moved_steps);
      }
    }
  }

  // Row i becomes row permutation[i].
  Value* moved_rows(const Tensor& tensor, const Permutation& permutation) {
    auto values = tensor.as_i64();
    size_t width = values.size() / permutation.size();
    std::vector<int64_t> rows(values.size());
    for (size_t i = 0; i < permutation.size(); ++i)
      std::copy_n(values.begin() + static_cast<long>(i * width), width,
                  rows.begin() + permutation[i] * static_cast<long>(width));
    return rewriter_.constant(integers_like(tensor.type(), rows).reshaped(tensor.dims()));
  }

  Rewriter& rewriter_;
  std::unordered_map<const Value*, Value*> inner_;  // value -> its equal in the region's layout
  std::map<std::pair<const Value*, Permutation>, Value*> border_;
};

}  // namespace

size_t sink_transposes(Block& block, Module& module) {
  size_t inner = 0;
  for (auto& node : block.nodes)
    for (auto& region : node->regions) inner += sink_transposes(*region, module);
  Regions regions(block);
  auto chosen = regions.choose(block);
  if (chosen.empty()) return inner;
  Rewriter rewriter(block, &module);
  Relayout relayout(rewriter);
  return inner + rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    Moves moves = regions.moves(node);
    if (moves == Moves::no) return {};
    auto found = chosen.find(regions.region(node));
    if (found == chosen.end()) return {};
    try {
      return relayout.rebuild(node, moves, found->second);
    } catch (const Error& fault) {
      note_refusal("sink_transposes", node, fault);
      return {};
    }
  });
}

}  // namespace cairn
