#include "frontends/fold.h"

#include <algorithm>

#include "ir/evaluate.h"

namespace cairn {
namespace {

constexpr int64_t kMostElements = 1024;

bool small(const Type& type) {
  if (!type.is_static() || type.dtype.size() == 0) return false;
  std::optional<int64_t> count = element_count(type.shape.sizes());
  return count && *count <= kMostElements;
}

}  // namespace

Value* folded(Value* value, Builder& builder) {
  const Node* node = value->producer;
  if (node == nullptr || node->results.size() != 1 || node->op->reference == nullptr || !node->regions.empty())
    return value;
  if (!node->op->pure() || node->op->has(kNotFoldable | kControl | kHostValue) || !small(value->type)) return value;
  std::vector<HostValue> inputs;
  for (const Value* input : node->inputs) {
    const Tensor* constant = constant_of(input);
    if (constant == nullptr || !small(input->type) || is_weight(*input->producer, nullptr)) return value;
    inputs.push_back({*constant, nullptr});
  }
  return builder.constant(evaluate(*node, inputs)[0].tensor, value->name);
}

Value* cast_to(Value* value, DType dtype, Builder& builder) {
  if (value->type.is_tensor() && value->type.dtype == dtype) return value;
  return folded(builder.add("cast", {value}, {{"dtype", dtype}}), builder);
}

}  // namespace cairn
