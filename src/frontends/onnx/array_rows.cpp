// ONNX's ops that create, rearrange, slice and concatenate tensors.
#include <algorithm>
#include <limits>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "frontends/values.h"

namespace cairn::onnx {
namespace {

constexpr int64_t kMostParts = 65536;
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

/// Expands bounds for some axes to a vector for all axes, with `rest` for the others.
Value* spread(OpContext& c, Value* bounds, const std::vector<int64_t>& axes, int64_t rest) {
  std::vector<Value*> parts(c.rank(0), nullptr);
  for (size_t i = 0; i < axes.size(); ++i)
    parts[static_cast<size_t>(axes[i])] = part_of(bounds, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1, c.b);
  for (Value*& part : parts)
    if (part == nullptr) part = c.b.ints({rest});
  return joined(parts, c.b);
}

/// Elements for some axes, which are known only in a run, put into a vector of `rest` for all axes.
Value* put_at(OpContext& c, Value* values, Value* axes, int64_t rest) {
  Value* all = c.b.ints(std::vector<int64_t>(c.rank(0), rest));
  return c.b.add("scatter_elements", {all, cast_to(axes, kI64, c.b), cast_to(values, kI64, c.b)});
}

/// x[begin : end : step] along one axis with a step that is known only in a run.
Value* strided(OpContext& c, Value* x, size_t axis, Value* begin, Value* end, Value* step) {
  Builder& b = c.b;
  const auto number = [&](int64_t value) { return b.constant(Tensor::scalar_i64(value)); };
  Value *size = scalar_dim(x, axis, b), *zero = number(0), *one = number(1);
  Value* back = b.add("less", {step, zero});
  const auto bound = [&](Value* at) {
    at = b.add("select", {b.add("less", {at, zero}), b.add("maximum", {b.add("add", {at, size}), number(-1)}), at});
    Value* low = b.add("select", {back, number(-1), zero});
    Value* high = b.add("select", {back, b.add("sub", {size, one}), size});
    return b.add("minimum", {b.add("maximum", {at, low}), high});
  };
  Value* places = b.add("iota", {bound(begin), bound(end), step}, {{"dtype", kI64}});
  return b.add("gather", {x, places}, {{"axis", static_cast<int64_t>(axis)}});
}

/// How many axes a slice cuts, as far as one of its vectors tells. At most one where x has one dim.
std::optional<int64_t> count_of_bounds(const OpContext& c) {
  for (size_t i = 1; i < 5; ++i)
    if (c.given(i) && c.in[i]->type.shape.known() && c.in[i]->type.shape.rank() == 1)
      return c.in[i]->type.shape.dims[0].size;
  return c.rank(0) == 1 ? std::optional<int64_t>(1) : std::nullopt;
}

/// Bounds whose number is known only in a run: as many as the others, or, where none is known, of the first axes, with `rest` for the others.
Value* bounds_of(OpContext& c, size_t input, int64_t rest) {
  Value* given = c.in[input];
  if (given->type.shape.known()) return given;
  if (const auto count = count_of_bounds(c)) return c.b.add("reshape", {given, c.b.ints({*count})});
  if (c.given(3) || c.given(4)) c.refuse("starts, ends, axes and steps have no known length");
  const auto rank = static_cast<int64_t>(c.rank(0));
  Value* all = c.b.ints(std::vector<int64_t>(c.rank(0), rest));
  Value* first = part_of(joined({c.b.add("reshape", {given, c.b.ints({-1})}), all}, c.b), 0, rank, c.b);
  return c.b.add("reshape", {first, c.b.ints({rank})});
}

/// Attributes up to operator set 9, inputs from 10 on.
void slice(OpContext& c) {
  c.expect_inputs(1, 5);
  size_t rank = c.rank(0);
  Value *begins, *ends;
  if (c.opset < 10) {
    begins = c.b.ints(c.integers("starts"));
    ends = c.b.ints(c.integers("ends"));
  } else {
    c.expect_inputs(3, 5);
    begins = bounds_of(c, 1, 0);
    ends = bounds_of(c, 2, kToTheEnd);
  }
  const Shape& length = begins->type.shape;
  if (!length.known() || length.rank() != 1 || ends->type.shape != length)
    c.refuse("starts and ends must be vectors of one known length");
  const int64_t count = length.dims[0].size;
  Value *from, *to, *step = c.given(4) && !c.constant(4) ? c.in[4] : nullptr;
  std::vector<int64_t> steps(rank, 1);
  if (c.opset >= 10 && c.given(3) && !c.constant(3) && !c.importer().is_unknown(c.in[3])) {
    from = put_at(c, begins, c.in[3], 0);
    to = put_at(c, ends, c.in[3], kToTheEnd);
    if (c.given(4) && step == nullptr) step = c.in[4];
    if (step != nullptr) step = put_at(c, step, c.in[3], 1);
  } else {
    std::vector<int64_t> axes;
    if (auto given = c.opset < 10 ? (c.has("axes") ? std::optional(c.integers("axes")) : std::nullopt)
                                  : c.integers_of("axes", 3)) {
      axes = *given;
    } else {
      for (int64_t i = 0; i < count; ++i) axes.push_back(i);
    }
    for (int64_t& axis : axes) axis = normal_axis(axis, rank);
    normal_axes(axes, rank);  // refuses one named twice
    if (c.given(4) && step == nullptr) {
      std::vector<int64_t> given = c.constant_integers(4, "the steps");
      if (given.size() != axes.size())
        fail(ErrorKind::invalid_model, "", "has {} steps for {} axes", given.size(), axes.size());
      for (size_t i = 0; i < axes.size(); ++i) steps[static_cast<size_t>(axes[i])] = given[i];
    }
    if (static_cast<int64_t>(axes.size()) != count)
      fail(ErrorKind::invalid_model, "", "has {} starts for {} axes", count, axes.size());
    if (step != nullptr && step->type.shape != length) c.refuse("the steps must be as many as the starts");
    from = spread(c, begins, axes, 0);
    to = spread(c, ends, axes, kToTheEnd);
    if (step != nullptr) step = spread(c, step, axes, 1);
  }
  if (step == nullptr) {
    c.out = {folded(c.b.add("slice", {c.in[0], from, to}, {{"steps", steps}}), c.b)};
    return;
  }
  c.out = {c.in[0]};
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<int64_t>(axis);
    const auto one = [&](Value* list) { return reshape_to(part_of(list, at, at + 1, c.b), {}, c.b); };
    Value* each = one(step);
    if (const Tensor* known = constant_of(each); known && known->as_i64()[0] == 1) {
      std::vector<int64_t> begins_of(rank, 0), ends_of(rank, kToTheEnd);
      if (const Tensor* b = constant_of(one(from)), *e = constant_of(one(to));
          b && e && b->as_i64()[0] == 0 && e->as_i64()[0] == kToTheEnd)
        continue;
    }
    c.out[0] = strided(c, c.out[0], axis, one(from), one(to), each);
  }
}

/// The sizes of the parts are an attribute or an input; without them the parts are equal, except for a smaller last
/// one.
void split(OpContext& c) {
  c.expect_inputs(1, 2);
  size_t rank = c.rank(0);
  int64_t axis = normal_axis(c.integer("axis", 0), rank);
  const Dim& dim = c.in[0]->type.shape.dims[static_cast<size_t>(axis)];
  auto count = static_cast<int64_t>(c.node().outputs.size());
  if (count < 1 || count > kMostParts) fail(ErrorKind::invalid_model, "", "splits into {} parts", count);
  std::vector<int64_t> sizes;
  const bool told_in_a_run = c.given(1) && !c.constant(1) && !c.importer().is_unknown(c.in[1]);
  if (told_in_a_run || (!c.given(1) && !c.has("split") && !dim.known())) {
    Value *end = nullptr, *each = nullptr;
    if (!told_in_a_run)
      each = c.b.add("floor_div",
                     {c.b.add("add", {dim_of(c.in[0], static_cast<size_t>(axis), c.b), c.b.ints({count - 1})}),
                      c.b.ints({count})});
    for (int64_t i = 0; i < count; ++i) {
      Value* size = each ? each : cast_to(part_of(c.in[1], i, i + 1, c.b), kI64, c.b);
      Value* begin = end == nullptr ? c.b.ints({0}) : end;
      end = c.b.add("add", {begin, size});
      const auto all = [&](Value* one, int64_t rest) {
        std::vector<Value*> parts(rank, c.b.ints({rest}));
        parts[static_cast<size_t>(axis)] = one;
        return joined(parts, c.b);
      };
      c.out.push_back(c.b.add("slice", {c.in[0], all(begin, 0), all(end, kToTheEnd)}));
    }
    return;
  }
  if (auto given = c.integers_of("split", 1)) {
    sizes = *given;
  } else {
    int64_t part = (dim.size + count - 1) / count, left = dim.size;
    for (int64_t i = 0; i < count; ++i, left -= std::min(part, left)) sizes.push_back(std::min(part, left));
  }
  if (static_cast<int64_t>(sizes.size()) != count)
    fail(ErrorKind::invalid_model, "", "has {} sizes for {} parts", sizes.size(), count);
  int64_t begin = 0;
  for (int64_t part : sizes) {
    int64_t end = 0;
    if (part < 0 || __builtin_add_overflow(begin, part, &end) || (dim.known() && end > dim.size))
      fail(ErrorKind::invalid_model, "", "the parts do not add up to {}", to_string(dim));
    std::vector<int64_t> begins(rank, 0), ends(rank, kToTheEnd);
    begins[static_cast<size_t>(axis)] = begin;
    ends[static_cast<size_t>(axis)] = end;
    c.out.push_back(c.b.add("slice", {c.in[0], c.b.ints(begins), c.b.ints(ends)}));
    begin = end;
  }
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

/// Elements `number` of each of the axes: x's own where 0 <= place < size, else those that lie as many sizes away.
Value* wrapped(OpContext& c, Value* x, Value* pads) {
  Builder& b = c.b;
  const auto rank = static_cast<int64_t>(c.rank(0));
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto of = [&](int64_t i) { return reshape_to(part_of(pads, i, i + 1, b), {}, b); };
    Value* size = scalar_dim(x, static_cast<size_t>(axis), b);
    Value* end = b.add("add", {size, of(axis + rank)});
    Value* places =
        b.add("iota", {b.add("neg", {of(axis)}), end, b.constant(Tensor::scalar_i64(1))}, {{"dtype", kI64}});
    x = b.add("gather", {x, b.add("mod", {places, size})}, {{"axis", axis}});
  }
  return x;
}

/// Pads, value or axes that are known only in a run, and pads that wrap around.
void pad_in_a_run(OpContext& c, Value* pads, Value* value, const std::string& mode) {
  Builder& b = c.b;
  const auto rank = static_cast<int64_t>(c.rank(0));
  if (mode == "wrap") {
    c.out = {wrapped(c, c.in[0], pads)};
    return;
  }
  Value* zero = b.constant(Tensor::scalar_i64(0));
  const auto pairs = [&](Value* list) {
    return b.add("transpose", {reshape_to(list, {{2}, {rank}}, b)}, {{"permutation", std::vector<int64_t>{1, 0}}});
  };
  Value* cut = b.add("minimum", {pads, zero});
  Value* begin = b.add("neg", {part_of(cut, 0, rank, b)});
  Value* end = part_of(cut, rank, 2 * rank, b);
  end = b.add("select",
              {b.add("less", {end, zero}), end, b.ints(std::vector<int64_t>(static_cast<size_t>(rank), kToTheEnd))});
  Value* table = pairs(b.add("maximum", {pads, zero}));
  Value* x = b.add("slice", {c.in[0], begin, end});
  c.out = {b.add("pad", {x, table}, {{"mode", mode}})};
  if (mode != "constant" || value == nullptr) return;
  Value* yes = b.add("broadcast_to", {b.constant(Tensor::of<uint8_t>(kBool, {}, {1})), b.add("shape_of", {x})});
  c.out = {b.add("select", {b.add("pad", {yes, table}), c.out[0], reshape_to(value, {}, b)})};
}

/// Pads come as all begins, then all ends; negative ones cut.
void pad(OpContext& c) {
  c.expect_inputs(1, 4);
  size_t rank = c.rank(0);
  const auto in_a_run = [&](size_t i) { return c.given(i) && !c.constant(i) && !c.importer().is_unknown(c.in[i]); };
  const std::string mode = c.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    c.refuse("mode '{}' is not supported", printable(mode));
  if (c.opset >= 11 && (in_a_run(1) || in_a_run(2) || in_a_run(3) || mode == "wrap")) {
    Value* pads = cast_to(c.in[1], kI64, c.b);
    const Shape& length = pads->type.shape;
    if (c.given(3) && !length.known()) c.refuse("pads of some axes must be as many as can be known");
    if (c.given(3)) {
      const int64_t half = element_count(length.sizes()).value_or(0) / 2;
      pads = joined({put_at(c, part_of(pads, 0, half, c.b), c.in[3], 0),
                     put_at(c, part_of(pads, half, 2 * half, c.b), c.in[3], 0)},
                    c.b);
    }
    return pad_in_a_run(c, pads, c.given(2) ? c.in[2] : nullptr, mode);
  }
  std::vector<int64_t> pads =
      c.opset < 11 ? c.integers(c.opset < 2 ? "paddings" : "pads") : c.constant_integers(1, "the pads");
  if (c.given(3)) {
    std::vector<int64_t> axes = c.constant_integers(3, "the axes"), all(2 * rank, 0);
    if (pads.size() != 2 * axes.size())
      fail(ErrorKind::invalid_model, "", "has {} pads for {} axes", pads.size(), axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      auto axis = static_cast<size_t>(normal_axis(axes[i], rank));
      all[axis] = pads[i];
      all[axis + rank] = pads[i + axes.size()];
    }
    pads = all;
  }
  if (pads.size() != 2 * rank) fail(ErrorKind::invalid_model, "", "has {} pads for {} dims", pads.size(), rank);
  std::vector<int64_t> pairs, begins(rank, 0), ends(rank, kToTheEnd);
  bool cuts = false;
  for (size_t i = 0; i < rank; ++i) {
    for (size_t side : {i, i + rank}) {
      if (pads[side] == std::numeric_limits<int64_t>::min())
        fail(ErrorKind::invalid_model, "", "a pad is out of range");
      pairs.push_back(std::max<int64_t>(pads[side], 0));
      cuts |= pads[side] < 0;
    }
    if (pads[i] < 0) begins[i] = -pads[i];
    if (pads[i + rank] < 0) ends[i] = pads[i + rank];
  }
  Value* x = cuts ? c.b.add("slice", {c.in[0], c.b.ints(begins), c.b.ints(ends)}) : c.in[0];
  if (mode == "wrap") c.refuse("mode wrap is not supported in this operator set");
  Attributes attributes{{"mode", mode}};
  if (c.opset < 11) {
    attributes.set("value", c.real("value", 0));
  } else if (c.given(2)) {
    auto value = c.constant(2);
    if (!value || value->count() != 1) c.refuse("the padding value must be one constant number");
    attributes.set("value", real_numbers(*value)[0]);
  }
  c.out = {
      c.b.add("pad", {x, c.b.constant(Tensor::of_i64(pairs).reshaped({static_cast<int64_t>(rank), 2}))}, attributes)};
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
    {"Pad", pad},
    {"Range", range},
    {"Reshape", reshape, nullptr, {}, 0, false, Row::Narrow::moves},
    {"Shape", shape},
    {"Size", size},
    {"Slice", slice},
    {"Split", split},
    {"Squeeze", squeeze_row, nullptr, {}, 1, false, Row::Narrow::moves},
    {"Tile", tile},
    {"Transpose", transpose, nullptr, {}, 0, false, Row::Narrow::moves},
    {"Unsqueeze", unsqueeze, nullptr, {}, 1, true, Row::Narrow::moves},
    {"Where", where},
};

}  // namespace

std::span<const Row> array_rows() { return kArrayRows; }

}  // namespace cairn::onnx
