#include "ir/evaluate.h"

#include "ir/builder.h"
#include "ir/control.h"
#include "support/denormals.h"
#include "support/stop.h"

namespace cairn {

namespace {

constexpr int kMaxCallDepth = 200;  // nested calls

class Evaluator {
 public:
  explicit Evaluator(const Module* module) : module_(module) {}

  std::vector<HostValue> block(const Block& block, std::span<const HostValue> params) {
    if (++depth_ > kMaxCallDepth) fail(ErrorKind::unsupported, "", "calls nest deeper than {}", kMaxCallDepth);
    CHECK(params.size() == block.params.size(), "{} values for {} params", params.size(), block.params.size());
    std::unordered_map<const Value*, HostValue> values;
    for (size_t i = 0; i < params.size(); ++i) values[block.params[i].get()] = params[i];
    for (const auto& each : block.nodes) {
      std::vector<HostValue> inputs;
      for (const Value* input : each->inputs) inputs.push_back(values.at(input));
      auto results = node(*each, inputs, kNoLimit);
      for (size_t i = 0; i < results.size(); ++i) values[each->result(i)] = std::move(results[i]);
    }
    std::vector<HostValue> results;
    for (const Value* result : block.results) results.push_back(values.at(result));
    --depth_;
    return results;
  }

  std::vector<HostValue> node(const Node& node, std::span<const HostValue> inputs, size_t largest_bytes) {
    if (const Tensor* value = node.results.size() == 1 ? constant_of(node.result()) : nullptr)
      return {{*value, nullptr}};
    if (is_call(node)) {
      const Function* function = module_ ? module_->find(callee_name(node)) : nullptr;
      if (!function) fail(ErrorKind::invalid_model, node.op->name, "no function @{}", callee_name(node));
      return block(function->body, inputs);
    }
    if (is_loop(node)) return loop(node, inputs);
    if (!node.regions.empty()) return block(*node.regions[truth(inputs[0]) ? 0 : 1], inputs.subspan(1));
    return kernel(node, inputs, largest_bytes);
  }

 private:
  std::vector<HostValue> loop(const Node& node, std::span<const HostValue> inputs) {
    std::vector<HostValue> values(inputs.begin(), inputs.end());
    const auto carried = carried_count(node);
    while (truth(block(*node.regions[0], values)[0])) {
      stop_point();
      auto next = block(*node.regions[1], values);
      for (size_t i = 0; i < carried; ++i) values[i] = std::move(next[i]);
    }
    values.resize(carried);
    return values;
  }

  // Infers the types again from the concrete inputs: the node's types may have unknown dims.
  static std::vector<HostValue> kernel(const Node& node, std::span<const HostValue> inputs, size_t largest_bytes) {
    if (!node.op->reference) fail(ErrorKind::unsupported, node.op->name, "cannot be computed");
    std::vector<Type> types;
    std::vector<const Tensor*> constants;
    for (size_t i = 0; i < inputs.size(); ++i) {
      types.push_back(inputs[i].tensor.defined() ? inputs[i].tensor.type() : node.inputs[i]->type);
      constants.push_back(inputs[i].tensor.defined() ? &inputs[i].tensor : nullptr);
    }
    InferContext context(*node.op, node.attributes, std::move(types), std::move(constants), {});
    node.op->infer(context);
    std::vector<HostValue> results(context.results().size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Type& type = context.results()[i];
      if (!type.is_static()) continue;
      auto dims = type.shape.sizes();
      auto count = element_count(dims);
      if (!count || *count > (int64_t{1} << 56) || storage_bytes(type.dtype, *count) > largest_bytes)
        fail(ErrorKind::out_of_memory, node.op->name, "a result of type {} is too large", to_string(type));
      const auto make = type.dtype == kString ? &Tensor::zeros : &Tensor::uninitialized;
      results[i].tensor = make(type.dtype, std::move(dims));
    }
    FlushDenormals flush;
    KernelContext run(*node.op, node.attributes, inputs, results);
    node.op->reference(run);
    return results;
  }

  const Module* module_;
  int depth_ = 0;
};

}  // namespace

bool truth(const HostValue& value) {
  if (value.tensor.dtype() != kBool || value.tensor.count() != 1)
    fail(ErrorKind::invalid_model, "", "a condition must be one bool, found {}", to_string(value.tensor.type()));
  return value.tensor.values<uint8_t>()[0] != 0;
}

std::vector<HostValue> evaluate(const Node& node, std::span<const HostValue> inputs, const Module* module,
                                size_t largest_bytes) {
  return Evaluator(module).node(node, inputs, largest_bytes);
}

std::vector<HostValue> evaluate(const Block& block, std::span<const HostValue> params, const Module* module) {
  return Evaluator(module).block(block, params);
}

Tensor evaluate(std::string_view op, const std::vector<Tensor>& inputs, Attributes attributes) {
  Block block;
  Builder builder(block);
  std::vector<Value*> values;
  for (const Tensor& input : inputs) values.push_back(builder.constant(input));
  block.results = {builder.add(op, values, std::move(attributes))};
  return evaluate(block, {})[0].tensor;
}

}  // namespace cairn
