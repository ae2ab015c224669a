#include "frontends/tensorflow/flow.h"

#include <algorithm>

#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {

bool is_op(const Node& node, std::string_view op) {
  return node.op == op || (node.op.starts_with("Ref") && node.op.substr(3) == op);
}

Raising::Raising(GraphDef& all, bool keep_effects) : graph(all), effects(keep_effects) {
  for (const Node& node : graph.nodes) used_.emplace(node.name);
}

std::string_view Raising::fresh(std::string_view near, std::string_view what) {
  size_t slash = near.rfind('/');
  std::string name(slash == std::string_view::npos ? std::string_view() : near.substr(0, slash + 1));
  name += what;
  if (used_.insert(name).second) return keep(std::move(name));
  for (size_t& last = last_number_[name];;) {
    std::string numbered = fmt::format("{}_{}", name, ++last);
    if (used_.insert(numbered).second) return keep(std::move(numbered));
  }
}

bool Raising::has_effects(const Node& node) const {
  return effects && (has_effect(node.op) || effectful_.contains(node.name));
}

void Raising::inherit_effects(const Node& made, const FunctionDef& body) {
  if (!body.control_returns.empty()) effectful_.insert(made.name);
}

uint32_t Flow::add(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<uint32_t>(nodes.size() - 1);
}

Edge Flow::behind(Edge edge) const {
  while (at(edge, "Identity") && !nodes[edge.node].inputs.empty()) edge = nodes[edge.node].inputs[0];
  return edge;
}

bool Flow::is_pivot(Edge edge) const {
  if (!edge.is_control() || !at(edge, "Identity") || nodes[edge.node].inputs.empty()) return false;
  const Edge from = nodes[edge.node].inputs[0];
  return at(from, "Switch") && !at(data(from.node, 1), "LoopCond");
}

bool Flow::binds(uint32_t node, Edge edge) const {
  return !edge.is_control() || is_pivot(edge) || (effects && nodes[node].op != "ControlTrigger");
}

std::optional<uint32_t> Flow::next_of(uint32_t merge) const {
  for (Edge input : nodes[merge].inputs)
    if (!input.is_control() && at(input, "NextIteration")) return input.node;
  return std::nullopt;
}

std::vector<uint32_t> Flow::order() const {
  std::vector<std::vector<uint32_t>> users(nodes.size());
  std::vector<size_t> waits(nodes.size(), 0);
  std::vector<uint32_t> ready, sorted;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    for (Edge input : nodes[i].inputs) {
      const bool orders = !input.is_control() || effects || is_pivot(input);
      if ((at(input, "NextIteration") && is_op(nodes[i], "Merge")) || !orders) continue;
      users[input.node].push_back(i);
      ++waits[i];
    }
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const uint32_t i = ready.back();
    ready.pop_back();
    sorted.push_back(i);
    for (uint32_t user : users[i])
      if (--waits[user] == 0) ready.push_back(user);
  }
  if (sorted.size() != nodes.size()) {
    auto stuck = std::find_if(waits.begin(), waits.end(), [](size_t count) { return count > 0; }) - waits.begin();
    fail(ErrorKind::invalid_model, printable(nodes[static_cast<size_t>(stuck)].name),
         "is part of a circle, or stands behind one");
  }
  return sorted;
}

void add_argument(FunctionDef& function, std::string_view name) {
  function.inputs.push_back({name});
  function.inputs.back().edge.node = static_cast<uint32_t>(function.nodes.size());
  function.nodes.push_back({name, "_Arg", {}, {}, {}});
}

Body::Body(const Flow& flow, Raising& raising, std::string_view name, Argument argument, Placing place)
    : flow_(flow), raising_(raising), argument_(std::move(argument)), place_(std::move(place)) {
  function.name = name;
  function.graph_names = true;
}

void Body::add_result(Edge outside) { add_result_inside(inner(outside)); }

void Body::add_result_inside(Edge edge) {
  function.outputs.push_back({raising_.keep(std::to_string(function.outputs.size()))});
  function.outputs.back().edge = edge;
}

Edge Body::inner(Edge outside) {
  const auto number = argument_(outside);
  if (!number) return {copy(outside.node), outside.port};
  while (function.inputs.size() <= *number)
    add_argument(function, raising_.keep(fmt::format("%{}", function.inputs.size())));
  return function.inputs[*number].edge;
}

uint32_t Body::copy(uint32_t node) {
  const auto [found, fresh] = inside_.try_emplace(node, static_cast<uint32_t>(function.nodes.size()));
  if (!fresh) return found->second;
  const Node& original = flow_.nodes[node];
  raising_.graph.model->charge(2 * sizeof(Node) + 2 * original.inputs.size() * sizeof(Edge) +
                               2 * original.attrs.size() * sizeof(Attr));
  function.nodes.push_back({original.name, original.op, original.device, {}, original.attrs});
  pending_.push_back(node);
  return found->second;
}

void Body::follow_control(Edge edge, std::vector<Edge>& inputs) {
  if (!raising_.effects && !flow_.is_pivot(edge)) return;
  const Place place = place_(edge);
  if (place == Place::argument) return;
  if (place == Place::inside) {
    inputs.push_back({copy(edge.node), Edge::kControl});
  } else if (flow_.at(edge, "Switch")) {  // the Switch is removed: wait for its inputs
    for (Edge before : flow_.nodes[edge.node].inputs)
      if (!before.is_control()) waits_.insert(before.node);
  } else if (raising_.effects) {
    waits_.insert(edge.node);
  }
}

FunctionDef Body::finish() {
  while (!pending_.empty()) {
    const uint32_t at = pending_.back();
    pending_.pop_back();
    const Node& node = flow_.nodes[at];
    std::vector<Edge> inputs;
    for (Edge input : node.inputs)
      if (!input.is_control())
        inputs.push_back(inner(input));
      else
        follow_control(input, inputs);
    const uint32_t place = inside_.at(at);
    if (raising_.has_effects(node)) function.control_returns.emplace_back(node.name, place);
    function.nodes[place].inputs = std::move(inputs);
  }
  return std::move(function);
}

}  // namespace cairn::tensorflow
