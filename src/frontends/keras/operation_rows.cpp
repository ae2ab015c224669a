// Keras 3 functions (keras.ops) as layers of a saved model: constructor arguments are the configuration, the operands
// are in the call.
#include <algorithm>
#include <map>

#include "frontends/einsum.h"
#include "frontends/keras/arguments.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

struct Operation {
  std::string_view name;
  std::string_view function;   // of TensorFlow, where that does the same
  std::string_view arguments;  // what TensorFlow calls those after the first; "*": all are inputs
  void (*build)(LayerContext& c, const Arguments& a) = nullptr;
  const char* target = nullptr;
};

std::vector<int64_t> axes_of(const Arguments& a, const Value* x, const char* name = "axis") {
  std::vector<int64_t> axes = a.integers(name);
  const size_t rank = a.rank(x);
  if (a.literal(name) == nullptr)
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return normal_axes(axes, rank);
}

Value* real(Value* x, Builder& b) { return x->type.dtype.is_float() ? x : cast_to(x, kF32, b); }

Value* reduced(const char* op, Value* x, const std::vector<int64_t>& axes, bool keep, Builder& b) {
  return b.add(op, {x}, {{"axes", axes}, {"keep_dims", keep}});
}

void mean(LayerContext& c, const Arguments& a) {
  Value* x = real(a.first(), c.b);
  c.out = {reduced("reduce_mean", x, axes_of(a, x), a.flag("keepdims"), c.b)};
}

void spread(LayerContext& c, const Arguments& a) {
  Value* x = real(a.first(), c.b);
  const std::vector<int64_t> axes = axes_of(a, x);
  Value* apart = c.b.add("sub", {x, reduced("reduce_mean", x, axes, true, c.b)});
  Value* y = reduced("reduce_mean", c.b.add("square", {apart}), axes, a.flag("keepdims"), c.b);
  c.out = {c.target == nullptr ? y : c.b.add(c.target, {y})};
}

void norm(LayerContext& c, const Arguments& a) {
  if (a.literal("ord") != nullptr) c.refuse("its ord is not supported");
  Value* x = real(a.first(), c.b);
  c.out = {c.b.add("sqrt", {reduced("reduce_sum", c.b.add("square", {x}), axes_of(a, x), a.flag("keepdims"), c.b)})};
}

void unit_normalize(LayerContext& c, const Arguments& a) {
  const Json* order = a.literal("order");
  if (order != nullptr && *order != 2) c.refuse("an order other than 2 is not supported");
  Value* x = a.first();
  const double least = a.real("epsilon", 1e-7);  // of the length
  c.out = {of_length_one(x, {normal_axis(a.integer("axis", -1), a.rank(x))}, least * least, c.b)};
}

void log_sum(LayerContext& c, const Arguments& a) {
  Value* x = real(a.first(), c.b);
  const std::vector<int64_t> axes = axes_of(a, x);
  Value* most = reduced("reduce_max", x, axes, true, c.b);
  Value* sum = reduced("reduce_sum", c.b.add("exp", {c.b.add("sub", {x, most})}), axes, true, c.b);
  Value* y = c.b.add("add", {c.b.add("log", {sum}), most});
  c.out = {a.flag("keepdims") ? y : squeeze(y, axes, c.b)};
}

void arg_most_i32(LayerContext& c, const Arguments& a) {
  if (a.literal("axis") == nullptr || a.flag("keepdims")) c.refuse("keepdims, and no axis, are not supported");
  Value* x = a.first();
  c.out = {cast_to(c.b.add(c.target, {x}, {{"axis", normal_axis(a.integer("axis", 0), a.rank(x))}}), kI32, c.b)};
}

void swap_axes(LayerContext& c, const Arguments& a) {
  Value* x = a.first();
  const size_t rank = a.rank(x);
  const auto axis = [&](const char* name) { return static_cast<size_t>(normal_axis(a.integer(name, 0), rank)); };
  c.out = {transposed(x, swapped_axes(rank, axis("axis1"), axis("axis2")), c.b)};
}

void move_axes(LayerContext& c, const Arguments& a) {
  Value* x = a.first();
  const size_t rank = a.rank(x);
  const std::vector<int64_t> from = normal_axes(a.integers("source"), rank),
                             to = normal_axes(a.integers("destination"), rank);
  if (from.size() != to.size()) fail(ErrorKind::invalid_model, "", "moves {} axes to {}", from.size(), to.size());
  std::map<int64_t, int64_t> moved;
  for (size_t i = 0; i < to.size(); ++i) moved[to[i]] = from[i];
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i)
    if (auto axis = static_cast<int64_t>(i); std::find(from.begin(), from.end(), axis) == from.end())
      order.push_back(axis);
  for (auto [place, axis] : moved) order.insert(order.begin() + place, axis);
  c.out = {transposed(x, order, c.b)};
}

void flip(LayerContext& c, const Arguments& a) {
  c.out = {c.b.add("reverse", {a.first()}, {{"axes", axes_of(a, a.first())}})};
}

void pad(LayerContext& c, const Arguments& a) {
  const Json *widths = a.literal("pad_width"), *mode = a.literal("mode");
  if (mode != nullptr && *mode != "constant") c.refuse("its mode is not supported");
  std::vector<int64_t> pads;
  if (widths == nullptr || !widths->is_array() || widths->size() != a.rank(a.first()))
    c.refuse("pad_width is no list of pairs, one for each dim");
  for (const Json& pair : *widths) {
    if (!pair.is_array() || pair.size() != 2) c.refuse("pad_width is no list of pairs, one for each dim");
    for (const Json& one : pair) {
      if (!one.is_number_unsigned() || one > (1 << 24)) c.refuse("pad_width is no list of sizes");
      pads.push_back(one.get<int64_t>());
    }
  }
  c.out = {c.b.add("pad", {a.first(), c.b.constant(Tensor::of<int64_t>(kI64, {int64_t(pads.size()) / 2, 2}, pads))},
                   {{"value", a.real("constant_values", 0)}})};
}

void repeat(LayerContext& c, const Arguments& a) {
  Value* x = a.first();
  if (a.literal("axis") == nullptr) c.refuse("without an axis it is not supported");
  const int64_t axis = normal_axis(a.integer("axis", 0), a.rank(x)), times = a.integer("multiples", 1);
  const Dim dim = x->type.shape.dims[static_cast<size_t>(axis)];
  if (!dim.known() || times < 0 || dim.size > (1 << 20) || times > (1 << 20) || dim.size * times > (1 << 20))
    c.refuse("how often, or the dim, is not known or too large");
  std::vector<int64_t> places;
  for (int64_t i = 0; i < dim.size * times; ++i) places.push_back(i / times);
  c.out = {c.b.add("gather", {x, c.b.ints(places)}, {{"axis", axis}})};
}

void running_sum(LayerContext& c, const Arguments& a) {
  if (a.literal("axis") == nullptr) c.refuse("without an axis it is not supported");
  c.out = {c.b.add("cumsum", {a.first()}, {{"axis", normal_axis(a.integer("axis", 0), a.rank(a.first()))}})};
}

void einsum_of(LayerContext& c, const Arguments& a) {
  const Json* equation = a.literal("subscripts");
  if (equation == nullptr || !equation->is_string()) c.refuse("its equation is not told");
  c.out = {einsum(equation->get<std::string>(), a.all(), c.b)};
}

void hard_sigmoid(LayerContext& c, const Arguments& a) {
  c.out = {activation(a.first(), "hard_sigmoid", c.keras3, c.b)};
}

/// Parts of one size, or between places along the axis.
void split_at(LayerContext& c, const Arguments& a) {
  const Json* given = a.literal("num_or_size_splits");
  if (given == nullptr || !given->is_array()) return build_function(c, "split");
  Value* x = a.first();
  const auto axis = static_cast<size_t>(normal_axis(a.integer("axis", 0), a.rank(x)));
  const Dim dim = x->type.shape.dims[axis];
  if (!dim.known()) c.refuse("the parts are not known");
  Json sizes = Json::array();
  int64_t at = 0;
  for (int64_t place : a.integers("num_or_size_splits")) {
    if (place < at || place > dim.size) c.refuse("parts that end at {} are not supported", place);
    sizes.push_back(place - at), at = place;
  }
  sizes.push_back(dim.size - at);
  c.named["num_or_size_splits"].literal = &sizes;
  build_function(c, "split");
}

/// A slice of Keras 3 is an object of a class.
void get_item(LayerContext& c, const Arguments& a) {
  const Json* key = a.literal("key");
  if (key == nullptr) c.refuse("its slice is computed");
  Json list = key->is_array() ? *key : Json::array({*key});
  for (Json& one : list) {
    if (!one.is_object()) continue;
    const Json kind = one.value("class_name", Json());
    if (kind == "__ellipsis__")
      one = "Ellipsis";
    else if (kind == "__slice__" && one.contains("config") && one["config"].is_object())
      one = Json(one["config"]);
    else
      c.refuse("a part of its slice is computed");
  }
  build_slice(c, a.first(), list);
}

// clang-format off
constexpr Operation kOperations[] = {
    {"Abs", "math.abs"}, {"Absolute", "math.abs"}, {"Add", "math.add", "y"}, {"All", "math.reduce_all"}, {"Any", "math.reduce_any"},
    {"Argmax", "", "", arg_most_i32, "arg_max"}, {"Argmin", "", "", arg_most_i32, "arg_min"}, {"BroadcastTo", "broadcast_to"}, {"Cast", "cast"},
    {"Ceil", "math.ceil"}, {"Clip", "clip_by_value"}, {"Concatenate", "concat", "*"}, {"Cos", "math.cos"},
    {"Cumsum", "", "", running_sum}, {"Divide", "math.divide", "y"}, {"Einsum", "", "*", einsum_of}, {"Elu", "nn.elu"},
    {"Equal", "math.equal", "y"}, {"Erf", "math.erf"}, {"Exp", "math.exp"}, {"ExpandDims", "expand_dims"}, {"Expm1", "math.expm1"},
    {"Flip", "", "", flip}, {"Floor", "math.floor"}, {"FloorDivide", "math.floordiv", "y"}, {"Gelu", "nn.gelu"},
    {"GetItem", "", "key", get_item}, {"Greater", "math.greater", "y"}, {"GreaterEqual", "math.greater_equal", "y"},
    {"HardSigmoid", "", "", hard_sigmoid}, {"Identity", "identity"}, {"LeakyRelu", "nn.leaky_relu"},
    {"Less", "math.less", "y"}, {"LessEqual", "math.less_equal", "y"}, {"Log", "math.log"}, {"Log1p", "math.log1p"},
    {"LogSoftmax", "nn.log_softmax"}, {"LogicalAnd", "math.logical_and", "y"}, {"LogicalNot", "math.logical_not"},
    {"LogicalOr", "math.logical_or", "y"}, {"LogicalXor", "math.logical_xor", "y"}, {"Logsumexp", "", "", log_sum},
    {"Matmul", "linalg.matmul", "b"}, {"Max", "math.reduce_max"}, {"Maximum", "math.maximum", "y"}, {"Mean", "", "", mean},
    {"Min", "math.reduce_min"}, {"Minimum", "math.minimum", "y"}, {"Mod", "math.floormod", "y"}, {"Moveaxis", "", "", move_axes},
    {"Multiply", "math.multiply", "y"}, {"Negative", "math.negative"}, {"Norm", "", "", norm}, {"Normalize", "", "", unit_normalize},
    {"NotEqual", "math.not_equal", "y"}, {"OnesLike", "ones_like"}, {"Pad", "", "", pad}, {"Power", "math.pow", "y"},
    {"Prod", "math.reduce_prod"}, {"Reciprocal", "math.reciprocal"}, {"Relu", "nn.relu"}, {"Relu6", "nn.relu6"},
    {"Repeat", "", "", repeat}, {"Reshape", "reshape"}, {"Round", "math.round"}, {"Rsqrt", "math.rsqrt"}, {"Selu", "nn.selu"},
    {"Sigmoid", "math.sigmoid"}, {"Sign", "math.sign"}, {"Silu", "nn.silu"}, {"Sin", "math.sin"}, {"Softmax", "nn.softmax"},
    {"Softplus", "math.softplus"}, {"Softsign", "nn.softsign"}, {"Split", "", "", split_at}, {"Sqrt", "math.sqrt"},
    {"Square", "math.square"}, {"Squeeze", "squeeze"}, {"Stack", "stack", "*"}, {"Std", "", "", spread, "sqrt"},
    {"StopGradient", "stop_gradient"}, {"Subtract", "math.subtract", "y"}, {"Sum", "math.reduce_sum"}, {"Swapaxes", "", "", swap_axes},
    {"Take", "gather", "indices"}, {"Tan", "math.tan"}, {"Tanh", "math.tanh"}, {"Tile", "tile"}, {"Transpose", "transpose"},
    {"TrueDivide", "math.truediv", "y"}, {"Var", "", "", spread}, {"Where", "where", "x y"}, {"ZerosLike", "zeros_like"},
};
constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {  // in a configuration: of Keras, of TensorFlow
    {"axes", "perm"}, {"indices_or_sections", "num_or_size_splits"}, {"negative_slope", "alpha"}, {"newshape", "shape"},
    {"repeats", "multiples"}, {"x_max", "clip_value_max"}, {"x_min", "clip_value_min"},
};
// clang-format on

/// The rest of the inputs and the configuration as arguments by name.
void name_arguments(LayerContext& c, const Operation& row) {
  for (const auto& [key, value] : c.config.items()) {
    std::string name = key;
    for (auto [ours, other] : kRenamed)
      if (key == ours) name = other;
    if (!value.is_null() && key != "name") c.named.try_emplace(name, Given::Value{nullptr, nullptr, &value});
  }
  size_t at = 1;
  for (size_t begin = 0; begin < row.arguments.size() && row.arguments != "*"; ++at) {
    const size_t end = std::min(row.arguments.find(' ', begin), row.arguments.size());
    const std::string name(row.arguments.substr(begin, end - begin));
    if (c.in.given(at))
      c.named[name] = {c.in[at], nullptr, nullptr};
    else if (at < c.literals.size() && c.literals[at] != nullptr)
      c.named[name] = {nullptr, nullptr, c.literals[at]};
    begin = end + 1;
  }
  if (row.arguments != "*" && c.in.size() > at)
    c.refuse("it is called on {} values, {} are supported", c.in.size(), at);
}

/// Casts integer operands to float if a literal operand is a float.
void widen(LayerContext& c) {
  const auto fraction = [](const Json* literal) { return literal != nullptr && literal->is_number_float(); };
  if (std::none_of(c.literals.begin(), c.literals.end(), fraction)) return;
  std::vector<Value*> in;
  for (size_t i = 0; i < c.in.size(); ++i) in.push_back(c.in.given(i) ? real(c.in[i], c.b) : nullptr);
  c.in = in;
}

void operation(LayerContext& c) {
  const Operation* row = std::find_if(std::begin(kOperations), std::end(kOperations),
                                      [&](const Operation& each) { return each.name == c.kind; });
  if (row == std::end(kOperations)) c.refuse("function keras.ops.{} is not supported", printable(c.kind));
  if (row->arguments == "y") widen(c);
  name_arguments(c, *row);
  c.target = row->target;
  row->build == nullptr ? build_function(c, row->function) : row->build(c, Arguments(c));
}

constexpr Row kOperationRows[] = {{kOperation, operation, nullptr, Row::Masks::end, true}};

}  // namespace

std::span<const Row> operation_rows() { return kOperationRows; }

std::vector<std::string_view> supported_operations() {
  std::vector<std::string_view> names;
  for (const Operation& each : kOperations) names.push_back(each.name);
  return names;
}

}  // namespace cairn::keras
