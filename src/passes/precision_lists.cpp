#include "passes/precision_lists.h"

#include <nlohmann/json.hpp>

#include "support/error.h"
#include "support/options.h"

namespace cairn {

namespace {

[[noreturn]] void wrong(const std::string& line, const std::string& reason) {
  fail(ErrorKind::invalid_argument, "customize_dtypes", "{}: {}", line, reason);
}

DType custom_type(const std::string& name, const std::string& line) {
  for (const auto& [known, dtype] : std::initializer_list<std::pair<std::string_view, DType>>{
           {"float32", kF32}, {"fp32", kF32}, {"float16", kF16}, {"fp16", kF16}, {"bfloat16", kBF16}, {"bf16", kBF16}})
    if (name == known) return dtype;
  wrong(line, fmt::format("'{}' is not float32, float16 or bfloat16", printable(name)));
}

/// The types listed behind `word`, which is at position `at`, up to `end`.
std::vector<DType> types_after(const std::string& line, std::string_view word, size_t at, size_t end) {
  std::vector<DType> types;
  if (at == std::string::npos) return types;
  const size_t first = at + word.size();
  const size_t count = end > at && end != std::string::npos ? end - first : std::string::npos;
  for (const std::string& name : split_list(line.substr(first, count), ',')) types.push_back(custom_type(name, line));
  return types;
}

}  // namespace

void read_mix_lists(const std::string& text, PrecisionOptions& precision) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) fail(ErrorKind::invalid_argument, "mixed_lists", "is no JSON object");
  for (const auto& [list, changes] : json.items()) {
    auto* target = list == "black-list"   ? &precision.black
                   : list == "white-list" ? &precision.white
                   : list == "gray-list"  ? &precision.gray
                                          : nullptr;
    if (!target || !changes.is_object())
      fail(ErrorKind::invalid_argument, "mixed_lists", "'{}' is not black-list, white-list or gray-list", list);
    for (const auto& [change, types] : changes.items()) {
      auto* into = change == "to-add" ? target : change == "to-remove" ? &precision.gray : nullptr;
      if (!into || !types.is_array())
        fail(ErrorKind::invalid_argument, "mixed_lists", "'{}' of {} is {}", change, list,
             into ? "no list of operators: [\"Add\"]" : "neither to-add nor to-remove");
      for (const auto& type : types) {
        if (!type.is_string())
          fail(ErrorKind::invalid_argument, "mixed_lists", "{} of {} has an entry that is no text", change, list);
        into->push_back(type.get<std::string>());
      }
    }
  }
  for (const std::string& type : precision.black)
    if (std::ranges::count(precision.white, type) > 0)
      fail(ErrorKind::invalid_argument, "mixed_lists", "'{}' is added to black-list and to white-list", type);
}

std::vector<CustomTypes> read_custom_types(const std::string& text) {
  constexpr std::string_view kInput = "InputDtype:", kOutput = "OutputDtype:";
  std::vector<CustomTypes> all;
  size_t number = 0;
  for (size_t begin = 0, next = 0; begin < text.size(); begin = next + 1) {
    next = std::min(text.find('\n', begin), text.size());
    ++number;
    const std::vector<std::string> trimmed = split_list(text.substr(begin, next - begin), '\n');
    if (trimmed.empty()) continue;
    const std::string& line = trimmed[0];
    const size_t input = line.find(kInput), output = line.find(kOutput), end = std::min(input, output);
    if (end == std::string::npos || end < 2)
      wrong(fmt::format("line {}: {}", number, printable(line)), "expected Name::InputDtype:...,OutputDtype:...");
    CustomTypes types;
    types.node = line.substr(0, end);
    while (types.node.ends_with(':')) types.node.pop_back();
    types.inputs = types_after(line, kInput, input, output);
    types.outputs = types_after(line, kOutput, output, input);
    all.push_back(std::move(types));
  }
  return all;
}

}  // namespace cairn
