// Cancels or merges transposes and reshapes, and replaces shapes that are known at compile time.
#include <algorithm>
#include <numeric>

#include "passes/facts.h"
#include "passes/rules.h"

namespace cairn {

namespace {

Value* what_is_shaped(Match& m) { return m["x"]; }

Value* transposed(Match& m, Value* x, Permutation permutation) {
  return m.add("transpose", {x}, {{"permutation", std::move(permutation)}});
}

Value* reshaped(Match& m, Value* x, const Type& index, const std::vector<int64_t>& dims) {
  return m.add("reshape", {x, m.constant(integers_like(index, dims))});
}

Value* transpose_once(Match& m) {
  Permutation first = permutation_of(m.node("first")), second = permutation_of(m.node("second"));
  if (first.size() != second.size() || first.empty()) return nullptr;
  Permutation both = compose(first, second);
  return is_identity(both) ? m["x"] : transposed(m, m["x"], both);
}

// Of the places of `common` dims those in each dim of the result in order; the dims lie in dim owner[place] before the permutation.
Permutation spread(const Permutation& permutation, const std::vector<size_t>& owner, const Permutation& common) {
  Permutation places;
  for (int64_t axis : permutation)
    for (int64_t place : common)
      if (owner[static_cast<size_t>(place)] == static_cast<size_t>(axis)) places.push_back(place);
  return places;
}

// transpose(reshape(transpose(x))) as reshape(transpose(reshape(x))) on dims that both reshapes are made of.
Value* transpose_between_reshapes(Match& m) {
  const Shape &from = m["x"]->type.shape, &middle = m.node("first").result()->type.shape,
              &to = m.node("shape").result()->type.shape;
  if (!from.ranked || !m.type().shape.ranked) return nullptr;
  const auto common = common_dims(middle, to);
  if (!common) return nullptr;
  Permutation order(common->dims.size());
  std::iota(order.begin(), order.end(), 0);
  const Permutation first = permutation_of(m.node("first")), second = permutation_of(m.root());
  // The places of common dims in the order of x, and in that of the result.
  const Permutation in_x = spread(inverse(first), common->before, order),
                    in_result = spread(second, common->after, order);
  std::vector<Dim> split;
  for (int64_t place : in_x) split.push_back(common->dims[static_cast<size_t>(place)]);
  const auto as = [&](Value* x, const std::vector<Dim>& dims) -> Value* {
    if (same_by_count(x->type, Type::tensor(x->type.dtype, Shape(dims)))) return x;
    const auto operand = reshape_operand(dims);
    return operand ? reshaped(m, x, m["s"]->type, *operand) : nullptr;
  };
  Value* before = as(m["x"], split);
  if (!before || !reshape_operand(m.type().shape.dims)) return nullptr;
  return as(transposed(m, before, compose(inverse(in_x), in_result)), m.type().shape.dims);
}

// Whether the transpose moves only dims of size 1, so that the elements keep their order.
bool moves_ones_only(const Match& m) {
  Permutation permutation = permutation_of(m.root());
  const Shape& shape = m["x"]->type.shape;
  if (!shape.ranked || permutation.size() != shape.rank()) return false;
  int64_t last = -1;
  for (int64_t axis : permutation) {
    if (shape.dims[static_cast<size_t>(axis)] == Dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return reshape_operand(m.type().shape.dims).has_value();
}

Value* transpose_by_reshape(Match& m) {
  return reshaped(m, m["x"], Type::tensor(kI64, {}), *reshape_operand(m.type().shape.dims));
}

// Of two reshapes only the second one matters, unless its operand refers to the dims of its input.
Value* reshape_once(Match& m) { return m.like(m.node("second"), {m["x"], m["s"]}); }

// The result's dims as numbers with at most one -1, from the type or from the computation of the operand.
std::optional<std::vector<int64_t>> known_operand(const Match& m) {
  if (constant_of(m["s"])) return {};
  const Shape& shape = m.type().shape;
  std::optional<std::vector<Dim>> elements = known_elements(m["s"]);
  if (!shape.ranked) return elements ? reshape_operand(*elements) : std::nullopt;
  std::vector<Dim> dims = shape.dims;
  if (elements && elements->size() == dims.size())
    for (size_t i = 0; i < dims.size(); ++i)
      if (!dims[i].known()) dims[i] = (*elements)[i];
  return reshape_operand(dims);
}

Value* reshape_to_known(Match& m) { return reshaped(m, m["x"], m["s"]->type, *known_operand(m)); }

bool broadcast_shape_known(const Match& m) { return !constant_of(m["s"]) && m.type().is_static(); }

Value* broadcast_to_known(Match& m) {
  return m.add("broadcast_to", {m["x"], m.constant(integers_like(m["s"]->type, m.type().shape.sizes()))});
}

// Whether the broadcast is redundant: the other operand already has the shape of the result.
bool broadcast_is_implied(const Match& m) {
  return surely_same(Type::tensor(m["z"]->type.dtype, m.type().shape), m["z"]->type);
}

Value* select_without_broadcast(Match& m) {
  const bool first = m.root().inputs[1] == m["z"];
  return m.like(m.root(),
                first ? std::vector<Value*>{m["c"], m["z"], m["x"]} : std::vector<Value*>{m["c"], m["x"], m["z"]});
}

Value* without_broadcast(Match& m) {
  Node& root = m.root();
  Value* z = m["z"];
  bool first = root.inputs[0] == z;
  return m.like(root, first ? std::vector<Value*>{z, m["x"]} : std::vector<Value*>{m["x"], z});
}

std::optional<std::vector<int64_t>> known_numbers(const Match& m) {
  auto elements = known_elements(m.root().result());
  if (!elements) return {};
  std::vector<int64_t> numbers;
  for (const Dim& dim : *elements) {
    if (!dim.known()) return {};
    numbers.push_back(dim.size);
  }
  return numbers;
}

bool shape_elements_known(const Match& m) { return m.type().is_tensor() && known_numbers(m).has_value(); }

Value* shape_elements(Match& m) {
  Tensor values = integers_like(m.type(), *known_numbers(m));
  if (values.dtype() != m.type().dtype) return nullptr;
  return m.constant(m.type().shape.rank() == 0 ? values.reshaped({}) : values);
}

bool swaps_last_two(const Node& transpose) {
  Permutation permutation = permutation_of(transpose);
  size_t rank = permutation.size();
  if (rank < 2) return false;
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return is_identity(permutation);
}

Value* matmul_flipped(Match& m, size_t side) {
  Node& node = m.root();
  const char* flag = side == 0 ? "transpose_a" : "transpose_b";
  std::vector<Value*> inputs = node.inputs;
  inputs[side] = m["x"];
  return m.like(node, inputs, {{flag, !node.attr().boolean(flag)}});
}

constexpr size_t kMostJoined = 64;  // bound of merged concat inputs: long chains would be copied again and again

bool joins_a_concat(const Match& m) {
  Node& root = m.root();
  const Shape& shape = m.type().shape;
  if (!shape.ranked) return false;
  size_t axis = axis_of(root.attr().integer("axis"), shape.rank()), inputs = 0;
  for (const Value* input : root.inputs)
    inputs += input->producer && input->producer->is("concat") ? input->producer->inputs.size() : 1;
  if (inputs > kMostJoined) return false;
  return std::any_of(root.inputs.begin(), root.inputs.end(), [&](const Value* input) {
    return input->producer && input->producer->is("concat") &&
           axis_of(input->producer->attr().integer("axis"), shape.rank()) == axis;
  });
}

Value* concat_once(Match& m) {
  Node& root = m.root();
  size_t rank = m.type().shape.rank(), axis = axis_of(root.attr().integer("axis"), rank);
  std::vector<Value*> inputs;
  for (Value* input : root.inputs) {
    const Node* inner = input->producer;
    if (inner && inner->is("concat") && axis_of(inner->attr().integer("axis"), rank) == axis) {
      inputs.insert(inputs.end(), inner->inputs.begin(), inner->inputs.end());
      m.absorb(*input->producer);
    } else {
      inputs.push_back(input);
    }
  }
  return m.like(root, inputs);
}

// Axes of a reduction whose input has a known rank.
std::vector<size_t> reduced_axes(const Node& node) {
  std::vector<size_t> axes;
  size_t rank = node.inputs[0]->type.shape.rank();
  for (int64_t axis : node.attr().integers("axes")) axes.push_back(axis_of(axis, rank));
  return axes;
}

bool reduces_ones(const Match& m) {
  const Shape& shape = m["x"]->type.shape;
  if (!shape.ranked || m["x"]->type.dtype != m.type().dtype) return false;
  for (size_t axis : reduced_axes(m.root()))
    if (!(shape.dims[axis] == Dim(1))) return false;
  return reshape_operand(m.type().shape.dims).has_value();
}

bool reshape_drops_kept_dims(const Match& m) {
  const Node& reduce = m.node("reduce");
  const Shape& shape = m["x"]->type.shape;
  if (!shape.ranked || !reduce.attr().boolean("keep_dims") || reduce.attr().integers("axes").empty()) return false;
  auto axes = reduced_axes(reduce);
  Shape squeezed;
  for (size_t i = 0; i < shape.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) squeezed.dims.push_back(shape.dims[i]);
  return same_by_count(Type::tensor(m.type().dtype, squeezed), m.type());
}

/// Zeros around x along one axis.
struct Piece {
  Value* x;
  size_t axis;
  int64_t begin, end, size;
};

std::optional<Piece> piece_of(const Match& m, const char* pad, const char* x, const char* pads) {
  const AttributeView attr = m.node(pad).attr();
  const Type& type = m[x]->type;
  if (attr.text("mode") != "constant" || attr.number("value") != 0 || !type.shape.ranked) return {};
  const auto& dims = m.node(pad).result()->type.shape.dims;
  const auto equal = [](const Dim& a, const Dim& b) { return a.surely_equals(b); };
  if (!std::equal(dims.begin(), dims.end(), m.type().shape.dims.begin(), m.type().shape.dims.end(), equal)) return {};
  const std::vector<int64_t> all = m.constant(pads).as_i64();
  std::optional<Piece> piece;
  for (size_t axis = 0; axis < type.shape.rank(); ++axis) {
    const int64_t before = all[2 * axis], after = all[2 * axis + 1], inside = type.shape.dims[axis].size;
    if (before == 0 && after == 0) continue;
    if (piece || inside < 0) return {};
    piece = Piece{m[x], axis, before, before + inside, before + inside + after};
  }
  return piece;
}

/// The sum of two pieces that meet: zeros around both side by side.
Value* joined(Match& m, std::optional<Piece> a, std::optional<Piece> b) {
  if (!a || !b || a->axis != b->axis) return nullptr;
  if (b->end == a->begin) std::swap(a, b);
  if (a->end != b->begin) return nullptr;
  Value* both = m.add("concat", {a->x, b->x}, {{"axis", static_cast<int64_t>(a->axis)}});
  std::vector<int64_t> pads(2 * m.type().shape.rank(), 0);
  pads[2 * a->axis] = a->begin;
  pads[2 * a->axis + 1] = a->size - b->end;
  return m.add("pad", {both, m.constant(Tensor::of<int64_t>(kI64, {std::ssize(m.type().shape.dims), 2}, pads))});
}

Value* pieces_side_by_side(Match& m) {
  return joined(m, piece_of(m, "first", "x", "c"), piece_of(m, "second", "y", "d"));
}

Value* piece_beside_one_of_two(Match& m) {
  const auto third = piece_of(m, "third", "z", "e");
  for (const bool second : {false, true})
    if (Value* both = joined(m, second ? piece_of(m, "second", "y", "d") : piece_of(m, "first", "x", "c"), third))
      return m.add("add", {m.node(second ? "first" : "second").result(), both});
  return nullptr;
}

constexpr Rule kShapeRules[] = {
    {.name = "identity_transpose",
     .summary = "a transpose that moves nothing",
     .pattern = "transpose(x)",
     .where = [](const Match& m) { return m["x"]->type.shape.ranked && is_identity(permutation_of(m.root())); },
     .replace = what_is_shaped,
     .removal = Removal::identity,
     .platform = "PermutePass",
     .in = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %a = transpose %x {permutation = [0, 1]} %y = relu %a return %y }",
     .out = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %y = relu %x return %y }"},
    {.name = "transpose_of_transpose",
     .summary = "two transposes are one, or none",
     .pattern = "transpose(transpose(x):first):second",
     .replace = transpose_once,
     .removal = Removal::identity,
     .platform = "TransOpSymmetryEliminationPass",
     .in = "(%x: f32[2, 3, 4]) -> (%y: f32[4, 2, 3]) { %a = transpose %x {permutation = [1, 2, 0]} "
           "%y = transpose %a {permutation = [1, 2, 0]} return %y }",
     .out = "(%x: f32[2, 3, 4]) -> (%y: f32[4, 2, 3]) { %y = transpose %x {permutation = [2, 0, 1]} return %y }"},
    {.name = "transpose_between_reshapes",
     .summary = "two transposes around a reshape that divides and joins dims are one",
     .pattern = "transpose(reshape(transpose(x):first, s)~:shape):second",
     .replace = transpose_between_reshapes,
     .in = "(%x: f32[5, 7, 6]) -> (%y: f32[2, 5, 7, 3]) { %a = transpose %x {permutation = [2, 0, 1]} "
           "%s = constant {value = i64[4] (2, 3, 5, 7)} %b = reshape %a, %s "
           "%y = transpose %b {permutation = [0, 2, 3, 1]} return %y }",
     .out = "(%x: f32[5, 7, 6]) -> (%y: f32[2, 5, 7, 3]) { %s = constant {value = i64[4] (5, 7, 2, 3)} "
            "%a = reshape %x, %s %y = transpose %a {permutation = [2, 0, 1, 3]} return %y }"},
    {.name = "transpose_as_reshape",
     .summary = "a transpose that moves dims of size one alone",
     .pattern = "transpose(x)",
     .where = moves_ones_only,
     .replace = transpose_by_reshape,
     .in = "(%x: f32[?n, 1, 1, 4]) -> (%y: f32[?n, 4, 1, 1]) { %y = transpose %x {permutation = [0, 3, 1, 2]} return "
           "%y }",
     .out = "(%x: f32[?n, 1, 1, 4]) -> (%y: f32[?n, 4, 1, 1]) { %s = constant {value = i64[4] (-1, 4, 1, 1)} "
            "%y = reshape %x, %s : f32[?n, 4, 1, 1] return %y }"},
    {.name = "identity_reshape",
     .summary = "a reshape to the dims that a value has",
     .pattern = "reshape(x, _)",
     .where = [](const Match& m) { return same_by_count(m["x"]->type, m.type()); },
     .replace = what_is_shaped,
     .removal = Removal::identity,
     .platform = "ReshapeRemovePass",
     .in = "(%x: f32[?n, 3]) -> (%y: f32[?, 3]) { %s = constant {value = i64[2] (-1, 3)} %a = reshape %x, %s %y = relu "
           "%a return %y }",
     .out = "(%x: f32[?n, 3]) -> (%y: f32[?, 3]) { %y = relu %x return %y }"},
    {.name = "reshape_of_reshape",
     .summary = "of two reshapes the second decides",
     .pattern = "reshape(reshape(x, _):first, s):second",
     .replace = reshape_once,
     .in = "(%x: f32[4, 6]) -> (%y: f32[3, 8]) { %s = constant {value = i64[3] (2, 2, 6)} %t = constant {value = "
           "i64[2] (3, -1)} "
           "%a = reshape %x, %s %y = reshape %a, %t return %y }",
     .out =
         "(%x: f32[4, 6]) -> (%y: f32[3, 8]) { %t = constant {value = i64[2] (3, -1)} %y = reshape %x, %t return %y }"},
    {.name = "reshape_to_known_dims",
     .summary = "dims that follow from what is known, but for one, need no computed operand",
     .pattern = "reshape(x, s)",
     .where = [](const Match& m) { return known_operand(m).has_value(); },
     .replace = reshape_to_known,
     .removal = Removal::shape_only,
     .platform = "ConstToAttrReshapePass",
     .in = "(%x: f32[?n, 2, 3]) -> (%y: f32[?, 6]) { %s = shape_of %x {dtype = i64} %i = constant {value = i64[1] (0)} "
           "%n = gather %s, %i %r = constant {value = i64[1] (6)} %t = concat %n, %r {axis = 0} %y = reshape %x, %t "
           "return %y }",
     .out = "(%x: f32[?n, 2, 3]) -> (%y: f32[?, 6]) { %t = constant {value = i64[2] (-1, 6)} %y = reshape %x, %t "
            "return %y }"},
    {.name = "broadcast_to_known_dims",
     .summary = "dims that are known need no computed operand",
     .pattern = "broadcast_to(x, s)",
     .where = broadcast_shape_known,
     .replace = broadcast_to_known,
     .removal = Removal::shape_only,
     .in = "(%x: f32[3], %z: i64[2]) -> (%y: f32[2, 3]) { %o = constant {value = i64[] (0)} %c = constant {value = "
           "i64[2] (2, 3)} "
           "%m = mul %z, %o %s = add %m, %c %y = broadcast_to %x, %s : f32[2, 3] return %y }",
     .out = "(%x: f32[3], %z: i64[2]) -> (%y: f32[2, 3]) { %t = constant {value = i64[2] (2, 3)} %y = broadcast_to %x, "
            "%t return %y }"},
    {.name = "implied_broadcast",
     .summary = "arithmetic broadcasts by itself",
     .pattern = "add|sub|mul|div|maximum|minimum|squared_difference(broadcast_to(x, _), z)",
     .where = broadcast_is_implied,
     .replace = without_broadcast,
     .in = "(%x: f32[3], %z: f32[2, 3]) -> (%y: f32[2, 3]) { %s = constant {value = i64[2] (2, 3)} %b = broadcast_to "
           "%x, %s "
           "%y = add %b, %z return %y }",
     .out = "(%x: f32[3], %z: f32[2, 3]) -> (%y: f32[2, 3]) { %y = add %x, %z return %y }"},
    {.name = "implied_broadcast_right",
     .summary = "arithmetic broadcasts by itself",
     .pattern = "sub|div(z, broadcast_to(x, _))",
     .where = broadcast_is_implied,
     .replace = without_broadcast,
     .in = "(%x: f32[3], %z: f32[2, 3]) -> (%y: f32[2, 3]) { %s = constant {value = i64[2] (2, 3)} %b = broadcast_to "
           "%x, %s "
           "%y = sub %z, %b return %y }",
     .out = "(%x: f32[3], %z: f32[2, 3]) -> (%y: f32[2, 3]) { %y = sub %z, %x return %y }"},
    {.name = "implied_broadcast_of_choice",
     .summary = "a choice broadcasts by itself",
     .pattern = "select(c, z, broadcast_to(x, _))",
     .where = broadcast_is_implied,
     .replace = select_without_broadcast,
     .in = "(%c: bool[2, 3], %x: f32[3], %z: f32[2, 3]) -> (%y: f32[2, 3]) { %s = constant {value = i64[2] (2, 3)} "
           "%b = broadcast_to %x, %s %y = select %c, %z, %b return %y }",
     .out = "(%c: bool[2, 3], %x: f32[3], %z: f32[2, 3]) -> (%y: f32[2, 3]) { %y = select %c, %z, %x return %y }"},
    {.name = "implied_broadcast_of_first_choice",
     .summary = "a choice broadcasts by itself",
     .pattern = "select(c, broadcast_to(x, _), z)",
     .where = broadcast_is_implied,
     .replace = select_without_broadcast,
     .in = "(%c: bool[2, 3], %x: f32[3], %z: f32[2, 3]) -> (%y: f32[2, 3]) { %s = constant {value = i64[2] (2, 3)} "
           "%b = broadcast_to %x, %s %y = select %c, %b, %z return %y }",
     .out = "(%c: bool[2, 3], %x: f32[3], %z: f32[2, 3]) -> (%y: f32[2, 3]) { %y = select %c, %x, %z return %y }"},
    {.name = "shape_elements_known",
     .summary = "the elements of a shape that are numbers, even if others are not",
     .pattern = "gather|slice|concat|cast(x, ...)",
     .where = shape_elements_known,
     .replace = shape_elements,
     .removal = Removal::shape_only,
     .platform = "DimensionComputePass",
     .in = "(%x: f32[?n, 2, 3]) -> (%y: i64[1]) { %s = shape_of %x {dtype = i64} %i = constant {value = i64[1] (2)} "
           "%y = gather %s, %i return %y }",
     .out = "(%x: f32[?n, 2, 3]) -> (%y: i64[1]) { %y = constant {value = i64[1] (3)} return %y }"},
    {.name = "matmul_of_transpose_left",
     .summary = "a matrix product takes its left operand transposed",
     .pattern = "matmul(transpose(x):t, _)",
     .where = [](const Match& m) { return swaps_last_two(m.node("t")); },
     .replace = [](Match& m) { return matmul_flipped(m, 0); },
     .platform = "MatmulTransposeFusionPass",
     .in = "(%x: f32[3, 2], %z: f32[3, 4]) -> (%y: f32[2, 4]) { %t = transpose %x {permutation = [1, 0]} %y = matmul "
           "%t, %z return %y }",
     .out = "(%x: f32[3, 2], %z: f32[3, 4]) -> (%y: f32[2, 4]) { %y = matmul %x, %z {transpose_a = true} return %y }"},
    {.name = "matmul_of_transpose_right",
     .summary = "a matrix product takes its right operand transposed",
     .pattern = "matmul(_, transpose(x):t)",
     .where = [](const Match& m) { return swaps_last_two(m.node("t")); },
     .replace = [](Match& m) { return matmul_flipped(m, 1); },
     .platform = "MatmulTransposeFusionPass",
     .in = "(%x: f32[2, 3], %z: f32[4, 3]) -> (%y: f32[2, 4]) { %t = transpose %z {permutation = [1, 0]} %y = matmul "
           "%x, %t return %y }",
     .out = "(%x: f32[2, 3], %z: f32[4, 3]) -> (%y: f32[2, 4]) { %y = matmul %x, %z {transpose_b = true} return %y }"},
    {.name = "pieces_side_by_side",
     .summary = "the sum of two parts of one tensor with zeros around them is both parts joined",
     .pattern = "add(pad(x, c!)~:first, pad(y, d!)~:second)",
     .replace = pieces_side_by_side,
     .in = "(%x: f32[2, 1], %z: f32[2, 3]) -> (%y: f32[2, 6]) { %c = constant {value = i64[2, 2] (0, 0, 3, 2)} "
           "%d = constant {value = i64[2, 2] (0, 0, 0, 3)} %a = pad %x, %c %b = pad %z, %d %y = add %a, %b return %y }",
     .out = "(%x: f32[2, 1], %z: f32[2, 3]) -> (%y: f32[2, 6]) { %a = concat %z, %x {axis = 1} "
            "%e = constant {value = i64[2, 2] (0, 0, 0, 2)} %y = pad %a, %e return %y }"},
    {.name = "piece_beside_one_of_two",
     .summary = "of three such parts the two that meet are joined first",
     .pattern = "add(add(pad(x, c!)~:first, pad(y, d!)~:second)~, pad(z, e!)~:third)",
     .replace = piece_beside_one_of_two,
     .in = "(%x: f32[1], %w: f32[2], %z: f32[3]) -> (%y: f32[6]) { %c = constant {value = i64[1, 2] (0, 5)} "
           "%d = constant {value = i64[1, 2] (4, 0)} %e = constant {value = i64[1, 2] (1, 2)} %a = pad %x, %c "
           "%b = pad %w, %d %s = add %a, %b %t = pad %z, %e %y = add %s, %t return %y }",
     .out = "(%x: f32[1], %w: f32[2], %z: f32[3]) -> (%y: f32[6]) { %d = constant {value = i64[1, 2] (4, 0)} "
            "%b = pad %w, %d %a = concat %x, %z {axis = 0} %e = constant {value = i64[1, 2] (0, 2)} %t = pad %a, %e "
            "%y = add %b, %t return %y }"},
    {.name = "concat_of_concat",
     .summary = "joins along one axis are one join",
     .pattern = "concat(...)",
     .where = joins_a_concat,
     .replace = concat_once,
     .platform = "ZConcatExt2FusionPass",
     .in = "(%a: f32[1, 2], %b: f32[2, 2], %c: f32[3, 2]) -> (%y: f32[6, 2]) { %d = concat %a, %b {axis = 0} "
           "%y = concat %d, %c {axis = 0} return %y }",
     .out = "(%a: f32[1, 2], %b: f32[2, 2], %c: f32[3, 2]) -> (%y: f32[6, 2]) { %y = concat %a, %b, %c {axis = 0} "
            "return %y }"},
    {.name = "reduce_of_ones",
     .summary = "a reduction along dims of size one, or along none, is a reshape",
     .pattern = "reduce_sum|reduce_mean|reduce_max|reduce_min|reduce_prod(x)",
     .where = reduces_ones,
     .replace = transpose_by_reshape,
     .platform = "AReduceSumFusionPass",
     .in = "(%x: f32[2, 1, 3]) -> (%y: f32[2, 3]) { %y = reduce_max %x {axes = [1], keep_dims = false} return %y }",
     .out = "(%x: f32[2, 1, 3]) -> (%y: f32[2, 3]) { %s = constant {value = i64[2] (2, 3)} %y = reshape %x, %s return "
            "%y }"},
    {.name = "reduce_then_squeeze",
     .summary = "dims of size one that a reduction keeps and a reshape drops",
     .pattern = "reshape(reduce_sum|reduce_mean|reduce_max|reduce_min|reduce_prod(x)~:reduce, _)",
     .where = reshape_drops_kept_dims,
     .replace =
         [](Match& m) {
           return m.like(m.node("reduce"), {m["x"]}, {{"keep_dims", false}});
         },
     .in = "(%x: f32[?n, 4, 5, 3]) -> (%y: f32[?n, 3]) { %a = reduce_mean %x {axes = [1, 2], keep_dims = true} "
           "%s = constant {value = i64[2] (-1, 3)} %y = reshape %a, %s : f32[?n, 3] return %y }",
     .out = "(%x: f32[?n, 4, 5, 3]) -> (%y: f32[?n, 3]) { %y = reduce_mean %x {axes = [1, 2], keep_dims = false} "
            "return %y }"},
};

}  // namespace

std::span<const Rule> shape_rules() { return kShapeRules; }

}  // namespace cairn
