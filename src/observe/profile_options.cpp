#include "observe/profile_options.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "support/error.h"
#include "support/json_fault.h"
#include "support/options.h"

namespace cairn {
namespace {

enum class Status : uint8_t { acts, noted, refused };

struct ProfileKey {
  std::string_view name;
  Status status;
  std::string_view note;  // why it has no effect, or why it is refused
};

constexpr std::string_view kDevice = "there is no device with such units here";
constexpr std::string_view kHost = "sampling of the host is not there";

// The keys of PROFILING_OPTIONS and how each is handled; "level" is our own.
constexpr ProfileKey kProfileKeys[] = {
    {"level", Status::acts, ""},
    {"output", Status::acts, ""},
    {"storage_limit", Status::acts, ""},
    {"training_trace", Status::acts, ""},
    {"task_trace", Status::acts, ""},
    {"task_time", Status::acts, ""},
    {"fp_point", Status::acts, ""},
    {"bp_point", Status::acts, ""},
    {"aic_metrics", Status::acts, ""},
    {"ge_api", Status::noted, "planning is part of the first run of a shape"},
    {"hccl", Status::noted, "one process has no collectives"},
    {"aicpu", Status::noted, "steps on the fallback engine are always recorded"},
    {"l2", Status::noted, "the last-level cache is counted at the level counters"},
    {"msproftx", Status::noted, "user ranges are always recorded"},
    {"runtime_api", Status::noted, "there is no runtime between host and device"},
    {"sys_hardware_mem_freq", Status::noted, kDevice},
    {"llc_profiling", Status::noted, kDevice},
    {"sys_io_sampling_freq", Status::noted, kDevice},
    {"sys_interconnection_freq", Status::noted, kDevice},
    {"dvpp_freq", Status::noted, kDevice},
    {"host_sys", Status::noted, kHost},
    {"host_sys_usage", Status::noted, kHost},
    {"host_sys_usage_freq", Status::noted, kHost},
    {"instr_profiling_freq", Status::refused, "sampling inside a core is not there, and excludes the traces"},
};

constexpr std::string_view kMetrics[] = {"PipeUtilization", "ArithmeticUtilization", "Memory",  "MemoryL0",
                                         "MemoryUB",        "ResourceConflictRatio", "L2Cache", "MemoryAccess"};

std::string text_of(const nlohmann::json& options, const char* key) {
  auto found = options.find(key);
  if (found == options.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number_integer()) return found->dump();
  fail(ErrorKind::invalid_argument, key, "expected a text, found {}", found->type_name());
}

void check_keys(const nlohmann::json& options, ProfileOptions& parsed) {
  for (const auto& [name, value] : options.items()) {
    auto key = std::find_if(std::begin(kProfileKeys), std::end(kProfileKeys),
                            [&](const ProfileKey& each) { return each.name == name; });
    if (key == std::end(kProfileKeys)) fail(ErrorKind::invalid_argument, name, "is no profiling option");
    if (key->status == Status::refused) fail(ErrorKind::unsupported, name, "{}", key->note);
    if (key->status == Status::noted && value != "off" && value != "")
      parsed.notes.push_back(fmt::format("{} changes nothing: {}", name, key->note));
  }
}

uint64_t storage_limit(const std::string& text) {
  constexpr uint64_t kLeast = 200, kMost = 4294967295;
  uint64_t megabytes = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
  bool whole = error == std::errc() && std::string_view(end, text.data() + text.size()) == "MB";
  if (!whole || megabytes < kLeast || megabytes > kMost)
    fail(ErrorKind::invalid_argument, "storage_limit", "expected 200MB to 4294967295MB, found '{}'", text);
  return megabytes << 20;
}

/// Whether the text is a custom setting: one to eight register numbers, "0x49,0x8".
bool is_custom(std::string_view text) {
  if (!text.starts_with("Custom:")) return false;
  std::vector<std::string> numbers = split_list(std::string(text.substr(7)), ',');
  return !numbers.empty() && numbers.size() <= 8 && std::all_of(numbers.begin(), numbers.end(), [](auto& number) {
    return number.size() > 2 && number.starts_with("0x") &&
           number.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
  });
}

ProfileLevel level_of(const nlohmann::json& options) {
  std::string metrics = text_of(options, "aic_metrics");
  bool known = std::find(std::begin(kMetrics), std::end(kMetrics), metrics) != std::end(kMetrics);
  if (!metrics.empty() && !known && !is_custom(metrics))
    fail(ErrorKind::invalid_argument, "aic_metrics", "'{}' is no group of counters; expected {} or Custom:0x49,...",
         metrics, fmt::join(kMetrics, ", "));
  if (options.contains("level")) return parse_profile_level(text_of(options, "level"));
  auto wanted = [&](const char* key) {
    std::string value = text_of(options, key);
    return value == "on" || value == "l0" || value == "l1";  // every other value counts as off, as on the platform
  };
  bool told = options.contains("task_trace") || options.contains("task_time");
  bool tasks = told ? wanted("task_trace") || wanted("task_time") : !options.contains("training_trace");
  // The backward part can only be determined from single steps.
  if (!tasks && !options.contains("training_trace")) return ProfileLevel::marks;
  return metrics.empty() || !tasks ? ProfileLevel::ops : ProfileLevel::counters;
}

}  // namespace

const char* to_string(ProfileLevel level) {
  constexpr const char* kNames[] = {"marks", "ops", "counters"};
  return kNames[static_cast<size_t>(level)];
}

ProfileLevel parse_profile_level(std::string_view text) {
  if (text == "marks") return ProfileLevel::marks;
  if (text == "ops" || text == "L0") return ProfileLevel::ops;
  if (text == "counters" || text == "L1" || text == "L2") return ProfileLevel::counters;
  fail(ErrorKind::invalid_argument, "level", "expected marks, ops, counters or L0 to L2, found '{}'", text);
}

ProfileOptions parse_profile_options(std::string_view text) {
  if (text.empty()) fail(ErrorKind::invalid_argument, "profiling options", "are an empty text, expected JSON");
  nlohmann::json options = nlohmann::json::parse(text, nullptr, false);
  if (options.is_discarded())
    fail(ErrorKind::invalid_argument, "profiling options", "are no JSON: {}", json_fault(text));
  if (!options.is_object()) fail(ErrorKind::invalid_argument, "profiling options", "are no JSON object: {:.80}", text);
  ProfileOptions parsed;
  check_keys(options, parsed);
  if (options.contains("training_trace") && text_of(options, "training_trace") != "on")
    fail(ErrorKind::invalid_argument, "training_trace", "expected on, found '{}'", text_of(options, "training_trace"));
  parsed.level = level_of(options);
  if (options.contains("output")) parsed.output = text_of(options, "output");
  if (std::any_of(parsed.output.begin(), parsed.output.end(), [](unsigned char c) { return c < 32 || c == 127; }))
    fail(ErrorKind::invalid_argument, "output", "has control characters");
  if (parsed.output.empty()) parsed.output = ".";
  if (options.contains("storage_limit")) parsed.storage_limit = storage_limit(text_of(options, "storage_limit"));
  if (options.contains("training_trace")) {
    parsed.fp_point = text_of(options, "fp_point");
    parsed.bp_point = text_of(options, "bp_point");
  }
  return parsed;
}

}  // namespace cairn
