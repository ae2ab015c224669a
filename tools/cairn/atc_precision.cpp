#include "atc_precision.h"

#include <algorithm>
#include <filesystem>

#include "conversion.h"
#include "support/files.h"

namespace cairn::cli {
namespace {

[[noreturn]] void bad_value(const std::string& option, const std::string& value, const std::string& reason) {
  stop("E10001", option, fmt::format("Value [{}] for parameter [{}] is invalid. Reason: {}", value, option, reason));
}

std::string trimmed(const std::string& line) {
  auto parts = split_list(line, '\n');
  return parts.empty() ? "" : parts[0];
}

std::vector<std::string> lines_of(const std::string& path, const char* option) {
  if (!std::filesystem::exists(path))
    stop("E10410", option, fmt::format("File [{}] of parameter [{}] does not exist.", path, option));
  return split_list(read_file(path), '\n');
}

class Precision {
 public:
  Precision(const ParsedOptions& options, std::vector<std::string>& notices) : options_(options), notices_(notices) {}

  PrecisionOptions read() {
    mode();
    if (options_.has("modify_mixlist")) mixlist(options_.get("modify_mixlist"));
    if (options_.has("keep_dtype")) kept(options_.get("keep_dtype"));
    if (options_.has("customize_dtypes")) customised(options_.get("customize_dtypes"));
    implmode();
    return std::move(precision_);
  }

 private:
  void mode() {
    if (options_.has("precision_mode") && options_.has("precision_mode_v2"))
      stop("E10047", "--precision_mode", "[--precision_mode] and [--precision_mode_v2] exclude each other.");
    std::string value = options_.get(options_.has("precision_mode_v2") ? "precision_mode_v2" : "precision_mode");
    if (const NamedPrecision* named = find_precision(value)) {
      precision_.mode = named->mode;
      precision_.low = named->low;
      if (*named->remark) notices_.push_back(fmt::format("--precision_mode={}{}", value, named->remark));
    }
  }

  bool lowers() const { return precision_.mode != PrecisionMode::keep && precision_.mode != PrecisionMode::force_wide; }

  void mixlist(const std::string& path) {
    if (precision_.mode != PrecisionMode::mixed)
      bad_value("--modify_mixlist", path,
                "it needs --precision_mode=allow_mix_precision or --precision_mode_v2=mixed_...");
    Json json = Json::parse(read_file(path), nullptr, false);
    if (!json.is_object()) stop("E10032", "--modify_mixlist", fmt::format("{} cannot be read as JSON.", path));
    for (const auto& [list, changes] : json.items()) {
      auto* target = list == "black-list"   ? &precision_.black
                     : list == "white-list" ? &precision_.white
                     : list == "gray-list"  ? &precision_.gray
                                            : nullptr;
      if (!target || !changes.is_object())
        bad_value("--modify_mixlist", path, fmt::format("'{}' is not black-list, white-list or gray-list", list));
      add_types(changes, "to-add", *target, path);
      add_types(changes, "to-remove", precision_.gray, path);
    }
  }

  static void add_types(const Json& changes, const char* key, std::vector<std::string>& target,
                        const std::string& path) {
    if (!changes.contains(key)) return;
    if (!changes[key].is_array()) bad_value("--modify_mixlist", path, fmt::format("{} is no list", key));
    for (const Json& type : changes[key]) {
      if (!type.is_string()) bad_value("--modify_mixlist", path, fmt::format("{} has an entry that is no text", key));
      target.push_back(type.get<std::string>());
    }
  }

  void kept(const std::string& path) {
    std::vector<std::string> lines = lines_of(path, "--keep_dtype");
    if (!lowers()) {
      notices_.push_back("--keep_dtype has no effect: every operator keeps its types in this precision mode");
      return;
    }
    precision_.keep = std::move(lines);
  }

  /// "conv1::InputDtype:float16,float32,OutputDtype:float32", or "OpType::Conv2D:InputDtype:...".
  void customised(const std::string& path) {
    for (const std::string& line : lines_of(path, "--customize_dtypes")) {
      size_t input = line.find("InputDtype:"), output = line.find("OutputDtype:");
      size_t end = std::min(input, output);
      if (end == std::string::npos || end < 2)
        bad_value("--customize_dtypes", line, "expected Name::InputDtype:...,OutputDtype:...");
      CustomTypes types;
      types.node = line.substr(0, end);
      while (types.node.ends_with(':')) types.node.pop_back();
      auto list = [&](size_t at, std::string_view word, size_t stop_at) {
        std::vector<DType> dtypes;
        if (at == std::string::npos) return dtypes;
        size_t first = at + word.size();
        for (const std::string& name :
             split_list(line.substr(first, stop_at > at ? stop_at - first : std::string::npos), ','))
          dtypes.push_back(custom_type(name, line));
        return dtypes;
      };
      types.inputs = list(input, "InputDtype:", output);
      types.outputs = list(output, "OutputDtype:", input);
      precision_.custom.push_back(std::move(types));
    }
  }

  static DType custom_type(const std::string& name, const std::string& line) {
    std::string plain = name == "bfloat16" ? "bf16" : name;
    auto dtype = parse_type_name(plain);
    if (!dtype) bad_value("--customize_dtypes", line, fmt::format("'{}' is no element type", name));
    if (!dtype->is_float() || *dtype == kF64)
      bad_value("--customize_dtypes", line, fmt::format("'{}' is not float32, float16 or bfloat16", name));
    return *dtype;
  }

  /// Operators that want high precision stay in f32; a file of op_precision_mode wins over the two options.
  void implmode() {
    std::string mode = options_.get("op_select_implmode");
    std::vector<std::string> types = split_list(options_.get("optypelist_for_implmode"), ',');
    if (!types.empty() && !options_.has("op_select_implmode"))
      bad_value("--optypelist_for_implmode", options_.get("optypelist_for_implmode"), "it needs --op_select_implmode");
    bool file = options_.has("op_precision_mode");
    if (file) by_operator(options_.get("op_precision_mode"));
    if (!options_.has("op_select_implmode")) return;
    if (file) {
      notices_.push_back("--op_select_implmode has no effect: --op_precision_mode wins over it");
    } else if (!mode.starts_with("high_precision") || !lowers()) {
      notices_.push_back(
          fmt::format("--op_select_implmode={} has no effect: all kernels are of high precision and in f32", mode));
    } else {
      bool built_in = mode.ends_with("_for_all") || types.empty();
      precision_.builtin = built_in;
      for (const std::string& type : built_in ? types_with_variants() : types)
        precision_.precise.push_back("OpType::" + type);
    }
  }

  /// Lines "name=high_precision" in sections [ByOpType] and [ByNodeName].
  void by_operator(const std::string& path) {
    bool by_name = false;
    for (const std::string& whole : lines_of(path, "--op_precision_mode")) {
      std::string line = trimmed(whole.substr(0, whole.find('#')));
      if (line.empty()) continue;
      if (line[0] == '[') {
        by_name = line.find("Name") != std::string::npos;
        continue;
      }
      size_t equals = line.rfind('=');
      if (equals == std::string::npos) bad_value("--op_precision_mode", line, "expected Operator=high_precision");
      std::string name = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
      bool known = value == "high_precision" || value == "high_performance" || value == "keep_fp16" ||
                   value == "enable_float_32_execution" || value == "enable_hi_float_32_execution" ||
                   value == "support_out_of_bound_index";
      if (!known) bad_value("--op_precision_mode", line, fmt::format("'{}' is no precision of an operator", value));
      bool wide = value == "high_precision" || value == "enable_float_32_execution";
      if (wide && lowers())
        precision_.precise.push_back(by_name ? name : "OpType::" + name);
      else
        notices_.push_back(
            fmt::format("--op_precision_mode: {} has no effect: all kernels are of high precision and in f32", line));
    }
  }

  const ParsedOptions& options_;
  std::vector<std::string>& notices_;
  PrecisionOptions precision_;
};

}  // namespace

PrecisionOptions precision_of(const ParsedOptions& options, std::vector<std::string>& notices) {
  return Precision(options, notices).read();
}

}  // namespace cairn::cli
