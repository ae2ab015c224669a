// Nodes of custom types: "Domain>Name", or "Name" alone, stands for the row "domain.name" of a loaded library. The
// TensorFlow adapter writes CairnUserOp, which names the row, and CairnUserOpGrad.
#include "autodiff/differentiate.h"
#include "frontends/tensorflow/importer.h"
#include "ir/user_ops.h"

namespace cairn::tensorflow {

namespace {

/// The node's attribute as the row declares it.
Attribute user_attribute(const AttrDef& declared, const AttrValue& value, const std::shared_ptr<ModelBytes>& model) {
  using Kind = AttrValue::Kind;
  const char* name = declared.name;
  auto expect = [&](Kind kind) {
    if (value.kind != kind)
      fail(ErrorKind::invalid_model, "", "attribute {} is of kind {}, expected {}", name, to_string(value.kind),
           to_string(kind));
  };
  switch (declared.kind) {
    case AttrKind::boolean: expect(Kind::boolean); return value.integer != 0;
    case AttrKind::integer: expect(Kind::integer); return value.integer;
    case AttrKind::number:
      if (value.kind == Kind::integer) return static_cast<double>(value.integer);
      expect(Kind::real);
      return static_cast<double>(value.real);
    case AttrKind::text: expect(Kind::text); return std::string(value.text);
    case AttrKind::integers: expect(Kind::list); return value.integers;
    case AttrKind::numbers: expect(Kind::list); return std::vector<double>(value.reals.begin(), value.reals.end());
    case AttrKind::texts: expect(Kind::list); return std::vector<std::string>(value.texts.begin(), value.texts.end());
    case AttrKind::dtype: {
      expect(Kind::type);
      auto dtype = dtype_of(static_cast<DataType>(value.integer));
      if (!dtype) fail(ErrorKind::unsupported, "", "attribute {}: this element type is not supported", name);
      return *dtype;
    }
    case AttrKind::tensor: expect(Kind::tensor); return read_tensor(value, model, std::string("attribute ") + name);
    default: fail(ErrorKind::unsupported, "", "attribute {} cannot be given in a TensorFlow graph", name);
  }
}

/// A row of a user with its attributes.
struct UserNode {
  const OpDef* op;
  Attributes attributes;
};

UserNode user_node(const OpDef& op, const Node& node, const std::shared_ptr<ModelBytes>& model) {
  UserNode made{&op, {}};  // types of operands are attributes of TensorFlow's alone
  for (const AttrDef& declared : op.attributes)
    if (const Attr* given = node.find(declared.name))
      made.attributes.set(declared.name, user_attribute(declared, decode(*given, *model), model));
  return made;
}

/// The node described by a CairnUserOp: a graph of one node whose type is the row's name.
UserNode told_node(const OpContext& c) {
  auto model = ModelBytes::from_memory("node", c.text("node", ""));
  const GraphDef graph = read_graph_def(model, model->bytes());
  if (graph.nodes.size() != 1) fail(ErrorKind::invalid_model, "", "attribute node has {} nodes", graph.nodes.size());
  const OpDef* op = find_op(graph.nodes[0].op);
  if (!op) fail(ErrorKind::unsupported, "", "{}", unknown_op(graph.nodes[0].op));
  return user_node(*op, graph.nodes[0], model);
}

void make_node(OpContext& c, UserNode user) {
  const cairn::Node* node = c.b.add_node(*user.op, c.in.all(), std::move(user.attributes));
  c.out = results_of(*node);
}

/// A function of the operator alone, whose gradient is called.
void make_gradient(OpContext& c) {
  const UserNode user = told_node(c);
  Module& module = c.importer().module();
  const size_t results = user.op->results.size();
  if (c.in.size() <= results) fail(ErrorKind::invalid_model, "", "has {} inputs", c.in.size());
  auto own = std::make_unique<Function>();
  own->name = fmt::format("forward_of_{}_{}", c.name(), module.functions.size());
  std::vector<cairn::Value*> params;
  for (size_t i = 0; i < c.in.size() - results; ++i)
    params.push_back(own->body.add_param(c.in[i]->type, fmt::format("x{}", i)));
  Builder builder(own->body);
  own->body.results = results_of(*builder.add_node(*user.op, params, user.attributes));
  for (const char* name : user.op->results) own->result_names.emplace_back(name);
  std::vector<std::string> wrt;
  for (const int64_t i : c.integers("wanted")) wrt.push_back(fmt::format("x{}", i));
  std::vector<cairn::Value*> inputs(c.in.begin(), c.in.begin() + static_cast<int64_t>(params.size()));
  for (size_t i = 0; i < results; ++i)
    if (own->body.results[i]->type.dtype.is_float()) inputs.push_back(c.in[params.size() + i]);
  module.functions.push_back(std::move(own));
  const Function& forward = *module.functions.back();
  const std::vector<cairn::Value*> made =
      c.b.call(append_vjp(module, forward, wrt, "gradient_of" + forward.name), inputs);
  c.out.assign(made.begin() + static_cast<int64_t>(results), made.end());
}

constexpr Row kRows[] = {
    {"CairnUserOp", [](OpContext& c) { make_node(c, told_node(c)); }},
    {"CairnUserOpGrad", make_gradient},
};

}  // namespace

void make_user_op(OpContext& c) {
  make_node(c, user_node(*find_foreign_op("tensorflow", c.node().op), c.node(), c.importer().model()));
}

std::span<const Row> user_rows() { return kRows; }

}  // namespace cairn::tensorflow
