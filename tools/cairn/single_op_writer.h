// What the recipes of single operators write with: the nodes of a small graph, from the inputs and attributes of one operator.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "codes.h"
#include "single_op_graph.h"

namespace cairn::cli::single {

using Ints = std::vector<int64_t>;

inline std::string type_value(const std::string& type) { return "type: " + type; }

inline std::string list_value(const Ints& values) {
  std::string text;
  for (int64_t value : values) text += fmt::format("i: {} ", value);
  return fmt::format("list {{ {}}}", text);
}

inline Json flat(const Json& values) {
  if (!values.is_array()) return Json::array({values});
  Json list = Json::array();
  for (const Json& each : values)
    for (const Json& inner : flat(each)) list.push_back(inner);
  return list;
}

/// Writes the nodes of one operator.
class Writer {
 public:
  using Attributes = std::vector<std::pair<std::string, std::string>>;

  explicit Writer(const OpDescription& op) : op(op) {}

  const OpDescription& op;
  OpGraph graph;

  [[noreturn]] void refuse(const char* code, const std::string& reason) const {
    stop(code, "--singleop", fmt::format("Operator {}: {}.", op.op, reason));
  }
  const Operand& in(size_t index) const {
    if (!has(index)) refuse("E10027", fmt::format("has no input {}", index));
    return op.inputs[index];
  }
  bool has(size_t input) const { return input < op.inputs.size() && !op.inputs[input].name.empty(); }
  const Json* find(const char* name) const {
    auto found = op.attributes.find(name);
    return found == op.attributes.end() ? nullptr : &found->second;
  }
  int64_t integer(const char* name, int64_t fallback) const {
    const Json* value = find(name);
    return value == nullptr || !value->is_number() ? fallback : value->get<int64_t>();
  }
  double real(const char* name, double fallback) const {
    const Json* value = find(name);
    return value == nullptr || !value->is_number() ? fallback : value->get<double>();
  }
  bool boolean(const char* name) const {
    const Json* value = find(name);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  std::string text(const char* name, const char* fallback) const {
    const Json* value = find(name);
    return value == nullptr || !value->is_string() ? fallback : value->get<std::string>();
  }
  /// One number counts as a list of one.
  Ints ints(const char* name, const Ints& fallback) const {
    const Json* value = find(name);
    if (value == nullptr) return fallback;
    Ints list;
    for (const Json& each : flat(*value)) {
      if (!each.is_number_integer()) refuse("E10030", fmt::format("attribute {} is no list of whole numbers", name));
      list.push_back(each.get<int64_t>());
    }
    return list;
  }

  std::string node(const std::string& kind, const std::vector<std::string>& inputs, const Attributes& attributes = {},
                   const std::string& type = {}) {
    const std::string name = fmt::format("{}_{}", op.op, count_++);
    graph.nodes += fmt::format("node {{ name: \"{}\" op: \"{}\"\n", name, kind);
    for (const std::string& input : inputs) graph.nodes += fmt::format("  input: \"{}\"\n", input);
    for (const auto& [key, value] : attributes) graph.nodes += attribute_line(key, value);
    const bool given = std::any_of(attributes.begin(), attributes.end(), [](auto& each) { return each.first == "T"; });
    if (!given && !op.inputs.empty()) graph.nodes += attribute_line("T", type_value(type.empty() ? in(0).type : type));
    graph.nodes += "}\n";
    return name;
  }
  std::string constant(const Ints& values, const char* type = "DT_INT32", bool scalar = false) {
    const std::string name = fmt::format("{}_const_{}", op.op, count_++);
    graph.nodes += constant_node(name, type, scalar ? Ints{} : Ints{static_cast<int64_t>(values.size())}, Json(values));
    return name;
  }
  std::string constant(double value) {
    const std::string name = fmt::format("{}_const_{}", op.op, count_++);
    graph.nodes += constant_node(name, in(0).type, {}, Json(value));
    return name;
  }
  void result(const std::string& name) {
    graph.results.push_back(name.find(':') == std::string::npos ? name + ":0" : name);
  }
  std::string transposed(const std::string& x, const Ints& permutation) {
    return node("Transpose", {x, constant(permutation)}, {{"Tperm", type_value("DT_INT32")}});
  }

 private:
  size_t count_ = 0;
};

/// Conv2D and DepthwiseConv2D: a filter in NCHW or NHWC is put into TensorFlow's order, pads are given or follow a rule.
void convolution(Writer& w);
/// Caffe's pooling: `mode` 0 takes the largest, 1 the mean; sizes are rounded up unless ceil_mode is 1.
void pooling(Writer& w);
/// MaxPoolV3 and AvgPoolV2: `padding_mode` is a rule, or CALCULATED from `pads`.
void pool_calculated(Writer& w);

/// Writes the operator when it is a formula of its inputs (single_op_formulas.cpp); false when there is none.
bool formula(Writer& w);
std::vector<std::string_view> formula_names();

// Layers (single_op_layers.cpp).
void full_connection(Writer& w);
void batch_norm(Writer& w);
void group_norm(Writer& w);
void reduction_layer(Writer& w);
void eltwise(Writer& w);
void flatten(Writer& w);
void unsqueeze(Writer& w);
void arg_with_value(Writer& w);
void sort(Writer& w);
void shuffle_channel(Writer& w);
void upsample(Writer& w);
void gated(Writer& w);
void transposed_convolution(Writer& w);

}  // namespace cairn::cli::single
