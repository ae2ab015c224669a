#include "ir/module.h"

#include "support/pointer_map.h"

namespace cairn {

const char* to_string(Removal removal) {
  switch (removal) {
    case Removal::folded: return "folded";
    case Removal::fused: return "fused";
    case Removal::identity: return "identity";
    case Removal::dead: return "dead";
    case Removal::shape_only: return "shape only";
    case Removal::training: return "training only";
  }
  return "?";
}

Value* Block::add_param(Type type, std::string name) {
  auto value = std::make_unique<Value>();
  value->type = std::move(type);
  value->index = static_cast<uint32_t>(params.size());
  value->name = std::move(name);
  params.push_back(std::move(value));
  return params.back().get();
}

Function* Module::find(std::string_view function_name) const {
  for (const auto& function : functions)
    if (function->name == function_name) return function.get();
  return nullptr;
}

Function& Module::main() const {
  Function* function = find("main");
  CHECK(function, "module {} has no @main", name);
  return *function;
}

SourceId Module::add_source(Source source) {
  sources.push_back(std::move(source));
  return static_cast<SourceId>(sources.size() - 1);
}

void renumber(std::vector<std::unique_ptr<Value>>& values) {
  for (size_t i = 0; i < values.size(); ++i) values[i]->index = static_cast<uint32_t>(i);
}

std::vector<Value*> results_of(const Node& node) {
  std::vector<Value*> results;
  for (const auto& result : node.results) results.push_back(result.get());
  return results;
}

const Tensor* constant_of(const Value* value) {
  static const OpDef* const constant = find_op("constant");
  if (!value->producer || value->producer->op != constant) return nullptr;
  const Attribute* attribute = value->producer->attributes.find("value");
  return attribute ? std::get_if<Tensor>(attribute) : nullptr;
}

bool is_weight(const Node& constant, const Module* module) {
  const Type& type = constant.result()->type;
  if (!type.dtype.is_float() || type.shape.rank() == 0 || *element_count(type.shape.sizes()) == 0) return false;
  return constant.sources.empty() || (module && module->sources[constant.sources[0]].framework != "onnx");
}

std::string where(const Module& module, const Node& node) {
  if (node.sources.empty() || node.sources.front() >= module.sources.size())
    return node.results.empty() ? "" : node.result()->name;
  const Source& source = module.sources[node.sources.front()];
  return source.location.empty() ? source.name : fmt::format("{} ({})", source.name, source.location);
}

namespace {

template <class ValueMap>
Value* mapped(const ValueMap& map, const Value* value) {
  auto found = map.find(value);
  CHECK(found != map.end(), "value {} is used outside its block", value->name);
  return found->second;
}

template <class ValueMap>
std::unique_ptr<Node> copy_of(const Node& node, ValueMap& map);

template <class ValueMap>
void clone_block(const Block& from, Block& to, ValueMap& map) {
  to.params.reserve(from.params.size());
  for (const auto& param : from.params) map[param.get()] = to.add_param(param->type, param->name);
  to.nodes.reserve(from.nodes.size());
  for (const auto& node : from.nodes) to.nodes.push_back(copy_of(*node, map));
  to.results.reserve(from.results.size());
  for (const Value* result : from.results) to.results.push_back(mapped(map, result));
}

template <class ValueMap>
std::unique_ptr<Node> copy_of(const Node& node, ValueMap& map) {
  auto copy = std::make_unique<Node>();
  copy->op = node.op;
  copy->attributes = node.attributes;
  copy->sources = node.sources;
  copy->inputs.reserve(node.inputs.size());
  for (const Value* input : node.inputs) copy->inputs.push_back(mapped(map, input));
  copy->results.reserve(node.results.size());
  for (const auto& result : node.results) {
    copy->results.push_back(std::make_unique<Value>(*result));
    copy->results.back()->producer = copy.get();
    map[result.get()] = copy->results.back().get();
  }
  for (const auto& region : node.regions) {
    copy->regions.push_back(std::make_unique<Block>());
    clone_block(*region, *copy->regions.back(), map);
  }
  return copy;
}

}  // namespace

std::unique_ptr<Node> clone(const Node& node, std::unordered_map<const Value*, Value*>& map) {
  return copy_of(node, map);
}

std::unique_ptr<Function> clone(const Function& function, std::unordered_map<const Value*, Value*>* map) {
  auto copy = std::make_unique<Function>();
  copy->name = function.name;
  copy->result_names = function.result_names;
  copy->updates = function.updates;
  if (map) {
    clone_block(function.body, copy->body, *map);
  } else {
    PointerMap<const Value*, Value*> own;
    own.reserve(2 * function.body.nodes.size());
    clone_block(function.body, copy->body, own);
  }
  return copy;
}

Module clone(const Module& module) {
  Module copy;
  copy.name = module.name;
  copy.sources = module.sources;
  copy.removed = module.removed;
  copy.metadata = module.metadata;
  copy.random_states = module.random_states;
  copy.optimised_by = module.optimised_by;
  copy.disabled_passes = module.disabled_passes;
  copy.keep_memory = module.keep_memory;
  for (const auto& function : module.functions) copy.functions.push_back(clone(*function));
  return copy;
}

std::vector<Type> refine(const OpDef& op, std::vector<Type> inferred, const std::vector<Type>& known) {
  if (op.has(kCall)) return known;
  if (known.empty()) return inferred;
  if (known.size() != inferred.size())
    fail(ErrorKind::invalid_model, op.name, "has {} results, {} types are given", inferred.size(), known.size());
  for (size_t i = 0; i < known.size(); ++i) {
    if (!compatible(inferred[i], known[i]))
      fail(ErrorKind::invalid_model, op.name, "result {} is {}, declared {}", i, to_string(inferred[i]),
           to_string(known[i]));
    inferred[i] = meet(inferred[i], known[i]);
  }
  return inferred;
}

}  // namespace cairn
