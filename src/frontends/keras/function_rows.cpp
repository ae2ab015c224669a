// TensorFlow functions as layers of a saved Keras model: TFOpLambda and SlicingOpLambda. The first argument is the
// layer's input, the others are passed by name.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/keras/arguments.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

struct FunctionRow {
  std::string_view name;  // after "tf."
  void (*build)(LayerContext& c, const Arguments& a);
  const char* target = nullptr;
};

void unary(LayerContext& c, const Arguments& a) { c.out = {c.b.add(c.target, {a.first()})}; }

void binary(LayerContext& c, const Arguments& a) {
  auto [x, y] = a.two("y");
  c.out = {c.b.add(c.target, {x, y})};
}

void divide(LayerContext& c, const Arguments& a) {
  auto [x, y] = a.two("y");
  c.out = {c.b.add("div", {cast_to(x, x->type.dtype.is_float() ? x->type.dtype : kF32, c.b),
                           cast_to(y, y->type.dtype.is_float() ? y->type.dtype : kF32, c.b)})};
}

void matmul(LayerContext& c, const Arguments& a) {
  auto [x, y] = a.two("b");
  c.out = {c.b.add("matmul", {x, y},
                   {{"transpose_a", a.flag("transpose_a") || a.flag("adjoint_a")},
                    {"transpose_b", a.flag("transpose_b") || a.flag("adjoint_b")}})};
}

void reduce(LayerContext& c, const Arguments& a) {
  std::vector<int64_t> axes = a.integers("axis");
  const size_t rank = a.rank(a.first());
  if (a.literal("axis") == nullptr)
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  c.out = {c.b.add(c.target, {a.first()},
                   {{"axes", normal_axes(axes, rank)}, {"keep_dims", a.flag("keepdims") || a.flag("keep_dims")}})};
}

void arg_most(LayerContext& c, const Arguments& a) {
  Value* y = c.b.add(c.target, {a.first()}, {{"axis", normal_axis(a.integer("axis", 0), a.rank(a.first()))}});
  const Json* type = a.literal("output_type");
  c.out = {cast_to(y, type != nullptr && *type == "int32" ? kI32 : kI64, c.b)};
}

void softmax(LayerContext& c, const Arguments& a) {
  c.out = {c.b.add(c.target, {a.first()}, {{"axis", a.integer("axis", -1)}})};
}

void cast(LayerContext& c, const Arguments& a) {
  const Json* type = a.literal("dtype");
  if (type == nullptr || !type->is_string()) c.refuse("its dtype is not told");
  c.out = {cast_to(a.first(), dtype_named(type->get<std::string>()), c.b)};
}

void reshape(LayerContext& c, const Arguments& a) {
  Value* sizes = a.tensor("shape");
  if (sizes == nullptr) sizes = c.b.ints(a.integers("shape"));
  c.out = {reshape_by(a.first(), sizes, c.b)};
}

void transpose(LayerContext& c, const Arguments& a) {
  std::vector<int64_t> order = a.integers("perm");
  if (a.literal("perm") == nullptr)
    for (size_t i = a.rank(a.first()); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  c.out = {transposed(a.first(), order, c.b)};
}

void expand(LayerContext& c, const Arguments& a) {
  const size_t rank = a.rank(a.first()) + 1;
  c.out = {expand_dims(a.first(), {normal_axis(a.integer("axis", 0), rank)}, c.b)};
}

void squeeze_row(LayerContext& c, const Arguments& a) {
  Value* x = a.first();
  std::vector<int64_t> axes = a.integers("axis");
  const size_t rank = a.rank(x);
  for (size_t i = 0; axes.empty() && i < rank; ++i)
    if (!x->type.shape.dims[i].known()) c.refuse("dim {} is not known; name the axes", i);
  if (axes.empty())
    for (size_t i = 0; i < rank; ++i)
      if (x->type.shape.dims[i] == Dim(1)) axes.push_back(static_cast<int64_t>(i));
  c.out = {squeeze(x, normal_axes(axes, rank), c.b)};
}

void concat(LayerContext& c, const Arguments& a) {
  c.out = {c.b.add("concat", a.all(), {{"axis", normal_axis(a.integer("axis", 0), a.rank(a.first()))}})};
}

void stack(LayerContext& c, const Arguments& a) {
  const int64_t axis = normal_axis(a.integer("axis", 0), a.rank(a.first()) + 1);
  std::vector<Value*> parts;
  for (Value* x : a.all()) parts.push_back(expand_dims(x, {axis}, c.b));
  c.out = {c.b.add("concat", parts, {{"axis", axis}})};
}

Value* cut(LayerContext& c, Value* x, size_t axis, int64_t begin, int64_t end) {
  std::vector<int64_t> first(x->type.shape.rank(), 0), last(x->type.shape.rank(), kToTheEnd);
  first[axis] = begin, last[axis] = end;
  return c.b.add("slice", {x, c.b.ints(first), c.b.ints(last)});
}

void split(LayerContext& c, const Arguments& a) {
  Value* x = a.first();
  const auto axis = static_cast<size_t>(normal_axis(a.integer("axis", 0), a.rank(x)));
  const Json* given = a.literal("num_or_size_splits");
  std::vector<int64_t> sizes = a.integers("num_or_size_splits");
  const Dim dim = x->type.shape.dims[axis];
  if (given == nullptr || !dim.known()) c.refuse("the parts are not known");
  if (!given->is_array()) {
    const int64_t count = sizes[0];
    constexpr int64_t kMost = 1 << 12;
    if (count < 1 || count > kMost || dim.size % count != 0)
      fail(ErrorKind::invalid_model, "", "{} cannot be split into {}", dim.size, count);
    sizes.assign(static_cast<size_t>(count), dim.size / count);
  }
  int64_t at = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > dim.size - at) c.refuse("parts of {} do not fit", size);
    c.out.push_back(cut(c, x, axis, at, at + size));
    at += size;
  }
  if (at != dim.size) fail(ErrorKind::invalid_model, "", "the parts do not add up to {}", dim.size);
}

void select(LayerContext& c, const Arguments& a) {
  Value *x = a.tensor("x"), *y = a.tensor("y");
  if (x == nullptr && y != nullptr) x = a.value("x", y);
  if (y == nullptr && x != nullptr) y = a.value("y", x);
  if (x == nullptr || y == nullptr) c.refuse("without a tensor x or y it is not supported");
  c.out = {c.b.add("select", {a.first(), x, y})};
}

void clip(LayerContext& c, const Arguments& a) {
  Value *low = a.value("clip_value_min", a.first()), *high = a.value("clip_value_max", a.first());
  if (low == nullptr || high == nullptr) c.refuse("it lacks a bound");
  c.out = {c.b.add("maximum", {c.b.add("minimum", {a.first(), high}), low})};
}

void bounded(LayerContext& c, const Arguments& a) {
  c.out = {c.b.add("clip", {a.first()}, {{"low", 0.0}, {"high", 6.0}})};
}

void leaky(LayerContext& c, const Arguments& a) {
  c.out = {c.b.add("leaky_relu", {a.first()}, {{"alpha", a.real("alpha", 0.2)}})};
}

void by_name(LayerContext& c, const Arguments& a) { c.out = {activation(a.first(), c.target, c.keras3, c.b)}; }

void gelu(LayerContext& c, const Arguments& a) {
  c.out = {c.b.add("gelu", {a.first()}, {{"approximate", a.flag("approximate")}})};
}

void shape(LayerContext& c, const Arguments& a) {
  const Json* type = a.literal("out_type");
  const bool wide = type != nullptr && *type == "int64";
  c.out = {c.b.add("shape_of", {a.first()}, {{"dtype", wide ? kI64 : kI32}})};
}

void like(LayerContext& c, const Arguments& a) {
  Value* one = c.b.scalar_like(a.first(), std::string_view(c.target) == "1" ? 1 : 0);
  Value* sizes = c.b.add("shape_of", {a.first()});
  c.out = {c.b.add_node(op_named("broadcast_to"), {one, sizes}, {}, {}, {a.first()->type})->result()};
}

void broadcast(LayerContext& c, const Arguments& a) {
  Value* sizes = a.tensor("shape");
  c.out = {c.b.add("broadcast_to", {a.first(), sizes ? sizes : c.b.ints(a.integers("shape"))})};
}

void tile(LayerContext& c, const Arguments& a) {
  Value* times = a.tensor("multiples");
  c.out = {c.b.add("tile", {a.first(), times ? times : c.b.ints(a.integers("multiples"))})};
}

void gather(LayerContext& c, const Arguments& a) {
  Value* indices = a.tensor("indices");
  if (indices == nullptr && a.literal("indices") != nullptr) indices = a.constant(*a.literal("indices"), kI64);
  if (indices == nullptr) c.refuse("it lacks the indices");
  c.out = {c.b.add("gather", {a.first(), indices},
                   {{"axis", normal_axis(a.integer("axis", a.integer("batch_dims", 0)), a.rank(a.first()))},
                    {"batch_dims", a.integer("batch_dims", 0)}})};
}

void sum_of(LayerContext& c, const Arguments& a) {
  Value* sum = a.first();
  for (size_t i = 1; i < a.all().size(); ++i) sum = c.b.add("add", {sum, c.in[i]});
  c.out = {sum};
}

void itself(LayerContext& c, const Arguments& a) { c.out = {a.first()}; }

void normalize(LayerContext& c, const Arguments& a) {
  const std::vector<int64_t> axes = normal_axes(a.integers("axis"), a.rank(a.first()));
  if (axes.empty()) c.refuse("it lacks the axis");
  c.out = {of_length_one(a.first(), axes, a.real("epsilon", 1e-12), c.b)};
}

// clang-format off
constexpr FunctionRow kFunctions[] = {
    {"__operators__.add", binary, "add"}, {"math.add", binary, "add"}, {"math.subtract", binary, "sub"},
    {"math.multiply", binary, "mul"}, {"math.truediv", divide}, {"math.divide", divide}, {"math.pow", binary, "pow"},
    {"math.floordiv", binary, "floor_div"}, {"math.floormod", binary, "mod"}, {"math.maximum", binary, "maximum"},
    {"math.minimum", binary, "minimum"}, {"math.squared_difference", binary, "squared_difference"},
    {"math.greater", binary, "greater"}, {"math.greater_equal", binary, "greater_equal"}, {"math.less", binary, "less"},
    {"math.less_equal", binary, "less_equal"}, {"math.equal", binary, "equal"}, {"math.not_equal", binary, "not_equal"},
    {"__operators__.eq", binary, "equal"}, {"__operators__.ne", binary, "not_equal"},
    {"math.logical_and", binary, "and"}, {"math.logical_or", binary, "or"}, {"math.logical_xor", binary, "xor"},
    {"math.logical_not", unary, "not"},
    {"math.abs", unary, "abs"}, {"math.negative", unary, "neg"}, {"math.exp", unary, "exp"}, {"math.log", unary, "log"},
    {"math.log1p", unary, "log1p"}, {"math.expm1", unary, "expm1"}, {"math.sqrt", unary, "sqrt"},
    {"math.rsqrt", unary, "rsqrt"}, {"math.square", unary, "square"}, {"math.sin", unary, "sin"}, {"math.cos", unary, "cos"},
    {"math.tan", unary, "tan"}, {"math.tanh", unary, "tanh"}, {"nn.tanh", unary, "tanh"}, {"math.sigmoid", unary, "sigmoid"},
    {"math.erf", unary, "erf"}, {"math.floor", unary, "floor"}, {"math.ceil", unary, "ceil"}, {"math.round", unary, "round"},
    {"math.sign", unary, "sign"}, {"math.reciprocal", unary, "reciprocal"}, {"math.softplus", unary, "softplus"},
    {"nn.relu", unary, "relu"}, {"nn.relu6", bounded}, {"nn.leaky_relu", leaky}, {"nn.elu", by_name, "elu"},
    {"nn.selu", by_name, "selu"}, {"nn.silu", by_name, "swish"}, {"nn.softsign", by_name, "softsign"}, {"nn.gelu", gelu},
    {"nn.softmax", softmax, "softmax"}, {"nn.log_softmax", softmax, "log_softmax"},
    {"math.reduce_sum", reduce, "reduce_sum"}, {"math.reduce_mean", reduce, "reduce_mean"},
    {"math.reduce_max", reduce, "reduce_max"}, {"math.reduce_min", reduce, "reduce_min"},
    {"math.reduce_prod", reduce, "reduce_prod"}, {"math.reduce_all", reduce, "reduce_all"},
    {"math.reduce_any", reduce, "reduce_any"}, {"math.argmax", arg_most, "arg_max"}, {"math.argmin", arg_most, "arg_min"},
    {"math.l2_normalize", normalize}, {"linalg.matmul", matmul}, {"math.add_n", sum_of}, {"clip_by_value", clip},
    {"reshape", reshape}, {"transpose", transpose}, {"compat.v1.transpose", transpose}, {"expand_dims", expand},
    {"squeeze", squeeze_row}, {"compat.v1.squeeze", squeeze_row}, {"concat", concat}, {"stack", stack}, {"split", split},
    {"cast", cast}, {"where", select}, {"shape", shape}, {"compat.v1.shape", shape}, {"zeros_like", like, "0"},
    {"ones_like", like, "1"}, {"compat.v1.zeros_like", like, "0"}, {"compat.v1.ones_like", like, "1"},
    {"broadcast_to", broadcast}, {"tile", tile}, {"gather", gather}, {"compat.v1.gather", gather}, {"identity", itself},
    {"stop_gradient", itself},
};
// clang-format on

}  // namespace

void build_function(LayerContext& c, std::string_view name) {
  const FunctionRow* row = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const FunctionRow& each) { return each.name == name; });
  if (row == std::end(kFunctions)) c.refuse("function tf.{} is not supported", printable(name));
  c.target = row->target;
  row->build(c, Arguments(c));
}

namespace {

void function(LayerContext& c) { build_function(c, c.text("function", "")); }

void slicing(LayerContext& c) {
  const Arguments a(c);
  const Json* spec = a.literal("slice_spec");
  if (spec == nullptr) c.refuse("its slice is not told");
  build_slice(c, a.first(), spec->is_array() ? *spec : Json::array({*spec}));
}

}  // namespace

void build_slice(LayerContext& c, Value* x, const Json& list) {
  const size_t rank = Arguments(c).rank(x);
  size_t taken = 0;
  for (const Json& one : list) taken += !one.is_null() && one != "Ellipsis";
  if (taken > rank || list.size() > 64) fail(ErrorKind::invalid_model, "", "slices {} dims of {}", taken, rank);
  std::vector<int64_t> begin(rank, 0), end(rank, kToTheEnd), steps(rank, 1), gone, added;
  size_t axis = 0, place = 0;  // dim of the input; dim of the result before dims are removed
  for (const Json& one : list) {
    if (one.is_null()) {
      added.push_back(static_cast<int64_t>(place++ - gone.size()));
    } else if (one == "Ellipsis") {
      axis += rank - taken, place += rank - taken;
    } else if (one.is_number_integer()) {
      begin[axis] = one.get<int64_t>();
      end[axis] = begin[axis] == -1 ? kToTheEnd : begin[axis] + 1;
      gone.push_back(static_cast<int64_t>(axis++));
      ++place;
    } else if (one.is_object()) {
      auto number = [&](const char* key) -> std::optional<int64_t> {
        auto found = one.find(key);
        if (found == one.end() || found->is_null()) return std::nullopt;
        if (!found->is_number_integer()) c.refuse("the slice's {} is computed", key);
        return found->get<int64_t>();
      };
      steps[axis] = number("step").value_or(1);
      if (steps[axis] < 1) c.refuse("a step of {} is not supported", steps[axis]);
      begin[axis] = number("start").value_or(0), end[axis] = number("stop").value_or(kToTheEnd);
      ++axis, ++place;
    } else {
      c.refuse("a part of its slice is computed");
    }
  }
  Attributes attributes;
  if (std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; })) attributes.set("steps", steps);
  Value* y = c.b.add("slice", {x, c.b.ints(begin), c.b.ints(end)}, attributes);
  y = gone.empty() ? y : squeeze(y, gone, c.b);
  c.out = {added.empty() ? y : expand_dims(y, added, c.b)};
}

namespace {

constexpr Row kFunctionRows[] = {
    {"SlicingOpLambda", slicing, nullptr, Row::Masks::end, true},
    {"TFOpLambda", function, nullptr, Row::Masks::end, true},
};

}  // namespace

std::span<const Row> function_rows() { return kFunctionRows; }

}  // namespace cairn::keras
