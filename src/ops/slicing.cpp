// Ops that slice or pad a tensor by numbers along each axis.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// One axis of a slice, by Python's rules.
struct Range {
  int64_t begin = 0, count = 0;
};
Range range_of(int64_t n, int64_t begin, int64_t end, int64_t step) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  auto clamped = [&](int64_t at) { return std::clamp(at < 0 ? at + n : at, low, high); };
  begin = clamped(begin), end = clamped(end);
  // The step's magnitude is unsigned, because the step may be the smallest integer.
  const auto stride = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const int64_t distance = step > 0 ? end - begin : begin - end;
  if (distance <= 0) return {begin, 0};
  return {begin, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride + 1)};
}

// The range of a slice along one axis; with the attribute `within`, refuses bounds outside of the axis.
template <class Context>
Range checked_range(const Context& context, size_t axis, int64_t n, int64_t begin, int64_t end, int64_t step) {
  const bool to_end = end == std::numeric_limits<int64_t>::max();
  if (context.attr.boolean("within") && (begin < 0 || begin > n || (!to_end && (end < begin || end > n))))
    context.fail("{} to {} is out of range for dim {} of size {}", begin, to_end ? n : end, axis, n);
  return range_of(n, begin, end, step);
}

// True when the range is the whole axis for any size of it.
bool takes_all(DType dtype, int64_t begin, int64_t end, int64_t step) {
  const int64_t most = dtype == kI32 ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
  const int64_t least = dtype == kI32 ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
  return (step == 1 && begin == 0 && end == most) || (step == -1 && (begin == -1 || begin == most) && end == least);
}

Dims steps_of(const AttributeView& attr, size_t rank) {
  const auto& steps = attr.integers("steps");
  return steps.empty() ? Dims(rank, 1) : steps;
}

void infer_slice(InferContext& context) {
  DType dtype = moved_type(context, 0);
  const Shape& x = context.shape(0);
  for (int64_t step : context.attr.integers("steps"))
    if (step == 0) context.fail("a step is 0");
  if (!x.ranked) return context.result(dtype, Shape::unranked());
  const Dims steps = steps_of(context.attr, x.rank());
  if (steps.size() != x.rank()) context.fail("{} steps for {} dims", steps.size(), x.rank());
  for (size_t i : {1, 2})
    if (ranked(context, i, 1))
      same_size(context, context.shape(i).dims[0], static_cast<int64_t>(x.rank()), "bounds and dims");
  auto begin = constant_integers(context, 1), end = constant_integers(context, 2);
  Shape result;
  for (size_t i = 0; i < x.rank(); ++i) {
    const Dim& dim = x.dims[i];
    if (!begin || !end)
      result.dims.push_back(dim.size == 0 ? dim : Dim());
    else if (dim.known())
      result.dims.push_back(checked_range(context, i, dim.size, (*begin)[i], (*end)[i], steps[i]).count);
    else
      result.dims.push_back(takes_all(context.dtype(1), (*begin)[i], (*end)[i], steps[i]) ? dim : Dim());
  }
  context.result(dtype, std::move(result));
}

void slice(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  const Dims begin = context.input(1).as_i64(), end = context.input(2).as_i64(),
             steps = steps_of(context.attr, x.rank());
  std::vector<Range> ranges;
  for (size_t i = 0; i < x.rank(); ++i)
    ranges.push_back(checked_range(context, i, x.dims()[i], begin[i], end[i], steps[i]));
  take_along_axes(x, context.output(0), [&](size_t axis, int64_t i) { return ranges[axis].begin + i * steps[axis]; });
}

void infer_reverse(InferContext& context) {
  DType dtype = moved_type(context, 0);
  if (context.shape(0).ranked) axis_set(context, context.attr.integers("axes"), context.shape(0).rank());
  context.result(dtype, context.shape(0));
}

void reverse(KernelContext& context) {
  allocate_results(context);
  const Dims& dims = context.input(0).dims();
  std::vector<bool> turned(dims.size(), false);
  for (int64_t axis : context.attr.integers("axes"))
    turned[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis)] = true;
  take_along_axes(context.input(0), context.output(0),
                  [&](size_t axis, int64_t i) { return turned[axis] ? dims[axis] - 1 - i : i; });
}

Dim padded_size(const InferContext& context, const Dim& dim, int64_t before, int64_t after) {
  const std::string& mode = context.attr.text("mode");
  if (before < 0 || after < 0) context.fail("pads must not be negative, found {} and {}", before, after);
  if (before == 0 && after == 0) return dim;
  if (!dim.known()) return Dim();
  const int64_t most = std::max(before, after);
  if (mode == "reflect" && most >= dim.size)
    context.fail("reflected padding of {} must be less than the size {}", most, dim.size);
  if (mode == "symmetric" && most > dim.size)
    context.fail("symmetric padding of {} must be at most the size {}", most, dim.size);
  if (mode == "edge" && dim.size == 0) context.fail("an empty axis has no edge to repeat");
  int64_t size;
  if (__builtin_add_overflow(dim.size, before, &size) || __builtin_add_overflow(size, after, &size))
    context.fail("padding of {} and {} is too large", before, after);
  return size;
}

void infer_pad(InferContext& context) {
  DType dtype = moved_type(context, 0);
  const bool constant = context.attr.text("mode") == "constant";
  if (constant) number_type(context, 0);
  const Shape& x = context.shape(0);
  if (ranked(context, 1, 2)) {
    same_size(context, context.shape(1).dims[1], 2, "columns of pads and 2");
    if (x.ranked) same_size(context, context.shape(1).dims[0], static_cast<int64_t>(x.rank()), "rows of pads and dims");
  }
  if (!x.ranked) return context.result(dtype, Shape::unranked());
  auto pads = constant_integers(context, 1);
  Shape result;
  for (size_t i = 0; i < x.rank(); ++i)
    result.dims.push_back(pads ? padded_size(context, x.dims[i], (*pads)[2 * i], (*pads)[2 * i + 1]) : Dim());
  context.result(dtype, std::move(result));
}

void pad(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  const Dims& dims = x.dims();
  const Dims pads = context.input(1).as_i64();
  const std::string& mode = context.attr.text("mode");
  Tensor fill;
  if (mode == "constant") {
    fill = Tensor::zeros(x.dtype(), {});
    const double value = context.attr.number("value");
    with_numbers_or_bool(x.dtype(), [&](auto tag) {
      *data<decltype(tag)>(fill) = saturate<decltype(tag)>(x.dtype() == kBool ? value != 0 : value);
    });
  }
  const int64_t mirror = mode == "reflect" ? 1 : 0;  // 1: the edge element is not repeated
  take_along_axes(
      x, context.output(0),
      [&](size_t axis, int64_t i) -> int64_t {
        const int64_t n = dims[axis], at = i - pads[2 * axis];
        if (at >= 0 && at < n) return at;
        if (mode == "constant") return -1;
        if (mode == "edge") return at < 0 ? 0 : n - 1;
        return at < 0 ? -at - 1 + mirror : 2 * n - 1 - at - mirror;
      },
      &fill);
}

Var padded(Var x, Var pads, Var like) {
  const Type type = Type::tensor(x.dtype(), like.shape());
  return {*x.builder, x.builder->add_node(op_named("pad"), {x.value, pads.value}, {}, {}, {type})->result()};
}

// Where the sizes that count are known; what is taken whole needs none.
std::optional<Dims> known_pads(const Shape& x, const Tensor* begin, const Tensor* end) {
  if (!begin || !end || !x.ranked) return {};
  const Dims begins = begin->as_i64(), ends = end->as_i64();
  Dims pads(2 * x.rank(), 0);
  for (size_t i = 0; i < x.rank(); ++i) {
    if (begins[i] == 0 && ends[i] == std::numeric_limits<int64_t>::max()) continue;
    if (!x.dims[i].known()) return {};
    const Range range = range_of(x.dims[i].size, begins[i], ends[i], 1);
    pads[2 * i] = range.count > 0 ? range.begin : 0;
    pads[2 * i + 1] = x.dims[i].size - pads[2 * i] - range.count;
  }
  return pads;
}

// The numbers before and after dy that make it as large as x again, when a slice has taken every element of its range.
Var pads_around(GradientContext& g) {
  const Var x = g.x(0);
  if (const auto pads = known_pads(x.shape(), constant_of(g.x(1).value), constant_of(g.x(2).value)))
    return {g.b, g.b.constant(Tensor::of<int64_t>(kI64, {std::ssize(x.shape().dims), 2}, *pads))};
  const Var dims = dims_of(x), zero = dims.number(0);
  const Var before = minimum(maximum(counted_from_start(g.x(1), dims), zero), dims);
  const Var after = dims - before - dims_of(g.dy());
  const Sizes column = {Size(dims, 0), Size(g.b, 1)};
  return concat({reshape(before, column), reshape(after, column)}, 1);
}

// Puts zeros between the elements of dy for a slice of step `step`: [.., n, ..] becomes [.., (n - 1) * step + 1, ..].
Var spread(GradientContext& g, Var dy, size_t axis, int64_t step) {
  Sizes wide = sizes_of(g, dy), merged = wide;
  wide.insert(wide.begin() + static_cast<int64_t>(axis) + 1, Size(g.b, 1));
  Dims pads(2 * wide.size(), 0), begin(merged.size(), 0), end(merged.size(), std::numeric_limits<int64_t>::max());
  pads[2 * axis + 3] = step - 1;
  const Var table = {g.b, g.b.constant(Tensor::of<int64_t>(kI64, {std::ssize(wide), 2}, pads))};
  merged[axis] = merged[axis] * Size(g.b, step);
  end[axis] = merged[axis].dim().size - step + 1;
  return reshape(reshape(dy, wide).apply("pad", {table}), merged)
      .apply("slice", {{g.b, g.b.ints(begin)}, {g.b, g.b.ints(end)}});
}

void slice_rule(GradientContext& g) {
  const Var x = g.x(0);
  const Dims& steps = g.attr.integers("steps");
  if (std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; }))
    return g.set(0, padded(g.dy(), pads_around(g), x));
  const Tensor *begin = constant_of(g.x(1).value), *end = constant_of(g.x(2).value);
  // Ranges known only at run time: slice the elements' numbers the same way and add dy at these.
  if (!begin || !end || !x.type().is_static())
    return g.set(0, sum_elements(g.dy(), apply_again(g, {numbered(x), g.x(1), g.x(2)})[0], x));
  const Dims dims = x.shape().sizes(), begins = begin->as_i64(), ends = end->as_i64();
  Dims pads, turned;
  Var dy = g.dy();
  for (size_t i = 0; i < dims.size(); ++i) {
    const Range range = range_of(dims[i], begins[i], ends[i], steps[i]);
    if (range.count == 0) return g.set(0, zeros_like(x));
    const int64_t last = range.begin + (range.count - 1) * steps[i], low = std::min(range.begin, last);
    if (steps[i] < 0) turned.push_back(static_cast<int64_t>(i));
    if (range.count > 1 && steps[i] != 1 && steps[i] != -1) dy = spread(g, dy, i, std::abs(steps[i]));
    pads.insert(pads.end(), {low, dims[i] - 1 - std::max(range.begin, last)});
  }
  if (!turned.empty()) dy = dy.apply("reverse", {}, {{"axes", turned}});
  g.set(0, padded(dy, {g.b, g.b.constant(Tensor::of<int64_t>(kI64, {std::ssize(dims), 2}, pads))}, x));
}

// Constant padding: the inner part of dy. Repeated elements: the sum over their copies.
void pad_rule(GradientContext& g) {
  const Var x = g.x(0);
  if (g.attr.text("mode") != "constant")
    return g.set(0, sum_elements(g.dy(), apply_again(g, {numbered(x), g.x(1)})[0], x));
  Sizes begin, end;
  const Sizes sizes = sizes_of(g, x);
  const Var pads = constant_of(g.x(1).value) ? g.x(1) : flattened(g.x(1));
  for (size_t i = 0; i < sizes.size(); ++i) {
    begin.push_back(Size::element(pads, 2 * i));
    end.push_back(begin[i] + sizes[i]);
  }
  const Type type = Type::tensor(x.dtype(), x.shape());
  const std::vector<Value*> operands = {g.dy().value, as_vector(g.b, begin).value, as_vector(g.b, end).value};
  g.set(0, {g.b, g.b.add_node(op_named("slice"), operands, {}, {}, {type})->result()});
}

std::vector<OpDef> make_slicing_rows() {
  return {
      {.name = "slice",
       .summary =
           "x[begin : end : steps] on every axis with Python's rules: negative counts from the end, clamped; "
           "the largest integer as end means "
           "to the end, the least with a negative step past the first; steps of 1 when none are given; with within, "
           "what would be counted from the end or clamped is an error",
       .inputs = {{"x"}, shape_operand("begin"), shape_operand("end")},
       .attributes = {integers("steps", {}), flag("within")},
       .infer = infer_slice,
       .gradient = slice_rule,
       .reference = slice,
       .oracle = {"x[tuple(slice(int(b), int(e), s) for b, e, s in zip(begin, end, steps or [1] * x.ndim))]"},
       .cases =
           {"f32[5, 6], i64[2]=[1, 2], i64[2]=[4, 6]", "f32[5, 6], i64[2]=[5, 0], i64[2]=[5, 6] {within = true}",
            "f32[5, 6], i32[2]=[-3, 0], i32[2]=[-1, 2147483647]",
            "f32[7], i64[1]=[-1], i64[1]=[-9223372036854775808] {steps = [-2]}",
            "f32[7], i64[1]=[0], i64[1]=[9223372036854775807] {steps = [3]}", "f32[4], i64[1]=[3], i64[1]=[1]",
            "f32[], i64[0]=[], i64[0]=[]", "f32[0, 2], i64[2]=[0, 0], i64[2]=[5, 1]",
            "bool[3, 4, 5], i64[3]=[0, 1, -1], i64[3]=[3, 100, 0] {steps = [2, 1, -3]}",
            "f16[6], i64[1]=[2], i64[1]=[5]",
            "f32[3], i64[1]=[9223372036854775807], i64[1]=[-9223372036854775808] {steps = [-9223372036854775808]}"}},
      {.name = "reverse",
       .summary = "the order of elements turned round along the given axes",
       .inputs = {{"x"}},
       .attributes = {{"axes", AttrKind::integers}},
       .infer = infer_reverse,
       .gradient = [](GradientContext& g) { g.set(0, apply_again(g, {g.dy()})[0]); },
       .reference = reverse,
       .oracle = {"np.flip(x, tuple(axes))"},
       .cases = {"f32[2, 3] {axes = [1]}", "f32[2, 3, 4] {axes = [0, -1]}", "f32[3] {axes = []}",
                 "f32[0, 3] {axes = [0]}", "i32[5] {axes = [0]}"}},
      {.name = "pad",
       .summary = "x with pads[i] = (before, after) elements added along each axis: a value, or x mirrored without "
                  "(reflect) or with (symmetric) its "
                  "edge, or the edge repeated; negative pads are refused",
       .inputs = {{"x"}, shape_operand("pads")},
       .attributes = {word("mode", "constant", {"constant", "reflect", "symmetric", "edge"}), number("value", 0)},
       .infer = infer_pad,
       .gradient = pad_rule,
       .reference = pad,
       .oracle = {"x if x.ndim == 0 else np.pad(x, pads, mode, **({'constant_values': value} if mode == 'constant' "
                  "else {}))"},
       .cases = {"f32[2, 3], i64[2, 2]=[1, 0, 0, 2]",
                 "f32[1, 4, 5, 2], i32[4, 2]=[0, 0, 1, 1, 2, 2, 0, 0] {value = -1.5}",
                 "f32[4, 5], i64[2, 2]=[2, 3, 1, 4] {mode = reflect}",
                 "f32[4, 5], i64[2, 2]=[2, 4, 5, 1] {mode = symmetric}", "f32[3], i64[1, 2]=[4, 5] {mode = edge}",
                 "f32[], i64[0, 2]=[]", "f32[0], i64[1, 2]=[1, 1] {value = 3}", "i32[3], i64[1, 2]=[1, 1] {value = 7}",
                 "f16[3], i64[1, 2]=[1, 1] {value = 0.5}"}},
  };
}

}  // namespace

std::span<const OpDef> slicing_ops() {
  static const std::vector<OpDef> rows = make_slicing_rows();
  return rows;
}

}  // namespace cairn
