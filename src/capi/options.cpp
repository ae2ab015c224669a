#include "capi/options.h"

#include <algorithm>

#include "passes/precision_lists.h"

namespace cairn::capi {

namespace {

constexpr size_t kLongestOptions = 1 << 20;

/// The symbol for a JSON string that names a size; null for anything else.
Symbol symbol_of(const Json& item) {
  if (!item.is_string()) return nullptr;
  const std::string name = item.get<std::string>();
  const auto in_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), in_word) ? intern_symbol(name) : nullptr;
}

Shape shape_of(const Json& value, const std::string& input) {
  std::vector<Dim> dims;
  if (!value.is_array()) fail(ErrorKind::invalid_argument, input, "shape is no list of numbers");
  for (const Json& item : value) {
    const auto name = symbol_of(item);
    if (!name && !item.is_number_integer())
      fail(ErrorKind::invalid_argument, input, "shape is no list of numbers and names");
    const int64_t size = name ? -1 : item.get<int64_t>();
    dims.push_back(size < 0 ? Dim(name) : Dim(size));
  }
  return Shape(std::move(dims));
}

KnownIntegers values_of(const Json& value, const std::string& input) {
  KnownIntegers values{{}, !value.is_array()};
  for (const Json& item : values.scalar ? Json::array({value}) : value) {
    const auto name = symbol_of(item);
    if (!name && !item.is_number_integer())
      fail(ErrorKind::invalid_argument, input, "value is no list of integers and names of dims");
    values.elements.push_back(name ? KnownIntegers::Element{0, name} : KnownIntegers::Element{item.get<int64_t>()});
  }
  return values;
}

}  // namespace

std::vector<std::string> texts(const Json& value, const std::string& key) {
  if (!value.is_array()) fail(ErrorKind::invalid_argument, "options", "{} is no list of texts", key);
  std::vector<std::string> list;
  for (const Json& item : value) {
    if (!item.is_string()) fail(ErrorKind::invalid_argument, "options", "{} is no list of texts", key);
    list.push_back(item.get<std::string>());
  }
  return list;
}

Json parse_options(const char* text) {
  if (!text || !*text) return Json::object();
  if (std::string_view(text).size() > kLongestOptions) fail(ErrorKind::invalid_argument, "options", "are too long");
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) fail(ErrorKind::invalid_argument, "options", "are no JSON object");
  return json;
}

bool take_import_option(const std::string& key, const Json& value, ImportOptions& options) {
  if (key == "outputs") {
    options.out_nodes = texts(value, key);
  } else if (key == "tags") {
    options.tags = texts(value, key);
  } else if (key == "weights" && value.is_string()) {
    options.weights = value.get<std::string>();
  } else if (key == "signature" && value.is_string()) {
    options.signature = value.get<std::string>();
  } else if (key == "input_shapes" && value.is_object()) {
    for (const auto& [input, shape] : value.items()) options.input_shapes[input] = shape_of(shape, input);
  } else if (key == "input_values" && value.is_object()) {
    for (const auto& [input, values] : value.items()) options.input_values[input] = values_of(values, input);
  } else if (key == "replace" && value.is_object()) {
    for (const auto& [node, kind] : value.items()) {
      if (!kind.is_string()) return false;
      options.replace[node] = kind.get<std::string>();
    }
  } else if (key == "cut") {
    for (const std::string& node : texts(value, key)) options.replace[node] = "input";
  } else {
    return false;
  }
  return true;
}

void refuse_option(const std::string& key) {
  fail(ErrorKind::invalid_argument, "options", "no option is called {}, or its value has another form", key);
}

ImportOptions import_options(const char* text) {
  ImportOptions options;
  const Json json = parse_options(text);
  for (const auto& [key, value] : json.items())
    if (!take_import_option(key, value, options)) refuse_option(key);
  return options;
}

PrecisionOptions read_precision(const std::string& mode, const std::string& mixed_lists,
                                std::vector<std::string> keep_types, const std::string& custom_types) {
  PrecisionOptions precision;
  if (!mode.empty()) {
    const NamedPrecision* named = find_precision(mode);
    if (!named) fail(ErrorKind::invalid_argument, "precision_mode", "is {}, which is no mode", mode);
    precision.set(*named);
  }
  if (!mixed_lists.empty() && precision.mode != PrecisionMode::mixed)
    fail(ErrorKind::invalid_argument, "mixed_lists", "need a mixed precision mode");
  if (!mixed_lists.empty()) read_mix_lists(mixed_lists, precision);
  if (!custom_types.empty()) precision.custom = read_custom_types(custom_types);
  precision.keep = std::move(keep_types);
  return precision;
}

}  // namespace cairn::capi
