// cairn freeze: a SavedModel or checkpoint as one frozen GraphDef that loads in TensorFlow.
#include "frontends/tensorflow/freeze.h"

#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

struct Freeze {
  std::string path, output;
  tensorflow::FreezeOptions options;
  bool json = false;
};

int freeze_model(const Freeze& freeze) {
  auto frozen = tensorflow::freeze(tensorflow::read_trained(expand_home(freeze.path)), freeze.options);
  std::string path = expand_home(freeze.output);
  tensorflow::write_graph_def(frozen.graph, path);
  Json inputs = Json::array(), outputs = Json::array();
  for (const auto& info : frozen.signature.inputs) inputs.push_back(info.tensor);
  for (const auto& info : frozen.signature.outputs) outputs.push_back(info.tensor);
  if (freeze.json) {
    print_json({{"output", path}, {"nodes", frozen.graph.nodes.size()}, {"inputs", inputs}, {"outputs", outputs}});
    return 0;
  }
  fmt::print("wrote {}: {} nodes\n", path, frozen.graph.nodes.size());
  Table table({"", "name", "tensor", "dtype"});
  for (const auto& info : frozen.signature.inputs)
    table.add({"input", printable(info.key), printable(info.tensor), to_string(info.dtype)});
  for (const auto& info : frozen.signature.outputs)
    table.add({"output", printable(info.key), printable(info.tensor), to_string(info.dtype)});
  table.print();
  return 0;
}

}  // namespace

void add_freeze(Verb& app, Run& run) {
  auto freeze = std::make_shared<Freeze>();
  Verb verb = app.add_verb("freeze", "a SavedModel or checkpoint as one frozen GraphDef of TensorFlow");
  verb.add_option("model", freeze->path, "SavedModel folder, or prefix of a checkpoint with its .meta").required();
  verb.add_option("-o,--output", freeze->output, "file to write, .pb").required();
  verb.add_option("--signature", freeze->options.signature, "default: serving_default, or the only one");
  verb.add_option("--tags", freeze->options.tags, "default: serve, or the only ones").delimiter(',');
  verb.add_option("--out-nodes,--out_nodes", freeze->options.out_nodes, "these instead of the signature's outputs")
      .delimiter(';');
  verb.add_flag("--json", freeze->json, "print JSON");
  verb.footer(
      "\nExamples:\n  cairn freeze saved_model/ -o frozen.pb\n"
      "  cairn freeze saved_model/ -o logits.pb --out_nodes=\"dense/BiasAdd\"\n"
      "  cairn freeze trained/model.ckpt-1000 -o frozen.pb --out_nodes=\"dense/BiasAdd\"");
  verb.callback([freeze, &run] { run = [freeze] { return freeze_model(*freeze); }; });
}

}  // namespace cairn::cli
