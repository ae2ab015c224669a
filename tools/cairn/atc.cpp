// atc and omg: the platform's converters by their own names, options, messages and exit statuses.
#include <filesystem>

#include "conversion.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

constexpr int kFailure = 255;      // what the platform's tools return after start-up
constexpr int kUnknownOption = 1;  // and before it

/// The fixed texts of a tool; scripts search for them.
struct Lines {
  const char* program;
  const char* start;
  const char* success;
  const char* failure;
};
constexpr Lines kAtcLines = {"atc", "ATC start working now, please wait for a moment.",
                             "ATC run success, welcome to the next use.",
                             "ATC run failed, Please check the detail log, Try 'atc --help' for more information"};
constexpr Lines kOmgLines = {"omg", "OMG start working now, please wait for a moment.",
                             "OMG generate offline model success",
                             "OMG generate offline model failed, Try 'omg --help' for more information"};

enum class Level { error, warning, info };

class Tool {
 public:
  Tool(Door door, const Lines& lines, const std::vector<std::string>& arguments)
      : door_(door),
        lines_(lines),
        arguments_(arguments) {}

  int run() {
    for (const std::string& word : arguments_)
      if (word == "--help" || word == "-h" || word == "--h" || word == "-help" || word == "--help=true") {
        fmt::print("{}", options_help(door_, lines_.program));
        return 0;
      }
    fmt::print("{}\n", lines_.start);
    try {
      options_ = parse_options(arguments_, door_);
      for (const std::string& repair : options_.repairs) say(Level::warning, "mended", repair);
      for (const std::string& notice : options_.notices) say(Level::warning, "note", notice);
      work();
      fmt::print("{}\n", lines_.success);
      return 0;
    } catch (const ReportError& error) {
      return failed(error.report());
    } catch (const Error& error) {
      return failed(report_of(code_of(error), error.where(), error.what()));
    } catch (const std::bad_alloc&) {
      return failed(report_of("E10044", "", "memory ran out"));
    } catch (const std::filesystem::filesystem_error& error) {
      return failed(report_of("E13001", "", error.what()));
    }
  }

 private:
  /// Repairs and notices are told unless --log=error; what is done only from --log=info on.
  void say(Level level, const char* kind, const std::string& text) const {
    std::string log = options_.get("log");
    if (level == Level::warning && log == "error") return;
    if (level == Level::info && log != "info" && log != "debug") return;
    fmt::print("{}: {}\n", kind, text);
  }

  static const char* code_of(const Error& error) {
    switch (error.kind()) {
      case ErrorKind::not_found:
        return "E13000";
      case ErrorKind::io:
        return "E13001";
      case ErrorKind::invalid_model:
        return "E10041";
      case ErrorKind::unsupported:
        return "E10501";
      default:
        return "E10001";
    }
  }

  static Report report_of(const char* code, std::string subject, std::string message) {
    Report report;
    report.add({code, Severity::error, std::move(subject), {}, std::move(message)});
    return report;
  }
  [[noreturn]] static void stop(const char* code, const std::string& option, const std::string& message,
                                const std::string& fix = {}) {
    Report report;
    report.add({code, Severity::error, option, {}, message, fix});
    throw ReportError(ErrorKind::invalid_argument, "", "the command line is wrong", std::move(report));
  }

  /// The platform's block: the code, the sentence, and below it what to do.
  int failed(const Report& report) const {
    fmt::print("{}\n", lines_.failure);
    bool unknown = false;
    for (const Problem& problem : report.problems()) {
      std::string code = platform_code(problem);
      unknown = unknown || code == "E10053";
      std::string message = problem.message;
      if (!problem.places.empty()) {  // of the model, not of the command line
        std::string nodes;
        for (size_t i = 0; i < std::min<size_t>(problem.places.size(), 5); ++i)
          nodes += (i ? ", " : "") + problem.places[i].node;
        if (problem.places.size() > 5) nodes += fmt::format(" and {} more", problem.places.size() - 5);
        message = fmt::format("op [{}], {} node{} [{}]: {}", problem.subject, problem.places.size(),
                              problem.places.size() == 1 ? "" : "s", nodes, problem.message);
      }
      fmt::print("{}: {}\n", code, message);
      if (!problem.fix.empty()) fmt::print("        Solution: {}\n", problem.fix);
    }
    return unknown ? kUnknownOption : kFailure;
  }

  static std::string platform_code(const Problem& problem) {
    if (problem.code.size() == 6 && (problem.code[0] == 'E' || problem.code[0] == 'W')) return problem.code;
    return problem.code.find("unsupported") != std::string::npos ? "E19010" : "E19014";
  }

  std::string required(const char* name) const {
    std::string value = options_.get(name);
    if (value.empty())
      stop("E10004", fmt::format("--{}", name), fmt::format("Value for parameter [--{}] is empty.", name),
           fmt::format("give --{}=...; a value with ';' or a blank needs quotes", name));
    return value;
  }

  void work() {
    std::string mode = options_.get("mode");
    if (mode == "0") return convert();
    if (mode == "1") return to_json();
    if (mode == "3") return check();
    if (mode == "6") {
      if (options_.has("framework")) stop("E10057", "--framework", "Mode 6 takes --om only.");
      return display(required("om"));
    }
    stop("E10055", "--mode", "Mode 5 is not supported: text dumps of the original platform are not read.",
         "mode 1 writes the JSON of a model");
  }

  /// Reads what is asked for; the framework is found from the file and must agree with --framework.
  Conversion conversion() {
    Conversion conversion;
    conversion.source = required("model");
    check_framework(conversion.source);
    std::vector<std::string> repairs;
    if (options_.has("input_shape"))
      conversion.import.input_shapes = shapes_of(parse_input_shapes(options_.get("input_shape"), repairs));
    for (const std::string& repair : repairs) say(Level::warning, "mended", repair);
    conversion.import.out_nodes = split_list(options_.get("out_nodes"), ';');
    conversion.fp16_inputs = split_list(options_.get("input_fp16_nodes"), ';');
    conversion.output_types = output_types();
    check_precision();
    check_implmode();
    for (const auto& [name, value] : options_.values)
      if (name != "model" && name != "output" && name != "log") conversion.options[name] = value;
    return conversion;
  }

  void check_framework(const std::string& source) {
    std::string framework = options_.get("framework");
    if (framework == "0" || (!options_.has("framework") && source.ends_with(".prototxt"))) {
      if (!options_.has("weight"))
        stop("E10008", "--weight", "Value for parameter [--weight] is empty when framework is 0(Caffe).");
      stop("E10055", "--framework", "Caffe models are not supported.",
           "convert the model to ONNX and give that with --framework=5");
    }
    if (framework == "1")
      stop("E10055", "--framework", "MindSpore .air models are not supported.",
           "export the network to ONNX and give that with --framework=5");
    if (kind_of(source) != FileKind::foreign) return;  // refused or read by content
    ModelFormat format = detect_format(source);
    bool onnx = format == ModelFormat::onnx;
    if (options_.has("framework") && (framework == "5") != onnx)
      stop("E10001", "--framework",
           fmt::format("Value [{}] for parameter [--framework] is invalid. Reason: {} is {}", framework, source,
                       to_string(format)),
           fmt::format("--framework={}", onnx ? 5 : 3));
    if (options_.has("input_format")) check_format(onnx);
  }

  void check_format(bool onnx) const {
    std::string format = options_.get("input_format");
    if (onnx && (format == "NHWC" || format == "NDHWC"))
      stop("E10001", "--input_format",
           fmt::format(
               "Value [{}] for parameter [--input_format] is invalid. Reason: ONNX models take NCHW, ND or NCDHW",
               format));
  }

  std::map<std::string, DType> output_types() const {
    std::map<std::string, DType> types;
    auto dtype_of = [&](const std::string& name) {
      auto dtype = parse_type_name(name);
      if (!dtype)
        stop("E10001", "--output_type",
             fmt::format(
                 "Value [{}] for parameter [--output_type] is invalid. Reason: '{}' is not FP32, FP16, UINT8 or INT8",
                 options_.get("output_type"), name));
      return *dtype;
    };
    for (const std::string& part : split_list(options_.get("output_type"), ';')) {
      size_t colon = part.rfind(':');
      if (colon == std::string::npos)
        types[""] = dtype_of(part);
      else
        types[part.substr(0, colon)] = dtype_of(part.substr(colon + 1));
    }
    return types;
  }

  void check_precision() const {
    if (options_.has("precision_mode") && options_.has("precision_mode_v2"))
      stop("E10047", "--precision_mode", "[--precision_mode] and [--precision_mode_v2] exclude each other.");
    for (const char* name : {"precision_mode", "precision_mode_v2"}) {
      std::string value = options_.get(name);
      bool own = value == "origin" || value == "must_keep_origin_dtype" || value == "force_fp32";
      if (door_ == kAtc && options_.has(name) && !own)
        say(Level::warning, "note",
            fmt::format("--{}={} has no effect: arithmetic stays in the model's own types, the most accurate choice",
                        name, value));
    }
  }

  void check_implmode() const {
    if (options_.has("optypelist_for_implmode") && !options_.has("op_select_implmode"))
      stop("E10001", "--optypelist_for_implmode",
           fmt::format(
               "Value [{}] for parameter [--optypelist_for_implmode] is invalid. Reason: it needs --op_select_implmode",
               options_.get("optypelist_for_implmode")));
  }

  std::string output_path() const {
    std::string output = required("output");
    if (output.back() == '/')
      stop("E10022", "--output", fmt::format("Path [{}] of parameter [--output] has no file name.", output));
    if (output.size() > 4090) stop("E10021", "--output", "Path of parameter [--output] is too long.");
    return output + ".om";
  }

  void convert() {
    std::string output = output_path();
    Conversion job = conversion();
    job.output = output;
    Converted converted = cli::convert(job);
    say(Level::info, "info",
        fmt::format("{} parameters, {} steps, {} working memory", count_text(converted.parameters),
                    converted.totals.steps, bytes_text(double(converted.totals.arena))));
    say(Level::info, "info", fmt::format("wrote {} ({})", job.output, bytes_text(double(converted.bytes))));
    if (options_.get("display_model_info") == "1") display(job.output);
  }

  /// Mode 3: the same as converting, but nothing is written but the report.
  void check() {
    Conversion job = conversion();
    std::string path = options_.get("check_report");
    Json ops = Json::array();
    size_t total = 0, bad = 0;
    std::optional<ReportError> failure;
    try {
      for (const auto& [op, count] : cli::convert(job).operators) {
        total += count;
        ops.push_back({{"name", ""}, {"type", op}, {"result", "success"}, {"count", count}});
      }
    } catch (const ReportError& error) {
      failure.emplace(error);
      for (const Problem& problem : error.report().problems())
        for (const auto& place : problem.places) {
          ++bad, ++total;
          int code = platform_code(problem) == "E19010" ? 1 : 2;
          ops.push_back({{"name", place.node},
                         {"type", problem.subject},
                         {"result", "failed"},
                         {"cause", Json::array({{{"code", code}, {"message", problem.message}}})}});
        }
    }
    Json report = {{"name", std::filesystem::path(job.source).filename().string()},
                   {"result", failure ? "failed" : "success"},
                   {"total", total},
                   {"pass", total - bad},
                   {"fail", bad},
                   {"op", ops}};
    write_file(path, report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    if (failure) throw *failure;
  }

  /// Mode 1: names, types, attributes, shapes and edges of a model, without weights.
  void to_json() {
    std::string path = required("om"), target = required("json");
    ImportOptions import;
    import.out_nodes = split_list(options_.get("out_nodes"), ';');
    Module module = open_model(path, import);
    Json graphs = Json::array();
    for (const auto& function : module.functions) graphs.push_back(graph_json(*function));
    Json json = {{"name", module.name}, {"version", kProducer}, {"graph", graphs}};
    write_file(target, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  static Json graph_json(const Function& function) {
    std::unordered_map<const Value*, std::string> names;
    Json ops = Json::array();
    auto desc = [](const Type& type) {
      Json dims = Json::array();
      for (const Dim& dim : type.shape.dims) dims.push_back(dim.size);
      return Json{{"dtype", to_string(type.dtype)}, {"shape", {{"dim", dims}}}, {"type", to_string(type)}};
    };
    for (const auto& param : function.body.params) {
      names[param.get()] = param->name + ":0";
      ops.push_back({{"name", param->name}, {"type", "Data"}, {"output_desc", Json::array({desc(param->type)})}});
    }
    size_t counter = 0;
    for (const auto& node : function.body.nodes) {
      std::string name = node->results.empty() || node->result()->name.empty()
                             ? fmt::format("{}_{}", node->op->name, counter++)
                             : node->result()->name;
      Json inputs = Json::array(), input_desc = Json::array(), output_desc = Json::array(), attributes = Json::array();
      for (const Value* input : node->inputs) {
        inputs.push_back(names[input]);
        input_desc.push_back(desc(input->type));
      }
      for (size_t i = 0; i < node->results.size(); ++i) {
        names[node->result(i)] = fmt::format("{}:{}", name, i);
        output_desc.push_back(desc(node->result(i)->type));
      }
      for (const auto& [key, value] : node->attributes)
        if (!std::holds_alternative<Tensor>(value)) attributes.push_back({{"key", key}, {"value", to_string(value)}});
      ops.push_back({{"name", name},
                     {"type", node->op->name},
                     {"attr", attributes},
                     {"input", inputs},
                     {"input_desc", input_desc},
                     {"output_desc", output_desc}});
    }
    return {{"name", function.name}, {"op", ops}};
  }

  /// Mode 6, in the platform's words; numbers that have no meaning here are -1.
  void display(const std::string& path) const {
    auto file = OmFile::open(path);
    Json metadata = Json::parse(file->metadata(), nullptr, false);
    auto option = [&](const char* name) {
      auto pointer = Json::json_pointer(fmt::format("/options/{}", name));
      return metadata.is_object() && metadata.contains(pointer) && metadata[pointer].is_string()
                 ? metadata[pointer].get<std::string>()
                 : "";
    };
    std::string command = lines_.program;
    if (metadata.is_object() && metadata.contains("options") && metadata["options"].is_object())
      for (const auto& [name, value] : metadata["options"].items())
        command += fmt::format(" --{}={}", name, value.is_string() ? value.get<std::string>() : "");
    auto size = [&](const char* name) {
      for (const auto& section : file->sections())
        if (section.name == name) return static_cast<int64_t>(section.size);
      return int64_t{-1};
    };
    fmt::print("============ Display Model Info start ============\n");
    fmt::print("Original Atc command line: {}\n", command);
    fmt::print("system   info: atc_version[{}], soc_version[{}], framework_type[{}].\n", kProducer,
               option("soc_version"), option("framework"));
    fmt::print("resource info: memory_size[-1 B], weight_size[{} B], stream_num[-1], event_num[-1].\n",
               size("weights"));
    fmt::print(
        "om       info: modeldef_size[{} B], weight_data_size[{} B], tbe_kernels_size[-1 B], "
        "cust_aicpu_kernel_store_size[-1 B], task_info_size[-1 B].\n",
        size("module"), size("weights"));
    fmt::print("============ Display Model Info end   ============\n");
  }

  Door door_;
  const Lines& lines_;
  const std::vector<std::string>& arguments_;
  ParsedOptions options_;
};

}  // namespace

int atc_main(const std::vector<std::string>& arguments) {
  return Tool(kAtc, kAtcLines, arguments).run();
}
int omg_main(const std::vector<std::string>& arguments) {
  return Tool(kOmg, kOmgLines, arguments).run();
}

}  // namespace cairn::cli
