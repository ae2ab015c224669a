// cairn convert: a model of a framework as one .om file.
#include "conversion.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

struct Convert {
  ModelArguments model;
  std::string output, output_type;
  bool json = false;
};

/// A device or a pipe, whose name is taken as it is.
bool is_stream(const std::string& path) {
  std::error_code none;
  const auto kind = std::filesystem::status(path, none);
  return path.starts_with("/dev/") || (std::filesystem::is_other(kind) && !none);
}

int convert_model(const Convert& convert) {
  Conversion conversion;
  conversion.source = expand_home(convert.model.path);
  conversion.output = expand_home(convert.output);
  if (!conversion.output.ends_with(".om") && !is_stream(conversion.output)) conversion.output += ".om";
  conversion.import.out_nodes = convert.model.outputs;
  conversion.import.signature = convert.model.signature;
  conversion.import.replace = replacements(convert.model);
  conversion.import.note = [](const std::string& sentence) { fmt::print(stderr, "note: {}\n", sentence); };
  std::vector<std::string> repairs;
  if (!convert.model.shapes.empty()) {
    conversion.shapes = parse_input_shapes(convert.model.shapes, repairs);
    conversion.options["input_shape"] = convert.model.shapes;
  }
  for (const std::string& repair : repairs) fmt::print(stderr, "note: {}\n", repair);
  if (!convert.output_type.empty()) {
    auto dtype = parse_type_name(convert.output_type);
    if (!dtype)
      fail(ErrorKind::invalid_argument, "--output-type", "'{}' is no element type; FP32, FP16, ...",
           convert.output_type);
    conversion.output_types[""] = *dtype;
    conversion.options["output_type"] = convert.output_type;
  }
  Converted converted = cli::convert(conversion);
  bool planned = converted.totals.steps > 0;
  size_t nodes = 0;
  for (const auto& [op, count] : converted.operators) nodes += count;
  if (convert.json) {
    Json json = {{"output", conversion.output},
                 {"bytes", converted.bytes},
                 {"nodes", nodes},
                 {"parameters", converted.parameters}};
    if (planned) json["flops"] = converted.totals.flops, json["peak_bytes"] = converted.totals.arena;
    json["reference"] = reference_json(converted.reference);
    print_json(json);
    return 0;
  }
  Table table({"", "name", "type"});
  for (const Port& port : converted.inputs) table.add({"input", port.name, to_string(port.type)});
  for (const Port& port : converted.outputs) table.add({"output", port.name, to_string(port.type)});
  table.print();
  fmt::print("\n{} nodes, {} parameters", nodes, count_text(converted.parameters));
  if (planned)
    fmt::print(", {}, {} working memory", count_text(converted.totals.flops, "FLOPs"),
               bytes_text(double(converted.totals.arena)));
  fmt::print("\n");
  for (const std::string& line : describe(converted.reference)) fmt::print("{}\n", line);
  fmt::print("wrote {} ({})\n", conversion.output, bytes_text(double(converted.bytes)));
  return 0;
}

}  // namespace

void add_convert(Verb& app, Run& run) {
  auto convert = std::make_shared<Convert>();
  Verb verb = app.add_verb("convert", "a model of a framework as one .om file");
  add_model_options(verb, convert->model, convert->json);
  for (const char* unused : {"--batch", "--threads", "--engines"}) verb.remove_option(unused);
  verb.add_option("-o,--output", convert->output, "file to write; .om is added").required();
  verb.add_option("--output-type,--output_type", convert->output_type,
                  "element type of the outputs: FP32, FP16, UINT8");
  verb.footer(
      "\nExamples:\n  cairn convert saved_model/ -o model.om\n"
      "  cairn convert resnet50.onnx -o resnet50.om --input-shape=\"x:1,3,224,224\"\n"
      "  cairn convert frozen.pb -o features.om --out-nodes=\"pool/Mean:0\"");
  verb.callback([convert, &run] { run = [convert] { return convert_model(*convert); }; });
}

}  // namespace cairn::cli
