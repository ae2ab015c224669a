#include "plan/keep_narrow.h"

#include <algorithm>

#include "engine/engine.h"
#include "ir/builder.h"
#include "passes/facts.h"
#include "passes/passes.h"

namespace cairn {

namespace {

bool is_narrow(const Value* value) {
  return value->type.is_tensor() && value->type.dtype.is_float() && value->type.dtype.bits == 16;
}
bool is_float(const Value* value) { return value->type.is_tensor() && value->type.dtype.is_float(); }
bool is_cast(const Value* value) { return value->producer && value->producer->is("cast"); }
/// Whether elements are moved only.
bool moves(const Node& node) {
  return makes_no_digits(node) && !node.op->has(kElementwise | kReduction) && !node.op->has(kControl) &&
         node.op->precision == Precision::exact && node.results.size() == 1 && node.result()->type.dtype == kF32;
}

/// Whether rounding before it is the same as rounding after it.
bool is_monotone(const Node& node) {
  constexpr std::string_view kNames[] = {"relu", "neg", "abs", "maximum", "minimum", "select", "identity"};
  return std::find(std::begin(kNames), std::end(kNames), node.op->name) != std::end(kNames);
}

}  // namespace

Value* narrow_source(const Value* value) {
  if (!is_cast(value) || value->type.dtype != kF32) return nullptr;
  Value* source = value->producer->inputs[0];
  return is_narrow(source) && !constant_of(source) ? source : nullptr;
}

bool is_representable(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() != kF32) return false;
  return std::ranges::all_of(tensor.values<float>(), [&](float value) {
    return (dtype == kF16 ? half_to_float(float_to_half(value)) : bfloat_to_float(float_to_bfloat(value))) == value;
  });
}

namespace {

class Narrowing {
 public:
  explicit Narrowing(Block& block) : block_(block) {}

  bool run() {
    const auto any_result = [&](auto is) {
      return std::any_of(block_.nodes.begin(), block_.nodes.end(),
                         [&](const auto& node) { return !node->results.empty() && is(node->result(0)); });
    };
    const bool widens = any_result(narrow_source),
               rounds = any_result([](const Value*value) { return is_cast(value) && is_narrow(value); });
    if (widens) {
      move_narrow();
      round_once();
      remove_dead(block_, nullptr);
      widen_at_users();
    }
    if (widens || rounds) round_params_again();
    return widens || rounds;
  }

 private:
  Value* current(Value* value) const {
    const auto found = replaced_.find(value);
    return found == replaced_.end() ? value : found->second;
  }

  // Moves elements before they are widened, and drops casts to the type that they were widened from.
  void move_narrow() {
    std::vector<std::unique_ptr<Node>> nodes;
    for (auto& node : block_.nodes) {
      for (Value*& input : node->inputs) input = current(input);
      for (auto& region : node->regions)
        for (Value*& result : region->results) result = current(result);
      Value* source = node->is("cast") ? narrow_source(node->inputs[0]) : nullptr;
      if (source && source->type.dtype == node->result()->type.dtype) {
        replaced_[node->result()] = source;
        gone_.push_back(std::move(node));
        continue;
      }
      if (move(*node, nodes)) {
        gone_.push_back(std::move(node));
        continue;
      }
      nodes.push_back(std::move(node));
      store_narrow(*nodes.back(), nodes);
    }
    block_.nodes = std::move(nodes);
    for (Value*& result : block_.results) result = current(result);
  }

  bool move(const Node& node, std::vector<std::unique_ptr<Node>>& nodes) {
    if (!moves(node)) return false;
    std::vector<Value*> inputs = node.inputs;
    std::optional<DType> dtype;
    for (Value*& input : inputs) {
      if (!is_float(input)) continue;
      Value* source = narrow_source(input);
      if (!source || (dtype && *dtype != source->type.dtype)) return false;
      dtype = source->type.dtype, input = source;
    }
    if (!dtype) return false;
    Block parts;
    Builder builder(parts);
    builder.sources = node.sources;
    Type type = node.result()->type;
    type.dtype = *dtype;
    Value* moved = builder.add_node(*node.op, std::move(inputs), node.attributes, {}, {type})->result();
    Value* wide = builder.add("cast", {moved}, {{"dtype", kF32}});
    wide->name = node.result()->name;
    std::move(parts.nodes.begin(), parts.nodes.end(), std::back_inserter(nodes));
    replaced_[node.result()] = wide;
    return true;
  }

  // A result without digits that its operands of 16 bits lack is kept in 16 bits as well.
  void store_narrow(const Node& node, std::vector<std::unique_ptr<Node>>& nodes) {
    if (!makes_no_digits(node) || node.results.size() != 1 || node.result()->type.dtype != kF32) return;
    std::optional<DType> dtype;
    for (Value* input : node.inputs)
      if (const Value* source = narrow_source(input)) dtype = source->type.dtype;
    const auto has_type = [&](const Value* input) {
      const Value* source = narrow_source(input);
      const Tensor* constant = constant_of(input);
      return !is_float(input) ||
             (source ? source->type.dtype == *dtype : constant && is_representable(*constant, *dtype));
    };
    if (!dtype || !std::ranges::all_of(node.inputs, has_type)) return;
    Block parts;
    Builder builder(parts);
    builder.sources = node.sources;
    Value* narrow = builder.add("cast", {node.result()}, {{"dtype", *dtype}});
    replaced_[node.result()] = builder.add("cast", {narrow}, {{"dtype", kF32}});
    std::move(parts.nodes.begin(), parts.nodes.end(), std::back_inserter(nodes));
  }

  // A value that is rounded, goes through a monotone operation and is rounded to the same type needs no first rounding.
  void round_once() {
    const Uses uses(block_);
    for (const auto& node : block_.nodes) {
      if (!node->is("cast") || !is_narrow(node->result()) || !uses.single(node->inputs[0])) continue;
      Node* between = node->inputs[0]->producer;
      if (!between || !is_monotone(*between)) continue;
      for (Value*& input : between->inputs) {
        const Value* source = narrow_source(input);
        if (!source || source->type.dtype != node->result()->type.dtype || !is_cast(source)) continue;
        Value* before = source->producer->inputs[0];
        if (before->type.dtype == kF32 && uses.single(input) && uses.single(source)) input = before;
      }
    }
  }

  void widen_at_users() {
    std::vector<std::unique_ptr<Node>> nodes;
    std::unordered_set<const Value*> results(block_.results.begin(), block_.results.end());
    std::unordered_map<const Value*, std::unique_ptr<Node>> waiting;  // casts that stand before their first user
    for (auto& node : block_.nodes) {
      if (!node->regions.empty()) results.insert(node->inputs.begin(), node->inputs.end());
    }
    for (auto& node : block_.nodes) {
      if (node->results.size() == 1 && narrow_source(node->result()) && !results.count(node->result())) {
        const Value* value = node->result();
        waiting.emplace(value, std::move(node));
        continue;
      }
      std::unordered_map<const Value*, Value*> mine;
      for (Value*& input : node->inputs) {
        const auto cast = waiting.find(input);
        if (cast == waiting.end()) continue;
        auto [found, fresh] = mine.try_emplace(input, nullptr);
        if (fresh) {
          std::unordered_map<const Value*, Value*> map;
          for (Value* from : cast->second->inputs) map.emplace(from, from);
          nodes.push_back(clone(*cast->second, map));
          found->second = nodes.back()->result();
        }
        input = found->second;
      }
      nodes.push_back(std::move(node));
    }
    for (auto& [value, cast] : waiting) gone_.push_back(std::move(cast));
    block_.nodes = std::move(nodes);
  }

  // A param in 16 bits (a weight, in training) is rounded again for each contraction, which rounds while it packs, and
  // for another user much later, since the param is there anyway.
  void round_params_again() {
    constexpr size_t kFar = 32;                                        // nodes; a layer has fewer
    std::unordered_map<const Value*, std::pair<size_t, Value*>> last;  // by cast: where it was last used or made again
    std::vector<std::unique_ptr<Node>> nodes;
    const Uses uses(block_);
    const auto again = [&](const Value* rounded) {
      Value* param = rounded->producer->inputs[0];
      std::unordered_map<const Value*, Value*> map{{param, param}};
      nodes.push_back(clone(*rounded->producer, map));
      return nodes.back()->result();
    };
    for (auto& node : block_.nodes) {
      for (Value*& input : node->inputs) {
        if (!is_cast(input) || !is_narrow(input) || input->producer->inputs[0]->producer) continue;
        if (gives_weights(*node, input, uses)) {
          input = again(input);
          continue;
        }
        auto [found, fresh] = last.try_emplace(input, nodes.size(), input);
        auto& [place, value] = found->second;
        if (nodes.size() - place > kFar) value = again(input);
        place = nodes.size(), input = value;
      }
      nodes.push_back(std::move(node));
    }
    block_.nodes = std::move(nodes);
    remove_dead(block_, nullptr);
  }

  /// Whether the node's operand becomes a contraction's weights, perhaps by this node, which widens it.
  static bool gives_weights(const Node& node, const Value* operand, const Uses& uses) {
    const auto reads = [](const Node& user, const Value* value) {
      return user.op->has(kContraction) && user.inputs[1] == value && user.inputs[0] != value;
    };
    if (reads(node, operand)) return true;
    return node.is("cast") && uses.single(node.result()) && reads(*uses.users(node.result()).front(), node.result());
  }

  Block& block_;
  std::unordered_map<const Value*, Value*> replaced_;
  std::vector<std::unique_ptr<Node>> gone_;
};

}  // namespace

bool keep_narrow(Block& block) { return Narrowing(block).run(); }

}  // namespace cairn
