#include "ir/builder.h"

#include <cmath>
#include <limits>

#include "ir/control.h"

namespace cairn {

namespace {

// Floats round to nearest even; integers truncate and saturate, NaN gives 0.
template <class T>
T whole(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

template <class T>
Tensor scalar(DType dtype, T value) {
  return Tensor::of<T>(dtype, {}, {value});
}

Tensor number_tensor(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  if (dtype == kF64) return scalar(dtype, value);
  if (dtype == kF32) return scalar(dtype, narrow);
  if (dtype == kF16) return scalar(dtype, float_to_half(narrow));
  if (dtype == kBF16) return scalar(dtype, float_to_bfloat(narrow));
  if (dtype == kC64) {
    Tensor complex = Tensor::zeros(dtype, {});
    std::memcpy(complex.mutable_data(), &narrow, sizeof(narrow));
    return complex;
  }
  if (dtype == kBool) return scalar<uint8_t>(dtype, value != 0);
  if (dtype == kI8) return scalar(dtype, whole<int8_t>(value));
  if (dtype == kI16) return scalar(dtype, whole<int16_t>(value));
  if (dtype == kI32) return scalar(dtype, whole<int32_t>(value));
  if (dtype == kI64) return scalar(dtype, whole<int64_t>(value));
  if (dtype == kU8) return scalar(dtype, whole<uint8_t>(value));
  if (dtype == kU16) return scalar(dtype, whole<uint16_t>(value));
  if (dtype == kU32) return scalar(dtype, whole<uint32_t>(value));
  if (dtype == kU64) return scalar(dtype, whole<uint64_t>(value));
  fail(ErrorKind::unsupported, "", "no number is of type {}", to_string(dtype));
}

}  // namespace

Node* Builder::add_node(const OpDef& op, std::vector<Value*> inputs, Attributes attributes,
                        std::vector<std::unique_ptr<Block>> regions, const std::vector<Type>& known, std::string name) {
  std::vector<Type> types = refine(op, infer_types(op, inputs, attributes, regions), known);
  auto node = std::make_unique<Node>();
  node->op = &op;
  node->inputs = std::move(inputs);
  node->attributes = std::move(attributes);
  node->regions = std::move(regions);
  node->sources = sources;
  for (size_t i = 0; i < types.size(); ++i) {
    auto value = std::make_unique<Value>();
    value->type = std::move(types[i]);
    value->producer = node.get();
    value->index = static_cast<uint32_t>(i);
    value->name = name;
    node->results.push_back(std::move(value));
  }
  block_->nodes.push_back(std::move(node));
  return block_->nodes.back().get();
}

Value* Builder::add(std::string_view op, std::vector<Value*> inputs, Attributes attributes, std::string name) {
  return add_node(op_named(op), std::move(inputs), std::move(attributes), {}, {}, std::move(name))->result();
}

Value* Builder::constant(Tensor value, std::string name) {
  return add("constant", {}, {{"value", Attribute(std::move(value))}}, std::move(name));
}

Value* Builder::number(double value, DType dtype) { return constant(number_tensor(value, dtype)); }

std::vector<Value*> Builder::call(const Function& callee, std::vector<Value*> inputs) {
  std::vector<Type> types;
  for (const Value* result : callee.body.results) types.push_back(result->type);
  Attributes attributes = {{kCallee, Attribute(FunctionName{callee.name})}};
  return results_of(*add_node(op_named("call"), std::move(inputs), std::move(attributes), {}, types));
}

std::vector<Value*> Builder::make_if(Value* condition, const std::vector<Value*>& taken, RegionBody then,
                                     RegionBody otherwise) {
  const Captures captures(taken);
  std::vector<std::unique_ptr<Block>> regions;
  for (const RegionBody* fill : {&then, &otherwise}) {
    std::vector<Value*> inside;
    regions.push_back(captures.open(inside));
    Builder builder(*regions.back());
    builder.sources = sources;
    regions.back()->results = (*fill)(builder, inside);
  }
  std::vector<Value*> inputs = captures.inputs();
  inputs.insert(inputs.begin(), condition);
  return results_of(*add_node(op_named("if"), std::move(inputs), {}, std::move(regions)));
}

std::vector<Value*> Builder::make_while(std::vector<Value*> carried, const std::vector<Value*>& taken,
                                        RegionBody condition, RegionBody body) {
  const Captures captures(taken);
  std::vector<std::unique_ptr<Block>> regions;
  for (const RegionBody* fill : {&condition, &body}) {
    auto block = std::make_unique<Block>();
    std::vector<Value*> inside;
    for (const Value* value : carried) inside.push_back(block->add_param(value->type, value->name));
    captures.enter(*block, inside);
    Builder builder(*block);
    builder.sources = sources;
    block->results = (*fill)(builder, inside);
    regions.push_back(std::move(block));
  }
  const auto count = static_cast<int64_t>(carried.size());
  const std::vector<Value*> constant = captures.inputs();
  carried.insert(carried.end(), constant.begin(), constant.end());
  return results_of(
      *add_node(op_named("while"), std::move(carried), {{kCarried, Attribute(count)}}, std::move(regions)));
}

std::vector<Value*> Captures::inputs() const {
  std::vector<Value*> inputs;
  for (Value* value : values_)
    if (constant_of(value) == nullptr) inputs.push_back(value);
  return inputs;
}

std::unique_ptr<Block> Captures::open(std::vector<Value*>& inside) const {
  auto block = std::make_unique<Block>();
  inside.clear();
  enter(*block, inside);
  return block;
}

void Captures::enter(Block& block, std::vector<Value*>& inside) const {
  Builder builder(block);
  for (Value* value : values_) {
    const Tensor* constant = constant_of(value);
    inside.push_back(constant ? builder.constant(*constant, value->name) : block.add_param(value->type, value->name));
  }
}

}  // namespace cairn
