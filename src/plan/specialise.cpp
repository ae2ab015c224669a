// Specialises a function to one set of input dims.
#include "passes/pipeline.h"
#include "plan/plan.h"
#include "plan/repeat_cheap.h"

namespace cairn {

namespace {

// Element-wise ops broadcast by themselves: where another operand has the result's shape, one that was broadcast to it before
// is read as it was. At open dims the rules cannot tell.
bool drop_implied_broadcasts(Block& block) {
  bool dropped = false;
  for (const auto& node : block.nodes) {
    if (!node->op->has(kElementwise) || node->inputs.size() < 2 || node->results.size() != 1) continue;
    const Shape& shape = node->result()->type.shape;
    const auto is_broadcast = [](const Value* x) { return x->producer && x->producer->is("broadcast_to"); };
    const bool implied = shape.known() && std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* x) {
                           return !is_broadcast(x) && x->type.is_tensor() && x->type.shape == shape;
                         });
    if (!implied) continue;
    for (Value*& input : node->inputs)
      if (is_broadcast(input) && input->type.shape == shape) input = input->producer->inputs[0], dropped = true;
  }
  return dropped;
}

}  // namespace

std::unique_ptr<Function> specialise(const Function& function, std::span<const Dims> dims) {
  auto special = clone(function);
  auto& params = special->body.params;
  std::unordered_set<const Value*> changed;
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
  if (drop_implied_broadcasts(special->body)) remove_dead(special->body, nullptr);
  fold_constants(special->body, nullptr);
  remove_dead(special->body, nullptr);
  repeat_cheap(special->body);
  return special;
}

}  // namespace cairn
