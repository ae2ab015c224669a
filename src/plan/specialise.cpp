// Specialises a function to one set of input dims.
#include <algorithm>
#include <iterator>

#include "ir/builder.h"
#include "passes/pipeline.h"
#include "plan/plan.h"
#include "plan/repeat_cheap.h"

namespace cairn {

namespace {

bool is_broadcast(const Value* value) { return value->producer && value->producer->is("broadcast_to"); }

// What the result's dims would be if no operand were broadcast before; nothing where a run tells.
std::optional<std::vector<int64_t>> dims_without_broadcasts(const Node& node) {
  std::vector<int64_t> dims;
  for (const Value* input : node.inputs) {
    const Value* x = is_broadcast(input) ? input->producer->inputs[0] : input;
    if (!x->type.is_static()) return std::nullopt;
    const std::vector<int64_t> sizes = x->type.shape.sizes();
    if (sizes.size() > dims.size()) dims.insert(dims.begin(), sizes.size() - dims.size(), 1);
    for (size_t i = 0, first = dims.size() - sizes.size(); i < sizes.size(); ++i)
      if (sizes[i] != 1) dims[first + i] = sizes[i];
  }
  return dims;
}

// Element-wise ops broadcast by themselves: they read what an operand was before it was broadcast. A result that becomes much
// smaller this way is broadcast for its users, which may not need that either. At open dims the rules cannot tell.
class BroadcastDropper {
 public:
  bool run(Block& block) {
    for (auto& node : block.nodes) {
      if (may_drop(*node)) drop(*node);
      nodes_.push_back(std::move(node));
    }
    block.nodes = std::move(nodes_);
    return dropped_;
  }

 private:
  static bool may_drop(const Node& node) {
    return node.op->has(kElementwise) && node.op->pure() && !node.op->has(kNotFoldable) && node.results.size() == 1 &&
           node.result()->type.is_static() && std::any_of(node.inputs.begin(), node.inputs.end(), is_broadcast);
  }

  void drop(Node& node) {
    constexpr int64_t kMuch = 4;
    const std::vector<int64_t> whole = node.result()->type.shape.sizes();
    const auto dims = dims_without_broadcasts(node);
    if (!dims || (*dims != whole && kMuch * *element_count(*dims) > *element_count(whole))) return;
    dropped_ = true;
    for (Value*& input : node.inputs)
      if (is_broadcast(input)) input = input->producer->inputs[0];
    if (*dims == whole) return;
    Block before;
    Builder builder(before);
    builder.sources = node.sources;
    Value* small = builder.add_node(*node.op, node.inputs, std::move(node.attributes))->result();
    node.inputs = {small, builder.ints(whole)};
    node.op = &op_named("broadcast_to");
    node.attributes = {};
    std::move(before.nodes.begin(), before.nodes.end(), std::back_inserter(nodes_));
  }

  std::vector<std::unique_ptr<Node>> nodes_;
  bool dropped_ = false;
};

}  // namespace

std::unique_ptr<Function> specialise(const Function& function, std::span<const Dims> dims, bool once) {
  auto special = clone(function);
  auto& params = special->body.params;
  PointerSet<const Value*> changed;
  CHECK(dims.size() == params.size(), "{} dims for {} params", dims.size(), params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    Value& param = *params[i];
    if (!param.type.is_tensor()) continue;
    Type given = Type::tensor(param.type.dtype, Shape::of(dims[i]));
    if (!compatible(param.type, given))
      fail(ErrorKind::invalid_argument, param.name, "input has shape {}, the model takes {}", to_string(given.shape),
           to_string(param.type.shape));
    if (param.type != given) changed.insert(&param);
    param.type = std::move(given);
  }
  for (const auto& node : special->body.nodes) infer_changed(*node, changed, true);
  if (BroadcastDropper().run(special->body)) remove_dead(special->body, nullptr);
  fold_constants(special->body, nullptr);
  BroadcastDropper().run(special->body);
  remove_dead(special->body, nullptr);
  if (!once) repeat_cheap(special->body);
  return special;
}

}  // namespace cairn
