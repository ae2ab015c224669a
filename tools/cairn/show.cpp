// cairn show: what a model is, without running it.
#include <algorithm>
#include <map>

#include "capi/user_op.h"
#include "frontends/tensorflow/saved_model.h"
#include "ir/text.h"
#include "model/foreign_om.h"
#include "open_sizes.h"
#include "passes/pipeline.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

struct Show {
  ModelArguments model;
  bool json = false, text = false;
  std::string print_after;
};

// SavedModel signatures in the words of `saved_model_cli show --all` -------------------------------------------------

void print_tensor_info(const tensorflow::TensorInfo& info, const char* list) {
  std::vector<std::string> dims;
  for (int64_t dim : info.shape.dims) dims.push_back(std::to_string(dim));
  fmt::print("    {}['{}'] tensor_info:\n        dtype: {}\n        shape: {}\n        name: {}\n", list,
             printable(info.key), to_string(info.dtype),
             info.shape.unknown_rank ? "unknown_rank" : fmt::format("({})", fmt::join(dims, ", ")),
             printable(info.tensor));
}

void print_signatures(const tensorflow::SavedModel& model) {
  for (const auto& meta : model.meta_graphs) {
    fmt::print("\nMetaGraphDef with tag-set: '{}' contains the following SignatureDefs:\n", fmt::join(meta.tags, ", "));
    for (const auto& signature : meta.signatures) {
      fmt::print("\nsignature_def['{}']:\n", printable(signature.key));
      fmt::print("  The given SavedModel SignatureDef contains the following input(s):\n");
      for (const auto& info : signature.inputs) print_tensor_info(info, "inputs");
      fmt::print("  The given SavedModel SignatureDef contains the following output(s):\n");
      for (const auto& info : signature.outputs) print_tensor_info(info, "outputs");
      fmt::print("  Method name is: {}\n", printable(signature.method));
    }
  }
  fmt::print("\n");
}

Json signatures_json(const tensorflow::SavedModel& model) {
  auto infos = [](const std::vector<tensorflow::TensorInfo>& list) {
    Json out = Json::object();
    for (const auto& info : list)
      out[info.key] = {{"name", info.tensor},
                       {"dtype", to_string(info.dtype)},
                       {"shape", info.shape.unknown_rank ? Json() : Json(info.shape.dims)}};
    return out;
  };
  Json list = Json::array();
  for (const auto& meta : model.meta_graphs)
    for (const auto& signature : meta.signatures)
      list.push_back({{"tags", meta.tags},
                      {"key", signature.key},
                      {"method", signature.method},
                      {"inputs", infos(signature.inputs)},
                      {"outputs", infos(signature.outputs)}});
  return list;
}

// The rest, for every format -------------------------------------------------------------------------------------------

Json ports_json(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) list.push_back({{"name", port.name}, {"type", to_string(port.type)}});
  return list;
}

/// "NAME 53, OTHER 2" in lines that fit.
void print_histogram(const std::vector<std::pair<std::string, size_t>>& list) {
  std::string line;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string item = fmt::format("{} {}{}", list[i].first, list[i].second, i + 1 < list.size() ? "," : "");
    if (line.size() + item.size() + 3 > kColumns) {
      fmt::print("  {}\n", line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + item;
  }
  fmt::print("  {}\n", line);
}

struct Facts {
  std::vector<std::pair<std::string, size_t>> operators;
  double parameters = 0;
  std::vector<Port> inputs, outputs;
  std::vector<Dims> dims;
  std::vector<OpenSize> open;
  PlanTotals totals;
  ReferenceShare reference;
};

Facts facts_of(const Show& show, Module module) {
  Facts facts;
  facts.operators = histogram(module);
  facts.parameters = parameters_of(module);
  ModelOptions options;
  options.threads = show.model.threads;
  options.engines = split_list(show.model.engines, ',');
  options.deterministic = show.model.deterministic;
  auto model = Model::make(std::move(module), options);
  facts.inputs = model->inputs();
  facts.outputs = model->outputs();
  facts.open = open_sizes(model->module());
  facts.dims = choose_dims(*model, show.model);
  const auto plan = model->plan(facts.dims);
  facts.totals = totals_of(*plan);
  facts.reference = model->reference_share(*plan);
  return facts;
}

std::string dims_text(const Facts& facts) {
  std::string text;
  for (size_t i = 0; i < facts.inputs.size(); ++i)
    text += fmt::format("{}{} [{}]", i ? ", " : "", facts.inputs[i].name, fmt::join(facts.dims[i], ", "));
  return text;
}

void print_facts(const Facts& facts) {
  Table ports({"", "name", "type"});
  for (const Port& port : facts.inputs) ports.add({"input", port.name, to_string(port.type)});
  for (const Port& port : facts.outputs) ports.add({"output", port.name, to_string(port.type)});
  ports.print();
  for (size_t i = 0; i < facts.open.size(); ++i)
    fmt::print("{}  {}\n", i == 0 ? "open " : "     ", to_text(facts.open[i]));
  fmt::print("\n{}\n", bold("operators"));
  print_histogram(facts.operators);
  const char* at_least = facts.totals.complete ? "" : "at least ";
  fmt::print(
      "\nparameters   {}\nFLOPs        {}{}  for {}\npeak memory  {}{}  besides parameters, inputs and outputs\n"
      "unsupported  none\n",
      count_text(facts.parameters), at_least, count_text(facts.totals.flops), dims_text(facts), at_least,
      bytes_text(static_cast<double>(facts.totals.arena)));
  for (const std::string& line : describe(facts.reference)) fmt::print("{}\n", line);
}

int show_foreign(const Show& show) {
  auto file = MappedFile::open(show.model.path);
  ForeignOm om = read_foreign_om(file->bytes(), show.model.path);
  if (show.json) {
    Json parts = Json::array();
    for (const auto& part : om.partitions) parts.push_back({{"name", part.name}, {"bytes", part.size}});
    print_json({{"format", "om of the original platform"},
                {"name", om.name},
                {"kind", om.kind},
                {"version", om.version},
                {"encrypted", om.encrypted},
                {"models", om.models},
                {"platform", om.platform},
                {"partitions", parts}});
    return 0;
  }
  fmt::print(
      "{}: a model of the original platform (magic IMOD), for its chips only.\n"
      "It cannot be run here: convert the model that it was made from.\n\n"
      "name {}, kind {}, version {}, {} model{}{}{}\n\n",
      show.model.path, om.name.empty() ? "(none)" : om.name, om.kind, om.version, om.models, om.models == 1 ? "" : "s",
      om.platform.empty() ? "" : ", platform " + om.platform, om.encrypted ? ", encrypted" : "");
  Table table({"partition", ">bytes"});
  for (const auto& part : om.partitions) table.add({part.name, bytes_text(static_cast<double>(part.size))});
  if (!om.partitions.empty()) table.print();
  return 0;
}

void show_om(const OmFile& file, Json* json) {
  Json metadata = Json::parse(file.metadata(), nullptr, false);
  if (json) {
    (*json)["metadata"] = metadata.is_discarded() ? Json() : metadata;
    return;
  }
  Table table({"section", ">bytes", "checksum"});
  for (const auto& section : file.sections())
    table.add({section.name, bytes_text(static_cast<double>(section.size)), fmt::format("{:08x}", section.checksum)});
  table.print();
  auto text = [&](const char* path) {
    auto pointer = Json::json_pointer(path);
    return metadata.is_object() && metadata.contains(pointer) && metadata[pointer].is_string()
               ? printable(metadata[pointer].get<std::string>())
               : std::string();
  };
  fmt::print("\nmade by {} from {}\nsha256  {}\n\n", text("/producer"), text("/source/file"), text("/source/sha256"));
}

// The module as read, and after each asked pass that changed it.
int print_module(const Show& show, Module module) {
  std::string before = cairn::print(module).text;
  if (show.text) fmt::print("{}", before);
  if (show.print_after.empty()) return 0;
  auto passes = list_passes();
  bool known = show.print_after == "all" || std::any_of(passes.begin(), passes.end(), [&](const PassInfo& pass) {
                 return !pass.rule && pass.name == show.print_after;
               });
  if (!known) fail(ErrorKind::invalid_argument, "--print-after", "no pass is called {}", show.print_after);
  PipelineOptions options;
  options.print_after = show.print_after;
  options.print = [&](const std::string& pass, const std::string& text) {
    if (text != before) fmt::print("// after {}\n{}", pass, text);
    before = text;
  };
  optimise(module, options);
  return 0;
}

int show_model(const Show& show) {
  FileKind kind = kind_of(show.model.path);
  if (kind == FileKind::foreign_om) return show_foreign(show);
  if (show.text || !show.print_after.empty()) return print_module(show, open(show.model));
  Json json = {{"format", format_name(show.model.path)}};
  if (tensorflow::is_saved_model(show.model.path)) {
    auto model = tensorflow::read_saved_model(show.model.path);
    if (show.json)
      json["signatures"] = signatures_json(model);
    else
      print_signatures(model);
  }
  if (kind == FileKind::om) show_om(*OmFile::open(show.model.path), show.json ? &json : nullptr);
  try {
    Facts facts = facts_of(show, open(show.model));
    if (!show.json) {
      print_facts(facts);
      return 0;
    }
    json["inputs"] = ports_json(facts.inputs);
    json["outputs"] = ports_json(facts.outputs);
    json["open"] = Json::array();
    for (const OpenSize& each : facts.open)
      json["open"].push_back({{"input", each.input},
                              {"dim", each.dim == kAnyRank ? Json() : Json(each.dim)},
                              {"name", each.name},
                              {"sizes", each.sizes}});
    json["operators"] = Json::object();
    for (const auto& [name, count] : facts.operators) json["operators"][name] = count;
    json["parameters"] = facts.parameters;
    json["dims"] = facts.dims;
    json["flops"] = facts.totals.flops;
    json["peak_bytes"] = facts.totals.arena;
    json["complete"] = facts.totals.complete;
    json["reference"] = reference_json(facts.reference);
    json["unsupported"] = Json::array();
  } catch (const ReportError& error) {
    if (!show.json) {
      fmt::print("{}\n", error.what());
      return 0;
    }
    json["unsupported"] = Json::parse(error.report().json())["problems"];
  }
  print_json(json);
  return 0;
}

}  // namespace

namespace {
// The options of all verbs are bound here: one of them is chosen.
double max_seconds = 0;
std::vector<std::string> op_libraries;
}  // namespace

double time_limit() { return max_seconds; }

void load_libraries() {
  for (const std::string& list : op_libraries) capi::load_op_libraries(list);
  capi::load_op_libraries_of_environment();  // whose plug-ins may name operators of those
}

void add_op_library_option(Verb& verb) {
  verb.add_option("--op-library,--op_library", op_libraries, "shared libraries with operators, or folders of them")
      .delimiter(',');
}

void add_model_options(Verb& verb, ModelArguments& arguments, bool& json) {
  verb.add_option("model", arguments.path,
                  "SavedModel folder, checkpoint prefix, .pb, .onnx, .prototxt, .h5, .keras, .om or text form")
      .required();
  verb.add_option("--input-shape,--input_shape", arguments.shapes, "\"x:1,224,224,3;y:1,-1\"");
  verb.add_option("--batch", arguments.batch, "first size where the model leaves it open").positive();
  verb.add_option("--threads", arguments.threads, "0: all that the process may use").within(0, 1024);
  verb.add_option("--engines", arguments.engines, "best first: cpu,reference");
  verb.add_flag("--deterministic", arguments.deterministic,
                "convolutions by their definition, not by Winograd's method");
  verb.add_option("--out-nodes,--out_nodes", arguments.outputs, "end the model at these tensors").delimiter(';');
  verb.add_option("--weight", arguments.weights, "weights of a Caffe model: .caffemodel");
  verb.add_option("--signature", arguments.signature, "of a SavedModel");
  verb.add_option("--replace", arguments.replace, "go on past what is not supported: NODE=identity, zeros or input")
      .delimiter(';');
  verb.add_option("--cut", arguments.cut, "nodes whose results become inputs of the model").delimiter(';');
  add_op_library_option(verb);
  verb.add_option("--max-seconds,--max_seconds", max_seconds, "stop when it takes longer; 0: any time")
      .within(0.0, 1e9);
  verb.add_flag("--json", json, "print JSON");
}

void add_show(Verb& app, Run& run) {
  auto show = std::make_shared<Show>();
  Verb verb = app.add_verb("show", "what a model is: signatures, operators, size, what is not supported");
  add_model_options(verb, show->model, show->json);
  verb.add_flag("--text", show->text, "print the module in text form instead");
  verb.add_option("--print-after,--print_after", show->print_after,
                  "the text after this pass, or after `all` that change something");
  verb.footer(
      "\nExamples:\n  cairn show saved_model/\n  cairn show model.om --input-shape=\"x:8,224,224,3\"\n"
      "  cairn show frozen.pb --out_nodes=\"conv1/Relu:0\" --text\n"
      "  cairn show saved_model/ --print-after=simplify");
  verb.callback([show, &run] {
    run = [show] {
      show->model.path = expand_home(show->model.path);
      return show_model(*show);
    };
  });
}

}  // namespace cairn::cli
