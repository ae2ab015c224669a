// cairn convert: a model of a framework as one .om file.
#include "atc_request.h"
#include "codes.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

struct Convert {
  ModelArguments model;
  std::string output;
  std::map<std::string, std::string> options;  // of atc, by name; "": not given
  bool json = false;
};

/// The options of atc that say what the model becomes, but for those that have a place of their own here.
bool is_taken(const OptionDef& option) {
  constexpr std::string_view kElsewhere[] = {"model",       "framework",  "singleop",     "om",
                                             "output",      "json",       "check_report", "save_original_model",
                                             "out_nodes",   "dump_mode",  "op_name_map",  "display_model_info",
                                             "input_shape", "op_library", "weight"};
  constexpr std::string_view kGroups[] = {"Input", "Output", "Precision", "Optimisation"};
  return option.status == OptionStatus::acts && (option.doors & kAtc) &&
         std::count(std::begin(kGroups), std::end(kGroups), option.group) > 0 &&
         std::count(std::begin(kElsewhere), std::end(kElsewhere), option.name) == 0;
}

/// A device or a pipe, whose name is taken as it is.
bool is_stream(const std::string& path) {
  std::error_code none;
  const auto kind = std::filesystem::status(path, none);
  return path.starts_with("/dev/") || (std::filesystem::is_other(kind) && !none);
}

int convert_model(const Convert& convert) {
  std::vector<std::string> words = {"--model=" + expand_home(convert.model.path)};
  if (!convert.model.shapes.empty()) words.push_back("--input_shape=" + convert.model.shapes);
  if (!convert.model.outputs.empty())
    words.push_back(fmt::format("--out_nodes={}", fmt::join(convert.model.outputs, ";")));
  if (!convert.model.weights.empty()) words.push_back("--weight=" + expand_home(convert.model.weights));
  for (const auto& [name, value] : convert.options)
    if (!value.empty()) words.push_back(fmt::format("--{}={}", name, value));
  const ParsedOptions options = parse_options(words, kAtc);
  Request request = request_of(options, kAtc);
  Conversion& conversion = request.conversion;
  conversion.output = expand_home(convert.output);
  for (const char* other :
       {".pb", ".pbtxt", ".h5", ".keras", ".tflite", ".pt", ".pth", ".caffemodel", ".mindir", ".air"})
    if (conversion.output.ends_with(other) && !is_stream(conversion.output))
      fail(ErrorKind::invalid_argument, conversion.output, "models are written as .om and .onnx, not as {}{}", other,
           std::string_view(other) == ".pb" ? "; cairn freeze writes .pb" : "");
  if (!conversion.output.ends_with(".om") && !conversion.output.ends_with(".onnx") && !is_stream(conversion.output))
    conversion.output += ".om";
  conversion.import.signature = convert.model.signature;
  conversion.import.replace = replacements(convert.model);
  auto note = [](const std::string& sentence) { fmt::print(stderr, "note: {}\n", sentence); };
  conversion.import.note = note;
  for (const std::vector<std::string>* sentences :
       {&options.repairs, &options.notices, &std::as_const(request.repairs), &std::as_const(request.notices)})
    for (const std::string& sentence : *sentences) note(sentence);
  Converted converted = convert_or_stop(conversion);
  for (const std::string& sentence : without_effect(options, conversion, converted)) note(sentence);
  if (convert.json) {
    print_json(conversion_json(conversion, converted));
    return 0;
  }
  Table table({"", "name", "type"});
  for (const Port& port : converted.inputs) table.add({"input", port.name, to_string(port.type)});
  for (const Port& port : converted.outputs) table.add({"output", port.name, to_string(port.type)});
  table.print();
  size_t nodes = 0;
  for (const auto& [op, count] : converted.operators) nodes += count;
  fmt::print("\n{} nodes, {} parameters", nodes, count_text(converted.parameters));
  if (converted.totals.steps > 0)
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
  Verb verb = app.add_verb("convert", "a model of a framework as one .om or .onnx file");
  add_model_options(verb, convert->model, convert->json);
  for (const char* unused : {"--batch", "--threads", "--engines", "--deterministic"}) verb.remove_option(unused);
  verb.add_option("-o,--output", convert->output, "file to write: .om, which is added, or .onnx").required();
  for (const OptionDef& option : option_table()) {
    if (!is_taken(option)) continue;
    std::string dashed = option.name;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    const std::string names = dashed == option.name ? "--" + dashed : fmt::format("--{},--{}", dashed, option.name);
    verb.add_option(names, convert->options[option.name], option.meaning);
  }
  verb.footer(
      "\nExamples:\n  cairn convert saved_model/ -o model.om\n"
      "  cairn convert resnet50.onnx -o resnet50.om --input-shape=\"x:1,3,224,224\"\n"
      "  cairn convert deploy.prototxt --weight resnet.caffemodel -o resnet.om\n"
      "  cairn convert frozen.pb -o features.om --out-nodes=\"pool/Mean:0\"\n"
      "  cairn convert saved_model/ -o model.onnx\n"
      "  cairn convert resnet50.onnx -o half.om --precision-mode=allow_mix_precision\n"
      "Options have the names and values of atc, and make the same file.");
  verb.callback([convert, &run] { run = [convert] { return convert_model(*convert); }; });
}

}  // namespace cairn::cli
