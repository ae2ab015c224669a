// atc and omg: the platform's converters by their own names, options, messages and exit statuses.
#include <algorithm>
#include <filesystem>

#include "atc_request.h"
#include "capi/user_op.h"
#include "frontends/coded_error.h"
#include "ir/result_marks.h"
#include "model_json.h"
#include "open_sizes.h"
#include "runtime/input_limits.h"
#include "single_op.h"
#include "support/fault.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

constexpr int kFailure = 255;      // what the platform's tools return after start-up
constexpr int kUnknownOption = 1;  // and before it
constexpr size_t kLargestDump = size_t{1} << 30;

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
      : door_(door), lines_(lines), arguments_(arguments) {}

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
    } catch (const CodedError& error) {
      return failed(report_of(error.code(), error.where(), error.what()));
    } catch (...) {
      const Error error = current_fault();
      return failed(report_of(code_of(error), error.where(), error.what()));
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
      case ErrorKind::not_found: return "E13000";
      case ErrorKind::io: return "E13001";
      case ErrorKind::invalid_model: return "E10041";
      case ErrorKind::unsupported: return "E10501";
      case ErrorKind::out_of_memory: return "E10044";
      default: return "E10001";
    }
  }

  static Report report_of(const char* code, std::string subject, std::string message) {
    Report report;
    report.add({code, Severity::error, std::move(subject), {}, std::move(message)});
    return report;
  }

  /// The platform's block: the code, the sentence, and below it what to do.
  int failed(const Report& report) const {
    fmt::print("{}\n", lines_.failure);
    bool unknown = false;
    for (const Problem& problem : report.problems()) {
      std::string code = platform_code(problem);
      if (code == "E19010" && is_caffe()) code = "E11009";
      unknown = unknown || code == "E10053";
      std::string message = problem.message;
      if (!problem.places.empty()) {  // of the model, not of the command line
        std::string nodes;
        for (size_t i = 0; i < std::min<size_t>(problem.places.size(), 5); ++i)
          nodes += (i ? ", " : "") + to_string(problem.places[i]);
        if (problem.places.size() > 5) nodes += fmt::format(" and {} more", problem.places.size() - 5);
        message = fmt::format("op [{}], {} node{} [{}]: {}", problem.subject, problem.places.size(),
                              problem.places.size() == 1 ? "" : "s", nodes, problem.message);
      }
      fmt::print("{}: {}\n", code, message);
      if (!problem.fix.empty()) fmt::print("        Solution: {}\n", as_command(problem.fix));
    }
    return unknown ? kUnknownOption : kFailure;
  }

  /// Nodes become inputs by `cairn convert`, as the tool has no option of the platform's for it.
  std::string as_command(std::string fix) const {
    const size_t at = fix.find("--cut=");
    if (at == std::string::npos) return fix;
    std::string command = fmt::format("cairn convert {} ", quoted_path(options_.get("model"))), rest;
    for (const char* option : {"input_shape", "out_nodes", "output_type"})
      if (options_.has(option)) rest += fmt::format(" --{}={}", option, quoted_path(options_.get(option)));
    const std::string output = options_.get("output");
    fix += fmt::format("{} -o {}", rest, quoted_path(output.empty() ? "model.om" : output));
    return fix.insert(at, command);
  }

  /// As a shell takes it for one word.
  static std::string quoted_path(const std::string& path) {
    if (path.find_first_of(" \t'\"$`\\;&|<>()*?[]#~!") == std::string::npos) return path;
    std::string text = "'";
    for (char c : path) text += c == '\'' ? "'\\''" : std::string(1, c);
    return text + "'";
  }

  bool is_caffe() const { return options_.get("framework") == "0" || options_.get("model").ends_with(".prototxt"); }

  static std::string platform_code(const Problem& problem) {
    static constexpr std::pair<std::string_view, const char*> kCodes[] = {
        {"caffe-net", "E11022"}, {"caffe-weights", "E11024"}, {"unknown-blob", "E11014"}};
    for (const auto& [code, platform] : kCodes)
      if (problem.code == code) return platform;
    if (problem.code.size() == 6 && (problem.code[0] == 'E' || problem.code[0] == 'W')) return problem.code;
    return problem.code.find("unsupported") != std::string::npos ? "E19010" : "E19014";
  }

  /// Reports all options that are missing together.
  void require(std::initializer_list<const char*> names) const {
    Report missing;
    for (const char* name : names) try {
        required(name);
      } catch (const ReportError& error) {
        for (const Problem& problem : error.report().problems()) missing.add(problem);
      }
    if (!missing.empty())
      throw ReportError(ErrorKind::invalid_argument, "", "the command line is wrong", std::move(missing));
  }

  std::string required(const char* name) const {
    std::string value = options_.get(name);
    if (value.empty()) {
      const std::string model = std::string_view(name) == "om" ? options_.get("model") : "";  // what modes 1, 5, 6 take
      stop("E10004", fmt::format("--{}", name), fmt::format("Value for parameter [--{}] is empty.", name),
           model.empty() ? fmt::format("give --{}=...; a value with ';' or a blank needs quotes", name)
                         : fmt::format("--om={} in place of --model", model));
    }
    return value;
  }

  void work() {
    capi::load_op_libraries(options_.get("op_library"));
    capi::load_op_libraries_of_environment();  // whose plug-ins may name operators of those
    std::string mode = options_.get("mode");
    if (options_.has("singleop")) return single_operators();
    if (mode == "0") return convert();
    if (mode == "1") return to_json();
    if (mode == "3") return check();
    if (mode == "5") return dump_to_json();
    if (options_.has("framework")) stop("E10057", "--framework", "Mode 6 takes --om only.");
    display(required("om"));
  }

  Request request() {
    Request request = request_of(options_, door_);
    for (const std::string& repair : request.repairs) say(Level::warning, "mended", repair);
    for (const std::string& notice : request.notices) say(Level::warning, "note", notice);
    request.conversion.import.note = [this](const std::string& sentence) { say(Level::warning, "note", sentence); };
    return request;
  }

  std::string output_path() const {
    std::string output = required("output");
    const std::filesystem::path name = std::filesystem::path(output).filename();
    if (name.empty() || name == "." || name == "..")
      stop("E10022", "--output", fmt::format("Path [{}] of parameter [--output] has no file name.", output));
    if (output.size() > 4090) stop("E10021", "--output", "Path of parameter [--output] is too long.");
    return output + ".om";
  }

  /// Folders of an output's path that are not there are made, as the platform does.
  static void make_folder_of(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code exists;
    if (!folder.empty() && !std::filesystem::exists(folder, exists)) std::filesystem::create_directories(folder);
  }

  void convert() {
    require({"model", "output"});
    std::string output = output_path();
    Conversion job = request().conversion;
    job.output = output;
    make_folder_of(output);
    if (options_.get("save_original_model") == "true") job.original_output = options_.get("output") + "_original.om";
    Converted converted = converted_or_reported(job);
    for (const std::string& sentence : without_effect(options_, job, converted)) say(Level::warning, "note", sentence);
    const PrecisionReport& precision = converted.precision;
    if (precision.lowered + precision.widened > 0)
      say(Level::info, "info",
          fmt::format("{} operators in lower precision, {} in higher", precision.lowered, precision.widened));
    say(Level::info, "info",
        fmt::format("{} parameters, {} steps, {} working memory", count_text(converted.parameters),
                    converted.totals.steps, bytes_text(double(converted.totals.arena))));
    const bool slow = is_slow(converted.reference);
    for (const std::string& line : describe(converted.reference))
      say(slow ? Level::warning : Level::info, slow ? "note" : "info", line);
    say(Level::info, "info", fmt::format("wrote {} ({})", job.output, bytes_text(double(converted.bytes))));
    if (door_ == kAtc && options_.get("export_compile_stat") != "0") write_fusion_result(converted);
    if (options_.get("display_model_info") == "1") display(job.output);
  }

  static void write_json(const std::string& path, const Json& json) {
    make_folder_of(path);
    write_file(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  /// How often each rule matched and took effect, and each kernel of several operators.
  static void write_fusion_result(const Converted& converted) {
    auto times = [](size_t count) {
      return Json{{"effect_times", std::to_string(count)}, {"match_times", std::to_string(count)}};
    };
    std::map<std::string, size_t> rules;
    for (const PassRecord& pass : converted.passes)
      for (const auto& [rule, count] : pass.rules) rules[rule] += count;
    Json graph = Json::object(), kernels = Json::object();
    auto list = list_passes();
    for (const auto& [rule, count] : rules) {
      auto info = std::find_if(list.begin(), list.end(), [&](const PassInfo& pass) { return pass.name == rule; });
      bool named = info != list.end() && !info->platform.empty();
      graph[named ? info->platform : rule] = times(count);
    }
    for (const auto& [kernel, count] : converted.groups) kernels[kernel] = times(count);
    write_json("fusion_result.json",
               {{"graph_fusion", graph}, {"session_and_graph_id", "0_0"}, {"ub_fusion", kernels}});
  }

  void single_operators() {
    std::string folder = required("output");
    for (const char* other : {"model", "input_shape", "out_nodes", "insert_op_conf"})
      if (options_.has(other)) say(Level::warning, "note", fmt::format("--{} has no effect beside --singleop", other));
    for (const SingleOp& op : read_single_ops(options_.get("singleop"))) {
      std::string path = (std::filesystem::path(folder) / (op.file + ".om")).string();
      std::filesystem::create_directories(folder);
      write_single_op(op, path);
      say(Level::info, "info", fmt::format("wrote {}", path));
    }
  }

  /// Operators in network order, and what is wrong with them.
  struct CheckReport {
    Json ops = Json::array();
    size_t bad = 0;

    void add(const Report& report) {
      for (const Problem& problem : report.problems())
        for (const auto& place : problem.places) {
          ++bad;
          int code = platform_code(problem) == "E19010" ? 1 : 2;
          ops.push_back({{"name", place.node},
                         {"type", problem.subject},
                         {"result", "failed"},
                         {"cause", Json::array({{{"code", code}, {"message", problem.message}}})}});
        }
    }
    void write(const std::string& path, const std::string& source, bool failed) const {
      write_json(path, {{"name", std::filesystem::path(source).filename().string()},
                        {"result", failed ? "failed" : "success"},
                        {"total", ops.size()},
                        {"pass", ops.size() - bad},
                        {"fail", bad},
                        {"op", ops}});
    }
  };

  /// As the platform does, a model that cannot be read leaves the report of mode 3 behind.
  Converted converted_or_reported(const Conversion& job) const {
    try {
      return convert_or_stop(job);
    } catch (const ReportError& error) {
      CheckReport report;
      report.add(error.report());
      if (report.bad > 0) report.write(options_.get("check_report"), job.source, true);
      throw;
    }
  }

  /// Mode 3: the same as converting, but nothing is written but the report.
  void check() {
    Conversion job = request().conversion;
    CheckReport report;
    std::optional<ReportError> failure;
    try {
      for (const Source& source : convert_or_stop(job).sources)
        if (!result_mark(source))
          report.ops.push_back({{"name", source.name}, {"type", source.op}, {"result", "success"}});
    } catch (const ReportError& error) {
      failure.emplace(error);
      report.add(error.report());
    }
    report.write(options_.get("check_report"), job.source, failure.has_value());
    if (failure) throw *failure;
  }

  /// Mode 1: names, types, attributes, shapes and edges of a model, without weights.
  void to_json() {
    require({"om", "json"});
    std::string path = options_.get("om"), target = options_.get("json");
    ImportOptions import;
    import.weights = options_.get("weight");
    import.out_nodes = split_list(options_.get("out_nodes"), ';');
    write_json(target, module_json(open_model(path, import)));
  }

  /// Mode 5: the same of a text dump.
  void dump_to_json() {
    require({"om", "json"});
    std::string path = options_.get("om"), target = options_.get("json");
    write_json(target, text_dump_json(read_file(path, kLargestDump), path));
  }

  /// Of the first profile, or of the only sizes there are; -1 when any size is allowed.
  static int64_t working_memory(const OmFile& file) {
    auto model = Model::make(file.module(), {.threads = 1});
    InputLimits limits = InputLimits::of(model->module());
    std::vector<Dims> dims;
    for (const Port& input : model->inputs()) {
      bool fixed = input.type.is_static();
      dims.push_back(fixed ? input.type.shape.sizes() : Dims{});
      if (fixed) continue;
      if (limits.alternatives().empty()) return -1;
      for (const SizeRange& range : limits.alternatives()[0][dims.size() - 1]) {
        if (range.low != range.high) return -1;
        dims.back().push_back(range.low);
      }
    }
    return static_cast<int64_t>(totals_of(*model->plan(dims)).arena);
  }

  /// Mode 6, in the platform's words; numbers that have no meaning here are -1.
  void display(const std::string& path) const {
    auto file = OmFile::open(path);
    Json metadata = Json::parse(file->metadata(), nullptr, false);
    std::string command;  // as far as the file knows it: what changes the model
    if (metadata.is_object() && metadata.contains("options") && metadata["options"].is_object())
      for (const auto& [name, value] : metadata["options"].items())
        command += fmt::format(" --{}={}", name, value.is_string() ? value.get<std::string>() : "");
    auto size = [&](const char* name) {
      for (const auto& section : file->sections())
        if (section.name == name) return static_cast<int64_t>(section.size);
      return int64_t{-1};
    };
    fmt::print("============ Display Model Info start ============\n");
    fmt::print("Original Atc command line: {} ...{}\n", lines_.program, command);
    fmt::print("system   info: atc_version[{}], soc_version[not stored], framework_type[not stored].\n", kProducer);
    auto weights = static_cast<int64_t>(file->external_bytes());
    fmt::print("resource info: memory_size[{} B], weight_size[{} B], stream_num[1], event_num[0].\n",
               working_memory(*file), weights > 0 ? weights : size("weights"));
    fmt::print(
        "om       info: modeldef_size[{} B], weight_data_size[{} B], tbe_kernels_size[-1 B], "
        "cust_aicpu_kernel_store_size[-1 B], task_info_size[-1 B].\n",
        size("module"), size("weights"));
    for (const OpenSize& open : open_sizes(file->module())) fmt::print("open     info: {}.\n", to_text(open));
    fmt::print("============ Display Model Info end   ============\n");
  }

  Door door_;
  const Lines& lines_;
  const std::vector<std::string>& arguments_;
  ParsedOptions options_;
};

}  // namespace

int atc_main(const std::vector<std::string>& arguments) { return Tool(kAtc, kAtcLines, arguments).run(); }
int omg_main(const std::vector<std::string>& arguments) { return Tool(kOmg, kOmgLines, arguments).run(); }

}  // namespace cairn::cli
