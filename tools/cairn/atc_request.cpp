#include "atc_request.h"

#include <algorithm>

#include "atc_precision.h"
#include "support/files.h"

namespace cairn::cli {
namespace {

struct ProfileOption {
  const char* name;
  ProfileKind kind;
};
constexpr ProfileOption kProfileOptions[] = {{"dynamic_batch_size", ProfileKind::batch},
                                             {"dynamic_image_size", ProfileKind::image},
                                             {"dynamic_dims", ProfileKind::dims}};

/// Passes that --oo_level=O1 keeps: those that a model needs to be static.
constexpr const char* kFoldConstants = "fold_constants";
constexpr const char* kTakeBranches = "take_constant_branches";

class Reader {
 public:
  Reader(const ParsedOptions& options, Door door) : options_(options), door_(door) {}

  Request read() {
    Conversion& job = request_.conversion;
    job.source = options_.get("model");
    if (job.source.empty())
      stop("E10004", "--model", "Value for parameter [--model] is empty.",
           "give --model=...; a value with ';' or a blank needs quotes");
    check_framework();
    shapes();
    job.import.out_nodes = out_nodes();
    job.fp16_inputs = split_list(options_.get("input_fp16_nodes"), ';');
    job.output_types = output_types();
    job.aipp = options_.get("insert_op_conf");
    if (door_ == kAtc) {
      job.precision = precision_of(options_, request_.notices);
      passes();
      job.keep_memory = options_.get("disable_reuse_memory") == "1";
      job.deterministic = options_.get("deterministic") == "1";
      job.external_weights = options_.get("external_weight") == "1";
    }
    return std::move(request_);
  }

 private:
  void check_framework() {
    const std::string& source = request_.conversion.source;
    std::string framework = options_.get("framework");
    if (framework == "0" && !options_.has("weight"))
      stop("E10008", "--weight", "Value for parameter [--weight] is empty when framework is 0(Caffe).");
    if (framework == "1")
      stop("E10055", "--framework", "MindSpore .air models are not supported.",
           "export the network to ONNX and give that with --framework=5");
    if (kind_of(source) != FileKind::foreign) return;  // refused or read by content
    ModelFormat format = detect_format(source);
    const char* number = format == ModelFormat::onnx ? "5" : format == ModelFormat::caffe ? "0" : "3";
    if (options_.has("framework") && framework != number)
      stop("E10001", "--framework",
           fmt::format("Value [{}] for parameter [--framework] is invalid. Reason: {} is {}", framework, source,
                       to_string(format)),
           fmt::format("--framework={}", number));
    if (format == ModelFormat::caffe)
      request_.conversion.import.weights = options_.get("weight"),
      request_.conversion.import.layer_types = layer_types();
    else
      for (const char* option : {"weight", "op_name_map"})
        if (options_.has(option)) notice(fmt::format("--{} has no effect: it is for Caffe models", option));
    std::string order = options_.get("input_format");
    const bool first = format == ModelFormat::onnx || format == ModelFormat::caffe;
    if (first && (order == "NHWC" || order == "NDHWC"))
      stop("E10001", "--input_format",
           fmt::format("Value [{}] for parameter [--input_format] is invalid. Reason: models of {} take NCHW{}", order,
                       to_string(format), format == ModelFormat::onnx ? ", ND or NCDHW" : " or ND"));
  }

  /// Lines "DetectionOutput:SSDDetectionOutput" of --op_name_map.
  std::map<std::string, std::string> layer_types() const {
    std::map<std::string, std::string> types;
    if (!options_.has("op_name_map")) return types;
    for (const std::string& line : split_list(read_text(options_.get("op_name_map")), '\n')) {
      const size_t colon = line.find(':');
      if (colon == std::string::npos || colon == 0 || colon + 1 == line.size())
        stop("E10003", "--op_name_map", fmt::format("--op_name_map: '{}' is not TYPE:OTHER", line));
      types[line.substr(0, colon)] = line.substr(colon + 1);
    }
    return types;
  }

  void shapes() {
    Conversion& job = request_.conversion;
    job.format = options_.get("input_format");
    if (job.format == "ND") job.format.clear();  // the framework's order where one is needed
    std::vector<const ProfileOption*> given;
    for (const ProfileOption& option : kProfileOptions)
      if (options_.has(option.name)) given.push_back(&option);
    bool ranges = options_.has("input_shape_range");
    if (given.size() + (ranges ? 1 : 0) > 1)
      stop("E10009", "--dynamic_batch_size",
           "Only one of [--dynamic_batch_size], [--dynamic_image_size], [--dynamic_dims] and [--input_shape_range] can "
           "be given.");
    if (options_.has("input_shape")) job.shapes = parse_input_shapes(options_.get("input_shape"), request_.repairs);
    for (size_t i = 0; i < job.shapes.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (!job.shapes[i].name.empty() && job.shapes[i].name == job.shapes[j].name)
          stop("E10001", "--input_shape",
               fmt::format("Value [{}] for parameter [--input_shape] is invalid. Reason: '{}' is there twice",
                           options_.get("input_shape"), job.shapes[i].name));
    if (ranges) add_ranges(parse_shape_ranges(options_.get("input_shape_range")));
    if (given.empty()) return;
    const ProfileOption& option = *given[0];
    if (job.shapes.empty())
      stop("E10004", "--input_shape",
           fmt::format("Value for parameter [--input_shape] is empty; [--{}] needs it.", option.name),
           "give the inputs with -1 where the size changes: --input_shape=\"x:-1,224,224,3\"");
    if (option.kind == ProfileKind::dims) check_dims();
    job.profile_kind = option.kind;
    job.profiles = parse_profiles(option.kind, options_.get(option.name), request_.repairs);
  }

  std::vector<std::string> out_nodes() const {
    const std::string value = options_.get("out_nodes");
    std::vector<std::string> nodes = split_list(value, ';');
    for (const std::string& node : nodes) {
      const size_t parted = node.find_first_of(", \t");
      const size_t digits = parted == std::string::npos ? parted : node.find_last_not_of("0123456789", parted - 1);
      if (parted == std::string::npos || parted == 0 || digits == std::string::npos || node[digits] != ':' ||
          digits + 1 == parted)
        continue;
      const std::string rest = node.substr(node.find_first_not_of(", \t", parted));
      stop("E10001", "--out_nodes",
           fmt::format("Value [{}] for parameter [--out_nodes] is invalid. Reason: ';' is missing in front of '{}'",
                       value, rest),
           fmt::format("--out_nodes=\"{};{}\"", node.substr(0, parted), rest));
    }
    return nodes;
  }

  void check_dims() const {
    if (options_.get("input_format") != "ND")
      stop("E10001", "--input_format",
           fmt::format("Value [{}] for parameter [--input_format] is invalid. Reason: it must be ND with "
                       "--dynamic_dims",
                       options_.get("input_format")),
           "--input_format=ND");
    if (options_.has("insert_op_conf"))
      stop("E10001", "--insert_op_conf", "[--insert_op_conf] cannot stand together with [--dynamic_dims].");
  }

  /// A range takes the place of the shape of the same input.
  void add_ranges(std::vector<NamedDims> ranges) {
    auto& shapes = request_.conversion.shapes;
    for (NamedDims& range : ranges) {
      auto same = std::find_if(shapes.begin(), shapes.end(),
                               [&](const NamedDims& shape) { return !range.name.empty() && shape.name == range.name; });
      if (same != shapes.end())
        *same = std::move(range);
      else
        shapes.push_back(std::move(range));
    }
  }

  std::map<std::string, DType> output_types() const {
    std::map<std::string, DType> types;
    auto invalid = [&](const std::string& reason, bool several) {
      stop("E10001", "--output_type",
           fmt::format("Value [{}] for parameter [--output_type] is invalid. Reason: {}", options_.get("output_type"),
                       reason),
           several ? "give one type for all outputs, or one for each: --output_type=\"a:0:FP16;b:0:FP32\"" : "");
    };
    auto dtype_of = [&](const std::string& name) {
      auto dtype = parse_type_name(name);
      if (!dtype)
        invalid(fmt::format("'{}' is not FP32, FP16, UINT8 or INT8", name), name.find_first_of(", ") != name.npos);
      return *dtype;
    };
    for (const std::string& part : split_list(options_.get("output_type"), ';')) {
      size_t colon = part.rfind(':');
      if (colon == std::string::npos && !types.emplace("", dtype_of(part)).second)
        invalid("two types have no output's name", true);
      if (colon == std::string::npos) continue;
      std::string output = part.substr(0, colon);
      const DType dtype = dtype_of(part.substr(colon + 1));
      if (types.emplace(output, dtype).first->second != dtype) invalid(output + " has two types", false);
    }
    return types;
  }

  /// All switches of passes and rules together.
  void passes() {
    if (options_.get("oo_level") == "O1")
      for (const PassInfo& pass : list_passes())
        if (!pass.required && pass.name != kFoldConstants && pass.name != kTakeBranches) off(pass.name, "--oo_level");
    if (options_.get("oo_constant_folding") == "false") off(kFoldConstants, "--oo_constant_folding");
    if (options_.get("oo_dead_code_elimination") == "false") off(kTakeBranches, "--oo_dead_code_elimination");
    for (const std::string& part : split_list(options_.get("optimization_switch"), ';')) {
      size_t colon = part.rfind(':');
      std::string value = colon == std::string::npos ? "" : part.substr(colon + 1);
      if (value != "on" && value != "off")
        stop("E10001", "--optimization_switch",
             fmt::format("Value [{}] for parameter [--optimization_switch] is invalid. Reason: expected Pass:on or "
                         "Pass:off",
                         part));
      if (value == "off") off(part.substr(0, colon), "--optimization_switch");
    }
    if (options_.has("fusion_switch_file")) fusion_switches(options_.get("fusion_switch_file"));
  }

  void fusion_switches(const std::string& path) {
    std::string text = read_text(path);
    if (text.find('{') == std::string::npos) {  // lines "Rule:off"
      for (const std::string& line : split_list(text, '\n')) {
        size_t colon = line.rfind(':');
        const std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
        if (value == "off")
          off(line.substr(0, colon), "--fusion_switch_file");
        else if (value != "on")
          notice(fmt::format("--fusion_switch_file: '{}' has no effect: it is not Rule:off", line));
      }
      return;
    }
    const Json json = read_json(path, "--fusion_switch_file", "E10032");
    const Json empty = Json::object();
    const Json& switches =
        json.is_object() && json.contains("Switch") && json["Switch"].is_object() ? json["Switch"] : empty;
    for (const char* group : {"GraphFusion", "UBFusion"}) {
      if (!switches.contains(group) || !switches[group].is_object()) continue;
      for (const auto& [name, value] : switches[group].items()) {
        const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
        if (word != "on" && word != "off")
          stop(
              "E10001", "--fusion_switch_file",
              fmt::format("Value [{}] for parameter [--fusion_switch_file] is invalid. Reason: {} is '{}', expected on "
                          "or off",
                          path, name, word));
        if (word == "on") continue;
        if (group == std::string_view("UBFusion"))
          notice(
              fmt::format("--fusion_switch_file: UBFusion {} has no effect: kernels of several operators have no "
                          "switch",
                          name));
        else
          off(name, "--fusion_switch_file");
      }
    }
    if (switches.empty()) notice("--fusion_switch_file has no effect: it has no \"Switch\" with names that are off");
  }

  static bool means(const std::string& text, const PassInfo& pass) {
    if (text == pass.name) return true;
    return !pass.platform.empty() &&
           (text == pass.platform || text + "Pass" == pass.platform || text + "FusionPass" == pass.platform);
  }

  void off(const std::string& name, const char* option) {
    auto list = list_passes();
    bool all = name == "ALL", known = all, required = false;
    for (const PassInfo& pass : list)
      if (means(name, pass)) known = true, required = required || pass.required;
    if (!known) return notice(fmt::format("{}: {} has no effect: there is no rule of that name", option, name));
    if (required) return notice(fmt::format("{}: {} cannot be switched off: models need it", option, name));
    request_.conversion.disabled_passes.push_back(name);
  }

  void notice(std::string sentence) { request_.notices.push_back(std::move(sentence)); }

  const ParsedOptions& options_;
  Door door_;
  Request request_;
};

}  // namespace

Request request_of(const ParsedOptions& options, Door door) { return Reader(options, door).read(); }

std::vector<std::string> without_effect(const ParsedOptions& options, const Conversion& conversion,
                                        const Converted& converted) {
  std::vector<std::string> sentences;
  const PrecisionReport& report = converted.precision;
  if (conversion.precision.mode != PrecisionMode::keep && report.lowered + report.widened == 0)
    sentences.push_back("the precision mode has no effect: the model has no operator that it is for");
  std::vector<std::string> asked = split_list(options.get("optypelist_for_implmode"), ',');
  for (const std::string& entry : report.unused) {
    std::string type = entry.starts_with("OpType::") ? entry.substr(8) : entry;
    if (options.has("op_precision_mode") && is_of_class(type)) continue;
    bool built_in = conversion.precision.builtin && entry.starts_with("OpType::") &&
                    std::count(asked.begin(), asked.end(), type) == 0;
    if (!built_in) sentences.push_back(fmt::format("{} has no effect: no operator of the model is called so", entry));
  }
  return sentences;
}

}  // namespace cairn::cli
