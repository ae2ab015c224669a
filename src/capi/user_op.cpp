// Converts rows from users to OpDef rows whose functions call those of the library.
#include "capi/user_op.h"

#include <algorithm>

#include "capi/builder.h"
#include "capi/user_call.h"
#include "frontends/onnx/importer.h"
#include "frontends/tensorflow/importer.h"
#include "ir/gradient.h"
#include "ir/user_ops.h"
#include "support/fork.h"

namespace cairn::capi {

namespace {

UserCall& host_of(const CairnOpCall* call) { return *static_cast<UserCall*>(call->host); }

void check_framework(std::string_view framework) {
  if (framework != "onnx" && framework != "tensorflow")
    fail(ErrorKind::invalid_argument, std::string(framework), "is no framework, expected onnx or tensorflow");
}

// ---- What the library's functions call back ------------------------------------------------------------------------

void fail_call(const CairnOpCall* call, const char* message) { host_of(call).say(message); }

CairnStatus tell_result(const CairnShapeCall* call, const CairnType* type) {
  return guarded([&] {
    require(type, "type");
    host_of(&call->call).infer->result(type_from_c(*type));
  });
}

CairnStatus allocate_output(const CairnKernelCall* call, size_t index, int32_t ndim, const int64_t* dims) {
  return guarded([&] {
    UserCall& host = host_of(&call->call);
    if (index >= host.outputs.size())
      fail(ErrorKind::invalid_argument, "output", "{} is none of {}", index, host.outputs.size());
    if (ndim > 0) require(dims, "dims");
    CairnTensor& output = host.outputs[index];
    const Tensor& made = host.kernel->allocate(index, from_c(output.dtype), std::vector<int64_t>(dims, dims + ndim));
    output = host.shown().tensor(made);
  });
}

CairnStatus add_row(const CairnOpRegistry* registry, const CairnOpRow* row) {
  return guarded([&] {
    require(row, "row");
    add_user_op(*row, *static_cast<const std::string*>(registry->host));
  });
}

CairnStatus name_op(const CairnOpRegistry*, const char* framework, const char* type, const char* op) {
  return guarded([&] {
    require(framework, "framework");
    require(type, "type");
    require(op, "op");
    check_framework(framework);
    const bool is_onnx = std::string_view(framework) == "onnx";
    if (const OpDef* row = find_op(op)) return add_foreign_name(framework, type, *row);
    if (is_onnx ? !onnx::find_row("", op) : !tensorflow::find_row(op))
      fail(ErrorKind::not_found, "", "{}", unknown_op(op));
    add_foreign_alias(framework, type, op);
  });
}

// ---- The functions of the row --------------------------------------------------------------------------------------

std::vector<Value*> decompose_user(Builder& builder, const Node& node) {
  UserCall host(*node.op, node.attr(), "decomposition");
  CairnBuilder c_builder(builder);
  std::vector<CairnValue*> inputs, results(node.op->results.size(), nullptr);
  for (Value* input : node.inputs) inputs.push_back(to_c(input));
  const CairnDecomposeCall call{host.call(), &c_builder, inputs.data(), inputs.size(), results.data(), results.size()};
  host.run(ErrorKind::invalid_model, [&] { return user_row(*node.op).row.decompose(&call); });
  std::vector<Value*> made;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) host.refuse(ErrorKind::invalid_model, fmt::format("does not give result {}", node.op->results[i]));
    made.push_back(from_c(results[i]));
  }
  return made;
}

/// Shape rule: the types of the decomposition's results.
void infer_by_decomposition(InferContext& context) {
  Block block;
  Builder builder(block);
  Node node;
  node.op = &context.op();
  for (size_t i = 0; i < context.input_count(); ++i)
    node.inputs.push_back(context.constant(i) ? builder.constant(*context.constant(i))
                                              : block.add_param(context.input(i), fmt::format("x{}", i)));
  for (const AttrDef& declared : node.op->attributes)
    node.attributes.set(declared.name, context.attr.get(declared.name));
  for (const Value* result : decompose_user(builder, node)) context.result(result->type);
}

void infer_user(InferContext& context) {
  const UserRow& row = user_row(context.op());
  if (!row.row.shape) return infer_by_decomposition(context);
  UserCall host(context.op(), context.attr, "shape rule");
  host.infer = &context;
  std::vector<CairnType> types(context.input_count());
  std::vector<CairnTensor> tensors(context.input_count());
  std::vector<const CairnTensor*> values(context.input_count(), nullptr);
  for (size_t i = 0; i < types.size(); ++i) {
    host.shown().fill(context.input(i), types[i]);
    if (!context.constant(i)) continue;
    tensors[i] = host.shown().tensor(*context.constant(i));
    values[i] = &tensors[i];
  }
  const CairnShapeCall call{host.call(), types.data(), values.data(), types.size()};
  host.run(ErrorKind::invalid_model, [&] { return row.row.shape(&call); });
  if (context.results().size() != context.op().results.size())
    host.refuse(ErrorKind::invalid_model,
                fmt::format("gives {} results, expected {}", context.results().size(), context.op().results.size()));
}

/// Text tensors for a kernel: converted to CairnText elements for the call; text results are converted back after it.
struct Texts {
  std::vector<CairnText> given;
  size_t output;
};

void run_user(KernelContext& context) {
  const UserRow& row = user_row(context.op());
  UserCall host(context.op(), context.attr, "kernel");
  host.kernel = &context;
  std::vector<CairnTensor> inputs, outputs(context.op().results.size());
  for (size_t i = 0; i < context.input_count(); ++i) inputs.push_back(host.shown().tensor(context.input(i)));
  std::vector<Type> types;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (context.output(i).defined()) {
      outputs[i] = host.shown().tensor(context.output(i));
      continue;
    }
    if (types.empty()) types = context.infer();
    outputs[i].device = {1, 0};
    outputs[i].dtype = to_c(types[i].dtype);
    if (types[i].is_static())
      outputs[i] = host.shown().tensor(context.allocate(i, types[i].dtype, types[i].shape.sizes()));
  }
  host.outputs = outputs;
  const CairnKernelCall call{host.call(), inputs.data(), inputs.size(), outputs.data(), outputs.size()};
  host.run(ErrorKind::invalid_argument, [&] { return row.row.kernel(&call); });
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!context.output(i).defined())
      host.refuse(ErrorKind::invalid_argument, fmt::format("has not allocated output {}", context.op().results[i]));
}

void gradient_user(GradientContext& context) {
  const OpDef& op = *context.node().op;
  UserCall host(op, context.attr, "gradient");
  CairnBuilder c_builder(context.b);
  const size_t count = context.input_count();
  std::vector<CairnValue*> inputs, results, gradients, made(count, nullptr);
  std::vector<int32_t> wanted;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(to_c(context.x(i).value));
    wanted.push_back(context.wanted(i));
  }
  for (size_t i = 0; i < op.results.size(); ++i) {
    results.push_back(to_c(context.y(i).value));
    gradients.push_back(context.has_dy(i) ? to_c(context.dy(i).value) : nullptr);
  }
  const CairnGradientCall call{host.call(),      &c_builder,     inputs.data(), count,      results.data(),
                               gradients.data(), results.size(), wanted.data(), made.data()};
  host.run(ErrorKind::invalid_model, [&] { return user_row(op).row.gradient(&call); });
  for (size_t i = 0; i < count; ++i) {
    if (!made[i] || !wanted[i]) continue;
    const Value* value = from_c(made[i]);
    if (!compatible(value->type, context.x(i).type()))
      host.refuse(ErrorKind::invalid_model, fmt::format("of {} is {}, expected {}", op.input(i).name,
                                                        to_string(value->type), to_string(context.x(i).type())));
    context.set(i, {context.b, from_c(made[i])});
  }
}

// ---- Registering ---------------------------------------------------------------------------------------------------

Accepts accepts_of(int32_t accepts, const char* input) {
  constexpr Accepts kAll[] = {Accepts::any_tensor, Accepts::numbers,    Accepts::floats, Accepts::integers,
                              Accepts::boolean,    Accepts::i32_or_i64, Accepts::text};
  if (accepts < 0 || accepts >= static_cast<int32_t>(std::size(kAll)))
    fail(ErrorKind::invalid_argument, input, "accepts {}, which is no CairnAccepts", accepts);
  return kAll[accepts];
}

/// Fills the OpDef; `own` owns its texts.
class RowReader {
 public:
  RowReader(const CairnOpRow& row, UserRow& own) : row_(row), own_(own) {}

  OpDef read() {
    OpDef op{.name = keep(row_.name), .summary = keep(row_.summary ? row_.summary : "")};
    check_name(op.name);
    inputs(op);
    attributes(op);
    op.results.clear();
    if (row_.result_count) require(row_.results, "results");
    for (size_t i = 0; i < row_.result_count; ++i) op.results.push_back(keep(row_.results[i]));
    if (op.results.empty()) fail(ErrorKind::invalid_argument, op.name, "has no results");
    for (size_t i = 0; i < row_.case_count; ++i) op.cases.push_back(keep(row_.cases[i]));
    if (row_.flags & CAIRN_OP_ELEMENTWISE) op.traits |= kElementwise;
    if (row_.flags & CAIRN_OP_RANDOM) op.traits |= kNotFoldable;
    if (row_.no_gradient) op.no_gradient = keep(row_.no_gradient);
    op.precision = Precision::accumulate_f32;
    functions(op);
    op.user = &own_;
    return op;
  }

 private:
  const char* keep(const char* text) {
    require(text, "name");
    return own_.texts.emplace_back(text).c_str();
  }

  static void check_name(const std::string& name) {
    const size_t dot = name.rfind('.');
    const bool words = std::all_of(name.begin(), name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    });
    if (dot == std::string::npos || dot == 0 || dot + 1 == name.size() || !words)
      fail(ErrorKind::invalid_argument, name, "is no name of an operator, expected domain.name");
  }

  void inputs(OpDef& op) {
    if (row_.input_count) require(row_.inputs, "inputs");
    for (size_t i = 0; i < row_.input_count; ++i) {
      const CairnOpInput& given = row_.inputs[i];
      InputDef input{keep(given.name), accepts_of(given.accepts, given.name)};
      if (given.role < 0 || given.role > CAIRN_ROLE_STATE || given.arity < 0 || given.arity > CAIRN_ARITY_VARIADIC)
        fail(ErrorKind::invalid_argument, op.name, "input {} has role {} and arity {}", given.name, given.role,
             given.arity);
      input.role = static_cast<Role>(given.role);
      input.arity = static_cast<InputDef::Arity>(given.arity);
      if (input.arity != InputDef::Arity::variadic && !op.inputs.empty() && op.inputs.back().arity > input.arity)
        fail(ErrorKind::invalid_argument, op.name, "input {} stands behind one that may be left out", given.name);
      op.inputs.push_back(input);
    }
  }

  void attributes(OpDef& op) {
    if (row_.attribute_count) require(row_.attributes, "attributes");
    for (size_t i = 0; i < row_.attribute_count; ++i) {
      const CairnOpAttribute& given = row_.attributes[i];
      const int32_t kind = given.attribute.kind;
      if (kind < 0 || kind > CAIRN_ATTRIBUTE_TENSOR)
        fail(ErrorKind::invalid_argument, op.name, "attribute {} is of kind {}", given.attribute.name, kind);
      op.attributes.push_back({keep(given.attribute.name), static_cast<AttrKind>(kind)});
      if (!given.required) op.attributes.back().fallback = attribute_from_c(op, given.attribute);
    }
  }

  void functions(OpDef& op) {
    if (!row_.shape && !row_.decompose)
      fail(ErrorKind::invalid_argument, op.name, "has neither shape rule nor decomposition");
    op.infer = infer_user;
    if (row_.kernel) op.reference = run_user;
    if (row_.decompose) op.decompose = decompose_user;
    if (row_.gradient) op.gradient = gradient_user;
    if (!row_.gradient && !row_.decompose && !op.no_gradient) op.no_gradient = "its library gives none";
  }

  const CairnOpRow& row_;
  UserRow& own_;
};

}  // namespace

CairnOpRegistry registry_for(const std::string& library) {
  return {.struct_size = sizeof(CairnOpRegistry),
          .abi_version = CAIRN_OP_ABI_VERSION,
          .host_version = CAIRN_VERSION,
          .host = const_cast<std::string*>(&library),
          .add = add_row,
          .name = name_op,
          .last_error = cairn_last_error,
          .fail = fail_call,
          .result = tell_result,
          .allocate = allocate_output,
          .constant = cairn_builder_constant,
          .number = cairn_builder_number,
          .node = cairn_builder_add,
          .begin_if = cairn_builder_begin_if,
          .begin_else = cairn_builder_begin_else,
          .end_if = cairn_builder_end_if,
          .begin_while = cairn_builder_begin_while,
          .begin_body = cairn_builder_begin_body,
          .end_while = cairn_builder_end_while,
          .type = cairn_builder_type,
          .constant_of = cairn_builder_constant_of};
}

const OpDef& add_user_op(const CairnOpRow& given, const std::string& library) {
  const CairnOpRow row = checked(&given, "row");
  require(row.name, "row name");
  auto own = std::make_unique<UserRow>(UserRow{library, row, {}, {}});
  own->registry = registry_for(own->library);
  OpDef op = RowReader(row, *own).read();
  std::vector<std::pair<std::string, std::string>> foreign;
  for (size_t i = 0; i < row.foreign_name_count; ++i) {
    const std::string name = row.foreign_names[i];
    const size_t colon = name.find(':');
    if (colon == std::string::npos)
      fail(ErrorKind::invalid_argument, row.name, "'{}' is no foreign name, expected onnx:... or tensorflow:...", name);
    check_framework(name.substr(0, colon));
    foreign.emplace_back(name.substr(0, colon), name.substr(colon + 1));
  }
  const OpDef& made = register_op(std::move(op));
  own.release();  // never freed, like the row
  for (const auto& [framework, name] : foreign) add_foreign_name(framework, name, made);
  return made;
}

const std::string& library_of(const OpDef& row) { return user_row(row).library; }

}  // namespace cairn::capi
