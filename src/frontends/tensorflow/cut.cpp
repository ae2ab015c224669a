#include "frontends/tensorflow/cut.h"

#include <algorithm>
#include <optional>
#include <set>

#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

struct FixedType {
  std::string_view op;  // its start
  DataType type;
};

// Ops whose results have a type that no attribute tells. The first that fits counts.
constexpr FixedType kFixedTypes[] = {
    {"StringToNumber", kDtInvalid},
    {"StringToHashBucket", kDtInt64},
    {"StringLength", kDtInt32},
    {"String", kDtString},
    {"AsString", kDtString},
    {"ReadFile", kDtString},
    {"Substr", kDtString},
    {"RegexReplace", kDtString},
    {"StaticRegexReplace", kDtString},
    {"RegexFullMatch", kDtBool},
    {"StaticRegexFullMatch", kDtBool},
    {"ReduceJoin", kDtString},
    {"UnsortedSegmentJoin", kDtString},
    {"UnicodeTranscode", kDtString},
    {"DecodeBase64", kDtString},
    {"DecodeCompressed", kDtString},
    {"Encode", kDtString},
    {"Serialize", kDtString},
    {"DecodeJpeg", kDtUint8},
    {"DecodeAndCropJpeg", kDtUint8},
    {"DecodeBmp", kDtUint8},
    {"DecodeGif", kDtUint8},
    {"TensorListStack", kDtInvalid},
    {"TensorListGetItem", kDtInvalid},
    {"TensorListGather", kDtInvalid},
    {"TensorListConcat", kDtInvalid},
    {"TensorListLength", kDtInt32},
    {"TensorList", kDtVariant},
    {"EmptyTensorList", kDtVariant},
    {"RaggedTensorToVariant", kDtVariant},
    {"TensorArrayReadV3", kDtInvalid},
    {"TensorArrayGatherV3", kDtInvalid},
    {"TensorArraySizeV3", kDtInt32},
    {"TensorArrayConcatV3", kDtInvalid},
    {"TensorArray", kDtResource},
    {"HashTable", kDtResource},
    {"MutableHashTable", kDtResource},
    {"LookupTableSize", kDtInt64},
    {"IteratorV2", kDtResource},
    {"OneShotIterator", kDtResource},
    {"Equal", kDtBool},
    {"NotEqual", kDtBool},
    {"Less", kDtBool},
    {"Greater", kDtBool},
    {"Logical", kDtBool},
    {"Is", kDtBool},
    {"Where", kDtInt64},
    {"Rank", kDtInt32},
    {"Bucketize", kDtInt32},
};

struct Result {
  std::string_view name;  // in the op's definition, empty when it has one result alone
  DataType type = kDtInvalid;
  size_t number = 0;  // among those of the same name
};

/// What the definition of an op of several results tells of one of them.
Result defined_result(const Node& node, size_t index, ModelBytes& model) {
  std::string_view rest = multiple_results(node.op);
  size_t first = 0;
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const std::string_view name = word.substr(0, word.find('*'));
    size_t count = 1;
    std::vector<int64_t> types;
    if (const Attr* attr = name.size() < word.size() ? node.find(word.substr(name.size() + 1)) : nullptr) {
      const AttrValue value = decode(*attr, model);
      types = value.integers;
      count = value.kind == AttrValue::Kind::integer ? static_cast<size_t>(std::max<int64_t>(value.integer, 0))
                                                     : types.size();
    } else if (name.size() < word.size()) {
      count = 0;
    }
    if (index - first < count)
      return {name, types.empty() ? kDtInvalid : static_cast<DataType>(types[index - first]), index - first};
    first += count;
  }
  return {};
}

AttrValue attr_in(const Node& node, std::string_view name, ModelBytes& model) {
  const Attr* found = node.find(name);
  return found == nullptr ? AttrValue() : decode(*found, model);
}

/// `index` picks from a list of types; -1: lists tell nothing.
DataType type_attr(const Node& node, std::string_view name, int index, ModelBytes& model) {
  const AttrValue value = attr_in(node, name, model);
  if (value.kind == AttrValue::Kind::type) return static_cast<DataType>(value.integer);
  const bool listed = index >= 0 && static_cast<size_t>(index) < value.integers.size();
  return listed ? static_cast<DataType>(value.integers[static_cast<size_t>(index)]) : kDtInvalid;
}

DataType told_type(const Node& node, int index, ModelBytes& model) {
  const Result result = defined_result(node, static_cast<size_t>(index), model);
  if (result.type != kDtInvalid) return result.type;
  for (const char* part : {"indices", "shape", "splits", "lengths"})
    if (result.name.find(part) != std::string_view::npos) return kDtInt64;
  for (const FixedType& fixed : kFixedTypes)
    if (node.op.starts_with(fixed.op)) {
      if (fixed.type != kDtInvalid) return fixed.type;
      break;
    }
  for (const char* attr : {"dtype", "out_type", "output_type", "element_dtype", "DstT", "Tout", "output_types", "T"})
    if (DataType type = type_attr(node, attr, index, model); type != kDtInvalid) return type;
  return kDtInvalid;
}

ShapeProto told_shape(const Node& node, int index, ModelBytes& model) {
  const auto number = static_cast<size_t>(index);
  for (const char* attr : {"_output_shapes", "output_shapes"})
    if (const AttrValue known = attr_in(node, attr, model); number < known.shapes.size()) return known.shapes[number];
  if (const AttrValue own = attr_in(node, "shape", model); own.kind == AttrValue::Kind::shape) return own.shape;
  const Result result = defined_result(node, number, model);
  if (result.name == "dense_values")
    if (const AttrValue dense = attr_in(node, "dense_shapes", model); result.number < dense.shapes.size()) {
      ShapeProto shape = dense.shapes[result.number];
      if (node.op != "ParseSingleExample") shape.dims.insert(shape.dims.begin(), -1);
      return shape;
    }
  return {.unknown_rank = true, .dims = {}};
}

class Edges {
 public:
  explicit Edges(const GraphDef& graph) : graph_(graph), index_(index_nodes(graph.nodes, graph.model->name())) {
    for (const Node& node : graph.nodes)
      for (std::string_view input : node.inputs)
        if (const TensorName name = parse_tensor_name(input, "graph"); name.index != kControl)
          if (auto found = index_.find(name.node); found != index_.end())
            users_[&graph.nodes[found->second]].emplace_back(name.index, &node);
  }

  const Node* find(std::string_view name) const {
    auto found = index_.find(name);
    return found == index_.end() ? nullptr : &graph_.nodes[found->second];
  }
  const std::vector<std::pair<int, const Node*>>& users(const Node& node) const {
    static const std::vector<std::pair<int, const Node*>> kNone;
    auto found = users_.find(&node);
    return found == users_.end() ? kNone : found->second;
  }
  std::vector<const Node*> sources(const Node& node) const {
    std::vector<const Node*> list;
    for (std::string_view input : node.inputs)
      if (!input.starts_with('^'))
        if (const Node* source = find(parse_tensor_name(input, "graph").node)) list.push_back(source);
    return list;
  }

  DataType type(const Node& node, int index) const {
    if (const DataType told = told_type(node, index, model()); told != kDtInvalid) return told;
    for (const auto& [from, user] : users(node))
      if (DataType type = type_attr(*user, user->op == "Cast" ? "SrcT" : "T", -1, model());
          from == index && type != kDtInvalid)
        return type;
    return kDtFloat;
  }

  ShapeProto shape(const Node& node, int index) const { return told_shape(node, index, model()); }

 private:
  ModelBytes& model() const { return *graph_.model; }
  const GraphDef& graph_;
  NodeIndex index_;
  std::unordered_map<const Node*, std::vector<std::pair<int, const Node*>>> users_;
};

/// Results that other nodes or the outputs read.
std::set<int> read_results(const Edges& edges, const Node& node, const Signature& signature) {
  std::set<int> read;
  for (const auto& [index, user] : edges.users(node)) read.insert(index);
  for (const TensorInfo& output : signature.outputs)
    if (const TensorName name = parse_tensor_name(output.tensor, output.key); name.node == node.name)
      read.insert(name.index);
  return read;
}

using Nodes = std::set<const Node*>;

/// The nodes and all that next(node), called once for each, leads to.
template <class Next>
Nodes closure(const Nodes& starts, Next next) {
  std::vector<const Node*> pending(starts.begin(), starts.end());
  Nodes seen;
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Node* each : next(*node)) pending.push_back(each);
  }
  return seen;
}

/// The nodes and all that they need.
Nodes closure_above(const Edges& edges, const Nodes& starts) {
  return closure(starts, [&](const Node& node) { return edges.sources(node); });
}

std::vector<const Node*> users_within(const Edges& edges, const Node& node, const Nodes& within) {
  std::vector<const Node*> list;
  for (const auto& [index, user] : edges.users(node))
    if (within.contains(user)) list.push_back(user);
  return list;
}

/// The nodes, which are among `within`, and all there that need them.
Nodes closure_below(const Edges& edges, const Nodes& starts, const Nodes& within) {
  return closure(starts, [&](const Node& node) { return users_within(edges, node, within); });
}

Nodes output_nodes(const Edges& edges, const Signature& signature) {
  Nodes nodes;
  for (const TensorInfo& output : signature.outputs)
    if (const Node* node = edges.find(parse_tensor_name(output.tensor, output.key).node)) nodes.insert(node);
  return nodes;
}

/// Inputs of the signature that its outputs do not need go.
void drop_unread_inputs(const GraphDef& graph, Signature& signature) {
  const Edges edges(graph);
  const Nodes needed = closure_above(edges, output_nodes(edges, signature));
  std::erase_if(signature.inputs, [&](const TensorInfo& info) {
    const Node* node = edges.find(parse_tensor_name(info.tensor, info.key).node);
    return node != nullptr && !needed.contains(node);
  });
}

/// Every result that is read becomes an input, which its users read instead.
void become_inputs(GraphDef& graph, size_t at, Signature& signature) {
  const std::string_view node = graph.nodes[at].name;
  std::map<int, std::string_view> names;  // of the new nodes, by result
  {
    const Edges edges(graph);
    std::set<int> read = read_results(edges, graph.nodes[at], signature);
    if (read.empty()) read.insert(0);
    const bool one = read == std::set<int>{0};
    for (int index : read) {
      std::string name = one ? std::string(node) : fmt::format("{}_{}", node, index);
      while (!one && edges.find(name) != nullptr) name += "_";
      names[index] = graph.model->keep(name);
      signature.inputs.push_back({one ? name : fmt::format("{}:{}", node, index), name + ":0",
                                  edges.type(graph.nodes[at], index), edges.shape(graph.nodes[at], index)});
    }
  }
  graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(at));
  for (Node& user : graph.nodes)
    for (std::string_view& input : user.inputs)
      if (const TensorName name = parse_tensor_name(input, "graph"); name.node == node)
        input = name.index == kControl ? graph.model->keep(fmt::format("^{}", names.begin()->second))
                                       : names.at(name.index);
  for (TensorInfo& output : signature.outputs)
    if (const TensorName name = parse_tensor_name(output.tensor, output.key); name.node == node)
      output.tensor = fmt::format("{}:0", names.at(name.index));
  for (const auto& [index, name] : names) {
    Node input;
    input.name = name;
    input.op = "Placeholder";
    graph.nodes.push_back(std::move(input));
  }
}

bool is_number(DataType type) {
  const std::optional<DType> dtype = type >= kDtRef ? std::nullopt : dtype_of(type);
  return dtype && *dtype != kString;
}

}  // namespace

GraphDef replaced(GraphDef graph, const std::map<std::string, std::string>& replace, Signature& signature) {
  bool inputs = false;
  for (const auto& [name, how] : replace) {
    auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                              [&name = name](const Node& node) { return node.name == name; });
    if (found == graph.nodes.end()) fail(ErrorKind::not_found, printable(name), "is no node of the model");
    if (how != "identity" && how != "zeros" && how != "input")
      fail(ErrorKind::invalid_argument, printable(name), "cannot become '{}'; identity, zeros, input", printable(how));
    if (how == "input") {
      become_inputs(graph, static_cast<size_t>(found - graph.nodes.begin()), signature);
      inputs = true;
      continue;
    }
    if (found->inputs.empty() || found->inputs[0].starts_with('^'))
      fail(ErrorKind::invalid_argument, printable(name), "has no input that it could become like; use input");
    found->op = how == "identity" ? "Identity" : "ZerosLike";
    found->inputs.resize(1);
  }
  if (inputs) drop_unread_inputs(graph, signature);
  return graph;
}

ResultType result_type(const Node& node, int index, ModelBytes& model) {
  return {told_type(node, index, model), told_shape(node, index, model)};
}

Remedies remedies(const GraphDef& graph, const std::vector<std::string_view>& failed, const Signature& signature) {
  const Edges edges(graph);
  const Library library(graph);
  const Nodes outputs = output_nodes(edges, signature), needed = closure_above(edges, outputs);
  const std::set<std::string_view> names(failed.begin(), failed.end());
  Nodes bad, sources_of_bad, fed;
  for (const Node* node : needed) {
    const bool known = find_row(node->op) != nullptr || library.find(node->op) != nullptr;
    if (names.contains(node->name) || !known) bad.insert(node);
    if (node->op == "Placeholder") fed.insert(node);
  }
  for (const Node* node : bad)
    for (const Node* source : edges.sources(*node)) sources_of_bad.insert(source);
  const Nodes above = closure_above(edges, sources_of_bad), below = closure_below(edges, bad, needed);
  const Nodes varying = closure_below(edges, fed, needed);

  std::set<std::string> ends, cut;
  for (const Node* node : varying)
    if (!below.contains(node) && !fed.contains(node))
      for (const auto& [index, user] : edges.users(*node))
        if (below.contains(user) && is_number(edges.type(*node, index)))
          ends.insert(fmt::format("{}:{}", node->name, index));

  // From what is bad downwards, each way ends at the first node that can be an input; none may end as an output.
  bool reaches_output = false;
  closure(bad, [&](const Node& node) {
    reaches_output = reaches_output || outputs.contains(&node);
    const std::set<int> read = read_results(edges, node, signature);
    const bool numbers =
        std::all_of(read.begin(), read.end(), [&](int index) { return is_number(edges.type(node, index)); });
    const bool ends_here = numbers && !above.contains(&node);
    if (ends_here) cut.emplace(node.name);
    return ends_here || reaches_output ? std::vector<const Node*>() : users_within(edges, node, needed);
  });
  if (reaches_output) cut.clear();
  return {{ends.begin(), ends.end()}, {cut.begin(), cut.end()}};
}

}  // namespace cairn::tensorflow
