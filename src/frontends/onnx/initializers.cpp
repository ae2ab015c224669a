#include "frontends/onnx/initializers.h"

#include <algorithm>
#include <cstring>

namespace cairn::onnx {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;  // of an initialiser whose elements are compared

struct Use {
  size_t node, input;
};
struct Uses {
  std::vector<Use> places;
  bool tied = false;
};

/// A name that torch's exporters make for what they computed: "onnx::MatMul_12", "val_12".
bool is_made(std::string_view name) {
  if (name.starts_with("onnx::")) return true;
  return name.starts_with("val_") && name.size() > 4 &&
         std::all_of(name.begin() + 4, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_identity(const Node& node) {
  return node.op == "Identity" && node.domain.empty() && node.inputs.size() == 1 && node.outputs.size() == 1 &&
         !node.outputs[0].empty();
}

/// The parameters ("PARAMETER") or buffers that a network had when torch exported it and that its file does not have.
std::vector<std::string_view> missing(const Graph& graph, const std::string& kind) {
  std::unordered_set<std::string_view> names;
  for (const TensorProto& tensor : graph.initializers) names.insert(tensor.name);
  const std::string target = ": " + kind + " target='";
  std::vector<std::string_view> found;
  std::string_view rest = graph.torch_signature;
  for (size_t at; (at = rest.find(target)) != std::string_view::npos;) {
    rest.remove_prefix(at + target.size());
    const std::string_view name = rest.substr(0, rest.find('\''));
    if (!names.contains(name)) found.push_back(name);
  }
  return found;
}

/// Whether the exporter may have merged initialisers that were used in one place each. The old one of torch's exporters
/// forwards them by Identity nodes instead.
bool may_be_merged(const Model& model) {
  return model.producer != "pytorch" || !missing(model.graph, "PARAMETER").empty();
}

/// Whether it is a float tensor of more than one element whose elements all have the same bits.
bool is_uniform(const TensorProto& proto, const Model& model) {
  if (proto.bytes.size() > kMostBytes) return false;
  try {
    const Tensor tensor = read_tensor(proto, model, "");
    if (!tensor.dtype().is_float() || tensor.count() < 2 || tensor.bytes() > kMostBytes) return false;
    const auto* bytes = static_cast<const char*>(tensor.data());
    const size_t size = static_cast<size_t>(tensor.dtype().size());
    return std::memcmp(bytes, bytes + size, tensor.bytes() - size) == 0;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
    return false;  // import will report its fault
  }
}

void tie_captures(const Graph& graph, std::unordered_map<std::string_view, Uses>& uses) {
  for (const Node& node : graph.nodes) {
    for (std::string_view input : node.inputs)
      if (auto found = uses.find(input); found != uses.end()) found->second.tied = true;
    for (const Attribute& attribute : node.attributes)
      if (attribute.graph) tie_captures(*attribute.graph, uses);
  }
}

}  // namespace

OwnInitializers::OwnInitializers(const Model& model) {
  const Graph& graph = model.graph;
  std::unordered_map<std::string_view, Uses> uses;
  std::unordered_set<std::string_view> names, outputs;
  for (const TensorProto& tensor : graph.initializers) uses[tensor.name], names.insert(tensor.name);
  for (const ValueInfo& input : graph.inputs)
    if (auto found = uses.find(input.name); found != uses.end()) found->second.tied = true;
  for (const ValueInfo& output : graph.outputs) outputs.insert(output.name);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    names.insert(node.outputs.begin(), node.outputs.end());
    for (const Attribute& attribute : node.attributes)
      if (attribute.graph) tie_captures(*attribute.graph, uses);
    if (node.op == "Shape" || node.op == "Size") continue;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (auto found = uses.find(node.inputs[i]); found != uses.end()) found->second.places.push_back({n, i});
  }
  const bool merged = may_be_merged(model);
  for (const TensorProto& tensor : graph.initializers) {
    const Uses& of = uses[tensor.name];
    if (of.tied || of.places.empty()) continue;
    std::vector<Use> others;
    for (const Use& use : of.places) {
      const Node& node = graph.nodes[use.node];
      if (!is_identity(node)) {
        others.push_back(use);
      } else if (!is_made(node.outputs[0]) && !outputs.contains(node.outputs[0])) {
        copies.push_back({std::string(node.outputs[0]), &tensor});
        gone.resize(graph.nodes.size());
        gone[use.node] = true;
      }
    }
    if (!merged || others.size() < 2 || outputs.contains(tensor.name) || !is_uniform(tensor, model)) continue;
    for (size_t i = 1; i < others.size(); ++i) {
      std::string name;
      for (size_t number = i + 1; name.empty() || names.contains(name); ++number)
        name = std::string(tensor.name) + "." + std::to_string(number);
      replacements[{others[i].node, others[i].input}] = &copies.emplace_back(Copy{name, &tensor});
      names.insert(copies.back().name);
    }
  }
}

Model OwnInitializers::applied(const Model& model) const {
  Model own = model;
  for (const Copy& copy : copies) own.graph.initializers.push_back({copy.name, copy.original->bytes});
  for (const auto& [place, copy] : replacements) own.graph.nodes[place.first].inputs[place.second] = copy->name;
  size_t index = 0;
  if (!gone.empty()) std::erase_if(own.graph.nodes, [&](const Node&) { return gone[index++]; });
  return own;
}

size_t folded_norms(const Model& model) {
  const auto buffers = missing(model.graph, "BUFFER");
  return static_cast<size_t>(std::count_if(buffers.begin(), buffers.end(), [](std::string_view name) {
    return name == "running_mean" || name.ends_with(".running_mean");
  }));
}

Weights::Weights(const Graph& graph) {
  for (const auto* list : {&graph.values, &graph.outputs})
    for (const ValueInfo& info : *list)
      if (!info.torch_kind.empty()) kinds_[info.name] = info.torch_kind;
  for (const Node& node : graph.nodes)
    if (node.op == "InstanceNormalization" && node.domain.empty())
      for (size_t i = 1; i < node.inputs.size(); ++i)
        if (is_made(node.inputs[i])) constants_.insert(node.inputs[i]);
}

bool Weights::contains(std::string_view name, const Tensor& value) const {
  if (!value.dtype().is_float()) return false;
  if (const auto kind = kinds_.find(name); kind != kinds_.end()) return kind->second == "PARAMETER";
  return !constants_.contains(name) && (value.count() != 1 || !is_made(name));
}

}  // namespace cairn::onnx
