// Imports Caffe models.
#include <algorithm>

#include "frontends/caffe/importer.h"
#include "frontends/coded_error.h"
#include "frontends/inputs.h"
#include "frontends/unknown_name.h"
#include "ir/text.h"

namespace cairn {
namespace {

using caffe::Edge;

/// What `read` gives; a fault of what it reads gets the code.
template <class Read>
auto with_code(const char* code, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::invalid_model) throw;
    throw CodedError(code, error.kind(), error.where(), error.message());
  }
}

std::vector<Edge> wanted_edges(const caffe::Graph& graph, const ImportOptions& options) {
  const std::string& file = graph.net().bytes->name();
  if (options.out_nodes.empty()) {
    std::vector<Edge> ends = graph.ends();
    if (ends.empty()) fail(ErrorKind::invalid_model, file, "has no output");
    return ends;
  }
  std::vector<Edge> wanted;
  for (const std::string& text : options.out_nodes) {
    const std::vector<Edge> found = graph.named(text);
    if (found.empty())
      throw UnknownName(ErrorKind::not_found, UnknownName::Of::output, text, file,
                        fmt::format("has no layer or top '{}'", printable(text)));
    if (found.size() > 1)
      options.tell("{0} has {1} tops, of which '{2}' is an output; name the others as {0}:1", text, found.size(),
                   printable(graph.name(found.front())));
    wanted.push_back(found.front());
  }
  return wanted;
}

/// Inputs of the net by their places: those that it declares, and the tops of its input layers.
std::vector<std::pair<Edge, caffe::Input>> net_inputs(const caffe::Graph& graph) {
  std::vector<std::pair<Edge, caffe::Input>> inputs;
  const caffe::Net& net = graph.net();
  for (uint32_t i = 0; i < net.inputs.size(); ++i) inputs.push_back({{Edge::kInput, i}, net.inputs[i]});
  for (uint32_t i = 0; i < net.layers.size(); ++i) {
    if (!graph.is_input({i, 0})) continue;
    const std::vector<caffe::Input> made = caffe::inputs_of(net.layers[i]);
    for (uint32_t top = 0; top < made.size(); ++top) inputs.push_back({{i, top}, made[top]});
  }
  return inputs;
}

/// The names that people use for an input: of the blob, of its layer.
std::vector<std::string> names_of(const caffe::Graph& graph, Edge edge) {
  std::vector<std::string> names{clean(graph.name(edge))};
  if (edge.layer == Edge::kInput) return names;
  const caffe::Layer& layer = graph.net().layers[edge.layer];
  if (layer.tops.size() == 1) names.push_back(clean(layer.name));
  return names;
}

/// The sizes in the file are what the net starts with: any of the same number of dims can be asked for.
Type input_type(const caffe::Input& input, const std::vector<std::string>& names, const ImportOptions& options,
                InputTypes& types) {
  Shape shape = input.ranked ? Shape() : Shape::unranked();
  const bool given =
      std::any_of(names.begin(), names.end(), [&](const auto& name) { return options.input_shapes.contains(name); });
  for (int64_t size : input.dims) shape.dims.push_back(size < 0 || given ? Dim() : Dim(size));
  return types.type(names, kF32, std::move(shape));
}

/// The inputs in place of layers.
std::vector<Edge> cut_edges(const caffe::Graph& graph, const ImportOptions& options) {
  std::vector<Edge> cuts;
  for (const auto& [text, how] : options.replace) {
    const std::vector<Edge> edges = graph.named(text);
    if (edges.empty()) fail(ErrorKind::not_found, printable(text), "is no layer or top of the net");
    cuts.insert(cuts.end(), edges.begin(), edges.end());
  }
  return cuts;
}

/// The names of the results: their tops, or their layers where two are called alike.
std::vector<std::string> result_names(const caffe::Graph& graph, const std::vector<Edge>& outputs) {
  std::vector<std::string> names;
  for (Edge edge : outputs) {
    std::string name = clean(graph.name(edge));
    if (std::count(names.begin(), names.end(), name) > 0 && edge.layer != Edge::kInput)
      name = clean(graph.net().layers[edge.layer].name);
    names.push_back(std::move(name));
  }
  return names;
}

Module import_net(const caffe::Net& net, const caffe::Weights& weights, const ImportOptions& options, bool propose) {
  const caffe::Graph graph = with_code("unknown-blob", [&] { return caffe::Graph(net); });
  Module module;
  module.functions.push_back(std::make_unique<Function>());
  Function& main = *module.functions.back();
  main.name = "main";
  Builder builder(main.body);
  InputTypes types(options);
  const std::vector<Edge> outputs = wanted_edges(graph, options);
  std::map<Edge, Value*> values;
  for (Edge edge : cut_edges(graph, options)) {
    const std::string name = clean(graph.name(edge));
    values[edge] = main.body.add_param(types.type({name}, kF32, Shape::unranked()), name);
  }
  const std::vector<bool> needed = caffe::needed_layers(graph, outputs, values);
  std::set<Edge> read(outputs.begin(), outputs.end());
  for (uint32_t i = 0; i < needed.size(); ++i)
    if (needed[i]) read.insert(graph.bottoms(i).begin(), graph.bottoms(i).end());
  for (const auto& [edge, input] : net_inputs(graph)) {
    if (values.contains(edge)) continue;
    const std::vector<std::string> names = names_of(graph, edge);
    if (read.contains(edge))
      values[edge] = main.body.add_param(input_type(input, names, options, types), names.back());
    else
      types.cut_off(names);
  }
  types.refuse_unused(net.bytes->name(), main.body);
  name_unknown_dims(main.body);
  caffe::Importer importer(graph, weights, module);
  main.body.results = importer.import(outputs, values, builder);
  if (!importer.problems().empty()) {
    Problems::Remedies remedies;
    remedies.attempt = [&](const auto& ends, const auto& inputs) {
      import_net(net, weights, options.with(ends, inputs), false);
    };
    remedies.ends = importer.ends();
    remedies.below = importer.inputs_below(outputs);
    importer.problems().raise(net.bytes->name(), propose ? remedies : Problems::Remedies());
  }
  main.result_names = result_names(graph, outputs);
  module.metadata["format"] = "caffe";
  verify(module);
  return module;
}

}  // namespace

Module import_caffe(const std::string& path, const ImportOptions& options) {
  caffe::Weights weights = with_code(
      "caffe-weights", [&] { return options.weights.empty() ? caffe::Weights() : caffe::Weights(options.weights); });
  caffe::Net net = with_code("caffe-net", [&] { return caffe::read_net(path); });
  for (caffe::Layer& layer : net.layers)
    if (const auto other = options.layer_types.find(std::string(layer.type)); other != options.layer_types.end())
      layer.type = net.bytes->keep(other->second);
  weights.share(net.layers);
  return import_net(net, weights, options, true);
}

}  // namespace cairn
