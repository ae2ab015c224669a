#include "single_op_graph.h"

#include <algorithm>
#include <functional>

#include "conversion.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::cli {
namespace {

using Ints = std::vector<int64_t>;

std::string type_value(const std::string& type) { return "type: " + type; }

std::string list_value(const Ints& values) {
  std::string text;
  for (int64_t value : values) text += fmt::format("i: {} ", value);
  return fmt::format("list {{ {}}}", text);
}

Json flat(const Json& values) {
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
    if (index >= op.inputs.size())
      refuse("E10027", fmt::format("has {} inputs, expected at least {}", op.inputs.size(), index + 1));
    return op.inputs[index];
  }
  bool has(size_t input) const { return input < op.inputs.size(); }
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

/// Spatial numbers of an attribute in the order of an image's dimensions, as numbers of height and width.
struct Planes {
  bool channels_first;
  explicit Planes(const Writer& w)
      : channels_first(w.text("data_format", w.in(0).format == "nchw" ? "NCHW" : "NHWC") == "NCHW") {}
  std::pair<int64_t, int64_t> pair(const Writer& w, const char* name) const {
    const Ints list = w.ints(name, {1, 1});
    if (list.size() == 1) return {list[0], list[0]};
    if (list.size() == 2) return {list[0], list[1]};
    if (list.size() != 4) w.refuse("E10030", fmt::format("attribute {} has {} numbers, expected 4", name, list.size()));
    return channels_first ? std::pair(list[2], list[3]) : std::pair(list[1], list[2]);
  }
  std::string list(std::pair<int64_t, int64_t> pair) const {
    return list_value(channels_first ? Ints{1, 1, pair.first, pair.second} : Ints{1, pair.first, pair.second, 1});
  }
  std::string pads(const Ints& p) const {
    return list_value(channels_first ? Ints{0, 0, 0, 0, p[0], p[1], p[2], p[3]}
                                     : Ints{0, 0, p[0], p[1], p[2], p[3], 0, 0});
  }
  std::string name() const { return fmt::format("s: \"{}\"", channels_first ? "NCHW" : "NHWC"); }
  size_t row() const { return channels_first ? 2 : 1; }
};

/// Top, bottom, left, right.
Ints pads_of(const Writer& w, const char* name) {
  Ints pads = w.ints(name, {0, 0, 0, 0});
  if (pads.size() == 1) pads.assign(4, pads[0]);
  if (pads.size() != 4) w.refuse("E10030", fmt::format("attribute {} has {} numbers, expected 4", name, pads.size()));
  return pads;
}

/// Conv2D and DepthwiseConv2D: a filter in NCHW or NHWC is put into TensorFlow's order, pads are given or follow a rule.
void convolution(Writer& w) {
  const Planes planes(w);
  const bool depthwise = w.op.op.starts_with("Depthwise");
  std::string filter = w.in(1).name;
  if (w.in(1).format == "nchw") filter = w.transposed(filter, {2, 3, 1, 0});
  if (w.in(1).format == "nhwc") filter = w.transposed(filter, {1, 2, 3, 0});
  Writer::Attributes attributes = {{"strides", planes.list(planes.pair(w, "strides"))},
                                   {"dilations", planes.list(planes.pair(w, "dilations"))},
                                   {"data_format", planes.name()}};
  const std::string padding = w.text("padding", "EXPLICIT");
  attributes.emplace_back("padding", fmt::format("s: \"{}\"", padding));
  if (padding == "EXPLICIT") attributes.emplace_back("explicit_paddings", planes.pads(pads_of(w, "pads")));
  std::string y = w.node(depthwise ? "DepthwiseConv2dNative" : "Conv2D", {w.in(0).name, filter}, attributes);
  if (w.has(2)) y = w.node("BiasAdd", {y, w.in(2).name}, {{"data_format", planes.name()}});
  w.result(y);
}

struct Window {
  std::pair<int64_t, int64_t> size, stride;
  Ints pads;
  bool average, whole, ceiling;
};

void pooled(Writer& w, Window window) {
  const Planes planes(w);
  const size_t row = planes.row();
  const Ints& dims = w.in(0).dims;
  if (dims.size() != 4) w.refuse("E10027", fmt::format("its image has {} dimensions, expected 4", dims.size()));
  if (window.whole) {
    w.result(w.node(window.average ? "Mean" : "Max",
                    {w.in(0).name, w.constant({static_cast<int64_t>(row), static_cast<int64_t>(row) + 1})},
                    {{"keep_dims", "b: true"}, {"Tidx", type_value("DT_INT32")}}));
    return;
  }
  // With the size rounded up, the last window may reach beyond the image: as much more padding.
  for (size_t axis : {0, 1}) {
    const int64_t size = axis == 0 ? window.size.first : window.size.second;
    const int64_t stride = axis == 0 ? window.stride.first : window.stride.second;
    if (size < 1 || stride < 1) w.refuse("E10030", "has a window or stride below 1");
    if (dims[row + axis] < 0) continue;
    const int64_t rest = (dims[row + axis] + window.pads[2 * axis] + window.pads[2 * axis + 1] - size) % stride;
    if (!window.ceiling || rest <= 0) continue;
    if (window.average) w.refuse("E10030", "averages windows that reach beyond the image (ceil_mode)");
    window.pads[2 * axis + 1] += stride - rest;
  }
  const bool padded = std::any_of(window.pads.begin(), window.pads.end(), [](int64_t pad) { return pad != 0; });
  std::string x = w.in(0).name;
  if (padded && window.average) {  // padding counts, as zeros
    Json pads = Json::array();
    for (size_t axis = 0; axis < 4; ++axis)
      pads.push_back(axis == row       ? Json{window.pads[0], window.pads[1]}
                     : axis == row + 1 ? Json{window.pads[2], window.pads[3]}
                                       : Json{0, 0});
    w.graph.nodes += constant_node("pads", "DT_INT32", {4, 2}, pads);
    x = w.node("Pad", {x, "pads"}, {{"Tpaddings", type_value("DT_INT32")}});
  }
  const bool explicitly = padded && !window.average;
  Writer::Attributes attributes = {{"ksize", planes.list(window.size)},
                                   {"strides", planes.list(window.stride)},
                                   {"data_format", planes.name()},
                                   {"padding", explicitly ? "s: \"EXPLICIT\"" : "s: \"VALID\""}};
  if (explicitly) attributes.emplace_back("explicit_paddings", planes.pads(window.pads));
  w.result(w.node(window.average ? "AvgPool" : "MaxPool", {x}, attributes));
}

/// Caffe's pooling: `mode` 0 takes the largest, 1 the mean; sizes are rounded up unless ceil_mode is 1.
void pooling(Writer& w) {
  const Ints size = w.ints("window", {1, 1}), stride = w.ints("stride", {1, 1});
  if (size.size() != 2 || stride.size() != 2) w.refuse("E10030", "window and stride have two numbers each");
  pooled(w, {{size[0], size[1]},
             {stride[0], stride[1]},
             pads_of(w, "pad"),
             w.integer("mode", 0) == 1,
             w.boolean("global_pooling"),
             w.integer("ceil_mode", 0) == 0});
}

/// MaxPoolV3 and AvgPoolV2: `padding_mode` is a rule, or CALCULATED from `pads`.
void pool_calculated(Writer& w) {
  const Planes planes(w);
  const bool average = w.op.op.starts_with("Avg");
  const std::string mode = w.text("padding_mode", "CALCULATED");
  const auto size = planes.pair(w, "ksize"), stride = planes.pair(w, "strides");
  if (mode != "CALCULATED" && !w.boolean("global_pooling")) {
    w.result(w.node(average ? "AvgPool" : "MaxPool", {w.in(0).name},
                    {{"ksize", planes.list(size)},
                     {"strides", planes.list(stride)},
                     {"data_format", planes.name()},
                     {"padding", fmt::format("s: \"{}\"", mode)}}));
    return;
  }
  const Ints pads = pads_of(w, "pads");
  const bool padded = std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
  const Json* exclusive = w.find("exclusive");
  if (average && padded && (exclusive == nullptr || *exclusive != false)) {  // padding does not count
    w.result(w.node("AvgPool", {w.in(0).name},
                    {{"ksize", planes.list(size)},
                     {"strides", planes.list(stride)},
                     {"data_format", planes.name()},
                     {"padding", "s: \"EXPLICIT\""},
                     {"explicit_paddings", planes.pads(pads)}}));
    return;
  }
  pooled(w, {size, stride, pads, average, w.boolean("global_pooling"), w.boolean("ceil_mode")});
}

/// alpha * a b + beta * c.
void gemm(Writer& w) {
  auto flag = [&](const char* name) { return fmt::format("b: {}", w.boolean(name)); };
  std::string y =
      w.node(w.in(0).dims.size() > 2 ? "BatchMatMulV2" : "MatMul", {w.in(0).name, w.in(1).name},
             w.in(0).dims.size() > 2
                 ? Writer::Attributes{{"adj_x", flag("transpose_a")}, {"adj_y", flag("transpose_b")}}
                 : Writer::Attributes{{"transpose_a", flag("transpose_a")}, {"transpose_b", flag("transpose_b")}});
  if (w.has(3)) y = w.node("Mul", {y, w.in(3).name});
  if (w.has(2)) {
    std::string c = w.in(2).name;
    if (w.has(4)) c = w.node("Mul", {c, w.in(4).name});
    y = w.node("AddV2", {y, c});
  }
  w.result(y);
}

/// MatMul and BatchMatMul with an optional bias; the names of the transposing attributes differ by version.
void matmul(Writer& w) {
  auto any = [&](std::initializer_list<const char*> names) {
    return fmt::format("b: {}", std::any_of(names.begin(), names.end(), [&](auto* name) { return w.boolean(name); }));
  };
  const bool batch = w.in(0).dims.size() > 2 || w.in(1).dims.size() > 2;
  const std::string a = any({"transpose_x1", "transpose_a", "adj_x1", "adj_x"});
  const std::string b = any({"transpose_x2", "transpose_b", "adj_x2", "adj_y"});
  std::string y = w.node(batch ? "BatchMatMulV2" : "MatMul", {w.in(0).name, w.in(1).name},
                         batch ? Writer::Attributes{{"adj_x", a}, {"adj_y", b}}
                               : Writer::Attributes{{"transpose_a", a}, {"transpose_b", b}});
  if (w.has(2)) y = w.node("AddV2", {y, w.in(2).name});
  w.result(y);
}

void cast(Writer& w) {
  auto written = w.op.written.find("DstT");
  std::string target = written == w.op.written.end() ? "" : written->second;
  if (target.empty() && !w.op.outputs.empty()) target = type_value(w.op.outputs[0].type);
  if (auto number = w.op.written.find("dst_type"); number != w.op.written.end()) target = number->second;
  w.result(w.node("Cast", {w.in(0).name}, {{"SrcT", type_value(w.in(0).type)}, {"DstT", target}, {"T", target}}));
}

/// y, mean and variance (or its inverse root for LayerNormV3) over the axes from begin_norm_axis on.
void layer_norm(Writer& w) {
  const auto rank = static_cast<int64_t>(w.in(0).dims.size());
  int64_t first = w.integer("begin_norm_axis", 0);
  if (first < 0) first += rank;
  if (first < 0 || first >= rank) w.refuse("E10030", "begin_norm_axis is no axis of its input");
  Ints axes;
  for (int64_t axis = first; axis < rank; ++axis) axes.push_back(axis);
  const Writer::Attributes over = {{"keep_dims", "b: true"}, {"Tidx", type_value("DT_INT32")}};
  const std::string x = w.in(0).name, mean = w.node("Mean", {x, w.constant(axes)}, over);
  const std::string variance = w.node("Mean", {w.node("SquaredDifference", {x, mean}), w.constant(axes)}, over);
  const std::string factor = w.node("Rsqrt", {w.node("AddV2", {variance, w.constant(w.real("epsilon", 1e-7))})});
  std::string y = w.node("Mul", {w.node("Sub", {x, mean}), factor});
  if (w.has(1)) y = w.node("Mul", {y, w.in(1).name});
  if (w.has(2)) y = w.node("AddV2", {y, w.in(2).name});
  for (const std::string& each : {y, mean, w.op.op == "LayerNormV3" ? factor : variance}) w.result(each);
}

/// Along the axes of an attribute, the last by default.
void softmax(Writer& w) {
  const auto rank = static_cast<int64_t>(w.in(0).dims.size());
  const Ints axes = w.ints(w.find("axes") ? "axes" : "axis", {-1});
  const int64_t axis = axes.empty() ? -1 : axes[0] < 0 ? axes[0] + rank : axes[0];
  const std::string kind = w.op.op.starts_with("Log") ? "LogSoftmax" : "Softmax";
  if (axes.size() != 1 || (axis != -1 && (axis < 0 || axis >= rank)))
    w.refuse("E10030", "axes is one axis of its input");
  if (axis == -1 || axis == rank - 1) return w.result(w.node(kind, {w.in(0).name}));
  Ints permutation(w.in(0).dims.size());
  for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<int64_t>(i);
  std::swap(permutation[static_cast<size_t>(axis)], permutation.back());
  w.result(w.transposed(w.node(kind, {w.transposed(w.in(0).name, permutation)}), permutation));
}

/// A reduction whose axes come when it runs: each choice of axes that gives the described result is computed, and the
/// axes choose among them.
void reduction(Writer& w) {
  const std::string kind = w.op.op.substr(6, w.op.op.find('D', 6) - 6);
  const std::string op = kind == "Std" ? "" : kind;
  const bool keep = w.boolean("keep_dims");
  const Writer::Attributes over = {{"keep_dims", fmt::format("b: {}", keep)}, {"Tidx", type_value("DT_INT32")}};
  const Ints dims = w.in(0).dims;
  auto reduced = [&](const Ints& axes) { return w.node(op, {w.in(0).name, w.constant(axes)}, over); };
  Ints all;
  for (size_t i = 0; i < dims.size(); ++i) all.push_back(static_cast<int64_t>(i));
  if (w.find("axes") != nullptr || w.find("axis") != nullptr || !w.has(1)) {
    const Ints axes = w.ints(w.find("axis") ? "axis" : "axes", all);
    return w.result(reduced(axes.empty() ? all : axes));
  }
  const int64_t count = w.in(1).dims.empty() ? 1 : w.in(1).dims[0];
  constexpr size_t kMostRank = 8;
  if (dims.size() > kMostRank || w.op.outputs.empty()) w.refuse("E10027", "its axes must be a constant (is_const)");
  std::vector<Ints> choices;
  for (int64_t mask = 0; mask < (int64_t{1} << dims.size()); ++mask) {
    Ints axes, made;
    for (size_t i = 0; i < dims.size(); ++i) {
      const bool chosen = (mask >> i & 1) != 0;
      if (chosen) axes.push_back(static_cast<int64_t>(i));
      if (!chosen || keep) made.push_back(chosen ? 1 : dims[i]);
    }
    if (static_cast<int64_t>(axes.size()) == count && made == w.op.outputs[0].dims) choices.push_back(std::move(axes));
  }
  if (choices.empty()) w.refuse("E10027", fmt::format("no {} axes of its input give the described output", count));
  std::string y = reduced(choices[0]);
  if (choices.size() > 1) {
    // The sum of 2^axis tells which axes are meant.
    const std::string type = w.in(1).type;
    const Writer::Attributes whole = {{"T", type_value(type)}, {"Tidx", type_value("DT_INT32")}};
    Ints powers;
    for (size_t i = 0; i < dims.size(); ++i) powers.push_back(int64_t{1} << i);
    std::string axes =
        w.node("FloorMod", {w.in(1).name, w.constant({static_cast<int64_t>(dims.size())}, type.c_str())}, whole);
    std::string bits = w.node("GatherV2", {w.constant(powers), axes, w.constant({0}, "DT_INT32", true)},
                              {{"Tindices", type_value(type)}, {"T", type_value("DT_INT32")}});
    bits =
        w.node("Sum", {bits, w.constant(Ints{0})}, {{"T", type_value("DT_INT32")}, {"Tidx", type_value("DT_INT32")}});
    for (size_t i = 1; i < choices.size(); ++i) {
      int64_t mask = 0;
      for (int64_t axis : choices[i]) mask += int64_t{1} << axis;
      const std::string meant =
          w.node("Equal", {bits, w.constant({mask}, "DT_INT32", true)}, {{"T", type_value("DT_INT32")}});
      y = w.node("SelectV2", {meant, reduced(choices[i]), y});
    }
  }
  w.result(y);
}

/// Operators of the platform with attributes in place of the constant inputs that TensorFlow's have. `-` stands for the
/// operator's own inputs, other words are attributes; the type of constants is int32.
struct FixedRow {
  std::string_view op, tensorflow;
  std::vector<const char*> inputs;
};

const std::vector<FixedRow>& fixed_rows() {
  static const std::vector<FixedRow> kRows = {
      {"TransposeD", "Transpose", {"-", "perm"}},
      {"ConcatD", "Concat", {"concat_dim", "-"}},
      {"ConcatV2D", "ConcatV2", {"-", "concat_dim"}},
      {"SplitD", "Split", {"split_dim", "-"}},
      {"SplitVD", "SplitV", {"-", "*size_splits", "split_dim"}},
      {"TileD", "Tile", {"-", "*multiples"}},
      {"TileWithAxis", "Tile", {"-", "*multiples"}},
      {"SliceD", "Slice", {"-", "*offsets", "*size"}},
      {"StridedSliceD", "StridedSlice", {"-", "*begin", "*end", "*strides"}},
      {"GatherV2D", "GatherV2", {"-", "axis"}},
      {"ArgMaxD", "ArgMax", {"-", "dimension"}},
      {"ArgMinD", "ArgMin", {"-", "dimension"}},
      {"TopKD", "TopKV2", {"-", "k"}},
      {"ExpandD", "BroadcastTo", {"-", "*shape"}},
      {"BroadcastToD", "BroadcastTo", {"-", "*shape"}},
      {"CumsumD", "Cumsum", {"-", "axis"}},
      {"CumprodD", "Cumprod", {"-", "axis"}},
      {"OneHotD", "OneHot", {"-", "depth"}},
      {"ReverseV2D", "ReverseV2", {"-", "*axis"}},
      {"ResizeBilinearV2D", "ResizeBilinear", {"-", "*size"}},
      {"ResizeNearestNeighborV2D", "ResizeNearestNeighbor", {"-", "*size"}},
      {"UnsortedSegmentSumD", "UnsortedSegmentSum", {"-", "num_segments"}},
  };
  return kRows;
}

void fixed(Writer& w, const FixedRow& row) {
  std::vector<std::string> inputs;
  Writer::Attributes attributes;
  for (const auto& [key, value] : w.op.written)
    if (std::none_of(row.inputs.begin(), row.inputs.end(),
                     [&](const char* name) { return key == (*name == '*' ? name + 1 : name); }))
      attributes.emplace_back(key, value);
  for (const char* name : row.inputs) {
    if (std::string_view(name) == "-") {
      const size_t taken = row.op == "TopKD" ? 1 : w.op.inputs.size();
      for (size_t i = 0; i < taken; ++i) inputs.push_back(w.in(i).name);
      if (row.op == "OneHotD" && w.has(1)) inputs.erase(inputs.begin() + 1, inputs.end());
      continue;
    }
    const bool list = *name == '*';
    const char* key = list ? name + 1 : name;
    if (w.find(key) == nullptr) w.refuse("E10029", fmt::format("attribute {} is missing", key));
    const Ints values = w.ints(key, {});
    inputs.push_back(w.constant(values, "DT_INT32", !list && std::string_view(key) != "perm"));
  }
  if (row.op == "OneHotD")
    for (size_t i = 1; i < w.op.inputs.size(); ++i) inputs.push_back(w.in(i).name);
  if (row.tensorflow.starts_with("Concat")) attributes.emplace_back("N", fmt::format("i: {}", w.op.inputs.size()));
  const std::string name = w.node(std::string(row.tensorflow), inputs, attributes);
  for (size_t i = 0; i < w.op.outputs.size(); ++i) w.result(fmt::format("{}:{}", name, i));
}

void pad(Writer& w) {
  const Json* pads = w.find("paddings");
  if (pads == nullptr) w.refuse("E10029", "attribute paddings is missing");
  w.graph.nodes += constant_node("pads", "DT_INT32", {static_cast<int64_t>(w.in(0).dims.size()), 2}, *pads);
  w.result(w.node("Pad", {w.in(0).name, "pads"}, {{"Tpaddings", type_value("DT_INT32")}}));
}

/// The platform's operators under the name that the model reader knows.
std::string known_name(const std::string& name) {
  if (tensorflow::find_row(name)) return name;
  if (name == "ReLU6" || name == "ReLU" || name == "ELU")
    return name == "ELU" ? "Elu" : name == "ReLU" ? "Relu" : "Relu6";
  for (const char* mark : {"V3", "V2", "D"})
    if (name.ends_with(mark)) {
      std::string shorter = name.substr(0, name.size() - std::string_view(mark).size());
      if (tensorflow::find_row(shorter)) return shorter;
    }
  return name;
}

void same(Writer& w) {
  std::vector<std::string> inputs;
  for (const Operand& input : w.op.inputs) inputs.push_back(input.name);
  const std::string name = w.node(known_name(w.op.op), inputs, {w.op.written.begin(), w.op.written.end()});
  for (size_t i = 0; i < w.op.outputs.size(); ++i) w.result(fmt::format("{}:{}", name, i));
}

/// x times or plus the number of an attribute.
void by_number(Writer& w) {
  w.result(w.node(w.op.op == "Muls" ? "Mul" : "AddV2", {w.in(0).name, w.constant(w.real("value", 0))}));
}

void axpy(Writer& w) {
  w.result(w.node("AddV2", {w.in(0).name, w.node("Mul", {w.in(1).name, w.constant(w.real("alpha", 1))})}));
}

void swish(Writer& w) {
  const std::string scaled = w.node("Mul", {w.in(0).name, w.constant(w.real("scale", 1))});
  w.result(w.node("Mul", {w.in(0).name, w.node("Sigmoid", {scaled})}));
}

/// x relu6(x + 3) / 6.
void hard_swish(Writer& w) {
  const std::string six = w.node("Relu6", {w.node("AddV2", {w.in(0).name, w.constant(3.0)})});
  w.result(w.node("Mul", {w.in(0).name, w.node("Mul", {six, w.constant(1.0 / 6)})}));
}

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
void gelu(Writer& w) {
  const std::string x = w.in(0).name, cube = w.node("Mul", {w.node("Square", {x}), x});
  const std::string inner = w.node("AddV2", {x, w.node("Mul", {cube, w.constant(0.044715)})});
  const std::string curve = w.node("Tanh", {w.node("Mul", {inner, w.constant(0.7978845608028654)})});
  w.result(w.node("Mul", {w.node("Mul", {x, w.constant(0.5)}), w.node("AddV2", {curve, w.constant(1.0)})}));
}

struct Recipe {
  std::string_view op;
  void (*write)(Writer& writer);
};
constexpr Recipe kRecipes[] = {
    {"Adds", by_number},
    {"AvgPoolV2", pool_calculated},
    {"Axpy", axpy},
    {"BatchMatMul", matmul},
    {"BatchMatMulV2", matmul},
    {"Cast", cast},
    {"Conv2D", convolution},
    {"DepthwiseConv2D", convolution},
    {"GEMM", gemm},
    {"Gelu", gelu},
    {"Gemm", gemm},
    {"HardSwish", hard_swish},
    {"LayerNorm", layer_norm},
    {"LayerNormV3", layer_norm},
    {"LayerNormV4", layer_norm},
    {"LogSoftmaxV2", softmax},
    {"MatMul", matmul},
    {"MatMulV2", matmul},
    {"MatMulV3", matmul},
    {"MaxPoolV3", pool_calculated},
    {"Muls", by_number},
    {"PadD", pad},
    {"Pooling", pooling},
    {"SoftmaxV2", softmax},
    {"Swish", swish},
};

}  // namespace

std::string attribute_line(const std::string& key, const std::string& value) {
  if (key.find_first_of("\"\\\n") != std::string::npos)
    stop("E10029", "--singleop", fmt::format("'{}' is no name of an attribute.", clean(key)));
  return fmt::format("  attr {{ key: \"{}\" value {{ {} }} }}\n", key, value);
}

std::string constant_node(const std::string& name, const std::string& type, const std::vector<int64_t>& dims,
                          const Json& values) {
  std::string sizes, elements;
  const bool half = type == "DT_HALF" || type == "DT_BFLOAT16",
             real = half || type == "DT_FLOAT" || type == "DT_DOUBLE";
  const char* field = type == "DT_DOUBLE"  ? "double_val"
                      : real               ? "float_val"
                      : type == "DT_INT64" ? "int64_val"
                      : type == "DT_BOOL"  ? "bool_val"
                                           : "int_val";
  for (int64_t size : dims) sizes += fmt::format("dim {{ size: {} }} ", size);
  for (const Json& each : flat(values)) elements += fmt::format("{}: {} ", field, each.dump());
  const std::string stored = half ? "DT_FLOAT" : type, own = half ? name + "_f32" : name;
  std::string text =
      fmt::format("node {{ name: \"{}\" op: \"Const\"\n", own) + attribute_line("dtype", type_value(stored)) +
      attribute_line("value", fmt::format("tensor {{ dtype: {} tensor_shape {{ {} }} {} }}", stored, sizes, elements)) +
      "}\n";
  if (half)
    text += fmt::format("node {{ name: \"{}\" op: \"Cast\"\n  input: \"{}\"\n", name, own) +
            attribute_line("SrcT", type_value("DT_FLOAT")) + attribute_line("DstT", type_value(type)) + "}\n";
  return text;
}

OpGraph graph_of(const OpDescription& description) {
  Writer writer(description);
  const std::string& op = description.op;
  constexpr std::string_view kReduced[] = {"Sum", "Mean", "Max", "Min", "Prod", "All", "Any"};
  const bool reduces =
      op.starts_with("Reduce") && std::any_of(std::begin(kReduced), std::end(kReduced), [&](auto kind) {
        return op == fmt::format("Reduce{}", kind) || op == fmt::format("Reduce{}D", kind);
      });
  auto recipe = std::find_if(std::begin(kRecipes), std::end(kRecipes), [&](auto& each) { return each.op == op; });
  auto row = std::find_if(fixed_rows().begin(), fixed_rows().end(), [&](auto& each) { return each.op == op; });
  if (recipe != std::end(kRecipes))
    recipe->write(writer);
  else if (reduces)
    reduction(writer);
  else if (row != fixed_rows().end())
    fixed(writer, *row);
  else
    same(writer);
  std::vector<std::string>& results = writer.graph.results;
  if (results.size() > description.outputs.size()) results.resize(description.outputs.size());
  std::string types, inputs;  // the results by the operator's own name
  for (size_t i = 0; i < results.size(); ++i) {
    types += fmt::format("type: {} ", description.outputs[i].type);
    inputs += fmt::format("  input: \"{}\"\n", std::exchange(results[i], fmt::format("{}:{}", op, i)));
  }
  writer.graph.nodes += fmt::format("node {{ name: \"{}\" op: \"IdentityN\"\n{}{}}}\n", op, inputs,
                                    attribute_line("T", fmt::format("list {{ {}}}", types)));
  return std::move(writer.graph);
}

}  // namespace cairn::cli
