#include "frontends/onnx/node_order.h"

#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace cairn::onnx {

void collect_captures(const Graph& graph, std::set<std::string_view>& free) {
  std::unordered_set<std::string_view> own;
  for (const ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const TensorProto& tensor : graph.initializers) own.insert(tensor.name);
  auto use = [&](std::string_view name) {
    if (!name.empty() && !own.contains(name)) free.insert(name);
  };
  for (const Node& node : graph.nodes) {
    for (std::string_view input : node.inputs) use(input);
    for (const Attribute& attribute : node.attributes) {
      if (!attribute.graph) continue;
      std::set<std::string_view> inner;
      collect_captures(*attribute.graph, inner);  // as deep as graphs are nested, which reading has bounded
      for (std::string_view name : inner) use(name);
    }
    for (std::string_view output : node.outputs) own.insert(output);
  }
  for (const ValueInfo& output : graph.outputs) use(output.name);
}

void sort_nodes(std::vector<Node>& nodes) {
  std::unordered_map<std::string_view, size_t> makers;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view output : nodes[i].outputs)
      if (!output.empty()) makers.emplace(output, i);
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waits(nodes.size(), 0);
  bool in_order = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto read = [&](std::string_view name) {
      const auto maker = makers.find(name);
      if (maker == makers.end()) return;
      readers[maker->second].push_back(i);
      ++waits[i];
      in_order = in_order && maker->second < i;
    };
    for (std::string_view input : nodes[i].inputs) read(input);
    for (const Attribute& attribute : nodes[i].attributes) {
      if (!attribute.graph) continue;
      std::set<std::string_view> captures;
      collect_captures(*attribute.graph, captures);
      for (std::string_view name : captures) read(name);
    }
  }
  if (in_order) return;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waits[i] == 0) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (size_t reader : readers[order.back()])
      if (--waits[reader] == 0) ready.push(reader);
  }
  if (order.size() != nodes.size()) return;
  std::vector<Node> sorted;
  sorted.reserve(nodes.size());
  for (size_t i : order) sorted.push_back(std::move(nodes[i]));
  nodes = std::move(sorted);
}

}  // namespace cairn::onnx
