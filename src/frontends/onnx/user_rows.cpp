// Nodes of custom domains: "domain::Name" stands for the row "domain.Name" of a loaded library.
#include "frontends/onnx/importer.h"
#include "ir/user_ops.h"

namespace cairn::onnx {

namespace {

/// The node's attribute as the row declares it.
cairn::Attribute attribute_of(const OpContext& c, const AttrDef& declared, const Attribute& given) {
  using Type = Attribute::Type;
  const char* name = declared.name;
  switch (declared.kind) {
    case AttrKind::boolean: return c.integer(name) != 0;
    case AttrKind::integer: return c.integer(name);
    case AttrKind::number: return given.type == Type::integer ? static_cast<double>(c.integer(name)) : c.real(name, 0);
    case AttrKind::text: return c.text(name, "");
    case AttrKind::integers: return c.integers(name);
    case AttrKind::numbers: {
      const std::vector<float> values = c.reals(name);
      return std::vector<double>(values.begin(), values.end());
    }
    case AttrKind::texts: return c.texts(name);
    case AttrKind::tensor: return *c.tensor(name);
    case AttrKind::dtype: {
      if (given.type == Type::text)
        if (auto dtype = parse_dtype(c.text(name, ""))) return *dtype;
      if (given.type == Type::integer)
        if (auto dtype = dtype_of(static_cast<int32_t>(c.integer(name)))) return *dtype;
      fail(ErrorKind::invalid_model, "", "attribute {} is no element type", name);
    }
    default: c.refuse("attribute {} cannot be given in an ONNX model", name);
  }
}

}  // namespace

const OpDef* find_user_op(std::string_view domain, std::string_view op) {
  if (domain.empty()) return nullptr;  // ONNX's own
  return find_foreign_op("onnx", fmt::format("{}::{}", domain, op));
}

void make_user_op(OpContext& c) {
  const OpDef& op = *find_user_op(c.node().domain, c.node().op);
  Attributes attributes;
  for (const Attribute& given : c.node().attributes) {
    const AttrDef* declared = op.find_attribute(given.name);
    if (!declared) fail(ErrorKind::invalid_model, "", "{} has no attribute {}", op.name, given.name);
    if (c.has(given.name)) attributes.set(given.name, attribute_of(c, *declared, given));
  }
  const cairn::Node* node = c.b.add_node(op, c.in.all(), std::move(attributes));
  c.out = results_of(*node);
}

}  // namespace cairn::onnx
