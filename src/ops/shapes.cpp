#include "ops/shapes.h"

#include <algorithm>
#include <limits>

namespace cairn {

DType moved_type(const InferContext& context, size_t i) {
  DType dtype = context.dtype(i);
  if (dtype.bits != 0 && dtype.bits < 8) context.fail("{} elements are not supported", to_string(dtype));
  return dtype;
}

DType number_type(const InferContext& context, size_t i) {
  DType dtype = moved_type(context, i);
  if (dtype.kind == DType::Kind::complex_float || dtype == kString)
    context.fail("{} elements are not supported", to_string(dtype));
  return dtype;
}

DType equal_types(const InferContext& context, size_t first) {
  DType dtype = moved_type(context, first);
  for (size_t i = first + 1; i < context.input_count(); ++i)
    if (context.dtype(i) != dtype)
      context.fail("inputs must have one element type, found {} and {}", to_string(dtype), to_string(context.dtype(i)));
  return dtype;
}

bool ranked(const InferContext& context, size_t i, size_t rank) {
  const Shape& shape = context.shape(i);
  if (shape.ranked && shape.rank() != rank)
    context.fail("input {} must have {} dims, found {}", i, rank, to_string(context.input(i)));
  return shape.ranked;
}

std::vector<Dim> dims_of_rank(const InferContext& context, size_t i, size_t rank) {
  return ranked(context, i, rank) ? context.shape(i).dims : std::vector<Dim>(rank);
}

void require_scalar(const InferContext& context, size_t i) { ranked(context, i, 0); }

Dim same_size(const InferContext& context, const Dim& a, const Dim& b, const char* what) {
  if (a.known() && b.known() && a.size != b.size) context.fail("{} must agree, found {} and {}", what, a.size, b.size);
  return a.known() || (a.symbol && !b.known()) ? a : b;
}

Shape broadcast(const InferContext& context, const Shape& a, const Shape& b) {
  if (!a.ranked || !b.ranked) return Shape::unranked();
  const Shape &longer = a.rank() >= b.rank() ? a : b, &shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  size_t lead = longer.rank() - shorter.rank();
  for (size_t i = 0; i < shorter.rank(); ++i) {
    const Dim &x = longer.dims[lead + i], &y = shorter.dims[i];
    if (x.known() && y.known() && x.size != y.size && x.size != 1 && y.size != 1)
      context.fail("shapes {} and {} do not broadcast", to_string(a), to_string(b));
    Dim& dim = result.dims[lead + i];
    if (x == Dim(1))
      dim = y;
    else if (y == Dim(1) || x.surely_equals(y) || (x.known() && !y.known()))
      dim = x;
    else
      dim = y.known() ? y : Dim();
  }
  return result;
}

std::optional<int64_t> known_count(const Shape& shape) {
  return shape.known() ? element_count(shape.sizes()) : std::nullopt;
}

size_t axis_of(const InferContext& context, int64_t axis, size_t rank, const char* what) {
  auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) context.fail("{} {} is out of range for {} dims", what, axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::vector<bool> axis_set(const InferContext& context, const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> set(rank, false);
  for (int64_t axis : axes) {
    size_t at = axis_of(context, axis, rank);
    if (set[at]) context.fail("axis {} is named twice", axis);
    set[at] = true;
  }
  return set;
}

Shape reduced(const Shape& shape, const std::vector<bool>& axes, bool keep_dims) {
  Shape result;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (!axes[i])
      result.dims.push_back(shape.dims[i]);
    else if (keep_dims)
      result.dims.push_back(1);
  }
  return result;
}

std::optional<Dims> constant_integers(const InferContext& context, size_t i) {
  const Tensor* tensor = context.constant(i);
  if (!tensor) return std::nullopt;
  return tensor->as_i64();
}

Shape shape_operand(const InferContext& context, size_t i) {
  if (!ranked(context, i, 1)) return Shape::unranked();
  if (auto values = constant_integers(context, i)) {
    for (int64_t value : *values)
      if (value < 0) context.fail("shape has a negative size {}", value);
    return Shape::of(*values);
  }
  const Dim& rank = context.shape(i).dims[0];
  if (!rank.known() || rank.size > kMaxRank) return Shape::unranked();
  return Shape(std::vector<Dim>(static_cast<size_t>(rank.size)));
}

namespace {

bool is_same(const WindowSpec& spec) { return spec.padding == "same" || spec.padding == "same_lower"; }

}  // namespace

int64_t WindowSpec::padding_before(int64_t in, int64_t out) const {
  if (!is_same(*this)) return padding == "explicit" ? before : 0;
  auto total = static_cast<int64_t>(std::max<__int128>(__int128{out - 1} * stride + reach() - in, 0));
  return padding == "same" ? total / 2 : total - total / 2;
}

WindowSpec window_spec(const AttributeView& attr, int64_t size, size_t axis) {
  WindowSpec spec;
  spec.size = size;
  spec.stride = attr.integers("strides")[axis];
  if (attr.has("dilations")) spec.dilation = attr.integers("dilations")[axis];
  spec.padding = attr.text("padding");
  const auto& pads = attr.integers("pads");
  if (spec.padding == "explicit") spec.before = pads[2 * axis], spec.after = pads[2 * axis + 1];
  spec.ceil = attr.has("ceil_mode") && attr.boolean("ceil_mode");
  return spec;
}

void check_windows(const InferContext& context, size_t dims) {
  auto check = [&](const char* name, size_t length) {
    size_t found = context.attr.integers(name).size();
    if (found != length) context.fail("{} must have {} values, found {}", name, length, found);
  };
  check("strides", dims);
  if (context.attr.has("dilations")) check("dilations", dims);
  check("pads", 2 * dims);
}

Dim slide(const InferContext& context, const Dim& in, const WindowSpec& spec) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  auto check = [&](const char* what, int64_t value, int64_t least) {
    if (value < least || value > kMost) context.fail("{} must be at least {}, found {}", what, least, value);
  };
  check("stride", spec.stride, 1);
  check("dilation", spec.dilation, 1);
  check("window", spec.size, 1);
  check("padding", spec.before, 0);
  check("padding", spec.after, 0);
  if (is_same(spec)) {
    if (!in.known()) return spec.stride == 1 ? in : Dim();
    return in.size / spec.stride + (in.size % spec.stride != 0);
  }
  if (!in.known()) return spec.stride == 1 && spec.before + spec.after == spec.reach() - 1 ? in : Dim();
  const __int128 padded = __int128{in.size} + spec.before + spec.after, last = padded - spec.reach() + spec.stride;
  if (last < 0)
    context.fail("window of {} does not fit {} elements with padding {} and {}", spec.reach(), in.size, spec.before,
                 spec.after);
  auto out = static_cast<int64_t>((last + (spec.ceil ? spec.stride - 1 : 0)) / spec.stride);
  if (spec.ceil && out > 0 && __int128{out - 1} * spec.stride >= __int128{in.size} + spec.before) --out;
  return out;
}

}  // namespace cairn
