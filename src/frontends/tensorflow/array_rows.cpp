// TensorFlow's ops that create, rearrange and concatenate tensors.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"
#include "frontends/values.h"

namespace cairn::tensorflow {
namespace {

void identity(OpContext& c) { c.out = c.in; }

/// Print: returns its first input; the values to print are the other inputs.
void print(OpContext& c) {
  if (c.in.empty()) c.expect_inputs(1);
  c.out = {c.in[0]};
}

void placeholder(OpContext& c) { c.refuse("is an input that the signature does not name; name the graph's inputs"); }

void constant(OpContext& c) {
  AttrValue value = attr_of(c.node(), "value", AttrValue::Kind::tensor, *c.importer().model());
  if (value.kind == AttrValue::Kind::none) fail(ErrorKind::invalid_model, "", "attribute value is missing");
  c.out = {c.b.constant(read_tensor(value, c.importer().model(), ""))};
}

void shape(OpContext& c) {
  DType dtype = c.dtype("out_type", kDtInt32);
  for (Value* x : c.in) {
    if (x->type.is_static())
      c.out.push_back(cast_to(c.b.ints(x->type.shape.sizes()), dtype, c.b));
    else
      c.out.push_back(c.b.add("shape_of", {x}, {{"dtype", dtype}}));
  }
}

void rank(OpContext& c) {
  c.expect_inputs(1);
  c.out = {cast_to(c.b.constant(Tensor::scalar_i64(static_cast<int64_t>(c.rank(0)))), kI32, c.b)};
}

void size(OpContext& c) {
  c.expect_inputs(1);
  DType dtype = c.dtype("out_type", kDtInt32);
  if (c.in[0]->type.is_static()) {
    int64_t count = element_count(c.in[0]->type.shape.sizes()).value_or(0);
    c.out = {cast_to(c.b.constant(Tensor::scalar_i64(count)), dtype, c.b)};
  } else {
    c.out = {c.b.add("size_of", c.in, {{"dtype", dtype}})};
  }
}

void reshape(OpContext& c) {
  c.expect_inputs(2);
  c.out = {reshape_by(c.in[0], c.in[1], c.b)};
}

void squeeze_row(OpContext& c) {
  c.expect_inputs(1);
  std::vector<int64_t> axes = normal_axes(c.integers("squeeze_dims"), c.rank(0));
  const auto& dims = c.in[0]->type.shape.dims;
  if (axes.empty()) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!dims[i].known()) c.refuse("squeezes whatever dims are 1, and dim {} is not known", i);
      if (dims[i].size == 1) axes.push_back(static_cast<int64_t>(i));
    }
  }
  c.out = {squeeze(c.in[0], axes, c.b)};
}

void expand_dims_row(OpContext& c) {
  c.expect_inputs(2);
  int64_t axis = normal_axis(c.constant_integer(1, "the axis"), c.rank(0) + 1);
  c.out = {expand_dims(c.in[0], {axis}, c.b)};
}

/// ConcatV2 has the axis last, Concat first.
void concat(OpContext& c) {
  if (c.in.size() < 2) c.expect_inputs(2);
  bool first = c.node().op == "Concat";
  int64_t axis = c.constant_integer(first ? 0 : c.in.size() - 1, "the axis");
  std::vector<Value*> parts(c.in.begin() + first, c.in.end() - !first);
  c.out = {parts.size() == 1 ? parts[0] : c.b.add("concat", parts, {{"axis", axis}})};
}

void pack(OpContext& c) {
  if (c.in.empty()) c.expect_inputs(1);
  int64_t axis = normal_axis(c.integer("axis", 0), c.rank(0) + 1);
  std::vector<Value*> parts;
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (c.rank(i) != c.rank(0)) fail(ErrorKind::invalid_model, "", "input {} has another rank than the first", i);
    parts.push_back(expand_dims(c.in[i], {axis}, c.b));
  }
  c.out = {parts.size() == 1 ? parts[0] : c.b.add("concat", parts, {{"axis", axis}})};
}

void transpose(OpContext& c) {
  c.expect_inputs(2);
  c.out = {folded(transposed(c.in[0], c.constant_integers(1, "the permutation"), c.b), c.b)};
}

void tile(OpContext& c) {
  c.expect_inputs(2);
  c.out = {c.b.add("tile", c.in)};
}

void broadcast_to(OpContext& c) {
  c.expect_inputs(2);
  c.out = {folded(c.b.add("broadcast_to", c.in), c.b)};
}

void fill(OpContext& c) {
  c.expect_inputs(2);
  c.out = {folded(c.b.add("broadcast_to", {c.in[1], c.in[0]}), c.b)};
}

/// Zeros or ones in the shape of the input.
void like(OpContext& c) {
  c.expect_inputs(1);
  if (c.in[0]->type.kind == Type::Kind::list && c.node().op == "ZerosLike") {
    c.out = {c.b.add("list_zeros", c.in)};
    return;
  }
  Value* number = c.b.constant(Tensor::scalar_i64(c.node().op == "OnesLike"));
  Value* shape = c.in[0]->type.is_static() ? c.b.ints(c.in[0]->type.shape.sizes()) : c.b.add("shape_of", c.in);
  std::vector<Type> type{c.in[0]->type};
  Value* scalar = cast_to(number, c.in[0]->type.dtype, c.b);
  c.out = {folded(c.b.add_node(op_named("broadcast_to"), {scalar, shape}, {}, {}, type)->result(), c.b)};
}

/// Texts are put among as many of the padding's as the result has.
Value* padded_text(OpContext& c, const Tensor& value) {
  const auto pads = c.constant_integers(1, "the padding of text");
  const size_t rank = c.rank(0);
  if (pads.size() != 2 * rank) fail(ErrorKind::invalid_model, "", "pads {} sides of {} dims", pads.size(), rank);
  Value* y = c.in[0];
  for (size_t axis = 0; axis < rank; ++axis) {
    auto side = [&](int64_t count) {
      std::vector<Value*> sizes;
      for (size_t d = 0; d < rank; ++d) sizes.push_back(d == axis ? c.b.ints({count}) : dim_of(y, d, c.b));
      return c.b.add("broadcast_to", {c.b.constant(value.reshaped({})), joined(sizes, c.b)});
    };
    if (pads[2 * axis] < 0 || pads[2 * axis + 1] < 0) fail(ErrorKind::invalid_model, "", "a padding is negative");
    if (pads[2 * axis] == 0 && pads[2 * axis + 1] == 0) continue;
    y = c.b.add("concat", {side(pads[2 * axis]), y, side(pads[2 * axis + 1])}, {{"axis", static_cast<int64_t>(axis)}});
  }
  return y;
}

void pad(OpContext& c) {
  c.expect_inputs(2, 3);
  Attributes attributes;
  if (c.in.size() == 3) {
    Tensor value = c.constant(2, "the padding value");
    if (value.count() != 1) fail(ErrorKind::invalid_model, "", "the padding value must be one number");
    if (value.dtype() == kString) {
      c.out = {padded_text(c, value)};
      return;
    }
    attributes.set("value", real_numbers(value)[0]);
  }
  c.out = {c.b.add("pad", {c.in[0], c.in[1]}, attributes)};
}

void mirror_pad(OpContext& c) {
  c.expect_inputs(2);
  std::string mode = c.text("mode", "");
  if (mode != "REFLECT" && mode != "SYMMETRIC")
    fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(mode));
  c.out = {c.b.add("pad", c.in, {{"mode", std::string(mode == "REFLECT" ? "reflect" : "symmetric")}})};
}

void reverse(OpContext& c) {
  c.expect_inputs(2);
  c.out = {c.b.add("reverse", {c.in[0]}, {{"axes", c.constant_integers(1, "the axes")}})};
}

/// The first version says of each dim whether it is reversed.
void reverse_dims(OpContext& c) {
  c.expect_inputs(2);
  const Tensor chosen = c.constant(1, "the dims");
  if (chosen.dtype() != kBool) fail(ErrorKind::invalid_model, "", "the dims must be booleans");
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < chosen.count(); ++i)
    if (chosen.values<bool>()[static_cast<size_t>(i)]) axes.push_back(i);
  c.out = {axes.empty() ? c.in[0] : c.b.add("reverse", {c.in[0]}, {{"axes", axes}})};
}

void gather(OpContext& c) {
  c.expect_inputs(2, 3);
  int64_t axis = c.in.size() > 2 ? c.constant_integer(2, "the axis") : 0;
  const Attributes attributes{{"axis", axis}, {"batch_dims", c.integer("batch_dims", 0)}, {"from_start", true}};
  c.out = {folded(c.b.add("gather", {c.in[0], c.in[1]}, attributes), c.b)};
}

void gather_nd(OpContext& c) {
  c.expect_inputs(2);
  c.out = {c.b.add("gather_nd", c.in, {{"from_start", true}})};
}

void scatter_nd(OpContext& c) {
  c.expect_inputs(3);
  c.out = {c.b.add("scatter_nd", c.in, {{"from_start", true}})};
}

void scatter_update(OpContext& c) {
  c.expect_inputs(3);
  c.out = {c.b.add("scatter_update", c.in, {{"from_start", true}})};
}

void one_hot(OpContext& c) {
  c.expect_inputs(4);
  Value* indices = c.in[0]->type.dtype == kU8 ? cast_to(c.in[0], kI32, c.b) : c.in[0];
  c.out = {c.b.add("one_hot", {indices, c.in[1], c.in[2], c.in[3]}, {{"axis", c.integer("axis", -1)}})};
}

void range(OpContext& c) {
  c.expect_inputs(3);
  c.out = {folded(c.b.add("iota", c.in, {{"dtype", c.in[0]->type.dtype}}), c.b)};
}

void where(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("non_zero", c.in)};
}

void unique(OpContext& c) {
  c.expect_inputs(1);
  auto* made = c.b.add_node(op_named("unique"), c.in);
  c.out = {made->result(0), cast_to(made->result(1), c.dtype("out_idx", kDtInt32), c.b)};
}

constexpr Traits kTellsShapes = Trait::shapes | Trait::free;

constexpr Row kArrayRows[] = {
    {"BroadcastTo", broadcast_to},
    {"Concat", concat, known(0)},
    {"ConcatV2", concat, known(-1)},
    {"Const", constant},
    {"DeepCopy", identity},
    {"EnsureShape", identity},
    {"ExpandDims", expand_dims_row, known(1) | Trait::free},
    {"Fill", fill, Trait::free},
    {"Gather", gather},
    {"GatherNd", gather_nd},
    {"GatherV2", gather, known(2)},
    {"GuaranteeConst", identity},
    {"Identity", identity, kHandsOn},
    {"IdentityN", identity, kHandsOn},
    {"MirrorPad", mirror_pad},
    {"OneHot", one_hot},
    {"OnesLike", like, Trait::free},
    {"Pack", pack, Trait::free},
    {"Pad", pad},
    {"PadV2", pad},
    {"Placeholder", placeholder},
    {"PlaceholderWithDefault", identity},
    {"PreventGradient", identity, Trait::free},
    {"Print", print, Trait::host},
    {"Range", range, Trait::free},
    {"Rank", rank, kTellsShapes},
    {"Reshape", reshape, Trait::free},
    {"Reverse", reverse_dims, known(1)},
    {"ReverseV2", reverse, known(1)},
    {"ScatterNd", scatter_nd},
    {"Shape", shape, kTellsShapes},
    {"ShapeN", shape, kTellsShapes},
    {"Size", size, kTellsShapes},
    {"Snapshot", identity, Trait::free},
    {"Squeeze", squeeze_row, Trait::free},
    {"StopGradient", identity, Trait::free},
    {"TensorScatterUpdate", scatter_update},
    {"Tile", tile},
    {"Transpose", transpose, known(1)},
    {"Unique", unique, Trait::distinct},
    {"Where", where},
    {"ZerosLike", like, Trait::free},
};

}  // namespace

std::span<const Row> array_rows() { return kArrayRows; }

}  // namespace cairn::tensorflow
