// Imports ONNX models.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "frontends/inputs.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/initializers.h"
#include "frontends/onnx/narrow.h"
#include "frontends/onnx/packed.h"
#include "frontends/unknown_name.h"
#include "ir/text.h"
#include "support/nearest.h"

namespace cairn {
namespace {

using onnx::Dimension;
using onnx::ValueInfo;

constexpr int64_t kOldestOpset = 1, kNewestOpset = 28;

void check_opset(const onnx::Model& model) {
  int64_t version = model.opset("");
  const std::string& file = model.bytes->name();
  if (model.opsets.empty()) fail(ErrorKind::invalid_model, file, "imports no operator set; it is no valid ONNX model");
  if (version != 0 && (version < kOldestOpset || version > kNewestOpset))
    fail(ErrorKind::unsupported, file, "uses operator set {}, supported are {} to {}", version, kOldestOpset,
         kNewestOpset);
}

/// Whether the text form can write the name; other names are dropped.
bool is_symbol(std::string_view name) {
  auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), word);
}

Type type_of(const ValueInfo& info, InputTypes& types) {
  std::string name = clean(info.name);
  auto dtype = onnx::carrier_of(info.element);
  if (!dtype) fail(ErrorKind::unsupported, name, "inputs of {} are not supported", onnx::type_name(info.element));
  Shape shape = Shape::unranked();
  if (info.ranked) {
    shape = Shape();
    for (const Dimension& dim : info.dims) {
      if (dim.size >= 0)
        shape.dims.emplace_back(dim.size);
      else if (!dim.name.empty() && is_symbol(dim.name))
        shape.dims.emplace_back(intern_symbol(dim.name));
      else
        shape.dims.emplace_back();
    }
  }
  return types.type({name}, *dtype, std::move(shape));
}

/// Tensors that a user names: a tensor, a node ("node": all its results), or one of its results ("node:1").
std::vector<std::string_view> tensors_named(const onnx::Graph& graph, const std::string& text) {
  const auto colon = text.rfind(':');
  const std::string_view name = std::string_view(text).substr(0, colon);
  std::vector<std::string_view> found;
  for (const onnx::Node& node : graph.nodes) {
    if (auto tensor = std::find(node.outputs.begin(), node.outputs.end(), text); tensor != node.outputs.end())
      return {*tensor};
    if (node.name.empty() || !found.empty()) continue;
    if (node.name == text) found = node.outputs;
    const size_t index = colon == std::string::npos ? node.outputs.size() : std::strtoul(&text[colon + 1], nullptr, 10);
    if (found.empty() && node.name == name && index < node.outputs.size()) found = {node.outputs[index]};
  }
  std::erase(found, std::string_view());
  return found;
}

/// Why there is no such tensor: how many results the node has, or the name that was meant.
std::string why_none(const onnx::Graph& graph, const std::string& text) {
  const std::string_view name = std::string_view(text).substr(0, text.rfind(':'));
  std::vector<std::string_view> names;
  for (const onnx::Node& node : graph.nodes) {
    if (!name.empty() && name != text && node.name == name)
      return fmt::format("; {} has {} result{}, counted from 0", printable(name), node.outputs.size(),
                         node.outputs.size() == 1 ? "" : "s");
    names.push_back(node.name);
    names.insert(names.end(), node.outputs.begin(), node.outputs.end());
  }
  std::erase(names, std::string_view());
  return did_you_mean(name, names);
}

std::vector<std::string_view> wanted_outputs(const onnx::Model& model, const ImportOptions& options) {
  std::vector<std::string_view> wanted;
  if (options.out_nodes.empty()) {
    for (const ValueInfo& output : model.graph.outputs) wanted.push_back(output.name);
    if (wanted.empty()) fail(ErrorKind::invalid_model, model.bytes->name(), "has no output");
    return wanted;
  }
  for (const std::string& text : options.out_nodes) {
    const std::vector<std::string_view> found = tensors_named(model.graph, text);
    if (found.empty())
      throw UnknownName(ErrorKind::not_found, UnknownName::Of::output, text, model.bytes->name(),
                        fmt::format("has no tensor or node '{}'{}", printable(text), why_none(model.graph, text)));
    if (found.size() > 1)
      options.tell("{0} has {1} results, of which '{2}' is an output; name the others as {0}:1", text, found.size(),
                   printable(found.front()));
    wanted.push_back(found.front());
  }
  return wanted;
}

Module import_graph(const onnx::Model& model, const ImportOptions& options, bool propose);

/// Tensors that become inputs, each once.
std::vector<std::string_view> cut_tensors(const onnx::Model& model, const ImportOptions& options) {
  std::vector<std::string_view> cuts;
  for (const auto& [text, how] : options.replace) {
    const std::vector<std::string_view> tensors = tensors_named(model.graph, text);
    if (tensors.empty()) fail(ErrorKind::not_found, printable(text), "is no node or tensor of the model");
    for (std::string_view tensor : tensors)
      if (std::find(cuts.begin(), cuts.end(), tensor) == cuts.end()) cuts.push_back(tensor);
  }
  return cuts;
}

/// The type of a tensor that becomes an input: as the file declares it, else that of the output of the model that ends there,
/// else any floats.
Type cut_type(const onnx::Model& model, const ImportOptions& options, std::string_view tensor, InputTypes& types) {
  for (const auto* list : {&model.graph.values, &model.graph.outputs})
    for (const ValueInfo& info : *list)
      if (info.name == tensor && info.kind == ValueInfo::Kind::tensor) return type_of(info, types);
  Type type = Type::tensor(kF32, Shape::unranked());
  try {
    ImportOptions above = options.with({std::string(tensor)}, {});
    above.replace.clear();
    std::erase_if(above.input_shapes, [&](const auto& shape) {
      return std::none_of(model.graph.inputs.begin(), model.graph.inputs.end(),
                          [&](const ValueInfo& input) { return input.name == shape.first; });
    });
    type = as_input(import_graph(model, above, false).main().body.results[0]->type);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
  }
  return types.type({clean(tensor)}, type.dtype, type.shape);
}

Module import_graph(const onnx::Model& model, const ImportOptions& options, bool propose) {
  check_opset(model);
  Module module;
  module.functions.push_back(std::make_unique<Function>());
  Function& main = *module.functions.back();
  main.name = "main";
  Builder builder(main.body);
  onnx::Names names{{}, nullptr, "", &builder};
  InputTypes types(options);
  const std::vector<std::string_view> wanted = wanted_outputs(model, options);
  const std::vector<std::string_view> cuts = cut_tensors(model, options);
  onnx::Importer importer(model, module);
  importer.cut(cuts);
  const std::set<std::string_view> needed = importer.needed(model.graph, wanted);
  // Before version 4 of the format initialisers had to be inputs as well: those are constants, not inputs.
  std::unordered_set<std::string_view> initializers;
  for (const onnx::TensorProto& tensor : model.graph.initializers) initializers.insert(tensor.name);
  std::vector<std::string> cut_off;
  for (const ValueInfo& input : model.graph.inputs) {
    if (initializers.contains(input.name)) continue;
    if ((!options.out_nodes.empty() || !cuts.empty()) && !needed.contains(input.name))
      cut_off.push_back(clean(input.name));
    else if (input.kind != ValueInfo::Kind::tensor && input.kind != ValueInfo::Kind::none)
      names.values[input.name] = onnx::unpacked(importer, main, input, types);
    else
      importer.mark_narrow(names.values[input.name] = main.body.add_param(type_of(input, types), clean(input.name)),
                           input.element);
  }
  for (std::string_view tensor : cuts)
    if (needed.contains(tensor))
      names.values[tensor] = main.body.add_param(cut_type(model, options, tensor, types), clean(tensor));
  types.cut_off(cut_off);
  types.refuse_unused(model.bytes->name(), main.body);
  name_unknown_dims(main.body);
  const std::vector<Value*> results = importer.import_graph(model.graph, names, wanted);
  if (!importer.problems().empty()) {
    Problems::Remedies remedies;
    remedies.attempt = [&](const auto& outputs, const auto& inputs) {
      import_graph(model, options.with(outputs, inputs), false);
    };
    remedies.ends = importer.ends();
    remedies.below = importer.inputs_below(wanted);
    importer.problems().raise(model.bytes->name(), propose ? remedies : Problems::Remedies());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto declared = std::ranges::find(model.graph.outputs, wanted[i], &ValueInfo::name);
    onnx::add_result(importer, main, results[i], wanted[i],
                     declared == model.graph.outputs.end() ? nullptr : &*declared);
  }
  module.metadata["format"] = "onnx";
  if (!model.producer.empty()) module.metadata["producer"] = printable(model.producer);
  if (const size_t norms = onnx::folded_norms(model)) module.metadata["folded_norms"] = std::to_string(norms);
  verify(module);
  return module;
}

}  // namespace

Module import_onnx(const onnx::Model& model, const ImportOptions& options) {
  const onnx::OwnInitializers own(model);
  return import_graph(own.empty() ? model : own.applied(model), options, true);
}

}  // namespace cairn
