#include "observe/dump_options.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "support/error.h"
#include "support/json_fault.h"
#include "support/options.h"

namespace cairn {
namespace {

constexpr size_t kMostParts = 100;
constexpr std::string_view kDumpKeys[] = {
    "enable_dump", "enable_dump_debug", "enable_exception_dump", "dump_path",   "dump_step",      "dump_mode",
    "dump_data",   "dump_layer",        "dump_format",           "dump_budget", "dump_debug_mode"};

template <class... Words>
size_t choice(const std::string& key, const std::string& value, Words... words) {
  const std::vector<std::string> allowed = {words...};
  auto found = std::find(allowed.begin(), allowed.end(), value);
  if (found == allowed.end())
    fail(ErrorKind::invalid_argument, key, "expected {}, found '{}'", fmt::join(allowed, ", "), value);
  return static_cast<size_t>(found - allowed.begin());
}

bool whole_number(std::string_view text, int64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

/// Uses the platform's wording for its two error messages, which users search for.
std::vector<std::pair<int64_t, int64_t>> parse_steps(const std::string& text) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  std::vector<std::string> parts = split_list(text, '|');
  if (parts.size() != static_cast<size_t>(std::count(text.begin(), text.end(), '|')) + 1)
    parts = {""};  // an empty part
  if (parts.size() > kMostParts)
    fail(ErrorKind::invalid_argument, "dump_step", "only support dump <= 100 sets of data, found {}", parts.size());
  for (const std::string& part : parts) {
    size_t dash = part.find('-');
    std::pair<int64_t, int64_t> range{0, 0};
    bool sound = whole_number(std::string_view(part).substr(0, dash), range.first);
    range.second = range.first;
    if (sound && dash != std::string::npos)
      sound = whole_number(std::string_view(part).substr(dash + 1), range.second) && range.first < range.second;
    if (!sound)
      fail(ErrorKind::invalid_argument, "dump_step",
           "string style is error, correct example:'0|5|10|50-100', found '{}'", text);
    steps.push_back(range);
  }
  return steps;
}

uint64_t parse_budget(const std::string& text) {
  int64_t megabytes = 0;
  if (!text.ends_with("MB") || !whole_number(std::string_view(text).substr(0, text.size() - 2), megabytes) ||
      megabytes < 1 || megabytes > (int64_t{1} << 40))
    fail(ErrorKind::invalid_argument, "dump_budget", "expected a size as 500MB, found '{}'", text);
  return static_cast<uint64_t>(megabytes) << 20;
}

/// Reads a flag: "1", true and 1 are all true.
bool flag(const std::string& key, const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return choice(key, text, "0", "false", "False", "1", "true", "True") >= 3;
}

std::vector<std::string> layers_of(const std::string& text) {
  std::vector<std::string> layers;
  for (std::string& name : split_list(text, ' '))
    if (!name.empty()) layers.push_back(std::move(name));
  return layers;
}

void read_text(DumpOptions& options, const std::string& key, const std::string& value) {
  if (key == "dump_path") {
    options.path = value;
  } else if (key == "dump_step") {
    options.steps = parse_steps(value);
  } else if (key == "dump_mode") {
    size_t mode = choice(key, value, "input", "output", "all");
    options.inputs = mode != 1, options.outputs = mode != 0;
  } else if (key == "dump_data") {
    options.statistics = choice(key, value, "tensor", "stats") == 1;
  } else if (key == "dump_layer") {
    options.layers = layers_of(value);
  } else if (key == "dump_format") {
    options.npy = choice(key, value, "dump", "npy") == 1;
  } else if (key == "dump_budget") {
    options.budget = parse_budget(value);
  } else if (choice(key, value, "all", "aicore_overflow", "atomic_overflow") == 2) {  // dump_debug_mode
    options.notes.push_back("dump_debug_mode atomic_overflow watches what all others do: sums are not atomic here");
  }
}

}  // namespace

bool DumpOptions::wants_step(int64_t step) const {
  return steps.empty() || std::any_of(steps.begin(), steps.end(),
                                      [&](const auto& range) { return step >= range.first && step <= range.second; });
}

DumpOptions parse_dump_options(std::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) fail(ErrorKind::invalid_argument, "dump options", "are no JSON: {}", json_fault(text));
  if (!json.is_object()) fail(ErrorKind::invalid_argument, "dump options", "are no JSON object: {:.80}", text);
  DumpOptions options;
  bool switched = false;
  for (const auto& [key, value] : json.items()) {
    if (std::find(std::begin(kDumpKeys), std::end(kDumpKeys), key) == std::end(kDumpKeys))
      fail(ErrorKind::invalid_argument, key, "is no option of a dump");
    if (key == "enable_exception_dump") {
      switched = true;
      options.exceptions = value == 2 || value == "2" || flag(key, value);
    } else if (key == "enable_dump" || key == "enable_dump_debug") {
      switched = true;
      (key == "enable_dump" ? options.tensors : options.overflow) = flag(key, value);
    } else if (value.is_string() && !value.get<std::string>().empty()) {
      read_text(options, key, value.get<std::string>());
    } else if (!value.is_null() && !value.is_string()) {
      fail(ErrorKind::invalid_argument, key, "expected a text, found {}", value.type_name());
    }
  }
  if (!switched) options.tensors = true;
  if (options.tensors && options.overflow)
    fail(ErrorKind::invalid_argument, "enable_dump", "excludes enable_dump_debug, as on the platform");
  if (options.path.empty()) fail(ErrorKind::invalid_argument, "dump_path", "must be set to dump");
  if (std::any_of(options.path.begin(), options.path.end(), [](unsigned char c) { return c < 32 || c == 127; }))
    fail(ErrorKind::invalid_argument, "dump_path", "has control characters");
  return options;
}

}  // namespace cairn
