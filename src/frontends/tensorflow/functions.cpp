#include "frontends/tensorflow/functions.h"
#include "frontends/unknown_name.h"

#include <algorithm>
#include <charconv>
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

/// Flat number of the first tensor of result `name`.
int64_t result_start(const Node& node, std::string_view name, const Library& library) {
  if (const FunctionDef* function = library.find(node.op)) {
    for (size_t i = 0; i < function->outputs.size(); ++i)
      if (function->outputs[i].name == name) return static_cast<int64_t>(i);
    fail(ErrorKind::invalid_model, printable(node.name), "function {} has no result {}", printable(node.op),
         printable(name));
  }
  std::string_view rest = multiple_results(node.op);
  if (rest.empty()) return 0;  // one result, whatever its name
  int64_t start = 0;
  while (!rest.empty()) {
    std::string_view result = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), result.size() + 1));
    size_t star = result.find('*');
    if (result.substr(0, star) == name) return start;
    start += star == std::string_view::npos ? 1 : repeated_results(node, result.substr(star + 1), library.model());
  }
  fail(ErrorKind::invalid_model, printable(node.name), "{} has no result {}", printable(node.op), printable(name));
}

struct Call {
  Node node;
  int level;
};

/// Expands one call into `pending`, and returns the node that hands on the results.
class Expansion {
 public:
  Expansion(const Call& call, const FunctionDef& function, const Library& library,
            std::unordered_set<std::string_view>& used)
      : call_(call), function_(function), library_(library), model_(library.model()) {
    index_ = index_nodes(function.nodes, printable(function.name));
    std::vector<std::string_view> inputs;
    for (std::string_view input : call.node.inputs)
      if (!input.starts_with('^')) inputs.push_back(input);
    if (inputs.size() != function.inputs.size())
      fail(ErrorKind::invalid_model, printable(call.node.name), "gives {} arguments to function {}, which takes {}",
           inputs.size(), printable(function.name), function.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) arguments_.emplace(function.inputs[i].name, inputs[i]);
    for (const Node& inner : function.nodes) names_.emplace(inner.name, name_of(inner.name, used));
  }

  Node run(std::vector<Call>& pending) {
    for (const Node& inner : function_.nodes) {
      model_.charge(2 * sizeof(Call) + 2 * inner.inputs.size() * sizeof(std::string_view) +
                    2 * inner.attrs.size() * sizeof(Attr));
      Node node = inner;
      node.name = names_.at(inner.name);
      for (std::string_view& input : node.inputs) input = translate(input);
      pending.push_back({std::move(node), call_.level + 1});
    }
    return hand_on();
  }

 private:
  /// An inner node's own name if no other node has it, else with the call's before it.
  std::string_view name_of(std::string_view own, std::unordered_set<std::string_view>& used) {
    if (used.insert(own).second) return own;
    std::string name = fmt::format("{}/{}", call_.node.name, own);
    while (used.contains(name)) name += "_";
    return *used.insert(model_.keep(std::move(name))).first;
  }

  /// The graph's name for a body input.
  std::string_view translate(std::string_view input) {
    TensorName name = resolve_body_input(input, function_.nodes, index_, library_);
    if (!index_.contains(name.node)) {
      auto argument = arguments_.find(name.node);
      if (argument != arguments_.end() && name.index == 0) return argument->second;
      if (argument != arguments_.end() && name.index == kControl)
        return model_.keep(fmt::format("^{}", parse_tensor_name(argument->second, std::string(name.node)).node));
      fail(ErrorKind::invalid_model, printable(function_.name), "input '{}' is neither a node nor an argument",
           printable(input));
    }
    std::string_view node = names_.at(name.node);
    if (name.index == kControl) return model_.keep(fmt::format("^{}", node));
    return name.index > 0 ? model_.keep(fmt::format("{}:{}", node, name.index)) : node;
  }

  Node hand_on() {
    Node node;
    node.name = call_.node.name;
    std::unordered_map<std::string_view, std::string_view> returns(function_.returns.begin(), function_.returns.end());
    std::vector<DataType> types;
    for (const FunctionArg& output : function_.outputs) {
      auto found = returns.find(output.name);
      if (found == returns.end())
        fail(ErrorKind::invalid_model, printable(function_.name), "result {} is not given", printable(output.name));
      types.push_back(output.type);
      node.inputs.push_back(translate(found->second));
    }
    for (std::string_view input : call_.node.inputs)
      if (input.starts_with('^')) node.inputs.push_back(input);
    for (const auto& [name, inner] : function_.control_returns)
      if (index_.contains(inner)) node.inputs.push_back(model_.keep(fmt::format("^{}", names_.at(inner))));
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

  const Call& call_;
  const FunctionDef& function_;
  const Library& library_;
  ModelBytes& model_;
  NodeIndex index_;
  std::unordered_map<std::string_view, std::string_view> arguments_;
  std::unordered_map<std::string_view, std::string_view> names_;  // in the graph
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

NodeIndex index_nodes(const std::vector<Node>& nodes, const std::string& where) {
  NodeIndex index;
  index.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!index.emplace(nodes[i].name, i).second)
      fail(ErrorKind::invalid_model, where, "two nodes are named '{}'", printable(nodes[i].name));
  return index;
}

TensorName resolve_body_input(std::string_view input, const std::vector<Node>& nodes, const NodeIndex& index,
                              const Library& library) {
  if (input.starts_with('^')) return {input.substr(1), kControl};
  size_t first = input.find(':');
  TensorName name{input.substr(0, first), 0};
  if (first == std::string_view::npos) return name;
  size_t second = input.find(':', first + 1);
  int64_t offset = 0;
  if (second != std::string_view::npos) {
    const char* end = input.data() + input.size();
    auto [stop, error] = std::from_chars(input.data() + second + 1, end, offset);
    if (error != std::errc() || stop != end || offset < 0 || offset > 1'000'000)
      fail(ErrorKind::invalid_model, printable(input), "is no input of a function's node, expected node:result:number");
  }
  auto found = index.find(name.node);
  if (found != index.end())
    offset += result_start(nodes[found->second], input.substr(first + 1, second - first - 1), library);
  name.index = static_cast<int>(offset);
  return name;
}

std::string_view data_input(const Node& node, size_t number) {
  for (std::string_view input : node.inputs)
    if (!input.starts_with('^') && number-- == 0) return input;
  fail(ErrorKind::invalid_model, printable(node.name), "{} has too few inputs", printable(node.op));
}

std::pair<const Node*, int> origin(std::string_view input, const std::vector<Node>& nodes, const NodeIndex& index,
                                   const std::string& where) {
  for (size_t steps = 0; steps <= nodes.size(); ++steps) {
    const TensorName name = parse_tensor_name(input, where);
    const auto found = index.find(name.node);
    if (found == index.end())
      fail(ErrorKind::invalid_model, where, "input '{}' does not exist", printable(std::string(input)));
    const Node& node = nodes[found->second];
    if (node.op == "Identity")
      input = data_input(node, 0);
    else if (node.op == "IdentityN")
      input = data_input(node, static_cast<size_t>(name.index));
    else
      return {&node, name.index};
  }
  fail(ErrorKind::invalid_model, where, "its nodes go in a circle");
}

void prune(GraphDef& graph, const std::vector<std::string>& roots) {
  NodeIndex index = index_nodes(graph.nodes, graph.model->name());
  std::vector<bool> keep(graph.nodes.size(), false);
  std::vector<size_t> pending;
  auto reach = [&](std::string_view node, std::string_view from) {
    auto found = index.find(node);
    if (found == index.end()) {
      if (from.empty())
        throw UnknownName(ErrorKind::not_found, UnknownName::Of::output, std::string(node), graph.model->name(),
                          fmt::format("has no node '{}'", printable(node)));
      fail(ErrorKind::invalid_model, printable(from), "input '{}' does not exist", printable(node));
    }
    if (keep[found->second]) return;
    keep[found->second] = true;
    pending.push_back(found->second);
  };
  for (const std::string& root : roots) reach(root, {});
  while (!pending.empty()) {
    const Node& node = graph.nodes[pending.back()];
    pending.pop_back();
    for (std::string_view input : node.inputs) reach(parse_tensor_name(input, std::string(node.name)).node, node.name);
  }
  std::vector<Node> kept;
  for (size_t i = 0; i < keep.size(); ++i)
    if (keep[i]) kept.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(kept);
}

void inline_calls(GraphDef& graph) {
  Library library(graph);
  std::unordered_set<std::string_view> used;
  for (const Node& node : graph.nodes) used.insert(node.name);
  std::vector<Call> pending;
  for (size_t i = graph.nodes.size(); i-- > 0;) pending.push_back({std::move(graph.nodes[i]), 0});
  std::vector<Node> nodes;
  while (!pending.empty()) {
    Call call = std::move(pending.back());
    pending.pop_back();
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
    nodes.push_back(Expansion(call, *function, library, used).run(pending));
  }
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
