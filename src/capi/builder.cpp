// Modules built through the C interface, node by node.
#include "capi/builder.h"

#include "capi/user_op.h"
#include "ir/control.h"
#include "ir/text.h"
#include "ir/user_ops.h"

using namespace cairn;
using namespace cairn::capi;

CairnBuilder::CairnBuilder(std::string name) : module(std::make_unique<Module>()), builder(nowhere) {
  module->name = std::move(name);
}

namespace cairn::capi {

std::vector<Value*> values_from_c(CairnValue* const* values, size_t count, const char* name) {
  if (count) require(values, name);
  std::vector<Value*> list;
  for (size_t i = 0; i < count; ++i) {
    require(values[i], name);
    list.push_back(from_c(values[i]));
  }
  return list;
}

Builder& nodes_of(CairnBuilder* builder) {
  require(builder, "builder");
  if (&builder->builder.block() == &builder->nowhere)
    fail(ErrorKind::invalid_argument, "builder", "has begun no function");
  return builder->builder;
}

void hand_values(CairnBuilder* builder, std::span<Value* const> made, CairnValue** results, size_t count,
                 std::string_view what) {
  if (count) require(results, "results");
  if (count > made.size())
    fail(ErrorKind::invalid_argument, std::string(what), "has {} results, {} are asked for", made.size(), count);
  for (size_t i = 0; i < count; ++i) results[i] = to_c(builder->made(made[i]));
}

}  // namespace cairn::capi

namespace {

/// The module under construction; with `in_function`, refuses unless a function has begun and no region is open.
Module& module_of(CairnBuilder* builder, bool in_function) {
  require(builder, "builder");
  if (!builder->module)
    fail(ErrorKind::invalid_argument, "builder", "makes the nodes of a rule, or has handed out its module");
  if (!builder->regions.empty()) fail(ErrorKind::invalid_argument, "builder", "is inside an if or while");
  if (in_function && !builder->function) fail(ErrorKind::invalid_argument, "builder", "has begun no function");
  return *builder->module;
}

}  // namespace

CairnStatus cairn_builder_create(const char* name, CairnBuilder** builder) {
  return guarded([&] {
    require(builder, "builder");
    load_op_libraries_of_environment();
    *builder = new CairnBuilder(name ? name : "model");
  });
}

void cairn_builder_free(CairnBuilder* builder) { delete builder; }

CairnStatus cairn_builder_function(CairnBuilder* builder, const char* name, const CairnType* types, size_t type_count) {
  return guarded([&] {
    Module& module = module_of(builder, false);
    require(name, "name");
    if (type_count) require(types, "types");
    if (module.find(name)) fail(ErrorKind::invalid_argument, name, "is a function already");
    if (types) {
      std::vector<Type>& declared = builder->declared[name];
      for (size_t i = 0; i < type_count; ++i) declared.push_back(type_from_c(types[i]));
    }
    module.functions.push_back(std::make_unique<Function>());
    builder->function = module.functions.back().get();
    builder->function->name = name;
    builder->builder = Builder(builder->function->body);
  });
}

CairnStatus cairn_builder_param(CairnBuilder* builder, const char* name, const CairnType* type, CairnValue** value) {
  return guarded([&] {
    require(builder, "builder");
    if (!builder->function) fail(ErrorKind::invalid_argument, "builder", "has begun no function");
    require(name, "name");
    require(type, "type");
    require(value, "value");
    *value = to_c(builder->function->body.add_param(type_from_c(*type), name));
  });
}

CairnStatus cairn_builder_result(CairnBuilder* builder, const char* name, CairnValue* value,
                                 const CairnValue* updates) {
  return guarded([&] {
    module_of(builder, true);
    require(name, "name");
    require(value, "value");
    Function& function = *builder->function;
    if (updates) {
      const Value* param = from_c(updates);
      if (param->producer || param->index >= function.body.params.size() ||
          function.body.params[param->index].get() != param)
        fail(ErrorKind::invalid_argument, name, "updates a value that is no param of @{}", function.name);
      function.updates.emplace_back(function.body.results.size(), param->index);
    }
    function.body.results.push_back(from_c(value));
    function.result_names.push_back(name);
  });
}

CairnStatus cairn_builder_source(CairnBuilder* builder, const char* framework, const char* name, const char* op,
                                 const char* location) {
  return guarded([&] {
    require(builder, "builder");
    if (!builder->module) fail(ErrorKind::invalid_argument, "builder", "nodes of a rule come from the node it is for");
    builder->builder.sources.clear();
    if (!name) return;
    builder->builder.sources = {
        builder->module->add_source({framework ? framework : "", name, op ? op : "", location ? location : ""})};
  });
}

CairnStatus cairn_builder_constant(CairnBuilder* builder, const CairnTensor* tensor, const char* name,
                                   CairnValue** value) {
  return guarded([&] {
    require(tensor, "tensor");
    require(value, "value");
    const Inputs read(tensor, 1);
    const TensorRef& ref = read.refs()[0];
    Tensor own = Tensor::view(ref.dtype, {ref.dims.begin(), ref.dims.end()}, ref.data, nullptr).owned();
    *value = to_c(builder->made(nodes_of(builder).constant(std::move(own), name ? name : "")));
  });
}

CairnStatus cairn_builder_number(CairnBuilder* builder, double number, CairnDType dtype, CairnValue** value) {
  return guarded([&] {
    require(value, "value");
    *value = to_c(builder->made(nodes_of(builder).number(number, from_c(dtype))));
  });
}

CairnStatus cairn_builder_add(CairnBuilder* builder, const char* op, CairnValue* const* inputs, size_t input_count,
                              const CairnAttribute* attributes, size_t attribute_count, const char* name,
                              CairnValue** results, size_t result_count) {
  return guarded([&] {
    Builder& nodes = nodes_of(builder);
    require(op, "op");
    const OpDef* row = find_op(op);
    if (!row) fail(ErrorKind::not_found, "", "{}", unknown_op(op));
    if (row->has(kControl)) fail(ErrorKind::invalid_argument, op, "has functions of its own for it in this interface");
    const Node* node = nodes.add_node(*row, values_here(builder, inputs, input_count, "inputs"),
                                      attributes_from_c(*row, attributes, attribute_count), {}, {}, name ? name : "");
    hand_values(builder, results_of(*node), results, result_count, op);
  });
}

CairnStatus cairn_builder_call(CairnBuilder* builder, const char* function, CairnValue* const* inputs,
                               size_t input_count, CairnValue** results, size_t result_count) {
  return guarded([&] {
    Builder& nodes = nodes_of(builder);
    require(function, "function");
    if (!builder->module) fail(ErrorKind::invalid_argument, function, "cannot be called inside a rule");
    std::vector<Type> types;
    auto declared = builder->declared.find(function);
    const Function* callee = builder->module->find(function);
    if (declared != builder->declared.end())
      types = declared->second;
    else if (callee && callee != builder->function)
      for (const Value* result : callee->body.results) types.push_back(result->type);
    else
      fail(ErrorKind::invalid_argument, function, "is called before it is complete, and declares no result types");
    const Node* node = nodes.add_node(op_named("call"), values_here(builder, inputs, input_count, "inputs"),
                                      {{kCallee, Attribute(FunctionName{function})}}, {}, types);
    hand_values(builder, results_of(*node), results, result_count, function);
  });
}

CairnStatus cairn_builder_type(CairnBuilder* builder, const CairnValue* value, const CairnType** type) {
  return guarded([&] {
    require(builder, "builder");
    require(value, "value");
    require(type, "type");
    *type = builder->shown.type(from_c(value)->type);
  });
}

CairnStatus cairn_builder_constant_of(CairnBuilder* builder, const CairnValue* value, CairnTensor* tensor) {
  return guarded([&] {
    require(builder, "builder");
    require(value, "value");
    require(tensor, "tensor");
    const Tensor* constant = constant_of(from_c(value));
    if (!constant) fail(ErrorKind::not_found, from_c(value)->name, "is no constant");
    *tensor = builder->shown.tensor(*constant);
  });
}

CairnStatus cairn_builder_finish(CairnBuilder* builder, CairnModule** module) {
  return guarded([&] {
    Module& made = module_of(builder, false);
    require(module, "module");
    *module = nullptr;
    if (!made.find("main")) fail(ErrorKind::invalid_argument, "builder", "has made no function main");
    verify(made);
    builder->function = nullptr;
    builder->builder = Builder(builder->nowhere);
    *module = new CairnModule{std::move(made), {}};
    builder->module.reset();
  });
}
