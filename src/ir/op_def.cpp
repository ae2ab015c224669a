#include "ir/op_def.h"

#include <algorithm>

#include "ir/module.h"

namespace cairn {

const AttrDef* OpDef::find_attribute(std::string_view attribute) const {
  for (const AttrDef& def : attributes)
    if (attribute == def.name) return &def;
  return nullptr;
}

bool OpDef::has_role(Role wanted) const {
  return std::any_of(inputs.begin(), inputs.end(), [&](const InputDef& input) { return input.role == wanted; });
}

const Attribute& AttributeView::get(std::string_view name) const {
  if (const Attribute* value = given_->find(name)) return *value;
  const AttrDef* def = op_->find_attribute(name);
  CHECK(def && def->fallback, "{} has no attribute {}", op_->name, name);
  return *def->fallback;
}

bool AttributeView::has(std::string_view name) const {
  if (given_->find(name)) return true;
  const AttrDef* def = op_->find_attribute(name);
  return def && def->fallback;
}

void InferContext::fail_text(const std::string& message) const {
  throw Error(ErrorKind::invalid_model, op_.name, message);
}

void KernelContext::fail_text(const std::string& message) const {
  throw Error(ErrorKind::invalid_argument, op_.name, message);
}

Tensor& KernelContext::allocate(size_t i, DType dtype, std::vector<int64_t> dims) {
  Tensor& result = results_[i].tensor;
  if (!result.defined()) return result = Tensor::uninitialized(dtype, std::move(dims));
  if (result.dtype() != dtype || result.dims() != dims)
    fail("result is {}, declared {}", to_string(Type::tensor(dtype, Shape::of(dims))), to_string(result.type()));
  return result;
}

std::vector<Type> KernelContext::infer() const {
  std::vector<Type> types;
  std::vector<const Tensor*> constants;
  for (const HostValue& input : inputs_) {
    types.push_back(input.tensor.type());
    constants.push_back(&input.tensor);
  }
  InferContext context(op_, attributes_, std::move(types), std::move(constants), {});
  op_.infer(context);
  return context.results();
}

const OpDef& op_named(std::string_view name) {
  const OpDef* op = find_op(name);
  CHECK(op, "no op {}", name);
  return *op;
}

namespace {

bool accepts(Accepts accepts, const Type& type) {
  using Kind = DType::Kind;
  if (accepts == Accepts::any) return true;
  if (accepts == Accepts::list) return type.kind == Type::Kind::list;
  if (accepts == Accepts::resource) return type.kind == Type::Kind::resource;
  if (accepts == Accepts::rng) return type.kind == Type::Kind::rng;
  if (accepts == Accepts::token) return type.kind == Type::Kind::token;
  if (!type.is_tensor()) return false;
  Kind kind = type.dtype.kind;
  bool number = kind != Kind::boolean && kind != Kind::string;
  switch (accepts) {
    case Accepts::numbers: return number;
    case Accepts::floats: return type.dtype.is_float();
    case Accepts::integers: return type.dtype.is_integer();
    case Accepts::boolean: return kind == Kind::boolean;
    case Accepts::number_or_bool: return kind != Kind::string;
    case Accepts::i32_or_i64: return type.dtype == kI64 || type.dtype == kI32;
    case Accepts::text: return kind == Kind::string;
    default: return true;
  }
}

const char* to_string(Accepts accepts) {
  constexpr const char* kNames[] = {"anything",        "numbers",    "floats",  "integers", "bool",
                                    "numbers or bool", "i64 or i32", "strings", "a list",   "a resource",
                                    "an rng state",    "a token",    "a tensor"};
  return kNames[static_cast<size_t>(accepts)];
}

void check_inputs(const OpDef& op, const InferContext& context) {
  size_t required = 0, most = op.inputs.size();
  for (const InputDef& input : op.inputs) {
    if (input.arity == InputDef::Arity::one) ++required;
    if (input.arity == InputDef::Arity::variadic) most = SIZE_MAX;
  }
  size_t count = context.input_count();
  if (count < required || count > most) context.fail("takes {} inputs, found {}", required, count);
  for (size_t i = 0; i < count; ++i) {
    const InputDef& def = op.inputs[std::min(i, op.inputs.size() - 1)];
    if (!accepts(def.accepts, context.input(i)))
      context.fail("input {} must be {}, found {}", def.name, to_string(def.accepts), to_string(context.input(i)));
  }
}

void check_attributes(const OpDef& op, const Attributes& given, const InferContext& context) {
  for (const auto& [name, value] : given) {
    const AttrDef* def = op.find_attribute(name);
    if (!def) context.fail("has no attribute {}", name);
    if (kind_of(value) != def->kind) context.fail("attribute {} has the wrong kind", name);
    if (const auto* text = std::get_if<std::string>(&value); text && !def->words.empty()) {
      if (std::find(def->words.begin(), def->words.end(), *text) == def->words.end())
        context.fail("attribute {} cannot be {}", name, *text);
    }
  }
  for (const AttrDef& def : op.attributes)
    if (!def.fallback && !given.find(def.name)) context.fail("attribute {} is missing", def.name);
}

}  // namespace

std::vector<Type> infer_types(const OpDef& op, const std::vector<Value*>& inputs, const Attributes& attributes,
                              std::span<const std::unique_ptr<Block>> regions) {
  std::vector<Type> types;
  std::vector<const Tensor*> constants;
  types.reserve(inputs.size());
  constants.reserve(inputs.size());
  for (const Value* input : inputs) {
    types.push_back(input->type);
    constants.push_back(constant_of(input));
  }
  InferContext context(op, attributes, std::move(types), std::move(constants), regions);
  check_inputs(op, context);
  check_attributes(op, attributes, context);
  CHECK(op.infer, "{} has no shape rule", op.name);
  op.infer(context);
  CHECK(op.results.empty() || op.results.size() == context.results().size(), "{} infers {} results", op.name,
        context.results().size());
  for (const Type& type : context.results())
    if (type.is_static() && !element_count(type.shape.sizes())) context.fail("result {} is too large", to_string(type));
  return context.results();
}

}  // namespace cairn
