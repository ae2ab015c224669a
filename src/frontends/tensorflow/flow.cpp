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

Flow::Flow(std::vector<Node>& list, bool keep_effects)
    : nodes(list), effects(keep_effects), index(index_nodes(list, "graph")), inputs(list.size()) {
  for (size_t i = 0; i < nodes.size(); ++i) resolve(i);
}

void Flow::resolve(size_t i) {
  inputs[i].clear();
  for (std::string_view text : nodes[i].inputs) {
    TensorName name = parse_tensor_name(text, printable(nodes[i].name));
    auto found = index.find(name.node);
    if (found != index.end())
      inputs[i].push_back({found->second, name.index, text});
    else if (name.index != kControl)
      fail(ErrorKind::invalid_model, printable(nodes[i].name), "input '{}' does not exist", printable(text));
  }
}

void Flow::add(Node node) {
  index.emplace(node.name, nodes.size());
  nodes.push_back(std::move(node));
  inputs.emplace_back();
  resolve(nodes.size() - 1);
}

const End& Flow::data(size_t node, size_t number) const {
  for (const End& end : inputs[node])
    if (end.index != kControl && number-- == 0) return end;
  fail(ErrorKind::invalid_model, printable(nodes[node].name), "{} has too few inputs", printable(nodes[node].op));
}

const End& Flow::behind(const End& end) const {
  const End* from = &end;
  while (at(*from, "Identity") && !inputs[from->node].empty()) from = &inputs[from->node][0];
  return *from;
}

bool Flow::is_pivot(const End& end) const {
  if (end.index != kControl || !at(end, "Identity") || inputs[end.node].empty()) return false;
  const End& from = inputs[end.node][0];
  return at(from, "Switch") && !at(data(from.node, 1), "LoopCond");
}

bool Flow::binds(size_t node, const End& end) const {
  return end.index != kControl || is_pivot(end) || (effects && nodes[node].op != "ControlTrigger");
}

std::optional<size_t> Flow::next_of(size_t merge) const {
  for (const End& end : inputs[merge])
    if (end.index != kControl && at(end, "NextIteration")) return end.node;
  return std::nullopt;
}

std::vector<size_t> Flow::order() const {
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> waits(nodes.size(), 0), ready, sorted;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const End& end : inputs[i]) {
      const bool orders = end.index != kControl || effects || is_pivot(end);
      if ((at(end, "NextIteration") && is_op(nodes[i], "Merge")) || !orders) continue;
      users[end.node].push_back(i);
      ++waits[i];
    }
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    size_t i = ready.back();
    ready.pop_back();
    sorted.push_back(i);
    for (size_t user : users[i])
      if (--waits[user] == 0) ready.push_back(user);
  }
  if (sorted.size() != nodes.size()) {
    auto stuck = std::find_if(waits.begin(), waits.end(), [](size_t count) { return count > 0; }) - waits.begin();
    fail(ErrorKind::invalid_model, printable(nodes[static_cast<size_t>(stuck)].name),
         "is part of a circle, or stands behind one");
  }
  return sorted;
}

Body::Body(const Flow& flow, Raising& raising, std::string_view name, Argument argument, Placing place)
    : flow_(flow), raising_(raising), argument_(std::move(argument)), place_(std::move(place)) {
  function.name = name;
  function.graph_names = true;
}

void Body::add_argument(std::string_view name) {
  function.inputs.push_back({name, kDtInvalid, {}, {}, {}});
  function.nodes.push_back({name, "_Arg", {}, {}, {}});
}

void Body::add_result(std::string_view text) {
  std::string_view result = raising_.keep(std::to_string(function.outputs.size()));
  function.outputs.push_back({result, kDtInvalid, {}, {}, {}});
  function.returns.emplace_back(result, text);
}

void Body::add_effect(size_t node) {
  if (inside_.insert(node).second) pending_.push_back(node);
}

std::string_view Body::inner(const End& end) {
  if (auto argument = argument_(end)) return *argument;
  if (inside_.insert(end.node).second) pending_.push_back(end.node);
  return end.text;
}

void Body::follow_control(const End& end, Node& copy) {
  if (!raising_.effects && !flow_.is_pivot(end)) return;
  const Place place = place_(end);
  if (place == Place::argument) return;
  if (place == Place::inside) {
    add_effect(end.node);
    copy.inputs.push_back(end.text);
  } else if (flow_.at(end, "Switch")) {  // it goes: what it waits for is meant
    for (const End& before : flow_.inputs[end.node])
      if (before.index != kControl) waits_.insert(raising_.keep("^" + std::string(flow_.nodes[before.node].name)));
  } else if (raising_.effects) {
    waits_.insert(end.text);
  }
}

FunctionDef Body::finish() {
  while (!pending_.empty()) {
    const size_t at = pending_.back();
    pending_.pop_back();
    const Node& node = flow_.nodes[at];
    raising_.graph.model->charge(2 * sizeof(Node) + 2 * node.inputs.size() * sizeof(std::string_view) +
                                 2 * node.attrs.size() * sizeof(Attr));
    Node copy = node;
    copy.inputs.clear();
    for (const End& end : flow_.inputs[at])
      if (end.index != kControl)
        copy.inputs.push_back(inner(end));
      else
        follow_control(end, copy);
    if (raising_.has_effects(node)) function.control_returns.emplace_back(node.name, node.name);
    function.nodes.push_back(std::move(copy));
  }
  return std::move(function);
}

}  // namespace cairn::tensorflow
