#include "single_op_graph.h"

#include <algorithm>

#include "frontends/tensorflow/importer.h"
#include "single_op_writer.h"

namespace cairn::cli {
namespace {

using single::Ints, single::Writer, single::flat, single::type_value;

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

constexpr std::string_view kReduced[] = {"Sum", "Mean", "Max", "Min", "Prod", "All", "Any"};

/// Operators of the platform with attributes in place of the constant inputs that TensorFlow's have. `-` stands for the
/// operator's own inputs, other words are attributes; the type of constants is int32.
struct FixedRow {
  std::string_view op, tensorflow;
  std::vector<const char*> inputs;
};

const std::vector<FixedRow>& fixed_rows() {
  static const std::vector<FixedRow> kRows = {
      {"TransposeD", "Transpose", {"-", "perm"}},
      {"Permute", "Transpose", {"-", "*order"}},
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
  for (const Operand& input : w.op.inputs)
    if (!input.name.empty()) inputs.push_back(input.name);
  const std::string name = w.node(known_name(w.op.op), inputs, {w.op.written.begin(), w.op.written.end()});
  for (size_t i = 0; i < w.op.outputs.size(); ++i) w.result(fmt::format("{}:{}", name, i));
}

struct Recipe {
  std::string_view op;
  void (*write)(Writer& writer);
};
constexpr Recipe kRecipes[] = {
    {"ArgMaxWithValue", single::arg_with_value},
    {"ArgMinWithValue", single::arg_with_value},
    {"AvgPoolV2", single::pool_calculated},
    {"BatchMatMul", matmul},
    {"BatchMatMulV2", matmul},
    {"BatchNorm", single::batch_norm},
    {"Cast", cast},
    {"Conv2D", single::convolution},
    {"Conv2DBackpropInputD", single::transposed_convolution},
    {"Conv2DTransposeD", single::transposed_convolution},
    {"Deconvolution", single::transposed_convolution},
    {"DepthwiseConv2D", single::convolution},
    {"Eltwise", single::eltwise},
    {"Flatten", single::flatten},
    {"FlattenV2", single::flatten},
    {"FullyConnection", single::full_connection},
    {"GLU", single::gated},
    {"GEMM", gemm},
    {"Gemm", gemm},
    {"GroupNorm", single::group_norm},
    {"LayerNorm", layer_norm},
    {"LayerNormV3", layer_norm},
    {"LayerNormV4", layer_norm},
    {"LogSoftmaxV2", softmax},
    {"MatMul", matmul},
    {"MatMulV2", matmul},
    {"MatMulV3", matmul},
    {"MaxPoolV3", single::pool_calculated},
    {"PadD", pad},
    {"Pooling", single::pooling},
    {"Reduction", single::reduction_layer},
    {"ShuffleChannel", single::shuffle_channel},
    {"SoftmaxV2", softmax},
    {"Sort", single::sort},
    {"SwiGlu", single::gated},
    {"Unsqueeze", single::unsqueeze},
    {"Upsample", single::upsample},
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

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::vector<std::string> own_operators() {
  std::vector<std::string> names;
  for (const Recipe& each : kRecipes) names.emplace_back(each.op);
  for (const FixedRow& each : fixed_rows()) names.emplace_back(each.op);
  for (std::string_view each : single::formula_names()) names.emplace_back(each);
  for (std::string_view kind : kReduced)
    for (const char* mark : {"", "D"}) names.push_back(fmt::format("Reduce{}{}", kind, mark));
  std::sort(names.begin(), names.end());
  return names;
}

OpGraph graph_of(const OpDescription& description) {
  Writer writer(description);
  const std::string& op = description.op;
  const bool reduces =
      op.starts_with("Reduce") && std::any_of(std::begin(kReduced), std::end(kReduced), [&](auto kind) {
        return op == fmt::format("Reduce{}", kind) || op == fmt::format("Reduce{}D", kind);
      });
  auto recipe = std::find_if(std::begin(kRecipes), std::end(kRecipes), [&](auto& each) { return each.op == op; });
  auto row = std::find_if(fixed_rows().begin(), fixed_rows().end(), [&](auto& each) { return each.op == op; });
  if (recipe != std::end(kRecipes))
    recipe->write(writer);
  else if (single::formula(writer))
    ;
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
