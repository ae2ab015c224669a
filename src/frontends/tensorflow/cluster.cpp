#include "frontends/tensorflow/cluster.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>
#include <set>

#include "autodiff/updates.h"
#include "frontends/fold.h"
#include "frontends/inputs.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"
#include "frontends/tensorflow/raise.h"
#include "ir/builder.h"
#include "ir/text.h"

namespace cairn {
namespace tensorflow {
namespace {

using Kind = AttrValue::Kind;

void read_variable(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("read_variable", c.in)};
}

void assign(OpContext& c, Value* value) {
  c.b.add_node(op_named("assign_variable"), {c.in[0], value});
  if (!c.node().op.starts_with("Resource") && c.node().op != "AssignVariableOp") c.out = {c.in[0]};
}

void assign_value(OpContext& c) {
  c.expect_inputs(2);
  assign(c, c.in[1]);
}

void gradient_descent(OpContext& c) {
  c.expect_inputs(3);
  const update::Operands operands{{c.b, c.b.add("read_variable", {c.in[0]})}, {c.b, c.in[2]}, {}};
  assign(c, update::gradient_descent(operands, {c.b, c.in[1]}).weight.value);
}

void retval(OpContext& c) {
  c.expect_inputs(1);
  if (!c.in[0]->type.is_tensor()) c.refuse("hands out a {}", to_string(c.in[0]->type));
  c.out = c.in;
}

void nothing(OpContext&) {}

/// The texts of an Assert are constants, or attributes that the TensorFlow adapter has set.
void assertion(OpContext& c) {
  c.expect_inputs(1, 1 << 20);
  std::vector<Value*> inputs{c.in[0]};
  std::vector<std::string> texts = c.texts("texts");
  std::vector<int64_t> places = c.integers("places");
  for (size_t i = 1; i < c.in.size(); ++i) {
    if (c.in[i]->type.dtype != kString) {
      inputs.push_back(c.in[i]);
      if (!c.has("places")) places.push_back(static_cast<int64_t>(i) - 1);
      continue;
    }
    const Tensor text = c.constant(i, "a text of the message");
    if (text.count() != 1) c.refuse("a list of {} texts in the message", text.count());
    texts.push_back(text.values<std::string>()[0]);
  }
  c.b.add_node(op_named("assert"), inputs,
               {{"message", "assertion failed:"},
                {"texts", texts},
                {"places", places},
                {"summarize", c.integer("summarize", 3)}});
}

constexpr Traits kAssigns = writes(1) | Trait::assigns | Trait::free;

constexpr Row kClusterRows[] = {
    {"_Retval", retval},
    {"ApplyGradientDescent", gradient_descent, writes(1)},
    {"Assert", assertion, Trait::stops},
    {"Assign", assign_value, kAssigns},
    {"AssignVariableOp", assign_value, kAssigns},
    {"CairnAssert", assertion, Trait::stops | Trait::free},
    {"NoOp", nothing, Trait::free},
    {"ReadVariableOp", read_variable, reads(1) | Trait::free},
    {"ResourceApplyGradientDescent", gradient_descent, writes(1)},
};

/// Functions that an attribute names.
std::vector<std::string_view> callees(const Attr& attr, ModelBytes& model) {
  AttrValue value = decode(attr, model);
  std::vector<std::string_view> names;
  for (const NameAttrList& callee : value.functions) names.push_back(callee.name);
  if (value.kind == Kind::function) names.push_back(value.function.name);
  return names;
}

/// Nodes of a kind, and those that run a function with one.
class NodesOf {
 public:
  NodesOf(const GraphDef& graph, bool (*are)(std::string_view op)) : model_(*graph.model), library_(graph), are_(are) {}

  bool contain(const Node& node) {
    if (are_(node.op)) return true;
    if (library_.find(node.op) != nullptr && of_function(node.op)) return true;
    for (const Attr& attr : node.attrs)
      for (std::string_view callee : callees(attr, model_))
        if (of_function(callee)) return true;
    return false;
  }

 private:
  bool of_function(std::string_view name) {
    const FunctionDef* function = library_.find(name);
    auto [entry, fresh] = functions_.try_emplace(name, false);
    if (!fresh || function == nullptr) return entry->second;
    for (const Node& node : function->nodes)
      if (contain(node)) return functions_[name] = true;
    return false;
  }

  ModelBytes& model_;
  Library library_;
  bool (*are_)(std::string_view op);
  std::map<std::string_view, bool> functions_;
};

/// All nodes in topological order. If the edges leave a choice, nodes that write variables come last, so that no node
/// reads content that in TensorFlow would be written later.
std::vector<Edge> readers_first(const GraphDef& graph) {
  NodesOf all_writers(graph, [](std::string_view op) { return traits_of(op).has(Trait::writes); });
  const Users users(graph.nodes);
  std::deque<uint32_t> ready, writers;
  auto release = [&](uint32_t i) { (all_writers.contain(graph.nodes[i]) ? writers : ready).push_back(i); };
  std::vector<size_t> waits;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    waits.push_back(graph.nodes[i].inputs.size());
    if (waits[i] == 0) release(i);
  }
  std::vector<Edge> order;
  while (!ready.empty() || !writers.empty()) {
    std::deque<uint32_t>& next = ready.empty() ? writers : ready;
    const uint32_t i = next.front();
    next.pop_front();
    order.push_back({i, 0});
    for (const auto [user, port] : users.of(i))
      if (--waits[user] == 0) release(user);
  }
  if (order.size() != graph.nodes.size())
    fail(ErrorKind::unsupported, graph.model->name(), "has a circle; loops must be While nodes");
  return order;
}

/// Places of the arguments and results, in their order.
struct Ports {
  std::vector<uint32_t> args, results;
};

Ports find_ports(const GraphDef& graph) {
  Ports ports;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op != "_Arg" && node.op != "_Retval") continue;
    auto& list = node.op == "_Arg" ? ports.args : ports.results;
    auto index = static_cast<size_t>(attr_of(node, "index", Kind::integer, *graph.model).integer);
    if (index >= graph.nodes.size()) fail(ErrorKind::invalid_model, printable(node.name), "has index {}", index);
    if (list.size() <= index) list.resize(index + 1, kGone);
    if (list[index] != kGone) fail(ErrorKind::invalid_model, printable(node.name), "has the index of another");
    list[index] = i;
  }
  for (const auto& list : {ports.args, ports.results})
    if (std::find(list.begin(), list.end(), kGone) != list.end())
      fail(ErrorKind::invalid_model, graph.model->name(), "an argument or result is missing");
  return ports;
}

/// The reason why the types in this attribute are unsupported; empty if they are supported.
std::string refused_type(const Attr& attr, ModelBytes& model) {
  AttrValue value = decode(attr, model);
  std::vector<int64_t> types;
  if (value.kind == Kind::type) types = {value.integer};
  if (value.kind == Kind::list && (attr.name == "Tin" || attr.name == "Tout" || attr.name == "T"))
    types = value.integers;
  for (int64_t type : types) {
    auto plain = static_cast<DataType>(type >= kDtRef ? type - kDtRef : type);
    auto dtype = dtype_of(plain);
    bool handle = plain == kDtResource || plain == kDtVariant;
    if ((!dtype && !handle) || dtype == kString) return fmt::format("elements of {}", to_string(plain));
  }
  return {};
}

class Refusals {
 public:
  explicit Refusals(const GraphDef& graph) : graph_(graph), library_(graph) {}

  std::string of(const Node& node, int level) {
    if (node.op == "_Arg" || node.op == "_Retval") return {};
    bool call = library_.find(node.op) != nullptr;
    if (!call && find_cluster_row(node.op) == nullptr) return "there is no such operator yet";
    if (level > kMostLevels) return "functions are nested too deeply";
    const bool told =
        level > 0 && (node.op == "Assert" || node.op == "Const");  // texts of messages; nothing else takes them
    for (const Attr& attr : node.attrs)
      if (std::string why = refused_type(attr, *graph_.model); !why.empty() && !told) return why;
    if (call) return of_function(node.op, level);
    for (const Attr& attr : node.attrs)
      for (std::string_view callee : callees(attr, *graph_.model))
        if (std::string why = of_function(callee, level); !why.empty()) return why;
    return {};
  }

 private:
  static constexpr int kMostLevels = 64;

  std::string of_function(std::string_view name, int level) {
    const FunctionDef* function = library_.find(name);
    if (function == nullptr) return fmt::format("function {} is not in the library", printable(name));
    auto [entry, fresh] = functions_.try_emplace(name);
    if (!fresh) return entry->second;
    std::string why;
    for (const Node& node : function->nodes) {
      why = may_repeat_rows(*function, node) ? "it may name a row twice" : of(node, level + 1);
      if (!why.empty()) {
        why = fmt::format("{} {} inside: {}", printable(node.op), printable(node.name), why);
        break;
      }
    }
    if (why.empty() && function->fault) why = function->fault->what();
    return functions_[name] = why;
  }

  /// A sparse update whose rows do not come from Unique, as those of TensorFlow's optimizers do.
  static bool may_repeat_rows(const FunctionDef& function, const Node& update) {
    if (!traits_of(update.op).has(Trait::rows)) return false;
    for (Edge input : update.inputs) {
      const Node* maker = &function.nodes[input.node];
      for (size_t i = 0; maker->op == "Identity" && !maker->inputs.empty() && i < function.nodes.size(); ++i)
        maker = &function.nodes[maker->inputs[0].node];
      if (traits_of(maker->op).has(Trait::distinct)) return false;
    }
    return true;
  }

  const GraphDef& graph_;
  Library library_;
  std::map<std::string_view, std::string> functions_;
};

}  // namespace

std::span<const Row> cluster_rows() { return kClusterRows; }

namespace {

/// The graph with If and While instead of TensorFlow 1's control flow, without the leftover nodes.
GraphDef raised(const GraphDef& graph) {
  GraphDef copy = graph;
  raise_control_flow(copy, true);
  NodesOf acting(copy, has_effect);
  std::vector<uint32_t> roots;
  for (uint32_t i = 0; i < copy.nodes.size(); ++i)
    if (const Node& node = copy.nodes[i]; node.op == "_Arg" || node.op == "_Retval" || acting.contain(node))
      roots.push_back(i);
  prune(copy, roots);
  return copy;
}

/// The size that the symbol stands for among the inputs, as a vector of one element.
Value* size_of(Symbol symbol, Builder& builder) {
  for (const auto& param : builder.block().params) {
    const std::vector<Dim>& dims = param->type.shape.dims;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (dims[axis].symbol == symbol) return dim_of(param.get(), axis, builder);
  }
  fail(ErrorKind::invalid_argument, *symbol, "is a value, and no input has such a dim");
}

/// The value that replaces a known input: a constant, or a vector or scalar whose elements include sizes.
Value* known_input(const Value& input, const KnownIntegers& known, Builder& builder) {
  const Type& type = input.type;
  if (std::any_of(known.elements.begin(), known.elements.end(),
                  [](const auto& each) { return each.size != nullptr; })) {
    std::vector<Value*> parts;
    for (const auto& [number, size] : known.elements)
      parts.push_back(size ? size_of(size, builder) : builder.ints({number}));
    Value* vector = cast_to(joined(parts, builder), type.dtype, builder);
    return known.scalar ? builder.add("reshape", {vector, builder.ints({})}) : vector;
  }
  std::vector<int64_t> values;
  for (const auto& element : known.elements) values.push_back(element.number);
  const bool integers = type.is_tensor() && type.is_static() && type.dtype.is_integer();
  const std::vector<int64_t> dims = integers ? type.shape.sizes() : std::vector<int64_t>();
  const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  if (!integers || count != static_cast<int64_t>(values.size()))
    fail(ErrorKind::invalid_argument, input.name, "is {}, {} integers are given", to_string(type), values.size());
  return cast_to(builder.constant(Tensor::of(kI64, dims, values)), type.dtype, builder);
}

}  // namespace

}  // namespace tensorflow

Module import_cluster(const tensorflow::GraphDef& given, const ImportOptions& options) {
  using tensorflow::attr_of;
  using Kind = tensorflow::AttrValue::Kind;
  std::optional<tensorflow::GraphDef> without_switches;
  if (tensorflow::has_switches(given)) without_switches = tensorflow::raised(given);
  const tensorflow::GraphDef& graph = without_switches ? *without_switches : given;
  tensorflow::Ports ports = tensorflow::find_ports(graph);
  Module module;
  module.functions.push_back(std::make_unique<Function>());
  Function& main = *module.functions.back();
  main.name = "main";
  InputTypes types(options);
  tensorflow::Importer importer(graph, module);
  importer.keep_effects();
  std::unordered_map<std::string_view, Value*> inputs;
  for (uint32_t place : ports.args) {
    const tensorflow::Node* arg = &graph.nodes[place];
    auto element = static_cast<tensorflow::DataType>(attr_of(*arg, "T", Kind::type, *graph.model).integer);
    auto dtype = tensorflow::dtype_of(element);
    if (!dtype) fail(ErrorKind::unsupported, printable(arg->name), "is {}", to_string(element));
    std::string name = clean(arg->name);
    Type type = types.type({name}, *dtype, Shape::unranked());
    std::string_view handle = attr_of(*arg, "handle", Kind::text, *graph.model).text;
    Value* param = main.body.add_param(handle.empty() ? type : Type::resource(type), name);
    if (handle == "ref") importer.add_reference(param);
    inputs[arg->name] = param;
  }
  types.refuse_unused(graph.model->name(), main.body);
  Builder builder(main.body);
  for (const auto& [name, values] : options.input_values) {
    auto found = inputs.find(name);
    if (found == inputs.end()) fail(ErrorKind::invalid_argument, name, "has a value, and is no input");
    found->second = tensorflow::known_input(*found->second, values, builder);
  }
  for (const auto& [name, value] : options.constants) {
    auto found = inputs.find(name);
    if (found == inputs.end()) fail(ErrorKind::invalid_argument, name, "is constant, and is no input");
    const Value* param = found->second;
    const Type& type = param->type.is_tensor() ? param->type : param->type.elements[0];
    if (value.dtype() != type.dtype)
      fail(ErrorKind::invalid_argument, name, "is {}, not {}", to_string(type.dtype), to_string(value.dtype()));
    found->second = builder.constant(value);
    if (param->type.is_tensor()) continue;
    found->second = builder.add("local_variable", {found->second});
    if (importer.is_reference(param)) importer.add_reference(found->second);
  }
  std::unordered_map<uint32_t, Value*> arguments;
  for (uint32_t place : ports.args) arguments[place] = inputs.at(graph.nodes[place].name);
  const std::vector<tensorflow::Edge> order = tensorflow::readers_first(graph);
  const std::vector<Value*> results = importer.import_graph(order, arguments, builder);
  importer.problems().raise(graph.model->name());
  std::vector<Value*> values(graph.nodes.size());
  for (size_t i = 0; i < order.size(); ++i) values[order[i].node] = results[i];
  for (uint32_t place : ports.results) {
    main.body.results.push_back(values[place]);
    main.result_names.push_back(clean(graph.nodes[place].name));
  }
  module.metadata["format"] = "tensorflow";
  verify(module);
  return module;
}

std::map<std::string, std::string> refused_nodes(const tensorflow::GraphDef& graph) {
  tensorflow::Refusals refusals(graph);
  std::map<std::string, std::string> reasons;
  for (const tensorflow::Node& node : graph.nodes)
    if (std::string why = refusals.of(node, 0); !why.empty()) reasons[clean(node.name)] = why;
  return reasons;
}

}  // namespace cairn
