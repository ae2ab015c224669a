#include "frontends/import.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "formats/zip.h"
#include "frontends/caffe/schema.h"
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

/// Marks the nodes that depend on the elements of a placeholder, not only on its shape.
std::vector<bool> data_nodes(const tensorflow::GraphDef& graph, const tensorflow::Users& users) {
  std::vector<uint32_t> pending;
  std::vector<bool> found(graph.nodes.size(), false);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i)
    if ((found[i] = is_placeholder(graph.nodes[i]))) pending.push_back(i);
  while (!pending.empty()) {
    const uint32_t node = pending.back();
    pending.pop_back();
    for (const auto [user, port] : users.of(node)) {
      if (found[user] || tensorflow::traits_of(graph.nodes[user].op).has(tensorflow::Trait::shapes)) continue;
      found[user] = true;
      pending.push_back(user);
    }
  }
  return found;
}

/// Results that have a meaning inside TensorFlow alone: what a kernel keeps for its gradient, statistics of training, and
/// vectors of a factorisation that was told not to compute them.
bool is_beside(const tensorflow::Node& node, std::string_view result, ModelBytes& model) {
  if (result == "u" || result == "v")
    for (const char* attr : {"compute_uv", "compute_v"})
      if (const tensorflow::Attr* computed = node.find(attr)) return tensorflow::decode(*computed, model).integer == 0;
  return result.find("reserve") != std::string_view::npos || result.starts_with("batch_") || result == "value_index";
}

/// Notes equivalent results of a node of which only some are used: the others may have been meant as outputs.
void tell_unread(const tensorflow::Node& node, size_t results, std::span<const tensorflow::Edge> users,
                 const ImportOptions& options) {
  std::unordered_set<int32_t> read;
  for (const auto [user, port] : users) read.insert(port);
  std::vector<std::string> unread;
  for (size_t i = 0; i < results; ++i)
    if (!read.contains(static_cast<int32_t>(i))) unread.push_back(std::to_string(i));
  if (!unread.empty() && unread.size() <= 8)
    options.tell("result {} of '{}' ({}) is no output, as another result of that node is read; --out_nodes can name it",
                 fmt::join(unread, ", "), printable(node.name), printable(node.op));
}

/// Whether the node hands on a value of a loop of which another value is read: its counter, or a list. Notes it.
bool is_left_by_loop(const tensorflow::GraphDef& graph, const tensorflow::Users& users, const tensorflow::Node& node,
                     const ImportOptions& options) {
  if (node.op != "Exit" || node.inputs.empty()) return false;
  const auto is_read = [&](tensorflow::Edge user) {
    const auto readers = users.of(user.node);
    return graph.nodes[user.node].op == "Exit" &&
           !std::all_of(readers.begin(), readers.end(), [](tensorflow::Edge reader) { return reader.is_control(); });
  };
  const auto values = users.of(node.inputs[0].node);
  if (std::none_of(values.begin(), values.end(), is_read)) return false;
  options.tell("'{}' is no output, as another value of its loop is read; --out_nodes can name it",
               printable(node.name));
  return true;
}

/// The outputs of a graph that names none: the results of nodes that no other node uses. Not those of auxiliary nodes
/// (checks, summaries, savers), of loops of which others are used, and not those that do not depend on an input, unless none does.
std::vector<tensorflow::Edge> graph_ends(const tensorflow::GraphDef& graph, const ImportOptions& options) {
  const tensorflow::Library library(graph);
  const tensorflow::Users users(graph.nodes);
  const std::vector<bool> data = data_nodes(graph, users);
  std::vector<tensorflow::Edge> ends, others;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    const tensorflow::Node& node = graph.nodes[at];
    if (is_placeholder(node) || tensorflow::traits_of(node.op).has(tensorflow::Trait::fills_table) ||
        node.op.find("Summary") != std::string_view::npos ||
        is_one_of(node.op, {"NoOp", "Const", "Assert", "Print", "PrintV2", "SaveV2", "RestoreV2", "Switch", "Enter",
                            "NextIteration", "LoopCond", "TensorArrayCloseV3"}))
      continue;
    const auto readers = users.of(at);
    if (std::all_of(readers.begin(), readers.end(), [](tensorflow::Edge user) { return user.is_control(); })) {
      if (is_left_by_loop(graph, users, node, options)) continue;
      const std::vector<std::string_view> results = tensorflow::result_names(node, library);
      for (size_t i = 0; i < results.size(); ++i)
        if (!is_beside(node, results[i], *graph.model))
          (data[at] ? ends : others).push_back({at, static_cast<int32_t>(i)});
    } else if (data[at] && is_one_of(node.op, {"Split", "SplitV", "Unpack", "TopK", "TopKV2"})) {
      tell_unread(node, tensorflow::result_names(node, library).size(), readers, options);
    }
  }
  return ends.empty() ? others : ends;
}

/// Notes that an output given as a node stands for the node's first result only.
void tell_results(const tensorflow::GraphDef& graph, const tensorflow::Node& node, const ImportOptions& options) {
  if (const size_t count = tensorflow::result_names(node, tensorflow::Library(graph)).size(); count > 1)
    options.tell("{0} has {1} results, of which {0}:0 is an output; name the others as {0}:1", printable(node.name),
                 count);
}

/// The signature's outputs in the graph. Throws Error not_found.
std::vector<tensorflow::Edge> outputs_in(const tensorflow::GraphDef& graph, const tensorflow::NodeNames& names,
                                         const tensorflow::Signature& signature) {
  std::vector<tensorflow::Edge> outputs;
  for (const tensorflow::TensorInfo& info : signature.outputs) {
    const tensorflow::TensorName name = tensorflow::parse_tensor_name(info.tensor, info.key);
    const auto place = names.find(name.node);
    if (!place) fail(ErrorKind::not_found, graph.model->name(), "'{}' is no node of the graph", printable(name.node));
    outputs.push_back({*place, name.index});
  }
  return outputs;
}

/// Marks the nodes on which the outputs depend.
std::vector<bool> needed(const tensorflow::GraphDef& graph, const std::vector<tensorflow::Edge>& outputs) {
  std::vector<uint32_t> roots;
  for (tensorflow::Edge output : outputs) roots.push_back(output.node);
  return tensorflow::needed_by(roots, graph.nodes, tensorflow::Along::data);
}

/// Inputs and outputs by name: the signature's, or found in the graph.
tensorflow::Signature complete(const tensorflow::GraphDef& graph, const tensorflow::NodeNames& names,
                               const ImportOptions& options, tensorflow::Signature signature) {
  auto add_output = [&](const std::string& key, const std::string& tensor) {
    signature.outputs.push_back({key, tensor, {}, {}});
  };
  if (!options.out_nodes.empty()) {
    signature.outputs.clear();
    for (const std::string& text : options.out_nodes) {
      const tensorflow::TensorName name = tensorflow::parse_tensor_name(text, text);
      if (name.index == tensorflow::Edge::kControl) fail(ErrorKind::invalid_argument, text, "is no tensor");
      const auto place = names.find(name.node);
      if (place && text.find(':') == std::string::npos) tell_results(graph, graph.nodes[*place], options);
      add_output(name.index == 0 ? std::string(name.node) : text, fmt::format("{}:{}", name.node, name.index));
    }
  } else if (signature.outputs.empty()) {
    for (tensorflow::Edge end : graph_ends(graph, options)) {
      const std::string tensor = tensor_name(graph.nodes, end);
      add_output(end.port == 0 ? std::string(graph.nodes[end.node].name) : tensor, tensor);
    }
  }
  if (!signature.inputs.empty()) return signature;
  const std::vector<bool> above = needed(graph, outputs_in(graph, names, signature));
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].op == "Placeholder" && above[i])  // one with a default serves unless it is named as an input
      signature.inputs.push_back(tensorflow::placeholder_info(graph.nodes[i], *graph.model));
  return signature;
}

/// Checks the given out_nodes, before the inputs above them are searched.
void check_out_nodes(const tensorflow::GraphDef& graph, const tensorflow::NodeNames& names,
                     const std::vector<std::string>& out_nodes) {
  for (const std::string& text : out_nodes) {
    if (const size_t colon = text.rfind(':');
        text.find_first_not_of("0123456789", colon + 1) < text.size() && colon < text.size())
      throw UnknownName(ErrorKind::invalid_argument, UnknownName::Of::output, text, graph.model->name(),
                        fmt::format("'{}' is no tensor name, expected node:number", printable(text)));
    const std::string_view wanted = tensorflow::parse_tensor_name(text, text).node;
    if (names.find(wanted)) continue;
    std::vector<std::string_view> all;
    for (const tensorflow::Node& node : graph.nodes) all.push_back(node.name);
    throw UnknownName(ErrorKind::invalid_argument, UnknownName::Of::output, text, graph.model->name(),
                      fmt::format("has no node '{}' to end at{}", printable(wanted), did_you_mean(wanted, all)));
  }
}

/// Names of placeholders that no output needs.
std::vector<std::string> cut_off(const tensorflow::GraphDef& graph, const std::vector<tensorflow::Edge>& outputs) {
  std::vector<std::string> names;
  const std::vector<bool> above = needed(graph, outputs);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (is_placeholder(graph.nodes[i]) && !above[i]) names.push_back(clean(graph.nodes[i].name));
  return names;
}

using Attempt = decltype(Problems::Remedies::attempt);

/// `graph` is the original one, or that with its loops and branches raised.
Module import_raised(const tensorflow::GraphDef& graph, const tensorflow::GraphDef& original,
                     const ImportOptions& options, const tensorflow::Signature& given, const Attempt& attempt) {
  const std::string& file = graph.model->name();
  const tensorflow::NodeNames original_names(original.nodes, file);
  check_out_nodes(original, original_names, options.out_nodes);
  const tensorflow::NodeNames names(graph.nodes, file);
  const tensorflow::Signature signature = complete(graph, names, options, given);
  if (signature.outputs.empty()) fail(ErrorKind::invalid_model, file, "has no output; name the output nodes");
  Module module;
  module.functions.push_back(std::make_unique<Function>());
  Function& main = *module.functions.back();
  main.name = "main";
  InputTypes types(options);
  const std::vector<tensorflow::Edge> outputs = outputs_in(graph, names, signature);
  std::unordered_map<uint32_t, Value*> inputs;
  for (const tensorflow::TensorInfo& info : signature.inputs) {
    auto dtype = tensorflow::dtype_of(info.dtype);
    if (!dtype)
      fail(ErrorKind::unsupported, printable(info.key), "inputs of {} are not supported",
           tensorflow::to_string(info.dtype));
    Type type = types.type(names_of(info), *dtype, shape_of(info.shape));
    Value* param = main.body.add_param(type, clean(info.key));
    if (const auto place = names.find(tensorflow::parse_tensor_name(info.tensor, info.key).node))
      inputs[*place] = param;
  }
  types.cut_off(cut_off(graph, outputs));
  types.refuse_unused(file, main.body);
  name_unknown_dims(main.body);
  Builder builder(main.body);
  tensorflow::Importer importer(graph, module);
  main.body.results = importer.import_graph(outputs, inputs, builder);
  if (!importer.problems().empty()) {
    if (!attempt) importer.problems().raise(file);
    auto [ends, cut] = tensorflow::remedies(graph, importer.failed(), signature);
    if (!std::all_of(cut.begin(), cut.end(), [&](const std::string& name) { return original_names.find(name); }))
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

ImportOptions ImportOptions::with(const std::vector<std::string>& outputs,
                                  const std::vector<std::string>& inputs) const {
  ImportOptions other = *this;
  other.note = nullptr;
  if (!outputs.empty()) other.out_nodes = outputs;
  for (const std::string& input : inputs) other.replace[input] = "input";
  return other;
}

const char* to_string(ModelFormat format) {
  static constexpr const char* kNames[] = {"SavedModel", "GraphDef", "ONNX", "TensorFlow checkpoint", "Keras", "Caffe"};
  return kNames[static_cast<int>(format)];
}

namespace {

/// Refuses what people take for a model by accident: pages and other texts, what stands in for a large file, archives.
void refuse_other_files(const std::string& path, std::string_view bytes) {
  if (ZipArchive::looks_like(bytes))
    fail(ErrorKind::invalid_model, path, "is {}",
         bytes.find("data.pkl") != bytes.npos
             ? "a file of PyTorch; export the model as ONNX there, with torch.onnx.export"
             : "an archive, but none of Keras; unpack it");
  const std::string_view start = bytes.substr(0, 256);
  const auto control = [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' && c != '\r';
  };
  if (std::any_of(start.begin(), start.end(), control)) return;
  if (start.starts_with("version https://git-lfs"))
    fail(ErrorKind::invalid_model, path, "only stands for a file that Git LFS keeps; git lfs pull fetches it");
  const std::string line = printable(start.substr(0, std::min<size_t>(start.find('\n'), 40)));
  fail(ErrorKind::invalid_model, path, "is text, which starts with '{}', and no model", line);
}

}  // namespace

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
  if (looks_like_text(bytes, caffe::kNet) || path.ends_with(".prototxt")) return ModelFormat::caffe;
  refuse_other_files(path, bytes);
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
  fail(ErrorKind::invalid_model, path, "is neither a TensorFlow graph nor a model of ONNX, Caffe or Keras");
}

namespace {

Module import_graph(const tensorflow::GraphDef& graph, const ImportOptions& options, const tensorflow::Signature& given,
                    const Attempt& attempt) {
  if (!options.replace.empty()) {
    tensorflow::Signature signature =
        complete(graph, tensorflow::NodeNames(graph.nodes, graph.model->name()), options, given);
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

/// Drops, with a note, the given shapes of inputs that the outputs do not need.
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
    import_trained(model, options.with(outputs, inputs), false);
  };
  return import_graph(frozen.graph, rest, frozen.signature, propose ? attempt : nullptr);
}

}  // namespace

Module import_tensorflow(const tensorflow::GraphDef& graph, const ImportOptions& options,
                         const tensorflow::Signature& given) {
  return import_graph(graph, options, given, [&](const auto& outputs, const auto& inputs) {
    import_graph(graph, options.with(outputs, inputs), given, nullptr);
  });
}

Module import_model(const std::string& path, const ImportOptions& options) {
  const ModelFormat format = detect_format(path);
  if (format != ModelFormat::caffe && !options.weights.empty())
    fail(ErrorKind::invalid_argument, path, "is a model of {}, only one of Caffe has a file of weights",
         to_string(format));
  if (format == ModelFormat::onnx || format == ModelFormat::keras || format == ModelFormat::caffe)
    for (const auto& [node, how] : options.replace)
      if (how != "input")
        fail(ErrorKind::unsupported, path, "'{}' of a model of {} can become an input, not '{}'", printable(node),
             to_string(format), printable(how));
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
    case ModelFormat::caffe: return import_caffe(path, options);
  }
  CHECK(false, "format");
}

}  // namespace cairn
