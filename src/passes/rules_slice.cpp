// Joins slices, and writes what is one as one.
#include <algorithm>
#include <limits>

#include "passes/facts.h"
#include "passes/rules.h"

namespace cairn {

namespace {

// One slice for two with positive steps; an axis of unknown size is one that either takes whole.
Value* slice_once(Match& m) {
  constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
  const Node &first = m.node("first"), &second = m.root();
  const Shape &x = m["x"]->type.shape, &middle = first.result()->type.shape, &y = m.type().shape;
  if (!x.ranked || !middle.ranked || !y.ranked) return nullptr;
  if (first.attr().boolean("within") || second.attr().boolean("within")) return nullptr;
  const size_t rank = x.rank();
  struct Bounds {
    std::vector<int64_t> begin, end, steps;
    bool takes_all(size_t i) const { return begin[i] == 0 && end[i] == kToTheEnd && steps[i] == 1; }
  };
  const auto read = [&](const Node& node, const char* begin, const char* end) {
    Bounds bounds{m.constant(begin).as_i64(), m.constant(end).as_i64(), node.attr().integers("steps")};
    if (bounds.steps.empty()) bounds.steps.assign(rank, 1);
    return bounds;
  };
  const Bounds inner = read(first, "b", "e"), outer = read(second, "c", "d");
  Bounds both = inner;
  for (size_t i = 0; i < rank; ++i) {
    if (inner.steps[i] < 1 || outer.steps[i] < 1) return nullptr;
    if (outer.takes_all(i)) continue;
    if (inner.takes_all(i)) {
      both.begin[i] = outer.begin[i], both.end[i] = outer.end[i], both.steps[i] = outer.steps[i];
      continue;
    }
    const int64_t n = x.dims[i].size, kept = middle.dims[i].size, count = y.dims[i].size;
    if (!x.dims[i].known() || !middle.dims[i].known() || !y.dims[i].known() || count == 0) return nullptr;
    const auto from_start = [](int64_t at, int64_t size) {
      return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    };
    both.begin[i] = from_start(inner.begin[i], n) + from_start(outer.begin[i], kept) * inner.steps[i];
    both.steps[i] = count == 1 ? 1 : inner.steps[i] * outer.steps[i];
    both.end[i] = both.begin[i] + (count - 1) * both.steps[i] + 1;
  }
  const Type& index = second.inputs[1]->type;
  if (index.dtype != kI64) return nullptr;
  return m.like(second,
                {m["x"], m.constant(integers_like(index, both.begin)), m.constant(integers_like(index, both.end))},
                {{"steps", both.steps}});
}

// The place along the axis that a gathering takes alone, where it surely exists.
std::optional<int64_t> only_place(const Match& m) {
  const Node& gather = m.root();
  const Tensor& index = m.constant("c");
  const Shape& shape = m["x"]->type.shape;
  if (index.count() != 1 || index.dims().size() > 1 || !shape.ranked || gather.attr().integer("batch_dims") != 0)
    return std::nullopt;
  const Dim& size = shape.dims[axis_of(gather.attr().integer("axis"), shape.rank())];
  const int64_t place = index.as_i64()[0], least = gather.attr().boolean("from_start") ? 0 : -size.size;
  if (!size.known() || place < least || place >= size.size) return std::nullopt;
  return place < 0 ? place + size.size : place;
}

bool gathers_one(const Match& m) {
  const Shape& shape = m.type().shape;
  return only_place(m) && (m.constant("c").dims().size() == 1 || (shape.ranked && reshape_operand(shape.dims)));
}

Value* slice_of_one(Match& m) {
  const size_t rank = m["x"]->type.shape.rank(), axis = axis_of(m.root().attr().integer("axis"), rank);
  const int64_t place = *only_place(m);
  std::vector<int64_t> begin(rank, 0), end(rank, std::numeric_limits<int64_t>::max());
  begin[axis] = place, end[axis] = place + 1;
  Value* part = m.add("slice", {m["x"], m.constant(Tensor::of_i64(begin)), m.constant(Tensor::of_i64(end))});
  if (m.constant("c").dims().size() == 1) return part;
  return m.add("reshape", {part, m.constant(Tensor::of_i64(*reshape_operand(m.type().shape.dims)))});
}

constexpr Rule kSliceRules[] = {
    {.name = "slice_of_slice",
     .summary = "a slice of a slice is one slice",
     .pattern = "slice(slice(x, b!, e!)~:first, c!, d!)",
     .replace = slice_once,
     .in = "(%x: f32[?n, 9, 8]) -> (%y: f32[?n, 3, 4]) { %b = constant {value = i64[3] (0, 1, 0)} "
           "%e = constant {value = i64[3] (9223372036854775807, -1, 9223372036854775807)} %s = slice %x, %b, %e "
           "%c = constant {value = i64[3] (0, 1, 0)} "
           "%d = constant {value = i64[3] (9223372036854775807, 9223372036854775807, 9223372036854775807)} "
           "%y = slice %s, %c, %d {steps = [1, 2, 2]} return %y }",
     .out = "(%x: f32[?n, 9, 8]) -> (%y: f32[?n, 3, 4]) { %c = constant {value = i64[3] (0, 2, 0)} "
            "%d = constant {value = i64[3] (9223372036854775807, 7, 9223372036854775807)} "
            "%y = slice %x, %c, %d {steps = [1, 2, 2]} return %y }"},
    {.name = "gather_of_one_place",
     .summary = "one constant place of an axis is a slice, which what follows can read where it is",
     .pattern = "gather(x, c!)",
     .where = gathers_one,
     .replace = slice_of_one,
     .in = "(%x: f32[?n, 5, 2]) -> (%y: f32[?n, 2]) { %c = constant {value = i64[] (-1)} %y = gather %x, %c {axis = 1} "
           "return %y }",
     .out = "(%x: f32[?n, 5, 2]) -> (%y: f32[?n, 2]) { %b = constant {value = i64[3] (0, 4, 0)} "
            "%e = constant {value = i64[3] (9223372036854775807, 5, 9223372036854775807)} %a = slice %x, %b, %e "
            "%s = constant {value = i64[2] (-1, 2)} %y = reshape %a, %s : f32[?n, 2] return %y }"},
};

}  // namespace

std::span<const Rule> slice_rules() { return kSliceRules; }

}  // namespace cairn
