#include "passes/widen.h"

#include <unordered_map>

#include "ir/builder.h"
#include "ir/control.h"
#include "passes/pipeline.h"

namespace cairn {

namespace {

bool is_narrow_float(DType dtype) { return dtype.is_float() && dtype != kF64; }
bool is_narrow_float(const Type& type) { return type.is_tensor() && is_narrow_float(type.dtype); }

Type wide_type(Type type) {
  if (is_narrow_float(type)) type.dtype = kF64;
  for (Type& element : type.elements) element = wide_type(std::move(element));
  return type;
}

Tensor wide_tensor(const Tensor& tensor) { return Tensor::of(kF64, tensor.dims(), tensor.as_f64()); }

/// Whether the node's values keep their types: variables, random states, random numbers, and values of calls.
bool keeps_type(const Node& node) {
  if (!node.regions.empty()) return false;
  if (is_call(node)) return true;
  auto is_state = [](const Type& type) { return type.kind == Type::Kind::rng || type.kind == Type::Kind::resource; };
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Value* value) { return is_state(value->type); }) ||
         std::any_of(node.results.begin(), node.results.end(),
                     [&](const auto& value) { return is_state(value->type); });
}

class WideBlock {
 public:
  /// `outermost`: the body of a function, whose param and result types are part of its signature.
  WideBlock(Block& block, bool outermost, bool wide_results)
      : block_(block), builder_(block), outermost_(outermost), wide_results_(wide_results) {}

  void run() {
    std::vector<std::unique_ptr<Node>> nodes = std::move(block_.nodes);
    block_.nodes.clear();
    for (auto& param : block_.params) {
      if (outermost_)
        hand_on(*param);
      else
        widen(*param);
    }
    for (auto& node : nodes) take(std::move(node));
    for (Value*& result : block_.results) {
      const bool was_narrow = narrow_.count(result) != 0;
      if (auto wide = wide_.find(result); wide != wide_.end()) {
        if (!outermost_ || wide_results_) result = wide->second;
      } else if (outermost_ && !wide_results_ && was_narrow) {
        result = narrowed(result);
      }
    }
  }

 private:
  void widen(Value& value) {
    if (is_narrow_float(value.type)) narrow_[&value] = value.type.dtype;
    value.type = wide_type(std::move(value.type));
  }
  /// Makes later users read a widened copy of a value that keeps its type.
  void hand_on(Value& value) {
    if (is_narrow_float(value.type)) wide_[&value] = builder_.add("cast", {&value}, {{"dtype", kF64}});
  }
  Value* narrowed(Value* value) { return builder_.add("cast", {value}, {{"dtype", narrow_.at(value)}}); }

  void take(std::unique_ptr<Node> node) {
    std::vector<Value*> before = node->inputs;
    for (Value*& input : node->inputs)
      if (auto wide = wide_.find(input); wide != wide_.end()) input = wide->second;
    for (auto& region : node->regions) WideBlock(*region, false, true).run();
    if (keeps_type(*node) || !make_wide(*node)) return take_as_it_was(std::move(node), before);
    block_.nodes.push_back(std::move(node));
    for (auto& result : block_.nodes.back()->results) hand_on(*result);
  }

  /// Changes attributes and results to f64; false if the operator refuses that.
  bool make_wide(Node& node) {
    Attributes attributes = node.attributes;
    for (const auto& [name, value] : node.attributes) {
      const auto* tensor = std::get_if<Tensor>(&value);
      const auto* type = std::get_if<Type>(&value);
      const auto* dtype = std::get_if<DType>(&value);
      if (tensor && is_narrow_float(tensor->dtype())) attributes.set(name, wide_tensor(*tensor));
      if (type) attributes.set(name, wide_type(*type));
      if (dtype && is_narrow_float(*dtype) && node.is("cast")) attributes.set(name, kF64);
    }
    std::vector<Type> types;
    try {
      types = infer_types(*node.op, node.inputs, attributes, node.regions);
    } catch (const Error&) {
      if (!node.regions.empty()) throw;
      return false;
    }
    node.attributes = std::move(attributes);
    for (size_t i = 0; i < node.results.size(); ++i) {
      const bool stays = i < types.size() && is_narrow_float(types[i]);  // an attribute determines the type
      if (!stays) widen(*node.results[i]);
    }
    return true;
  }

  void take_as_it_was(std::unique_ptr<Node> node, const std::vector<Value*>& before) {
    for (size_t i = 0; i < before.size(); ++i)
      node->inputs[i] = narrow_.count(before[i]) ? narrowed(before[i]) : before[i];
    block_.nodes.push_back(std::move(node));
    for (auto& result : block_.nodes.back()->results) hand_on(*result);
  }

  Block& block_;
  Builder builder_;
  bool outermost_, wide_results_;
  std::unordered_map<const Value*, Value*> wide_;   // widened copies of values that keep their types
  std::unordered_map<const Value*, DType> narrow_;  // original types of widened values
};

}  // namespace

void widen_floats(Module& module, bool wide_results) {
  optimise(module, {.disabled = {"ALL"}});
  for (const auto& function : module.functions) WideBlock(function->body, true, wide_results).run();
}

}  // namespace cairn
