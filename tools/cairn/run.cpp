// cairn run: one run on given or made inputs; the outputs as a table, and in files when asked for.
#include <cmath>
#include <filesystem>

#include "arrays.h"
#include "observe/dump.h"
#include "parts.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

struct RunOnce {
  ModelArguments model;
  std::vector<std::string> inputs;
  std::string output;
  std::string dump, dump_mode = "output", dump_data = "tensor", dump_format = "npy", dump_layer, dump_budget;
  bool overflow = false;
  bool zeros = false, json = false;
};

/// The run itself, under a dump when one was asked for.
std::vector<Tensor> run_model(const RunOnce& once, const Model& model, const std::vector<Tensor>& inputs) {
  if (once.dump.empty()) return run_watched(model, inputs);
  start_dump(parse_dump_options(Json{
      {once.overflow ? "enable_dump_debug" : "enable_dump", true},
      {"dump_path", once.dump},
      {"dump_mode", once.dump_mode},
      {"dump_data", once.dump_data},
      {"dump_format", once.dump_format},
      {"dump_layer", once.dump_layer},
      {"dump_budget",
       once.dump_budget}}.dump(-1, ' ', false, Json::error_handler_t::replace)));
  std::vector<Tensor> outputs = run_watched(model, inputs);
  fmt::print(stderr, "dumped to {}\n", stop_dump(true));
  return outputs;
}

struct Summary {
  double least = NAN, most = NAN, mean = NAN;
};

Summary summarise(const Tensor& tensor) {
  Summary summary;
  if (tensor.dtype() == kString || tensor.dtype() == kC64 || tensor.count() == 0) return summary;
  double sum = 0;
  for (double value : tensor.as_f64()) {
    sum += value;
    if (!(summary.least <= value)) summary.least = value;
    if (!(summary.most >= value)) summary.most = value;
  }
  summary.mean = sum / static_cast<double>(tensor.count());
  return summary;
}

void write_outputs(const std::vector<Port>& ports, const std::vector<Tensor>& outputs, const std::string& path) {
  if (path.ends_with(".npz")) {
    std::vector<std::pair<std::string, Tensor>> arrays;
    for (size_t i = 0; i < outputs.size(); ++i) arrays.emplace_back(ports[i].name, outputs[i]);
    write_npz(arrays, path);
    return;
  }
  std::filesystem::create_directories(path);
  for (size_t i = 0; i < outputs.size(); ++i)
    write_array(outputs[i], (std::filesystem::path(path) / (file_name(ports[i].name) + ".npy")).string());
}

/// What a run on these inputs takes is known before it starts, loops and what depends on values left out.
void say_estimate(const Model& model, const std::vector<Tensor>& inputs) {
  constexpr double kUsual = 5e10, kLong = 60;  // operations a second, seconds
  std::vector<Dims> dims;
  for (const Tensor& input : inputs) dims.push_back(input.dims());
  const double flops = model.plan(dims)->flops;
  if (flops > kUsual * kLong && time_limit() == 0)
    fmt::print(stderr,
               "note: the run takes about {:.0e} operations, some {:.0f} minutes; --max-seconds=60 would end it\n",
               flops, flops / kUsual / 60);
}

int run_once(const RunOnce& once) {
  auto model = prepare(once.model);
  std::vector<Tensor> inputs = read_inputs(*model, once.model, once.inputs, once.zeros);
  if (model->state().empty()) say_estimate(*model, inputs);
  if (!once.zeros && once.inputs.size() < inputs.size())
    fmt::print(stderr, "note: what --input does not give is made\n");
  const Parts parts;
  inputs = parts.mine(*model, std::move(inputs));
  const std::vector<Tensor> outputs = parts.together(*model, run_model(once, *model, inputs));
  if (!parts.first()) return 0;
  const auto& ports = model->outputs();
  if (!once.output.empty()) write_outputs(ports, outputs, expand_home(once.output));
  Json json = Json::array();
  Table table({"output", "type", ">least", ">mean", ">most"});
  for (size_t i = 0; i < outputs.size(); ++i) {
    Summary summary = summarise(outputs[i]);
    std::string type = to_string(outputs[i].type());
    table.add({ports[i].name, type, fmt::format("{:.6g}", summary.least), fmt::format("{:.6g}", summary.mean),
               fmt::format("{:.6g}", summary.most)});
    json.push_back({{"name", ports[i].name},
                    {"type", type},
                    {"least", summary.least},
                    {"mean", summary.mean},
                    {"most", summary.most}});
  }
  if (once.json) {
    print_json({{"outputs", json}});
    return 0;
  }
  table.print();
  if (!once.output.empty()) fmt::print("wrote {}\n", once.output);
  return 0;
}

}  // namespace

void add_run(Verb& app, Run& run) {
  auto once = std::make_shared<RunOnce>();
  Verb verb = app.add_verb("run", "one run on given or made inputs");
  add_model_options(verb, once->model, once->json);
  verb.add_option("-i,--input", once->inputs, "NAME=FILE or FILE in order: .npy, .npz:NAME, .bin; others are random");
  verb.add_flag("--zeros", once->zeros, "inputs not given are zero");
  verb.add_option("-o,--output", once->output, "folder for .npy files, or a .npz file");
  verb.add_option("--dump", once->dump, "folder that what every operator makes is written to, for cairn compare");
  verb.add_option("--dump-mode", once->dump_mode, "input, output or all").one_of({"input", "output", "all"});
  verb.add_option("--dump-data", once->dump_data, "tensor, or stats: one table of extremes, means and norms")
      .one_of({"tensor", "stats"});
  verb.add_option("--dump-format", once->dump_format, "npy, or dump: the platform's files").one_of({"npy", "dump"});
  verb.add_option("--dump-layer", once->dump_layer, "only these source operators, names between blanks");
  verb.add_option("--dump-budget", once->dump_budget, "as 500MB: then the dump ends");
  verb.add_flag("--overflow", once->overflow, "with --dump: only operators that make NaN or infinite values");
  verb.footer(
      "\nExamples:\n  cairn run model.om --input x=image.npy\n  cairn run model.onnx --input-shape=\"x:8,3,224,224\" "
      "-o out.npz\n"
      "  cairn run saved_model/ --zeros --json\n  cairn run model.om --dump dumps/ --dump-data stats\n"
      "  cairn launch -n 2 cairn run model.om --input x=images.npy -o out   each takes its part of x");
  verb.callback([once, &run] { run = [once] { return run_once(*once); }; });
}

}  // namespace cairn::cli
