// ONNX's ops that cut tensors, by slices, splits and negative pads, or pad them.
#include <algorithm>
#include <limits>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "frontends/values.h"

namespace cairn::onnx {
namespace {

constexpr int64_t kMostParts = 65536;

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
constexpr Row kSliceRows[] = {
    {"Pad", pad},
    {"Slice", slice},
    {"Split", split},
};

}  // namespace

std::span<const Row> slice_rows() { return kSliceRows; }

}  // namespace cairn::onnx
