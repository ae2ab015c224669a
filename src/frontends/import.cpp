#include "frontends/import.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "frontends/inputs.h"
#include "frontends/keras/saved.h"
#include "frontends/tensorflow/cut.h"
#include "frontends/tensorflow/importer.h"
#include "frontends/tensorflow/lookup_tables.h"
#include "frontends/tensorflow/raise.h"
#include "frontends/tensorflow/text_schema.h"
#include "frontends/unknown_name.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "support/nearest.h"

namespace cairn {
namespace {

/// The names that people use for one input: of the signature, of the tensor, of its node.
std::vector<std::string> names_of(const tensorflow::TensorInfo& info) {
  std::string node(tensorflow::parse_tensor_name(info.tensor, info.key).node);
  return {clean(info.key), info.tensor, node};
}

Shape shape_of(const tensorflow::ShapeProto& proto) {
  if (proto.unknown_rank) return Shape::unranked();
  std::vector<Dim> dims;
  for (int64_t size : proto.dims) dims.push_back(size < 0 ? Dim() : Dim(size));
  return Shape(std::move(dims));
}

bool is_placeholder(const tensorflow::Node& node) {
  return node.op == "Placeholder" || node.op == "PlaceholderWithDefault";
}

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

/// Nodes that depend on the elements of a placeholder, not on its shape alone.
std::unordered_set<std::string_view> data_nodes(const tensorflow::GraphDef& graph) {
  std::unordered_map<std::string_view, std::vector<const tensorflow::Node*>> users;
  std::vector<const tensorflow::Node*> pending;
  std::unordered_set<std::string_view> found;
  for (const tensorflow::Node& node : graph.nodes) {
    if (is_placeholder(node) && found.insert(node.name).second) pending.push_back(&node);
    for (std::string_view input : node.inputs)
      users[tensorflow::parse_tensor_name(input, "graph").node].push_back(&node);
  }
  while (!pending.empty()) {
    const tensorflow::Node* node = pending.back();
    pending.pop_back();
    for (const tensorflow::Node* user : users[node->name])
      if (!is_one_of(user->op, {"Shape", "ShapeN", "Size", "Rank"}) && found.insert(user->name).second)
        pending.push_back(user);
  }
  return found;
}

/// Results that have a meaning inside TensorFlow alone: what a kernel keeps for its gradient, and statistics of training.
bool is_beside(std::string_view result) {
  return result.find("reserve") != std::string_view::npos || result.starts_with("batch_") || result == "value_index";
}

/// Parts of equal standing of which only some are read: the others may have been meant as outputs.
void tell_unread(const tensorflow::Node& node, size_t results, const std::unordered_set<std::string_view>& read,
                 const ImportOptions& options) {
  std::vector<std::string> unread;
  for (size_t i = 1; i < results; ++i)
    if (!read.contains(fmt::format("{}:{}", node.name, i))) unread.push_back(std::to_string(i));
  if (!read.contains(node.name) && !read.contains(fmt::format("{}:0", node.name))) unread.insert(unread.begin(), "0");
  if (!unread.empty() && unread.size() <= 8)
    options.tell("result {} of '{}' ({}) is no output, as another result of that node is read; --out_nodes can name it",
                 fmt::join(unread, ", "), printable(node.name), printable(node.op));
}

/// Outputs of a graph that names none: all results of nodes that no other node reads. Nodes that act beside the model
/// (checks, summaries, savers) have none, nor has what does not depend on an input while something else does.
std::vector<std::string> graph_ends(const tensorflow::GraphDef& graph, const ImportOptions& options) {
  const tensorflow::Library library(graph);
  std::unordered_set<std::string_view> read, tensors, data = data_nodes(graph);
  for (const tensorflow::Node& node : graph.nodes)
    for (std::string_view input : node.inputs)
      if (!input.starts_with('^')) {
        read.insert(tensorflow::parse_tensor_name(input, "graph").node);
        tensors.insert(input);
      }
  std::vector<std::string> ends, others;
  for (const tensorflow::Node& node : graph.nodes) {
    if (is_placeholder(node) || tensorflow::fills_table(node.op) || node.op.find("Summary") != std::string_view::npos ||
        is_one_of(node.op, {"NoOp", "Const", "Assert", "Print", "PrintV2", "SaveV2", "RestoreV2", "Switch", "Enter",
                            "NextIteration", "LoopCond", "TensorArrayCloseV3"}))
      continue;
    const bool is_data = data.contains(node.name);
    if (!read.contains(node.name)) {
      const std::vector<std::string_view> results = tensorflow::result_names(node, library);
      for (size_t i = 0; i < results.size(); ++i)
        if (!is_beside(results[i])) (is_data ? ends : others).push_back(fmt::format("{}:{}", node.name, i));
    } else if (is_data && is_one_of(node.op, {"Split", "SplitV", "Unpack", "TopK", "TopKV2"})) {
      tell_unread(node, tensorflow::result_names(node, library).size(), tensors, options);
    }
  }
  return ends.empty() ? others : ends;
}

/// What a graph needs above some nodes.
std::unordered_set<std::string_view> reachable(const tensorflow::GraphDef& graph,
                                               const std::vector<std::string>& roots) {
  auto index = tensorflow::index_nodes(graph.nodes, graph.model->name());
  std::unordered_set<std::string_view> seen;
  std::vector<std::string_view> pending(roots.begin(), roots.end());
  while (!pending.empty()) {
    auto found = index.find(tensorflow::parse_tensor_name(pending.back(), "graph").node);
    pending.pop_back();
    if (found == index.end() || !seen.insert(found->first).second) continue;
    for (std::string_view input : graph.nodes[found->second].inputs)
      if (!input.starts_with('^')) pending.push_back(input);
  }
  return seen;
}

/// An output that is given as a node is the node's first result.
void tell_results(const tensorflow::GraphDef& graph, std::string_view node, const ImportOptions& options) {
  const tensorflow::Library library(graph);
  for (const tensorflow::Node& each : graph.nodes)
    if (each.name == node)
      if (const size_t count = tensorflow::result_names(each, library).size(); count > 1)
        options.tell("{0} has {1} results, of which {0}:0 is an output; name the others as {0}:1", printable(node),
                     count);
}

/// Inputs and outputs by name: the signature's, or found in the graph.
tensorflow::Signature complete(const tensorflow::GraphDef& graph, const ImportOptions& options,
                               tensorflow::Signature signature) {
  if (!options.out_nodes.empty() || signature.outputs.empty()) {
    signature.outputs.clear();
    const bool named = !options.out_nodes.empty();
    for (const std::string& text : named ? options.out_nodes : graph_ends(graph, options)) {
      auto name = tensorflow::parse_tensor_name(text, text);
      if (name.index == tensorflow::kControl) fail(ErrorKind::invalid_argument, text, "is no tensor");
      if (named && text.find(':') == std::string::npos) tell_results(graph, name.node, options);
      std::string key = name.index == 0 ? std::string(name.node) : text;
      signature.outputs.push_back({key, fmt::format("{}:{}", name.node, name.index), {}, {}});
    }
  }
  if (!signature.inputs.empty()) return signature;
  std::vector<std::string> roots;
  for (const auto& output : signature.outputs) roots.push_back(output.tensor);
  auto needed = reachable(graph, roots);
  for (const tensorflow::Node& node : graph.nodes) {
    if (!is_placeholder(node) || !needed.contains(node.name)) continue;
    if (node.op == "PlaceholderWithDefault") continue;  // its default serves unless it is named as an input
    signature.inputs.push_back(tensorflow::placeholder_info(node, *graph.model));
  }
  return signature;
}

/// Before inputs are looked for above them.
void check_out_nodes(const tensorflow::GraphDef& graph, const std::vector<std::string>& out_nodes) {
  for (const std::string& text : out_nodes) {
    const std::string_view wanted = tensorflow::parse_tensor_name(text, text).node;
    std::vector<std::string_view> names;
    for (const tensorflow::Node& node : graph.nodes) names.push_back(node.name);
    if (std::find(names.begin(), names.end(), wanted) == names.end())
      throw UnknownName(ErrorKind::invalid_argument, UnknownName::Of::output, text, graph.model->name(),
                        fmt::format("has no node '{}' to end at{}", printable(wanted), did_you_mean(wanted, names)));
  }
}

/// Names of placeholders that no output needs.
std::vector<std::string> cut_off(const tensorflow::GraphDef& graph, const tensorflow::Signature& signature) {
  std::vector<std::string> roots, names;
  for (const auto& output : signature.outputs) roots.push_back(output.tensor);
  const auto needed = reachable(graph, roots);
  for (const tensorflow::Node& node : graph.nodes)
    if (is_placeholder(node) && !needed.contains(node.name)) names.push_back(clean(node.name));
  return names;
}

using Attempt = decltype(Problems::Remedies::attempt);

/// The same model with other outputs, or nodes as inputs, to try what a refusal proposes.
ImportOptions changed(const ImportOptions& options, const std::vector<std::string>& outputs,
                      const std::vector<std::string>& inputs) {
  ImportOptions other = options;
  other.note = nullptr;
  if (!outputs.empty()) other.out_nodes = outputs;
  for (const std::string& input : inputs) other.replace[input] = "input";
  return other;
}

/// `graph` is the original one, or that with its loops and branches raised.
Module import_raised(const tensorflow::GraphDef& graph, const tensorflow::GraphDef& original,
                     const ImportOptions& options, const tensorflow::Signature& given, const Attempt& attempt) {
  check_out_nodes(original, options.out_nodes);
  tensorflow::Signature signature = complete(graph, options, given);
  const std::string& file = graph.model->name();
  if (signature.outputs.empty()) fail(ErrorKind::invalid_model, file, "has no output; name the output nodes");
  Module module;
  module.functions.push_back(std::make_unique<Function>());
  Function& main = *module.functions.back();
  main.name = "main";
  InputTypes types(options);
  std::unordered_map<std::string_view, Value*> inputs;
  for (const tensorflow::TensorInfo& info : signature.inputs) {
    auto dtype = tensorflow::dtype_of(info.dtype);
    if (!dtype)
      fail(ErrorKind::unsupported, printable(info.key), "inputs of {} are not supported",
           tensorflow::to_string(info.dtype));
    Type type = types.type(names_of(info), *dtype, shape_of(info.shape));
    inputs[tensorflow::parse_tensor_name(info.tensor, info.key).node] = main.body.add_param(type, clean(info.key));
  }
  types.cut_off(cut_off(graph, signature));
  types.refuse_unused(file, main.body);
  name_unknown_dims(main.body);
  Builder builder(main.body);
  tensorflow::Importer importer(graph, module);
  std::vector<std::string> wanted;
  for (const tensorflow::TensorInfo& info : signature.outputs) wanted.push_back(info.tensor);
  main.body.results = importer.import_graph(wanted, inputs, builder);
  if (!importer.problems().empty()) {
    if (!attempt) importer.problems().raise(file);
    auto [ends, cut] = tensorflow::remedies(graph, importer.failed(), signature);
    const auto known = tensorflow::index_nodes(original.nodes, file);
    if (!std::all_of(cut.begin(), cut.end(), [&](const std::string& name) { return known.contains(name); }))
      cut.clear();
    importer.problems().raise(file, {ends, cut, attempt});
  }
  for (size_t i = 0; i < main.body.results.size(); ++i)
    if (main.body.results[i] == nullptr)
      fail(ErrorKind::invalid_argument, file, "output '{}' has no value", printable(signature.outputs[i].key));
  for (const tensorflow::TensorInfo& info : signature.outputs) main.result_names.push_back(clean(info.key));
  importer.explain_others(original, signature.inputs);
  module.metadata["format"] = "tensorflow";
  if (!signature.key.empty()) module.metadata["signature"] = clean(signature.key);
  verify(module);
  return module;
}

}  // namespace

const char* to_string(ModelFormat format) {
  static constexpr const char* kNames[] = {"SavedModel", "GraphDef", "ONNX", "TensorFlow checkpoint", "Keras"};
  return kNames[static_cast<int>(format)];
}

ModelFormat detect_format(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    if (tensorflow::is_saved_model(path)) return ModelFormat::saved_model;
    fail(ErrorKind::invalid_model, path, "is a folder without saved_model.pb");
  }
  if (!tensorflow::checkpoint_prefix(path).empty()) return ModelFormat::checkpoint;
  tensorflow::refuse_bare_checkpoint(path);
  auto model = ModelBytes::open(path);
  std::string_view bytes = model->bytes();
  if (bytes.empty()) fail(ErrorKind::invalid_model, path, "is empty");
  if (keras::looks_like_keras(bytes)) return ModelFormat::keras;
  if (looks_like_text(bytes, tensorflow::kGraphDefText)) return ModelFormat::graph_def;
  // A ModelProto starts with its version (field 1, a number) and has its graph in field 7; a GraphDef has only messages,
  // nodes (field 1) first.
  constexpr uint32_t kOnnxGraph = 7, kNode = 1, kLibrary = 2, kVersions = 4;
  Wire wire(bytes, "model", *model);
  bool onnx = false, graph = false;
  while (wire.next()) {
    bool message = wire.is_message();
    onnx |= wire.field() == kOnnxGraph && message;
    graph |= (wire.field() == kNode || wire.field() == kLibrary || wire.field() == kVersions) && message;
    if (wire.field() == kNode && !message) graph = false, onnx = true;
    if (onnx || (graph && wire.field() == kNode)) break;
    wire.skip();
  }
  if (onnx) return ModelFormat::onnx;
  if (graph) return ModelFormat::graph_def;
  fail(ErrorKind::invalid_model, path, "is neither a TensorFlow graph nor a model of ONNX or Keras");
}

namespace {

Module import_graph(const tensorflow::GraphDef& graph, const ImportOptions& options, const tensorflow::Signature& given,
                    const Attempt& attempt) {
  if (!options.replace.empty()) {
    tensorflow::Signature signature = complete(graph, options, given);
    ImportOptions rest = options;
    rest.replace.clear();
    rest.out_nodes.clear();
    const tensorflow::GraphDef replaced = tensorflow::replaced(graph, options.replace, signature);
    return import_graph(replaced, rest, signature, attempt);
  }
  if (!tensorflow::has_switches(graph)) return import_raised(graph, graph, options, given, attempt);
  tensorflow::GraphDef raised = graph;
  tensorflow::raise_control_flow(raised);
  return import_raised(raised, graph, options, given, attempt);
}

/// Shapes of inputs that the outputs do not need are told and dropped.
void drop_cut_off(const tensorflow::MetaGraph& meta, const tensorflow::FrozenGraph& frozen, ImportOptions& options) {
  std::vector<std::vector<std::string>> inputs;
  for (const tensorflow::Node& node : meta.graph.nodes)
    if (is_placeholder(node)) inputs.push_back(names_of(tensorflow::placeholder_info(node, *meta.graph.model)));
  for (const tensorflow::Signature& signature : meta.signatures)
    for (const tensorflow::TensorInfo& info : signature.inputs)
      if (!info.tensor.empty()) inputs.push_back(names_of(info));
  for (const std::vector<std::string>& names : inputs) {
    const bool there = std::any_of(frozen.graph.nodes.begin(), frozen.graph.nodes.end(),
                                   [&](const tensorflow::Node& node) { return clean(node.name) == names.back(); });
    for (const std::string& name : names)
      if (!there && options.input_shapes.erase(name) > 0) options.tell_cut_off(name);
  }
}

Module import_trained(const tensorflow::SavedModel& model, const ImportOptions& options, bool propose) {
  tensorflow::FrozenGraph frozen = tensorflow::freeze(model, {options.tags, options.signature, options.out_nodes});
  ImportOptions rest = options;
  rest.out_nodes.clear();
  if (!options.out_nodes.empty()) drop_cut_off(model.select(options.tags), frozen, rest);
  Attempt attempt = [&](const auto& outputs, const auto& inputs) {
    import_trained(model, changed(options, outputs, inputs), false);
  };
  return import_graph(frozen.graph, rest, frozen.signature, propose ? attempt : nullptr);
}

}  // namespace

Module import_tensorflow(const tensorflow::GraphDef& graph, const ImportOptions& options,
                         const tensorflow::Signature& given) {
  return import_graph(graph, options, given, [&](const auto& outputs, const auto& inputs) {
    import_graph(graph, changed(options, outputs, inputs), given, nullptr);
  });
}

Module import_model(const std::string& path, const ImportOptions& options) {
  const ModelFormat format = detect_format(path);
  if (!options.replace.empty() && (format == ModelFormat::onnx || format == ModelFormat::keras))
    fail(ErrorKind::unsupported, path, "nodes of a model of {} cannot be replaced", to_string(format));
  switch (format) {
    case ModelFormat::checkpoint:
    case ModelFormat::saved_model: return import_trained(tensorflow::read_trained(path), options, true);
    case ModelFormat::graph_def: {
      tensorflow::GraphDef graph = tensorflow::read_graph_def(path);
      tensorflow::read_table_files(graph);
      return import_tensorflow(graph, options);
    }
    case ModelFormat::onnx: return import_onnx(onnx::read_model(path), options);
    case ModelFormat::keras: return import_keras(path, options);
  }
  CHECK(false, "format");
}

}  // namespace cairn
