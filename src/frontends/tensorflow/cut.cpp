#include "frontends/tensorflow/cut.h"

#include <algorithm>
#include <optional>
#include <set>

#include "frontends/tensorflow/importer.h"
#include "frontends/way_around.h"

namespace cairn::tensorflow {
namespace {

struct FixedType {
  std::string_view op;  // its start
  DataType type;
};

// Ops whose result type is not given by an attribute. The first matching entry counts.
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

/// The facts about one result of an op with several results, from the op's definition.
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

/// A graph with its uses and the declared types of results.
class Flowing {
 public:
  explicit Flowing(const GraphDef& graph) : nodes(graph.nodes), users(graph.nodes), model_(*graph.model) {}

  const std::vector<Node>& nodes;
  const Users users;

  DataType type(Edge from) const {
    if (const DataType told = told_type(nodes[from.node], from.port, model_); told != kDtInvalid) return told;
    for (const auto [user, port] : users.of(from.node)) {
      if (port != from.port) continue;
      const Node& node = nodes[user];
      if (DataType type = type_attr(node, node.op == "Cast" ? "SrcT" : "T", -1, model_); type != kDtInvalid)
        return type;
    }
    return kDtFloat;
  }

  ShapeProto shape(Edge from) const { return told_shape(nodes[from.node], from.port, model_); }

  std::vector<uint32_t> sources(uint32_t node) const {
    std::vector<uint32_t> list;
    for (Edge input : nodes[node].inputs)
      if (!input.is_control()) list.push_back(input.node);
    return list;
  }

 private:
  ModelBytes& model_;
};

/// Tensors of the signature's list. What is no node of the graph is left out.
std::vector<Edge> tensors_of(const std::vector<TensorInfo>& list, const NodeNames& names) {
  std::vector<Edge> tensors;
  for (const TensorInfo& info : list) {
    const TensorName name = parse_tensor_name(info.tensor, info.key);
    if (const auto place = names.find(name.node)) tensors.push_back({*place, name.index});
  }
  return tensors;
}

/// Results that other nodes or the outputs read.
std::set<int32_t> read_results(const Flowing& flow, uint32_t node, const std::vector<Edge>& outputs) {
  std::set<int32_t> read;
  for (const auto [user, port] : flow.users.of(node))
    if (port != Edge::kControl) read.insert(port);
  for (Edge output : outputs)
    if (output.node == node) read.insert(output.port);
  return read;
}

/// The nodes and all that they need.
Places closure_above(const Flowing& flow, const Places& starts) {
  return closure(starts, [&](uint32_t node) { return flow.sources(node); });
}

std::vector<uint32_t> users_within(const Flowing& flow, uint32_t node, const Places& within) {
  std::vector<uint32_t> list;
  for (const auto [user, port] : flow.users.of(node))
    if (port != Edge::kControl && within.contains(user)) list.push_back(user);
  return list;
}

/// The nodes and all nodes in `within` that depend on them.
Places closure_below(const Flowing& flow, const Places& starts, const Places& within) {
  return closure(starts, [&](uint32_t node) { return users_within(flow, node, within); });
}

/// Removes inputs of the signature on which no output depends.
void drop_unread_inputs(const GraphDef& graph, Signature& signature) {
  const NodeNames names(graph.nodes, graph.model->name());
  std::vector<uint32_t> ends;
  for (Edge output : tensors_of(signature.outputs, names)) ends.push_back(output.node);
  const std::vector<bool> needed = needed_by(ends, graph.nodes, Along::data);
  std::erase_if(signature.inputs, [&](const TensorInfo& info) {
    const auto place = names.find(parse_tensor_name(info.tensor, info.key).node);
    return place && !needed[*place];
  });
}

/// Replaces every used result of a node by an input: the node itself becomes the first input, new nodes the others.
void become_inputs(GraphDef& graph, uint32_t at, const NodeNames& names, Signature& signature) {
  const std::string_view node = graph.nodes[at].name;
  std::vector<TensorInfo> made;
  std::map<int32_t, uint32_t> places;  // by result
  {
    const Flowing flow(graph);
    std::set<int32_t> read = read_results(flow, at, tensors_of(signature.outputs, names));
    if (read.empty()) read.insert(0);
    const bool one = read == std::set<int32_t>{0};
    for (int32_t port : read) {
      std::string name = one ? std::string(node) : fmt::format("{}_{}", node, port);
      while (!one && names.find(name)) name += "_";
      const std::string key = one ? name : fmt::format("{}:{}", node, port);
      made.push_back({key, name + ":0", flow.type({at, port}), flow.shape({at, port})});
      places.emplace(port, places.empty() ? at : static_cast<uint32_t>(graph.nodes.size() + places.size() - 1));
    }
  }
  for (Node& user : graph.nodes)
    for (Edge& input : user.inputs)
      if (input.node == at && !input.is_control()) input = {places.at(input.port), 0};
  for (TensorInfo& output : signature.outputs)
    if (const TensorName name = parse_tensor_name(output.tensor, output.key); name.node == node)
      output.tensor = made[static_cast<size_t>(std::distance(places.begin(), places.find(name.index)))].tensor;
  for (TensorInfo& info : made) {
    Node input;
    input.name = graph.model->keep(info.tensor.substr(0, info.tensor.size() - 2));
    input.op = "Placeholder";
    if (&info == &made.front())
      graph.nodes[at] = std::move(input);
    else
      graph.nodes.push_back(std::move(input));
    signature.inputs.push_back(std::move(info));
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
    const NodeNames names(graph.nodes, graph.model->name());
    const auto place = names.find(name);
    if (!place) fail(ErrorKind::not_found, printable(name), "is no node of the model");
    if (how != "identity" && how != "zeros" && how != "input")
      fail(ErrorKind::invalid_argument, printable(name), "cannot become '{}'; identity, zeros, input", printable(how));
    if (how == "input") {
      become_inputs(graph, *place, names, signature);
      inputs = true;
      continue;
    }
    Node& node = graph.nodes[*place];
    if (node.inputs.empty() || node.inputs[0].is_control())
      fail(ErrorKind::invalid_argument, printable(name), "has no input that it could become like; use input");
    node.op = how == "identity" ? "Identity" : "ZerosLike";
    node.inputs.resize(1);
  }
  if (inputs) drop_unread_inputs(graph, signature);
  return graph;
}

ResultType result_type(const Node& node, int index, ModelBytes& model) {
  return {told_type(node, index, model), told_shape(node, index, model)};
}

Remedies remedies(const GraphDef& graph, const std::vector<uint32_t>& failed, const Signature& signature) {
  const Flowing flow(graph);
  const Library library(graph);
  const std::vector<Edge> results = tensors_of(signature.outputs, NodeNames(graph.nodes, graph.model->name()));
  Places outputs, bad(failed.begin(), failed.end()), fed;
  for (Edge result : results) outputs.insert(result.node);
  const Places needed = closure_above(flow, outputs);
  std::erase_if(bad, [&](uint32_t node) { return !needed.contains(node); });
  for (uint32_t node : needed) {
    const std::string_view op = flow.nodes[node].op;
    if (find_row(op) == nullptr && library.find(op) == nullptr) bad.insert(node);
    if (op == "Placeholder") fed.insert(node);
  }
  const Places below = closure_below(flow, bad, needed);
  const Places varying = closure_below(flow, fed, needed);

  std::set<std::string> ends, cut;
  for (uint32_t node : varying)
    if (!below.contains(node) && !fed.contains(node))
      for (const auto [user, port] : flow.users.of(node))
        if (port != Edge::kControl && below.contains(user) && is_number(flow.type({node, port})))
          ends.insert(tensor_name(flow.nodes, {node, port}));

  DataFlow data{
      .sources = {}, .outputs = outputs, .can_be_input = [&](uint32_t node) {
        const std::set<int32_t> read = read_results(flow, node, results);
        return std::all_of(read.begin(), read.end(), [&](int32_t port) { return is_number(flow.type({node, port})); });
      }};
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) data.sources.push_back(flow.sources(i));
  for (uint32_t node : inputs_below(data, bad)) cut.emplace(flow.nodes[node].name);
  return {{ends.begin(), ends.end()}, {cut.begin(), cut.end()}};
}

}  // namespace cairn::tensorflow
