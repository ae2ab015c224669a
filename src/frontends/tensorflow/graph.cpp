#include "frontends/tensorflow/graph.h"

#include <algorithm>
#include <charconv>

#include "frontends/tensorflow/functions.h"

namespace cairn::tensorflow {
namespace {

[[noreturn]] void refuse_input(std::string_view reader, std::string_view input) {
  fail(ErrorKind::invalid_model, printable(reader), "input '{}' does not exist", printable(input));
}

/// Resolves the names in one function body.
class BodyConnection {
 public:
  BodyConnection(FunctionDef& function, const Library& library)
      : nodes_(function.nodes), names_(function.nodes, printable(function.name)), library_(library),
        results_(function.nodes.size()) {}

  Edge edge(std::string_view text, std::string_view reader) {
    if (text.starts_with('^')) return {place(text.substr(1), text, reader), Edge::kControl};
    const size_t first = text.find(':');
    const uint32_t from = place(text.substr(0, first), text, reader);
    if (first == std::string_view::npos || nodes_[from].op == "_Arg") return {from, 0};
    const size_t second = text.find(':', first + 1);
    int32_t offset = 0;
    if (second != std::string_view::npos) {
      const char* end = text.data() + text.size();
      auto [stop, error] = std::from_chars(text.data() + second + 1, end, offset);
      if (error != std::errc() || stop != end || offset < 0 || offset > 1'000'000)
        fail(ErrorKind::invalid_model, printable(reader),
             "'{}' is no input of a function's node, expected node:result:number", printable(text));
    }
    return {from, start_of(from, text.substr(first + 1, second - first - 1)) + offset};
  }

  uint32_t place(std::string_view name, std::string_view text, std::string_view reader) const {
    const auto found = names_.find(name);
    if (!found) refuse_input(reader, text);
    return *found;
  }

 private:
  /// Flat number of the first tensor of a result.
  int32_t start_of(uint32_t place, std::string_view result) {
    Node& node = nodes_[place];
    std::vector<std::string_view>& all = results_[place];
    if (all.empty()) all = result_names(node, library_);
    if (all.size() == 1 && all[0].empty()) {  // one result, whatever its name
      node.result = result;
      return 0;
    }
    const auto found = std::find(all.begin(), all.end(), result);
    if (found == all.end())
      fail(ErrorKind::invalid_model, printable(node.name), "{} has no result {}", printable(node.op),
           printable(result));
    return static_cast<int32_t>(found - all.begin());
  }

  std::vector<Node>& nodes_;
  NodeNames names_;
  const Library& library_;
  std::vector<std::vector<std::string_view>> results_;  // of nodes that were asked for
};

}  // namespace

void connect(std::vector<Node>& nodes, const InputNames& inputs, const std::string& where) {
  const NodeNames names(nodes, where);
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].inputs.reserve(inputs[i].size());
    for (std::string_view input : inputs[i]) {
      const TensorName name = parse_tensor_name(input, std::string(nodes[i].name));
      const auto found = names.find(name.node);
      if (!found) refuse_input(nodes[i].name, input);
      nodes[i].inputs.push_back({*found, name.index});
    }
  }
}

void connect_body(FunctionDef& function, const BodyNames& names, const Library& library) try {
  for (const Node& node : function.nodes)
    if (node.op == "_Arg")
      fail(ErrorKind::invalid_model, printable(node.name), "is an argument that its function lacks");
  for (FunctionArg& argument : function.inputs) {
    argument.edge = {static_cast<uint32_t>(function.nodes.size()), 0};
    function.nodes.push_back({argument.name, "_Arg", {}, {}, {}});
  }
  BodyConnection connection(function, library);
  for (size_t i = 0; i < names.inputs.size(); ++i)
    for (std::string_view input : names.inputs[i])
      function.nodes[i].inputs.push_back(connection.edge(input, function.nodes[i].name));
  const std::unordered_map<std::string_view, std::string_view> returns(names.returns.begin(), names.returns.end());
  for (FunctionArg& output : function.outputs) {
    const auto found = returns.find(output.name);
    if (found == returns.end())
      fail(ErrorKind::invalid_model, printable(function.name), "result {} is not given", printable(output.name));
    output.edge = connection.edge(found->second, function.name);
  }
  for (const auto& [name, node] : names.control_returns)
    function.control_returns.emplace_back(name, connection.place(node, node, function.name));
} catch (const Error& error) {
  function.fault = error;
}

NodeNames::NodeNames(const std::vector<Node>& nodes, const std::string& where) {
  places_.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!places_.emplace(nodes[i].name, static_cast<uint32_t>(i)).second)
      fail(ErrorKind::invalid_model, where, "two nodes are named '{}'", printable(nodes[i].name));
}

Users::Users(const std::vector<Node>& nodes) : starts_(nodes.size() + 1, 0) {
  for (const Node& node : nodes)
    for (Edge input : node.inputs) ++starts_[input.node + 1];
  for (size_t i = 0; i < nodes.size(); ++i) starts_[i + 1] += starts_[i];
  users_.resize(starts_.back());
  std::vector<size_t> next(starts_.begin(), starts_.end() - 1);
  for (size_t i = 0; i < nodes.size(); ++i)
    for (Edge input : nodes[i].inputs) users_[next[input.node]++] = {static_cast<uint32_t>(i), input.port};
}

Edge data_input(const Node& node, size_t number) {
  for (Edge input : node.inputs)
    if (!input.is_control() && number-- == 0) return input;
  fail(ErrorKind::invalid_model, printable(node.name), "{} has too few inputs", printable(node.op));
}

Edge origin(Edge edge, const std::vector<Node>& nodes, const std::string& where) {
  for (size_t steps = 0; steps <= nodes.size(); ++steps) {
    const Node& node = nodes[edge.node];
    if (node.op != "Identity" && node.op != "IdentityN") return edge;
    edge = data_input(node, node.op == "Identity" ? 0 : static_cast<size_t>(edge.port));
  }
  fail(ErrorKind::invalid_model, where, "its nodes go in a circle");
}

std::string tensor_name(const std::vector<Node>& nodes, Edge edge) {
  return fmt::format("{}:{}", nodes[edge.node].name, edge.port);
}

std::vector<bool> needed_by(const std::vector<uint32_t>& roots, const std::vector<Node>& nodes, Along along) {
  std::vector<bool> needed(nodes.size(), false);
  std::vector<uint32_t> pending;
  auto reach = [&](uint32_t node) {
    if (!needed[node]) pending.push_back(node);
    needed[node] = true;
  };
  for (uint32_t root : roots) reach(root);
  while (!pending.empty()) {
    const Node& node = nodes[pending.back()];
    pending.pop_back();
    for (Edge input : node.inputs)
      if (along == Along::all || !input.is_control()) reach(input.node);
  }
  return needed;
}

std::vector<uint32_t> keep_nodes(std::vector<Node>& nodes, const std::vector<bool>& keep) {
  std::vector<uint32_t> places(nodes.size(), kGone);
  uint32_t count = 0;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (keep[i]) places[i] = count++;
  std::vector<Node> kept;
  kept.reserve(count);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!keep[i]) continue;
    Node& node = kept.emplace_back(std::move(nodes[i]));
    std::erase_if(node.inputs, [&](Edge input) { return input.is_control() && places[input.node] == kGone; });
    for (Edge& input : node.inputs) {
      if (places[input.node] == kGone) refuse_input(node.name, nodes[input.node].name);
      input.node = places[input.node];
    }
  }
  nodes = std::move(kept);
  return places;
}

void renumber(FunctionDef& function, const std::vector<uint32_t>& places) {
  for (auto* list : {&function.inputs, &function.outputs})
    for (FunctionArg& arg : *list) {
      arg.edge.node = places[arg.edge.node];
      if (arg.edge.node == kGone) refuse_input(function.name, arg.name);
    }
  for (auto& [name, node] : function.control_returns) {
    node = places[node];
    if (node == kGone) refuse_input(function.name, name);
  }
}

void prune(GraphDef& graph, std::vector<uint32_t>& roots) {
  const auto places = keep_nodes(graph.nodes, needed_by(roots, graph.nodes, Along::all));
  for (uint32_t& root : roots) root = places[root];
}

}  // namespace cairn::tensorflow
