#include "frontends/tensorflow/functions.h"

#include <algorithm>
#include <unordered_set>

namespace cairn::tensorflow {
namespace {

constexpr int kMostCallLevels = 64;

/// How many tensors the result "name*attr" of a node has: a number, or the length of a list of types.
int64_t repeated_results(const Node& node, std::string_view attr_name, ModelBytes& model) {
  const Attr* attr = node.find(attr_name);
  if (attr == nullptr) fail(ErrorKind::invalid_model, printable(node.name), "attribute {} is missing", attr_name);
  AttrValue value = decode(*attr, model);
  int64_t count = value.kind == AttrValue::Kind::integer ? value.integer : static_cast<int64_t>(value.integers.size());
  if (count < 0 || count > 1'000'000)
    fail(ErrorKind::invalid_model, printable(node.name), "attribute {} is {}", attr_name, count);
  return count;
}

/// A node of the inlined graph under construction. Edges use temporary node numbers until all nodes have their indices.
struct Pending {
  Node node;
  uint32_t number;
  int level;
};

/// Expands one call into `pending`, and returns the node that forwards the results.
class Expansion {
 public:
  Expansion(const Pending& call, const FunctionDef& function, const Library& library,
            std::unordered_set<std::string_view>& used)
      : call_(call), function_(function), model_(library.model()), used_(used) {
    function.check();
  }

  Node run(std::vector<Pending>& pending, uint32_t& numbers) {
    const std::vector<Node>& nodes = function_.nodes;
    bind_arguments();
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].op != "_Arg") outside_[i].node = numbers++;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].op == "_Arg") continue;
      model_.charge(2 * sizeof(Pending) + 2 * nodes[i].inputs.size() * sizeof(Edge) +
                    2 * nodes[i].attrs.size() * sizeof(Attr));
      Node node = nodes[i];
      node.name = name_of(node.name);
      for (Edge& input : node.inputs) input = translate(input);
      pending.push_back({std::move(node), outside_[i].node, call_.level + 1});
    }
    return hand_on();
  }

 private:
  void bind_arguments() {
    std::vector<Edge> given = call_.node.inputs;
    std::erase_if(given, [](Edge input) { return input.is_control(); });
    if (given.size() != function_.inputs.size())
      fail(ErrorKind::invalid_model, printable(call_.node.name), "gives {} arguments to function {}, which takes {}",
           given.size(), printable(function_.name), function_.inputs.size());
    outside_.resize(function_.nodes.size());
    for (size_t i = 0; i < given.size(); ++i) outside_[function_.inputs[i].edge.node] = given[i];
  }

  /// An inner node's own name if no other node has it, else with the call's before it.
  std::string_view name_of(std::string_view own) {
    if (used_.insert(own).second) return own;
    std::string name = fmt::format("{}/{}", call_.node.name, own);
    while (used_.contains(name)) name += "_";
    return *used_.insert(model_.keep(std::move(name))).first;
  }

  Edge translate(Edge inner) const {
    const Edge outside = outside_[inner.node];
    if (inner.is_control()) return {outside.node, Edge::kControl};
    return function_.nodes[inner.node].op == "_Arg" ? outside : Edge{outside.node, inner.port};
  }

  Node hand_on() {
    Node node;
    node.name = call_.node.name;
    node.location = call_.node.location;
    std::vector<DataType> types;
    for (const FunctionArg& output : function_.outputs) {
      types.push_back(output.type);
      node.inputs.push_back(translate(output.edge));
    }
    for (Edge input : call_.node.inputs)
      if (input.is_control()) node.inputs.push_back(input);
    for (const auto& [name, inner] : function_.control_returns)
      node.inputs.push_back(translate({inner, Edge::kControl}));
    if (types.empty()) {
      node.op = "NoOp";
    } else if (types.size() == 1) {
      node.op = "Identity";
      node.attrs.push_back({"T", model_.keep(attr_type(types[0]))});
    } else {
      node.op = "IdentityN";
      node.attrs.push_back({"T", model_.keep(attr_types(types))});
    }
    return node;
  }

  const Pending& call_;
  const FunctionDef& function_;
  ModelBytes& model_;
  std::unordered_set<std::string_view>& used_;
  std::vector<Edge> outside_;  // by index inside: the node's number, or the value of an argument
};

}  // namespace

std::vector<std::string_view> result_names(const Node& node, const Library& library) {
  std::vector<std::string_view> names;
  if (const FunctionDef* function = library.find(node.op)) {
    for (const FunctionArg& output : function->outputs) names.push_back(output.name);
    return names;
  }
  std::string_view rest = multiple_results(node.op);
  if (rest.empty()) return {""};
  while (!rest.empty()) {
    const std::string_view result = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), result.size() + 1));
    const size_t star = result.find('*');
    const int64_t count =
        star == std::string_view::npos ? 1 : repeated_results(node, result.substr(star + 1), library.model());
    library.model().charge(16 * static_cast<size_t>(count));
    names.insert(names.end(), static_cast<size_t>(count), result.substr(0, star));
  }
  return names;
}

Library::Library(const GraphDef& graph) : model_(graph.model.get()) {
  for (const FunctionDef& function : graph.functions) functions_.emplace(function.name, &function);
}

void inline_calls(GraphDef& graph, std::vector<uint32_t>& roots) {
  Library library(graph);
  std::unordered_set<std::string_view> used;
  for (const Node& node : graph.nodes) used.insert(node.name);
  auto count = static_cast<uint32_t>(graph.nodes.size());
  std::vector<Pending> pending;
  for (uint32_t i = count; i-- > 0;) pending.push_back({std::move(graph.nodes[i]), i, 0});
  std::vector<Node> nodes;
  std::vector<uint32_t> numbers;
  while (!pending.empty()) {
    Pending call = std::move(pending.back());
    pending.pop_back();
    numbers.push_back(call.number);
    std::string_view name = library.find(call.node.op) ? call.node.op : std::string_view();
    if (call.node.op == "PartitionedCall" || call.node.op == "StatefulPartitionedCall") {
      AttrValue value = attr_of(call.node, "f", AttrValue::Kind::function, *graph.model);
      name = value.function.name;
      if (name.empty()) fail(ErrorKind::invalid_model, printable(call.node.name), "names no function to call");
    }
    if (name.empty()) {
      nodes.push_back(std::move(call.node));
      continue;
    }
    const FunctionDef* function = library.find(name);
    if (function == nullptr)
      fail(ErrorKind::invalid_model, printable(call.node.name), "calls function '{}', which the file does not hold",
           printable(name));
    if (call.level >= kMostCallLevels)
      fail(ErrorKind::unsupported, printable(call.node.name), "function calls are nested deeper than {}",
           kMostCallLevels);
    nodes.push_back(Expansion(call, *function, library, used).run(pending, count));
  }
  std::vector<uint32_t> places(count);
  for (uint32_t i = 0; i < count; ++i) places[numbers[i]] = i;
  for (Node& node : nodes)
    for (Edge& input : node.inputs) input.node = places[input.node];
  for (uint32_t& root : roots) root = places[root];
  graph.nodes = std::move(nodes);
}

void prune_functions(GraphDef& graph) {
  std::unordered_map<std::string_view, size_t> index;
  for (size_t i = 0; i < graph.functions.size(); ++i) index.emplace(graph.functions[i].name, i);
  std::vector<bool> keep(graph.functions.size(), false);
  std::vector<size_t> pending;
  auto reach = [&](std::string_view name) {
    auto found = index.find(name);
    if (found == index.end() || keep[found->second]) return;
    keep[found->second] = true;
    pending.push_back(found->second);
  };
  auto reach_from = [&](const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      reach(node.op);
      for (const Attr& attr : node.attrs) {
        // A function, or a list of functions as in Case; other attributes are not worth decoding.
        bool function = attr.payload.empty() && attr.value.starts_with('\x52');
        if (!function && attr.name != "branches") continue;
        AttrValue value = decode(attr, *graph.model);
        if (value.kind == AttrValue::Kind::function) reach(value.function.name);
        for (const NameAttrList& branch : value.functions) reach(branch.name);
      }
    }
  };
  reach_from(graph.nodes);
  while (!pending.empty()) {
    size_t next = pending.back();
    pending.pop_back();
    reach_from(graph.functions[next].nodes);
  }
  std::vector<FunctionDef> kept;
  for (size_t i = 0; i < keep.size(); ++i)
    if (keep[i]) kept.push_back(std::move(graph.functions[i]));
  graph.functions = std::move(kept);
}

}  // namespace cairn::tensorflow
