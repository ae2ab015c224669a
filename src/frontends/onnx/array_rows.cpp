// ONNX's ops that create, rearrange and concatenate tensors.
#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "frontends/values.h"

namespace cairn::onnx {
namespace {

constexpr size_t kMostRank = 64;

void identity(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = c.in;
}

void constant(OpContext& c) {
  Tensor value;
  if (auto tensor = c.tensor("value")) {
    value = *tensor;
  } else if (auto sparse = c.tensor("sparse_value", Attribute::Type::sparse)) {
    value = *sparse;
  } else if (c.has("value_float")) {
    value = Tensor::scalar_f32(static_cast<float>(c.real("value_float", 0)));
  } else if (c.has("value_int")) {
    value = Tensor::scalar_i64(c.integer("value_int"));
  } else if (c.has("value_floats")) {
    std::vector<float> numbers = c.reals("value_floats");
    value = Tensor::of(kF32, {static_cast<int64_t>(numbers.size())}, numbers);
  } else if (c.has("value_ints")) {
    value = Tensor::of_i64(c.integers("value_ints"));
  } else if (c.has("value_string") || c.has("value_strings")) {
    const bool one = c.has("value_string");
    const std::vector<std::string> texts = one ? std::vector{c.text("value_string", "")} : c.texts("value_strings");
    value = Tensor::of<std::string>(kString, {static_cast<int64_t>(texts.size())}, texts);
    if (one) value = value.reshaped({});
  } else {
    c.refuse("has none of the values that are supported");
  }
  c.out = {c.b.constant(std::move(value))};
  if (const Attribute* tensor = c.node().find("value"); tensor && tensor->type == Attribute::Type::tensor)
    c.importer().mark_narrow(c.out[0], element_type(tensor->tensor, c.importer().model()));
}

/// A number in all places of a shape, with its dims as far as they are known.
Value* everywhere(Value* number, Value* shape, Builder& b) {
  const auto sizes = sizes_in(shape);
  if (!sizes || shape->type.shape.rank() != 1 || constant_of(shape) != nullptr)
    return b.add("broadcast_to", {number, shape});
  const Type type = Type::tensor(number->type.dtype, Shape(*sizes));
  return b.add_node(op_named("broadcast_to"), {number, shape}, {}, {}, {type})->result();
}

void constant_of_shape(OpContext& c) {
  c.expect_inputs(1, 1);
  Tensor value = c.tensor("value").value_or(Tensor::scalar_f32(0));
  if (value.count() != 1)
    fail(ErrorKind::invalid_model, "", "attribute value has {} elements, expected 1", value.count());
  c.out = {everywhere(c.b.constant(value.reshaped({})), c.in[0], c.b)};
}

void shape(OpContext& c) {
  c.expect_inputs(1, 1);
  int64_t begin = c.integer("start", 0), end = c.integer("end", kToTheEnd);
  Value* sizes = c.in[0]->type.is_static() ? c.b.ints(c.in[0]->type.shape.sizes()) : c.b.add("shape_of", c.in);
  c.out = {begin == 0 && end == kToTheEnd ? sizes : part_of(sizes, begin, end, c.b)};
}

void size(OpContext& c) {
  c.expect_inputs(1, 1);
  int64_t count = 1;
  bool known = c.in[0]->type.is_static();
  for (size_t i = 0; known && i < c.in[0]->type.shape.rank(); ++i)
    known = !__builtin_mul_overflow(count, c.in[0]->type.shape.dims[i].size, &count);
  c.out = {known ? c.b.constant(Tensor::scalar_i64(count)) : c.b.add("size_of", c.in)};
}

/// The sizes with x's own in place of zeros; what is known of them during import stays so, symbols as if they were not 0.
Value* copied_where_zero(OpContext& c) {
  std::optional<size_t> free;
  const auto sizes = sizes_in(c.in[1], &free);
  if (!sizes || c.in[1]->type.shape.rank() != 1 || !c.in[0]->type.shape.ranked || sizes->size() > kMostRank)
    return c.in[1];
  std::vector<Value*> parts;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const Dim& size = (*sizes)[i];
    const auto at = static_cast<int64_t>(i);
    Value* part = free == i ? c.b.ints({-1}) : part_of(c.in[1], at, at + 1, c.b);
    if (free != i && size.symbol == nullptr && !(size.known() && size.size > 0)) {
      Value* own = i < c.rank(0) ? dim_of(c.in[0], i, c.b) : c.b.ints({0});
      part = c.b.add("select", {c.b.add("equal", {part, c.b.constant(Tensor::scalar_i64(0))}), own, part});
    }
    parts.push_back(part);
  }
  return joined(parts, c.b);
}

/// 0 copies a dim of the input unless `allowzero`.
void reshape(OpContext& c) {
  if (c.opset < 5) c.in = {c.in[0], c.b.ints(c.integers("shape"))};
  c.expect_inputs(2, 2);
  bool copies = c.integer("allowzero", 0) == 0;
  auto known = c.constant(1);
  if (!known || !copies) {
    c.out = {reshape_by(c.in[0], copies ? copied_where_zero(c) : c.in[1], c.b)};
    return;
  }
  std::vector<int64_t> sizes = c.constant_integers(1, "the shape");
  std::vector<Value*> parts;
  bool dynamic = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      if (i >= c.rank(0)) fail(ErrorKind::invalid_model, "", "size {} is 0 and the input has {} dims", i, c.rank(0));
      const Dim& dim = c.in[0]->type.shape.dims[i];
      if (dim.known()) sizes[i] = dim.size;
      parts.push_back(dim_of(c.in[0], i, c.b));
      dynamic |= !dim.known();
    } else {
      parts.push_back(c.b.ints({sizes[i]}));
    }
  }
  Value* target = dynamic ? joined(parts, c.b) : c.b.ints(sizes);
  c.out = {folded(c.b.add("reshape", {c.in[0], target}), c.b)};
}

void flatten(OpContext& c) {
  c.expect_inputs(1, 1);
  auto rank = static_cast<int64_t>(c.rank(0));
  int64_t axis = c.integer("axis", 1);
  if (axis != rank) axis = normal_axis(axis, c.rank(0));
  const auto& dims = c.in[0]->type.shape.dims;
  auto product = [&](int64_t from, int64_t to) {
    int64_t result = 1;
    for (int64_t i = from; i < to; ++i) {
      const Dim& dim = dims[static_cast<size_t>(i)];
      if (!dim.known() || __builtin_mul_overflow(result, dim.size, &result)) return int64_t{-1};
    }
    return result;
  };
  int64_t before = product(0, axis), after = product(axis, rank);
  if (axis == 1 && before < 0) {  // the batch keeps its name
    std::vector<Type> type{Type::tensor(c.in[0]->type.dtype, Shape({dims[0], after < 0 ? Dim() : Dim(after)}))};
    Value* first = dim_of(c.in[0], 0, c.b);
    Value* target = after > 0 ? c.b.ints({-1, after}) : joined({first, c.b.ints({-1})}, c.b);
    c.out = {c.b.add_node(op_named("reshape"), {c.in[0], target}, {}, {}, type)->result()};
    return;
  }
  if (before < 0 && after < 0) {
    std::vector<Value*> sizes;
    for (int64_t i = 0; i < axis; ++i) sizes.push_back(dim_of(c.in[0], static_cast<size_t>(i), c.b));
    Value* rows = c.b.add("reduce_prod", {joined(sizes, c.b)}, {{"axes", std::vector<int64_t>{0}}});
    c.out = {c.b.add("reshape", {c.in[0], joined({rows, c.b.ints({-1})}, c.b)})};
    return;
  }
  c.out = {c.b.add("reshape", {c.in[0], c.b.ints({before, after})})};
}

void transpose(OpContext& c) {
  c.expect_inputs(1, 1);
  std::vector<int64_t> reversed;
  if (!c.has("perm"))
    for (size_t i = c.rank(0); i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  c.out = {folded(c.b.add("transpose", c.in, {{"permutation", c.integers("perm", reversed)}}), c.b)};
}

void concat(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  c.out = {c.in.size() == 1 ? c.in[0] : c.b.add("concat", c.in, {{"axis", c.integer("axis")}})};
}

void squeeze_row(OpContext& c) {
  c.expect_inputs(1, 2);
  auto axes = c.integers_of("axes", 1);
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < c.rank(0); ++i) {
      const Dim& dim = c.in[0]->type.shape.dims[i];
      if (!dim.known()) c.refuse("squeezes whatever dims are 1, and dim {} is not known", i);
      if (dim.size == 1) axes->push_back(static_cast<int64_t>(i));
    }
  }
  c.out = {squeeze(c.in[0], normal_axes(*axes, c.rank(0)), c.b)};
}

void unsqueeze(OpContext& c) {
  c.expect_inputs(1, 2);
  auto axes = c.integers_of("axes", 1);
  if (!axes) fail(ErrorKind::invalid_model, "", "axes are missing");
  c.out = {expand_dims(c.in[0], normal_axes(*axes, c.rank(0) + axes->size()), c.b)};
}

void expand(OpContext& c) {
  c.expect_inputs(2, 2);
  auto known = c.constant(1);
  if (known && c.in[0]->type.is_static()) {
    std::vector<int64_t> own = c.in[0]->type.shape.sizes(), target = c.constant_integers(1, "the shape");
    while (own.size() < target.size()) own.insert(own.begin(), 1);
    while (target.size() < own.size()) target.insert(target.begin(), 1);
    for (size_t i = 0; i < own.size(); ++i)
      if (target[i] == 1) target[i] = own[i];
    c.out = {folded(c.b.add("broadcast_to", {c.in[0], c.b.ints(target)}), c.b)};
    return;
  }
  // Both shapes may have ones where the other has more: a condition of the shape broadcasts with x on both sides.
  Value* yes = c.b.constant(Tensor::of<uint8_t>(kBool, {}, {1}));
  Value* condition = everywhere(yes, c.in[1], c.b);
  c.out = {c.b.add("select", {condition, c.in[0], c.in[0]})};
}

void tile(OpContext& c) {
  c.expect_inputs(2, 2);
  c.out = {c.b.add("tile", c.in)};
}

void where(OpContext& c) {
  c.expect_inputs(3, 3);
  c.out = {c.b.add("select", c.in)};
}

void range(OpContext& c) {
  c.expect_inputs(3, 3);
  const DType dtype = c.in[0]->type.dtype;
  const bool narrow = dtype == kF16 || dtype == kBF16 || (dtype.is_integer() && dtype.bits < 32);
  std::vector<Value*> bounds;
  for (Value* bound : c.in) bounds.push_back(cast_to(reshape_to(bound, {}, c.b), narrow ? kF32 : dtype, c.b));
  c.out = {cast_to(folded(c.b.add("iota", bounds, {{"dtype", narrow ? kF32 : dtype}}), c.b), dtype, c.b)};
}

constexpr Row kArrayRows[] = {
    {"Concat", concat},
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"Expand", expand},
    {"Flatten", flatten, nullptr, {}, 0, false, Row::Narrow::moves},
    {"Identity", identity, nullptr, {}, 0, false, Row::Narrow::moves},
    {"Range", range},
    {"Reshape", reshape, nullptr, {}, 0, false, Row::Narrow::moves},
    {"Shape", shape},
    {"Size", size},
    {"Squeeze", squeeze_row, nullptr, {}, 1, false, Row::Narrow::moves},
    {"Tile", tile},
    {"Transpose", transpose, nullptr, {}, 0, false, Row::Narrow::moves},
    {"Unsqueeze", unsqueeze, nullptr, {}, 1, true, Row::Narrow::moves},
    {"Where", where},
};

}  // namespace

std::span<const Row> array_rows() { return kArrayRows; }

}  // namespace cairn::onnx
