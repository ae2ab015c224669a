// Operators on shapes, indices, rows and axes.
#include "export/rows.h"

#include "ir/evaluate.h"
#include "passes/facts.h"

namespace cairn::onnx_export {

namespace {

std::vector<int64_t> axes_of(const Context& c, bool& moved) {
  std::vector<int64_t> axes = c.attr().integers("axes");
  moved = c.graph.only_channels_first(c.value(0)) && !axes.empty();
  for (int64_t& axis : axes) {
    axis = static_cast<int64_t>(axis_of(axis, c.rank()));
    if (moved) axis = axis == 0 ? 0 : axis == static_cast<int64_t>(c.rank()) - 1 ? 1 : axis + 1;
  }
  return axes;
}

/// The result of a reduction over channels-first images keeps that order if dims are kept, and has no other if all the
/// image's dims go.
bool reduces_image(const Context& c, std::vector<int64_t> axes) {
  if (c.attr().boolean("keep_dims")) return true;
  std::sort(axes.begin(), axes.end());
  std::vector<int64_t> inner(c.rank() - 2);
  std::iota(inner.begin(), inner.end(), 2);
  return axes == inner;
}

template <const char* const& kOp>
void reduce(const Context& c) {
  bool moved = false;
  std::vector<int64_t> axes = axes_of(c, moved);
  if (moved && !reduces_image(c, axes)) {
    c.graph.plain(c.value(0));  // now it has that form too
    axes = axes_of(c, moved);
  }
  Name x = moved ? c.graph.channels_first(c.value(0)) : c.in(0);
  const bool keep = c.attr().boolean("keep_dims"), truths = c.type().dtype == kBool;
  if (truths) x = c.cast(x, kI32);
  Name y = c.one(kOp, {x, c.graph.ints(axes)}, {{"keepdims", int64_t{keep}}, {"noop_with_empty_axes", int64_t{1}}});
  if (truths) y = c.cast(y, kBool);
  if (moved && keep) return c.graph.set_channels_first(c.node.result(), y);
  c.out(y);
}
bool of_wide_numbers(const Node& node) {
  return node.inputs[0]->type.dtype.bits >= 32 || node.inputs[0]->type.dtype.is_float();
}
constexpr const char *kSum = "ReduceSum", *kMean = "ReduceMean", *kMax = "ReduceMax", *kMin = "ReduceMin",
                     *kProd = "ReduceProd";

template <const char* const& kOp>
void arg(const Context& c) {
  const Settings settings = {{"axis", c.attr().integer("axis")}, {"keepdims", int64_t{c.attr().boolean("keep_dims")}}};
  c.out(c.cast(c.one(kOp, {c.in(0)}, settings), c.attr().dtype("dtype")));
}
constexpr const char *kArgMax = "ArgMax", *kArgMin = "ArgMin";

template <const char* const& kOp>
void along_axis(const Context& c) {
  c.out(c.one(kOp, {c.in(0)}, {{"axis", c.attr().integer("axis")}}));
}
constexpr const char *kSoftmax = "Softmax", *kLogSoftmax = "LogSoftmax";

void cumsum(const Context& c) {
  const Name axis = c.graph.constant(Tensor::scalar_i64(c.attr().integer("axis")));
  c.out(c.one(
      "CumSum", {c.in(0), axis},
      {{"exclusive", int64_t{c.attr().boolean("exclusive")}}, {"reverse", int64_t{c.attr().boolean("reverse")}}}));
}

void top_k(const Context& c) {
  const Name k = c.one("Reshape", {c.i64(1), c.graph.ints({1})});
  const auto names = c.graph.add("TopK", {c.in(0), k}, {}, 2);
  c.out(names[0], 0), c.out(names[1], 1);
}

Name swapped(const Context& c, size_t i, bool swap) {
  if (!swap) return c.in(i);
  std::vector<int64_t> order(c.rank(i));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  if (const Tensor* kernel = constant_of(c.value(i)))
    return c.graph.constant(evaluate("transpose", {*kernel}, {{"permutation", order}}));
  return c.one("Transpose", {c.in(i)}, {{"perm", order}});
}

void matmul(const Context& c) {
  const Name a = swapped(c, 0, c.attr().boolean("transpose_a")), b = swapped(c, 1, c.attr().boolean("transpose_b"));
  c.out(c.one("MatMul", {a, b}));
}
/// In words, since ONNX Runtime's product of bytes takes few pairs of types; their zero points broadcast.
void matmul_integer(const Context& c) {
  const auto words = [&](size_t i, bool swap) {
    const Name x = c.one("Sub", {c.cast(c.in(i), kI32), c.cast(c.in(i + 2), kI32)});
    std::vector<int64_t> order(c.rank(i));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return swap ? c.one("Transpose", {x}, {{"perm", order}}) : x;
  };
  c.out(c.one("MatMul", {words(0, c.attr().boolean("transpose_a")), words(1, c.attr().boolean("transpose_b"))}));
}
bool ranked(const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [](const Value* x) { return x->type.shape.ranked; });
}

void layer_norm(const Context& c) {
  c.out(c.one("LayerNormalization", {c.in(0), c.in(1), c.in(2)},
              {{"axis", c.attr().integer("axis")}, {"epsilon", static_cast<float>(c.attr().number("epsilon"))}}));
}
bool scales_normalised_dims(const Node& node) {
  const Shape& x = node.inputs[0]->type.shape;
  if (!x.ranked) return false;
  const size_t axis = axis_of(node.attr().integer("axis"), x.rank());
  for (size_t i : {1, 2}) {
    const Shape& scale = node.inputs[i]->type.shape;
    if (!scale.ranked || scale.rank() != x.rank() - axis) return false;
    for (size_t k = 0; k < scale.rank(); ++k)
      if (!scale.dims[k].surely_equals(x.dims[axis + k])) return false;
  }
  return true;
}

void reshape(const Context& c) {
  const Tensor* shape = constant_of(c.value(1));
  const auto sizes = shape ? shape->as_i64() : std::vector<int64_t>{};
  const bool open = std::count(sizes.begin(), sizes.end(), -1) > 0;  // beside which a size of 0 is none in ONNX
  c.out(c.one("Reshape", {c.in(0), c.i64(1)}, {{"allowzero", int64_t{!open}}}));
}

void transpose(const Context& c) {
  const auto& given = c.attr().integers("permutation");
  std::vector<int64_t> order;
  for (const int64_t axis : given) order.push_back(static_cast<int64_t>(axis_of(axis, given.size())));
  const bool image = order.size() > 2;
  if (image && order == to_channels_first(order.size())) return c.out(c.graph.channels_first(c.value(0)));
  if (image && order == to_channels_last(order.size()) && !c.graph.only_channels_first(c.value(0)))
    return c.graph.set_channels_first(c.node.result(), c.in(0));
  c.out(c.one("Transpose", {c.in(0)}, {{"perm", order}}));
}

template <const char* const& kOp>
void shaped(const Context& c) {
  c.out(c.one(kOp, {c.in(0), c.i64(1)}));
}
constexpr const char *kExpand = "Expand", *kTile = "Tile";

void concat(const Context& c) {
  std::vector<Name> names;
  for (size_t i = 0; i < c.node.inputs.size(); ++i) names.push_back(c.in(i));
  int64_t axis = static_cast<int64_t>(axis_of(c.attr().integer("axis"), c.rank()));
  const auto last = static_cast<int64_t>(c.rank()) - 1;
  if (c.first) axis = axis == 0 ? 0 : axis == last ? 1 : axis + 1;
  c.out(c.one("Concat", names, {{"axis", axis}}));
}

void shape_of(const Context& c) { c.out(c.cast(c.one("Shape", {c.in(0)}), c.attr().dtype("dtype"))); }
void size_of(const Context& c) { c.out(c.cast(c.one("Size", {c.in(0)}), c.attr().dtype("dtype"))); }

void iota(const Context& c) { c.out(c.cast(c.one("Range", {c.in(0), c.in(1), c.in(2)}), c.attr().dtype("dtype"))); }

std::vector<int64_t> up_to(size_t count) {
  std::vector<int64_t> list(count);
  std::iota(list.begin(), list.end(), 0);
  return list;
}

void slice(const Context& c) {
  std::vector<int64_t> steps = c.attr().integers("steps");
  if (steps.empty()) steps.assign(c.rank(), 1);
  c.out(c.one("Slice", {c.in(0), c.i64(1), c.i64(2), c.graph.ints(up_to(c.rank())), c.graph.ints(steps)}));
}

void reverse(const Context& c) {
  const auto& axes = c.attr().integers("axes");
  const auto all = [&](int64_t x) { return c.graph.ints(std::vector<int64_t>(axes.size(), x)); };
  c.out(c.one("Slice", {c.in(0), all(-1), all(std::numeric_limits<int64_t>::min()), c.graph.ints(axes), all(-1)}));
}

void pad(const Context& c) {
  Name pads;
  if (const Tensor* known = constant_of(c.value(1))) {
    const auto all = known->as_i64();
    const std::vector<int64_t> order = c.first ? to_channels_first(c.rank()) : up_to(c.rank());
    std::vector<int64_t> list;
    for (const size_t side : {0, 1})
      for (const int64_t axis : order) list.push_back(all[2 * static_cast<size_t>(axis) + side]);
    pads = c.graph.ints(list);
  } else {
    pads =
        c.one("Reshape", {c.one("Transpose", {c.i64(1)}, {{"perm", std::vector<int64_t>{1, 0}}}), c.graph.ints({-1})});
  }
  c.out(c.one("Pad", {c.in(0), pads, c.number(c.attr().number("value"))}, {{"mode", c.attr().text("mode")}}));
}
bool pads_as_onnx(const Node& node) { return node.attr().text("mode") != "symmetric" && ranked(node); }

/// With dims of a batch the axis goes behind them, where index vectors of one number stand for it.
void gather(const Context& c) {
  const auto axis = axis_of(c.attr().integer("axis"), c.value(0)->type.shape.ranked ? c.rank() : 64);
  const auto batch = static_cast<size_t>(c.attr().integer("batch_dims"));
  if (batch == 0) return c.out(c.one("Gather", {c.in(0), c.in(1)}, {{"axis", c.attr().integer("axis")}}));
  std::vector<int64_t> order = up_to(c.rank());
  std::rotate(order.begin() + static_cast<int64_t>(batch), order.begin() + static_cast<int64_t>(axis),
              order.begin() + static_cast<int64_t>(axis) + 1);
  const Name x = axis == batch ? c.in(0) : c.one("Transpose", {c.in(0)}, {{"perm", order}});
  const size_t added = c.rank(1) - batch;
  const Name places = c.one("Unsqueeze", {c.i64(1), c.graph.ints({static_cast<int64_t>(c.rank(1))})});
  const Name y = c.one("GatherND", {x, places}, {{"batch_dims", static_cast<int64_t>(batch)}});
  if (axis == batch) return c.out(y);
  std::vector<int64_t> back =
      up_to(c.rank() - 1 + added);  // the index's dims go behind those that the axis had before it
  std::rotate(back.begin() + static_cast<int64_t>(batch), back.begin() + static_cast<int64_t>(batch + added),
              back.begin() + static_cast<int64_t>(axis + added));
  c.out(c.one("Transpose", {y}, {{"perm", back}}));
}
bool without_batch_or_ranked(const Node& node) { return node.attr().integer("batch_dims") == 0 || ranked(node); }

void class_non_max_suppression(const Context& c) {
  const Name most = c.one("Reshape", {c.i64(2), c.graph.ints({1})});
  c.out(c.one("NonMaxSuppression", {c.in(0), c.in(1), most, c.in(3), c.in(4)}));
}

void non_zero(const Context& c) {
  const Name x =
      c.value(0)->type.dtype == kBool || c.value(0)->type.dtype.bits >= 32 ? c.in(0) : c.cast(c.in(0), kBool);
  c.out(c.one("Transpose", {c.one("NonZero", {x})}, {{"perm", std::vector<int64_t>{1, 0}}}));
}

void unique(const Context& c) {
  const auto names = c.graph.add("Unique", {c.in(0)}, {{"sorted", int64_t{0}}}, 3);
  c.out(names[0], 0), c.out(names[2], 1);
}
bool of_no_floats(const Node& node) { return !node.inputs[0]->type.dtype.is_float(); }  // whose NaNs all differ

void dft(const Context& c) {
  const Name axis = c.graph.constant(Tensor::scalar_i64(c.attr().integer("axis")));
  c.out(c.one("DFT", {c.in(0), "", axis}, {{"inverse", int64_t{c.attr().boolean("inverse")}}}));
}

Name scalar(const Context& c, int64_t x) { return c.graph.constant(Tensor::scalar_i64(x)); }

/// ONNX has an axis for the two parts of each number.
void real_dft(const Context& c) {
  const Name x = c.one("Unsqueeze", {c.in(0), c.graph.ints({-1})}),
             length = c.one("Reshape", {c.i64(1), c.graph.ints({1})});
  const Name whole = c.one("Squeeze", {length});
  c.out(c.one("DFT", {x, whole, scalar(c, static_cast<int64_t>(c.rank()) - 1)}, {{"onesided", int64_t{1}}}));
}

/// The second half is the first one turned round, with imaginary parts of the other sign; ONNX Runtime has no other inverse.
void inverse_real_dft(const Context& c) {
  const auto axis = static_cast<int64_t>(c.rank()) - 2;
  const Name length = c.one("Reshape", {c.i64(1), c.graph.ints({1})}), one = c.graph.ints({1}), two = c.graph.ints({2});
  const Name half = c.one("Add", {c.one("Div", {length, two}), one}), rest = c.one("Sub", {length, half});
  const auto part = [&](const Name& x, const Name& begin, const Name& end, int64_t along, int64_t step = 1) {
    return c.one("Slice", {x, begin, end, c.graph.ints({along}), c.graph.ints({step})});
  };
  // Missing numbers are 0.
  const Name none = c.graph.ints({0}),
             before = c.graph.ints(std::vector<int64_t>(c.rank() + static_cast<size_t>(axis), 0));
  const Name pads = c.one("Concat", {before, half, c.graph.ints({0})}, {{"axis", int64_t{0}}});
  const Name x = part(c.one("Pad", {c.in(0), pads}), none, half, axis);
  // Parts that no real numbers give: the imaginary ones of the first, and of the last where the length is even.
  const Name real = part(x, none, one, -1), zero = c.one("Mul", {real, c.number(0)});
  const Name places = c.one("Range", {scalar(c, 0), c.one("Squeeze", {half}), scalar(c, 1)});
  const Name mirrored = c.one("Mod", {c.one("Neg", {places}), length});
  const Name own = c.one("Unsqueeze", {c.one("Equal", {places, mirrored}), one});
  const Name imaginary = c.one("Where", {own, zero, part(x, one, two, -1)});
  const Name turned = c.one("Add", {rest, one});
  const auto mirror = [&](const Name& y) {  // numbers rest, ..., 1
    const Name kept = part(y, one, turned, axis);
    return part(kept, c.graph.ints({-1}), c.graph.ints({std::numeric_limits<int64_t>::min()}), axis, -1);
  };
  const auto joined = [&](const Name& first, const Name& second, int64_t along) {
    return c.one("Concat", {first, second}, {{"axis", along}});
  };
  const Name all =
      joined(joined(real, mirror(real), axis), joined(imaginary, c.one("Neg", {mirror(imaginary)}), axis), axis + 1);
  const Name y = c.one("DFT", {all, "", scalar(c, axis)}, {{"inverse", int64_t{1}}});
  c.out(c.one("Squeeze", {part(y, none, one, -1), c.graph.ints({-1})}));
}

/// Each row of the updates at its place along the first dim; those that are to go nowhere get a row of their own.
void scatter_reduce(const Context& c) {
  Name x = c.in(0), places = c.i64(1);
  const Name count = c.one("Shape", {x}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  const bool padded = c.attr().boolean("padded");
  if (padded) {
    const Name rest = c.one("Shape", {x}, {{"start", int64_t{1}}});
    const Name row = c.one("Concat", {c.graph.ints({1}), rest}, {{"axis", int64_t{0}}});
    x = c.one("Concat", {x, c.one("Expand", {c.number(0), row})}, {{"axis", int64_t{0}}});
    const Name within = c.one("And", {c.one("GreaterOrEqual", {places, scalar(c, 0)}), c.one("Less", {places, count})});
    places = c.one("Where", {within, places, count});
  }
  places = c.one("Unsqueeze", {places, c.graph.ints({static_cast<int64_t>(c.rank(1))})});
  const Name y = c.one("ScatterND", {x, places, c.in(2)}, {{"reduction", c.attr().text("mode")}});
  c.out(padded ? c.one("Slice", {y, c.graph.ints({0}), count}) : y);
}
bool reduces_as_onnx(const Node& node) {
  const std::string& mode = node.attr().text("mode");
  return mode != "sub" && mode != "div" && ranked(node) &&
         node.inputs[0]->type.dtype.bits >= 32;  // ONNX Runtime sums no others
}

void gather_nd(const Context& c) {
  c.out(c.one("GatherND", {c.in(0), c.i64(1)}, {{"batch_dims", c.attr().integer("batch_dims")}}));
}

void scatter_nd(const Context& c) {
  const Tensor zero = Tensor::zeros(c.type().dtype, {1});
  const Name zeros = c.one("ConstantOfShape", {c.i64(2)}, {{"value", zero}});
  c.out(c.one("ScatterND", {zeros, c.i64(0), c.in(1)}, {{"reduction", std::string("add")}}));
}

void scatter_update(const Context& c) { c.out(c.one("ScatterND", {c.in(0), c.i64(1), c.in(2)})); }
bool without_padding(const Node& node) { return !node.attr().boolean("padded"); }

void scatter_elements(const Context& c) {
  const std::string& mode = c.attr().text("mode");
  c.out(c.one("ScatterElements", {c.in(0), c.in(1), c.in(2)},
              {{"axis", c.attr().integer("axis")}, {"reduction", mode == "update" ? std::string("none") : mode}}));
}
bool of_one_rank(const Node& node) {
  return ranked(node) && node.inputs[0]->type.shape.rank() == node.inputs[1]->type.shape.rank();
}

/// Each index against 0, 1, ...: what is out of range is nowhere.
void one_hot(const Context& c) {
  const size_t rank = c.rank();
  const size_t axis = axis_of(c.attr().integer("axis"), rank + 1);
  const auto scalar = [&](int64_t x) { return c.graph.constant(Tensor::scalar_i64(x)); };
  const Name depth = c.one("Reshape", {c.i64(1), c.graph.constant(Tensor::zeros(kI64, {0}))});
  Name classes = c.one("Range", {scalar(0), depth, scalar(1)});
  std::vector<int64_t> behind;
  for (size_t i = axis; i < rank; ++i) behind.push_back(static_cast<int64_t>(i - axis) + 1);
  if (!behind.empty()) classes = c.one("Unsqueeze", {classes, c.graph.ints(behind)});
  const Name index = c.one("Unsqueeze", {c.i64(0), c.graph.ints({static_cast<int64_t>(axis)})});
  c.out(c.one("Where", {c.one("Equal", {index, classes}), c.in(2), c.in(3)}));
}

/// Where a scale of quantised numbers varies along one dim; -1 for one number, nothing for several dims.
std::optional<int64_t> scale_axis(const Value* scale, size_t rank) {
  const Shape& shape = scale->type.shape;
  if (!shape.ranked || shape.rank() > rank) return {};
  int64_t axis = -1;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (shape.dims[i] == Dim(1)) continue;
    if (axis >= 0) return {};
    axis = static_cast<int64_t>(i + rank - shape.rank());
  }
  return axis;
}

template <const char* const& kOp>
void linear(const Context& c) {
  const int64_t axis = *scale_axis(c.value(1), c.rank());
  const Tensor list = axis < 0 ? Tensor::zeros(kI64, {0}) : Tensor::of_i64({-1});
  const auto flat = [&](size_t i) {
    const Tensor* known = constant_of(c.value(i));
    return known ? c.graph.constant(evaluate("reshape", {*known, list}))
                 : c.one("Reshape", {c.in(i), c.graph.constant(list)});
  };
  const bool spread = axis >= 0 && scale_axis(c.value(2), c.rank()) == -1;  // ONNX has a zero point for each scale
  const Tensor *scales = constant_of(c.value(1)), *point = constant_of(c.value(2));
  const Name scale = flat(1);
  const Name zero =
      !spread ? flat(2)
      : scales && point
          ? c.graph.constant(evaluate("broadcast_to", {point->reshaped({1}), Tensor::of_i64({scales->count()})}))
          : c.one("Expand", {flat(2), c.one("Shape", {scale})});
  c.out(c.one(kOp, {c.in(0), scale, zero}, {{"axis", std::max<int64_t>(axis, 0)}}));
}
constexpr const char *kQuantize = "QuantizeLinear", *kDequantize = "DequantizeLinear";
bool scales_one_dim(const Node& node) {
  const Shape& x = node.inputs[0]->type.shape;
  if (!x.ranked || node.inputs[1]->type.dtype != kF32 || node.inputs[2]->type.dtype.bits != 8) return false;
  const auto scale = scale_axis(node.inputs[1], x.rank()), zero = scale_axis(node.inputs[2], x.rank());
  return scale && zero && (*zero == -1 || *zero == *scale);
}

/// Integers of the same size, which a cast wraps around.
void bits_of_integers(const Context& c) { c.out(c.cast(c.in(0), c.type().dtype)); }
bool of_integers(const Node& node) {
  const DType from = node.inputs[0]->type.dtype, to = node.result()->type.dtype;
  return from.is_integer() && to.is_integer() && from.bits == to.bits;
}

constexpr Row kArrayRows[] = {{"determinant", nullptr, "Det"},
                              {"bitcast", bits_of_integers, nullptr, of_integers},
                              {"reduce_sum", reduce<kSum>, nullptr, of_wide_numbers},
                              {"reduce_mean", reduce<kMean>, nullptr, of_wide_numbers},
                              {"reduce_max", reduce<kMax>},
                              {"reduce_min", reduce<kMin>},
                              {"reduce_prod", reduce<kProd>, nullptr, of_wide_numbers},
                              {"reduce_all", reduce<kProd>},
                              {"reduce_any", reduce<kSum>},
                              {"arg_max", arg<kArgMax>},
                              {"arg_min", arg<kArgMin>},
                              {"softmax", along_axis<kSoftmax>},
                              {"log_softmax", along_axis<kLogSoftmax>},
                              {"cumsum", cumsum},
                              {"top_k", top_k},
                              {"matmul_integer", matmul_integer, nullptr, ranked},
                              {"matmul", matmul, nullptr, ranked},
                              {"layer_norm", layer_norm, nullptr, scales_normalised_dims},
                              {"reshape", reshape},
                              {"transpose", transpose},
                              {"broadcast_to", shaped<kExpand>},
                              {"tile", shaped<kTile>},
                              {"concat", concat, nullptr, ranked},
                              {"shape_of", shape_of},
                              {"size_of", size_of},
                              {"iota", iota},
                              {"slice", slice, nullptr, ranked},
                              {"reverse", reverse},
                              {"pad", pad, nullptr, pads_as_onnx},
                              {"class_non_max_suppression", class_non_max_suppression},
                              {"non_zero", non_zero},
                              {"unique", unique, nullptr, of_no_floats},
                              {"dft", dft},
                              {"real_dft", real_dft, nullptr, ranked},
                              {"inverse_real_dft", inverse_real_dft, nullptr, ranked},
                              {"scatter_reduce", scatter_reduce, nullptr, reduces_as_onnx},
                              {"gather", gather, nullptr, without_batch_or_ranked},
                              {"gather_nd", gather_nd},
                              {"scatter_nd", scatter_nd},
                              {"scatter_update", scatter_update, nullptr, without_padding},
                              {"scatter_elements", scatter_elements, nullptr, of_one_rank},
                              {"one_hot", one_hot, nullptr, ranked},
                              {"quantize_linear", linear<kQuantize>, nullptr, scales_one_dim},
                              {"dequantize_linear", linear<kDequantize>, nullptr, scales_one_dim}};

}  // namespace

std::span<const Row> array_rows() { return kArrayRows; }

}  // namespace cairn::onnx_export
