#include "atc_precision.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "codes.h"
#include "passes/precision_lists.h"
#include "support/files.h"

namespace cairn::cli {
namespace {

[[noreturn]] void bad_value(const std::string& option, const std::string& value, const std::string& reason) {
  stop("E10001", option, fmt::format("Value [{}] for parameter [{}] is invalid. Reason: {}", value, option, reason));
}

/// Classes of operators that --op_precision_mode may name together.
constexpr std::pair<std::string_view, std::array<std::string_view, 12>> kClasses[] = {
    {"norm_class",
     {"BatchNorm", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "BatchNormalization", "LayerNorm",
      "LayerNormalization", "InstanceNorm", "InstanceNormalization", "GroupNorm", "L2Normalize", "LpNormalization"}}};

std::string trimmed(const std::string& line) {
  auto parts = split_list(line, '\n');
  return parts.empty() ? "" : parts[0];
}

std::string text_of(const std::string& path, const char* option) {
  if (!std::filesystem::exists(path))
    stop("E10410", option, fmt::format("File [{}] of parameter [{}] does not exist.", path, option),
         hint_of(near_file(path)));
  return read_text(path);
}
std::vector<std::string> lines_of(const std::string& path, const char* option) {
  return split_list(text_of(path, option), '\n');
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
      precision_.set(*named);
      if (*named->remark) notices_.push_back(fmt::format("--precision_mode={}{}", value, named->remark));
    }
  }

  bool lowers() const { return precision_.mode != PrecisionMode::keep && precision_.mode != PrecisionMode::force_wide; }

  void mixlist(const std::string& path) {
    if (precision_.mode != PrecisionMode::mixed)
      bad_value("--modify_mixlist", path,
                "it needs --precision_mode=allow_mix_precision or --precision_mode_v2=mixed_...");
    const Json lists = read_json(path, "--modify_mixlist", "E10032");
    try {
      read_mix_lists(lists.dump(), precision_);
    } catch (const Error& error) {
      bad_value("--modify_mixlist", path, error.message());
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

  void customised(const std::string& path) {
    const std::string text = text_of(path, "--customize_dtypes");
    try {
      precision_.custom = read_custom_types(text);
    } catch (const Error& error) {
      bad_value("--customize_dtypes", path, error.message());
    }
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
    size_t number = 0;
    std::string text = text_of(path, "--op_precision_mode");
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      ++number;
      std::string line = text.substr(begin, end - begin);
      line = trimmed(line.substr(0, line.find_first_of("#;")));
      if (line.empty()) continue;
      if (line[0] == '[') {
        by_name = line.find("Name") != std::string::npos;
        continue;
      }
      auto wrong = [&](const std::string& reason) {
        bad_value("--op_precision_mode", path, fmt::format("line {}: {}", number, reason));
      };
      size_t equals = line.rfind('=');
      if (equals == std::string::npos) wrong(fmt::format("'{}' is not Operator=high_precision", printable(line)));
      std::string name = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
      bool known = value == "high_precision" || value == "high_performance" || value == "keep_fp16" ||
                   value == "enable_float_32_execution" || value == "enable_hi_float_32_execution" ||
                   value == "support_out_of_bound_index";
      if (!known) wrong(fmt::format("'{}' is no precision of an operator", printable(value)));
      if (precision_class(name, value)) continue;
      bool wide = value == "high_precision" || value == "enable_float_32_execution";
      if (wide && lowers())
        precision_.precise.push_back(by_name ? name : "OpType::" + name);
      else
        notices_.push_back(
            fmt::format("--op_precision_mode: {} has no effect: all kernels are of high precision and in f32", line));
    }
  }

  /// A class stands for all its operators. Their kernels are of high precision, so that only high_precision may act.
  bool precision_class(const std::string& name, const std::string& value) {
    auto found = std::find_if(std::begin(kClasses), std::end(kClasses), [&](auto& each) { return each.first == name; });
    if (found == std::end(kClasses)) return false;
    if (value != "high_precision" || !lowers())
      notices_.push_back(fmt::format(
          "--op_precision_mode: {}={} has no effect: all kernels are of high precision and in f32", name, value));
    else
      for (std::string_view type : found->second) precision_.precise.push_back(fmt::format("OpType::{}", type));
    return true;
  }

  const ParsedOptions& options_;
  std::vector<std::string>& notices_;
  PrecisionOptions precision_;
};

}  // namespace

bool is_of_class(std::string_view type) {
  return std::any_of(std::begin(kClasses), std::end(kClasses), [&](const auto& each) {
    return std::find(each.second.begin(), each.second.end(), type) != each.second.end();
  });
}

PrecisionOptions precision_of(const ParsedOptions& options, std::vector<std::string>& notices) {
  return Precision(options, notices).read();
}

}  // namespace cairn::cli
