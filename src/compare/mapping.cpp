#include "compare/mapping.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "formats/names.h"
#include "support/files.h"
#include "support/json_fault.h"

namespace cairn::compare {

namespace {

constexpr size_t kLargest = size_t{2} << 30;

void add(OpMapping& mapping, MappedOp op) {
  op.sequence = mapping.ops.size() + 1;
  mapping.places.try_emplace(plain_name(op.name), mapping.ops.size());
  mapping.ops.push_back(std::move(op));
}

std::string text_at(const nlohmann::json& object, const char* key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const nlohmann::json& list_at(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNone = nlohmann::json::array();
  auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_array() ? *found : kNone;
}

/// The value of an attribute in a list of {"key": ..., "value": {...}}; null when there is none.
const nlohmann::json& attribute(const nlohmann::json& holder, const char* key) {
  static const nlohmann::json kNull;
  for (const nlohmann::json& entry : list_at(holder, "attr"))
    if (text_at(entry, "key") == key && entry.contains("value")) return entry["value"];
  return kNull;
}

int integer_of(const nlohmann::json& value) {
  auto found = value.is_object() ? value.find("i") : value.end();
  if (found == value.end()) return 0;
  if (found->is_number_integer()) return found->get<int>();
  int number = 0;
  if (found->is_string()) {
    const std::string& text = found->get_ref<const std::string&>();
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return number;
}

/// "producer:index"; a control edge has the index -1.
Origin parse_edge(const std::string& text) {
  size_t colon = text.rfind(':');
  Origin edge{text.substr(0, colon), 0, ""};
  if (colon != std::string::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), edge.index);
  return edge;
}

MappedOp model_op(const nlohmann::json& json) {
  MappedOp op;
  op.name = text_at(json, "name"), op.type = text_at(json, "type");
  const nlohmann::json& originals = attribute(json, "_datadump_original_op_names");
  if (originals.is_object() && originals.contains("list"))
    for (const nlohmann::json& name : list_at(originals["list"], "s"))
      if (name.is_string() && !name.get_ref<const std::string&>().empty()) op.originals.push_back(name);
  for (const nlohmann::json& desc : list_at(json, "output_desc")) {
    Origin origin;
    origin.name = text_at(attribute(desc, "_datadump_origin_name"), "s");
    origin.index = integer_of(attribute(desc, "_datadump_origin_output_index"));
    origin.layout = text_at(attribute(desc, "_datadump_origin_format"), "s");
    op.outputs.push_back(std::move(origin));
  }
  for (const nlohmann::json& edge : list_at(json, "input"))
    if (edge.is_string())
      if (Origin producer = parse_edge(edge); producer.index >= 0 && !producer.name.empty())
        op.producers.push_back(std::move(producer));
  return op;
}

void add_model(OpMapping& mapping, const nlohmann::json& graph) {
  for (const nlohmann::json& op : list_at(graph, "op"))
    if (!text_at(op, "name").empty()) add(mapping, model_op(op));
}

OpMapping from_object(const nlohmann::json& object, const std::string& path) {
  OpMapping mapping;
  for (const auto& [name, value] : object.items()) {
    MappedOp op;
    op.name = name;
    auto add_original = [&, &name = name](const nlohmann::json& original) {
      if (!original.is_string())
        fail(ErrorKind::io, path, "maps {} to something that is neither a name nor a list of names", name);
      op.originals.push_back(original);
    };
    if (value.is_array())  // not copied: that would go as deep as the text nests
      std::for_each(value.begin(), value.end(), add_original);
    else
      add_original(value);
    add(mapping, std::move(op));
  }
  return mapping;
}

OpMapping from_lines(std::string_view text, const std::string& path) {
  OpMapping mapping;
  for (size_t number = 1; !text.empty(); ++number) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    MappedOp op;
    bool first = true;
    while (true) {
      size_t comma = line.find(',');
      std::string name(line.substr(0, comma));
      if (name.empty()) fail(ErrorKind::io, path, "line {} has an empty name", number);
      if (first)
        op.name = std::move(name);
      else
        op.originals.push_back(std::move(name));
      first = false;
      if (comma == std::string_view::npos) break;
      line.remove_prefix(comma + 1);
    }
    if (op.originals.empty()) fail(ErrorKind::io, path, "line {} is not \"mine,golden\"", number);
    add(mapping, std::move(op));
  }
  return mapping;
}

Origin output_of(const MappedOp& op, int index) {
  if (index >= 0 && static_cast<size_t>(index) < op.outputs.size() &&
      !op.outputs[static_cast<size_t>(index)].name.empty())
    return op.outputs[static_cast<size_t>(index)];
  if (!op.originals.empty()) return {op.originals.back(), index, ""};
  return {op.name, index, ""};
}

}  // namespace

const MappedOp* OpMapping::find(std::string_view op) const {
  auto place = places.find(plain_name(op));
  return place == places.end() ? nullptr : &ops[place->second];
}

OpMapping read_mapping(const std::string& path) {
  std::string text = read_file(path, kLargest);
  size_t start = text.find_first_not_of(" \t\r\n");
  bool json_form = start != std::string::npos && (text[start] == '{' || text[start] == '[');
  if (!json_form) return from_lines(text, path);
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) fail(ErrorKind::io, path, "is not sound JSON: {}", json_fault(text));
  OpMapping mapping;
  if (json.is_object() && json.contains("graph") && json["graph"].is_array()) {
    for (const nlohmann::json& graph : json["graph"]) add_model(mapping, graph);
    return mapping;
  }
  if (json.is_object() && json.contains("op") && json["op"].is_array()) {
    add_model(mapping, json);
    return mapping;
  }
  bool counts = text.find("\"graph_fusion\"") != std::string::npos || text.find("effect_times") != std::string::npos;
  if (counts || !json.is_object())
    fail(ErrorKind::unsupported, path, "{}; give the model's JSON (atc --mode=1) or {{\"mine\": [\"golden\"]}}",
         counts ? "counts how often fusion passes matched and names no operators" : "is JSON, but no object");
  return from_object(json, path);
}

Origin origin_of_output(const OpMapping& mapping, std::string_view op, int index) {
  const MappedOp* mapped = mapping.find(op);
  return mapped == nullptr ? Origin() : output_of(*mapped, index);
}

Origin origin_of_input(const OpMapping& mapping, std::string_view op, int index) {
  const MappedOp* mapped = mapping.find(op);
  if (mapped == nullptr || index < 0 || static_cast<size_t>(index) >= mapped->producers.size()) return {};
  const Origin& producer = mapped->producers[static_cast<size_t>(index)];
  const MappedOp* source = mapping.find(producer.name);
  return source == nullptr ? Origin{producer.name, producer.index, ""} : output_of(*source, producer.index);
}

}  // namespace cairn::compare
