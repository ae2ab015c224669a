// Reductions over groups of rows given by indices: segments, and scattered updates with a reduction.
#include <algorithm>

#include "ops/combine.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void infer_segment_reduce(InferContext& context) {
  const DType dtype = number_type(context, 0);
  if (!dtype.is_float() && (context.attr.text("mode") == "mean" || context.attr.text("mode") == "sqrt_n"))
    context.fail("the mean of {} is not supported", to_string(dtype));
  require_scalar(context, 2);
  const Shape &x = context.shape(0), &segments = context.shape(1);
  Dim count;
  if (auto value = constant_integers(context, 2)) {
    if ((*value)[0] < 0) context.fail("count must not be negative, found {}", (*value)[0]);
    count = (*value)[0];
  }
  if (!x.ranked || !segments.ranked) return context.result(dtype, Shape::unranked());
  if (segments.rank() > x.rank()) context.fail("segments have {} dims, x has {}", segments.rank(), x.rank());
  for (size_t i = 0; i < segments.rank(); ++i)
    same_size(context, x.dims[i], segments.dims[i], "sizes of x and segments");
  Shape result = x;
  result.dims.erase(result.dims.begin(), result.dims.begin() + static_cast<int64_t>(segments.rank()));
  result.dims.insert(result.dims.begin(), count);
  context.result(dtype, std::move(result));
}

double count_flops(const InferContext& context) {
  return static_cast<double>(known_count(context.shape(0)).value_or(0));
}

// Combines two elements by the reduction that the attribute names.
template <class S>
S combine(std::string_view mode, S a, S b) {
  if (mode == "sub") return Subtract()(a, b);
  if (mode == "mul" || mode == "prod") return Multiply()(a, b);
  if (mode == "div") return Divide()(a, b);
  if (mode == "max") return Largest()(a, b);
  if (mode == "min") return Least()(a, b);
  return Add()(a, b);
}

void segment_reduce(KernelContext& context) {
  allocate_results(context);
  const Tensor &x = context.input(0), &segments = context.input(1);
  Tensor& y = context.output(0);
  const std::string& mode = context.attr.text("mode");
  const int64_t count = y.dims()[0], inner = count_between(y.dims(), 1, y.rank());
  const Dims places = segments.as_i64();
  for (int64_t place : places)
    if (place >= count) context.fail("segment {} is out of range for {} segments", place, count);
  for (size_t i = 0; i < places.size() && context.attr.boolean("sorted"); ++i)
    if (const int64_t least = i == 0 ? 0 : places[i - 1]; places[i] < least)
      context.fail("segment {} where sorted ones are {} at least", places[i], least);
  std::vector<int64_t> members(static_cast<size_t>(y.count() ? count : 0));
  with_numbers(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<Sum<T>> sums(static_cast<size_t>(y.count()), neutral<T, Sum<T>>(mode));
    for (const size_t i : turns(y.count() > 0 ? places.size() : 0)) {
      if (places[i] < 0) continue;
      ++members[static_cast<size_t>(places[i])];
      const T* from = data<T>(x) + static_cast<int64_t>(i) * inner;
      for (const int64_t j : turns(inner)) {
        Sum<T>& sum = sums[static_cast<size_t>(places[i] * inner + j)];
        sum = combine(mode, sum, static_cast<Sum<T>>(from[j]));
      }
    }
    for (const int64_t i : turns(y.count())) {
      const int64_t size = members[static_cast<size_t>(i / inner)];
      Sum<T> sum = sums[static_cast<size_t>(i)];
      if constexpr (kIsFloat<T>) {
        if (size > 0 && mode == "mean") sum /= static_cast<double>(size);
        if (size > 0 && mode == "sqrt_n") sum /= std::sqrt(static_cast<double>(size));
      }
      if (size == 0 && context.attr.boolean("empty_is_zero")) sum = 0;
      data<T>(y)[i] = T(static_cast<Compute<T>>(sum));
    }
  });
}

void infer_gather_reduce(InferContext& context) {
  const DType dtype = number_type(context, 0);
  require_scalar(context, 3);
  const Shape& x = context.shape(0);
  Dim picks = ranked(context, 1, 1) ? context.shape(1).dims[0] : Dim(), count;
  if (ranked(context, 2, 1))
    picks = same_size(context, picks, context.shape(2).dims[0], "numbers of indices and segments");
  if (context.input_count() > 4) {
    if (context.dtype(4) != dtype)
      context.fail("weights must be {}, found {}", to_string(dtype), to_string(context.dtype(4)));
    if (ranked(context, 4, 1)) same_size(context, picks, context.shape(4).dims[0], "numbers of indices and weights");
  }
  if (auto value = constant_integers(context, 3)) {
    if ((*value)[0] < 0) context.fail("count must not be negative, found {}", (*value)[0]);
    count = (*value)[0];
  }
  if (!x.ranked) return context.result(dtype, Shape::unranked());
  if (x.rank() == 0) context.fail("x must have rows, found {}", to_string(context.input(0)));
  Shape result = x;
  result.dims[0] = count;
  context.result(dtype, std::move(result));
}

double gather_flops(const InferContext& context) {
  const Shape& x = context.shape(0);
  if (!x.known() || x.dims[0].size == 0) return 0;
  return 2 * static_cast<double>(known_count(context.shape(1)).value_or(0)) *
         static_cast<double>(*known_count(x) / x.dims[0].size);
}

void gather_reduce(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const Dims indices = context.input(1).as_i64(), segments = context.input(2).as_i64();
  const int64_t rows = x.dims()[0], count = y.dims()[0], inner = count_between(x.dims(), 1, x.rank());
  const std::string& mode = context.attr.text("mode");
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<double> sums(static_cast<size_t>(y.count())), members(static_cast<size_t>(count));
    for (const size_t i : turns(indices.size())) {
      const int64_t row = indices[i] < 0 && !context.attr.boolean("from_start") ? indices[i] + rows : indices[i];
      if (row < 0 || row >= rows) context.fail("index {} is out of range for {} rows", indices[i], rows);
      if (segments[i] >= count) context.fail("segment {} is out of range for {} segments", segments[i], count);
      if (const int64_t least = i == 0 ? 0 : segments[i - 1]; context.attr.boolean("sorted") && segments[i] < least)
        context.fail("segment {} where sorted ones are {} at least", segments[i], least);
      if (segments[i] < 0) continue;
      ++members[static_cast<size_t>(segments[i])];
      const double weight =
          context.input_count() > 4 ? static_cast<double>(static_cast<Compute<T>>(data<T>(context.input(4))[i])) : 1;
      for (const int64_t j : turns(inner))
        sums[static_cast<size_t>(segments[i] * inner + j)] +=
            weight * static_cast<double>(static_cast<Compute<T>>(data<T>(x)[row * inner + j]));
    }
    for (const int64_t i : turns(y.count())) {
      const double size = std::max(1.0, members[static_cast<size_t>(i / inner)]);
      const double sum = sums[static_cast<size_t>(i)] / (mode == "sum" ? 1 : mode == "mean" ? size : std::sqrt(size));
      data<T>(y)[i] = T(static_cast<Compute<T>>(sum));
    }
  });
}

std::vector<Value*> gather_then_reduce(Builder& b, const Node& node) {
  Value* rows = b.add("gather", {node.inputs[0], node.inputs[1]},
                      {{"axis", int64_t{0}}, {"from_start", node.attr().boolean("from_start")}});
  if (node.inputs.size() > 4) {
    std::vector<int64_t> column(node.inputs[0]->type.shape.rank(), 1);
    column[0] = -1;
    rows = b.add("mul", {rows, b.add("reshape", {node.inputs[4], b.ints(column)})});
  }
  return {b.add("segment_reduce", {rows, node.inputs[2], node.inputs[3]},
                {{"mode", node.attr().text("mode")}, {"sorted", node.attr().boolean("sorted")}})};
}

void infer_scatter_reduce(InferContext& context) {
  const DType dtype = number_type(context, 0);
  if (context.dtype(2) != dtype)
    context.fail("updates must be {}, found {}", to_string(dtype), to_string(context.dtype(2)));
  if (!dtype.is_float() && context.attr.text("mode") == "div") context.fail("{} cannot be divided", to_string(dtype));
  const Shape &x = context.shape(0), &indices = context.shape(1), &updates = context.shape(2);
  if (x.ranked && x.rank() == 0) context.fail("x must have rows, found {}", to_string(context.input(0)));
  if (x.ranked && indices.ranked && updates.ranked) {
    if (updates.rank() != indices.rank() + x.rank() - 1)
      context.fail("updates must have {} dims, found {}", indices.rank() + x.rank() - 1, to_string(context.input(2)));
    for (size_t i = 0; i < updates.rank(); ++i)
      same_size(context, updates.dims[i], i < indices.rank() ? indices.dims[i] : x.dims[i - indices.rank() + 1],
                "sizes of updates");
  }
  context.result(dtype, x);
}

void scatter_reduce(KernelContext& context) {
  allocate_results(context);
  const Tensor& updates = context.input(2);
  const Dims rows = context.input(1).as_i64();
  Tensor& y = context.output(0);
  const int64_t count = y.dims()[0], inner = count_between(y.dims(), 1, y.rank());
  const bool padded = context.attr.boolean("padded");
  for (int64_t row : rows)
    if ((row < 0 && !padded) || row >= count) context.fail("index {} is out of range for {} rows", row, count);
  const std::string& mode = context.attr.text("mode");
  copy_elements(context.input(0), y);
  if (updates.count() == 0) return;
  with_numbers(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (const size_t i : turns(rows.size())) {
      if (rows[i] < 0) continue;
      T* to = data<T>(y) + rows[i] * inner;
      const T* from = data<T>(updates) + static_cast<int64_t>(i) * inner;
      for (const int64_t j : turns(inner))
        to[j] = T(combine(mode, static_cast<Compute<T>>(to[j]), static_cast<Compute<T>>(from[j])));
    }
  });
}

void infer_scatter_elements(InferContext& context) {
  const DType dtype = number_type(context, 0);
  if (context.dtype(2) != dtype)
    context.fail("updates must be {}, found {}", to_string(dtype), to_string(context.dtype(2)));
  const Shape &x = context.shape(0), &indices = context.shape(1), &updates = context.shape(2);
  if (x.ranked && indices.ranked && updates.ranked) {
    const size_t axis = axis_of(context, context.attr.integer("axis"), x.rank());
    if (indices.rank() <= axis || indices.rank() > x.rank() || updates.rank() != x.rank())
      context.fail("indices of {} dims and updates of {} do not fit {} dims and axis {}", indices.rank(),
                   updates.rank(), x.rank(), axis);
    for (size_t i = 0; i < x.rank(); ++i) {
      const Dim& dim = i < indices.rank() ? indices.dims[i] : x.dims[i];
      same_size(context, updates.dims[i], dim, "sizes of updates");
      if (i != axis && dim.known() && x.dims[i].known() && dim.size > x.dims[i].size)
        context.fail("dim {} of the indices is {}, that of x {}", i, dim.size, x.dims[i].size);
    }
  }
  context.result(dtype, x);
}

void scatter_elements(KernelContext& context) {
  allocate_results(context);
  const Tensor& updates = context.input(2);
  Tensor& y = context.output(0);
  copy_elements(context.input(0), y);
  if (updates.count() == 0) return;
  const Dims& shape = context.input(1).dims();
  const Dims indices = context.input(1).as_i64(), strides = strides_of(y.dims());
  const size_t axis = axis_from_start(context.attr.integer("axis"), y.rank());
  const int64_t part = count_between(y.dims(), shape.size(), y.rank()), size = y.dims()[axis];
  const std::string& mode = context.attr.text("mode");
  for (size_t i = 0; i < shape.size(); ++i)
    if (i != axis && shape[i] > y.dims()[i])
      context.fail("dim {} of the indices is {}, that of x {}", i, shape[i], y.dims()[i]);
  with_numbers(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (const size_t n : turns(indices.size())) {
      int64_t at = indices[n] < 0 ? indices[n] + size : indices[n], rest = static_cast<int64_t>(n);
      if (at < 0 || at >= size) context.fail("index {} is out of range for {} elements", indices[n], size);
      at *= strides[axis];
      for (size_t i = shape.size(); i-- > 0; rest /= shape[i])
        if (i != axis) at += rest % shape[i] * strides[i];
      T* to = data<T>(y) + at;
      const T* from = data<T>(updates) + static_cast<int64_t>(n) * part;
      for (const int64_t j : turns(part))
        to[j] = mode == "update" ? from[j]
                                 : T(combine(mode, static_cast<Compute<T>>(to[j]), static_cast<Compute<T>>(from[j])));
    }
  });
}

// Parts as rows, each with the number of its row in x.
std::vector<Value*> scatter_elements_by_rows(Builder& b, const Node& node) {
  const Var x(b, node.inputs[0]), indices(b, node.inputs[1]), updates(b, node.inputs[2]);
  const size_t rank = x.shape().rank(), lead = indices.shape().rank();
  const size_t axis = axis_from_start(node.attr().integer("axis"), rank);
  Size rows(b, 1), count(b, 1), width(b, 1);
  for (size_t i = 0; i < rank; ++i) (i < lead ? rows : width) = (i < lead ? rows : width) * Size(x, i);
  for (size_t i = 0; i < lead; ++i) count = count * Size(indices, i);
  const Var named = counted_from_start(cast(indices, kI64), Size(x, axis).scalar());
  Var numbers = named * named.number(0);
  for (size_t i = 0; i < lead; ++i) {
    Sizes along(lead, Size(b, 1));
    along[i] = Size(indices, i);
    numbers = numbers * Size(x, i).scalar() + (i == axis ? named : reshape(counting(along[i]), along));
  }
  const Var from = reshape(x, {rows, width}), parts = reshape(updates, {count, width});
  const std::string& mode = node.attr().text("mode");
  if (mode == "update")
    return {reshape_like(from.apply("scatter_update", {reshape(numbers, {count, Size(b, 1)}), parts}), x).value};
  return {reshape_like(from.apply("scatter_reduce", {reshape(numbers, {count}), parts}, {{"mode", mode}}), x).value};
}

void require_distinct(KernelContext& context) {
  allocate_results(context);
  Dims values = context.input(0).as_i64();
  std::sort(values.begin(), values.end());
  auto twice = std::adjacent_find(values.begin(), values.end());
  if (twice != values.end()) context.fail("{} is there twice", *twice);
  copy_elements(context.input(0), context.output(0));
}

// The reduced operand (x of segment_reduce, updates of scatter_reduce) as rows, and for each the row of y that it is
// part of.
struct Members {
  Members(GradientContext& g, Var parts_of, Var indices, Var whole)
      : sizes(sizes_of(g, parts_of)), lead(indices.shape().rank()), count(product_of(g.b, sizes, 0, lead)),
        width(product_of(g.b, sizes, lead, sizes.size())), groups(whole, 0), rows(reshape(parts_of, {count, width})),
        numbers(reshape(cast(indices, kI64), {count})), present(reshape(numbers > -1, {count, Size(g.b, 1)})),
        like(parts_of) {}
  Var as_rows(Var y) const { return reshape(y, {groups, width}); }
  // For each row the row of y of its group; 0 for rows that are left out.
  Var of_group(Var y) const { return gather_rows_or_zeros(as_rows(y), numbers); }
  Var sums(Var parts) const { return sum_rows(parts, numbers, groups); }
  Var back(Var parts) const { return reshape_like(parts, like); }

  Sizes sizes;
  size_t lead;
  Size count, width, groups;
  Var rows, numbers, present, like;
};

void segment_reduce_rule(GradientContext& g) {
  if (!g.x(1).shape().ranked) refuse_gradient(g, "the gradient needs the number of dims, which is not known");
  const std::string& mode = g.attr.text("mode");
  const Members of(g, g.x(0), g.x(1), g.y());
  const Var dy = of.of_group(g.dy());
  if (mode == "sum") return g.set(0, of.back(dy));
  if (mode == "mean" || mode == "sqrt_n") {
    const Var one = reshape(ones_like(reshape(cast(of.present, dy.dtype()), {of.count})), {of.count, Size(g.b, 1)});
    const Var members = maximum(gather_rows_or_zeros(of.sums(one), of.numbers), one);
    return g.set(0, of.back(dy / (mode == "mean" ? members : sqrt(members))));
  }
  const auto spread = [&](Var parts) { return gather_rows_or_zeros(parts, of.numbers); };
  const auto sum = [&](Var parts) { return spread(of.sums(parts)); };
  if (mode == "prod") {
    const auto product = [&](Var parts) {
      return spread(parts.apply("segment_reduce", {of.numbers, of.groups.scalar()}, {{"mode", std::string("prod")}}));
    };
    return g.set(0, of.back(dy * product_of_others(of.rows, product, sum)));
  }
  // The gradient is divided equally among all elements that have the extreme value.
  const Var here = of.rows.apply("equal", {spread(of.as_rows(g.y()))});
  const Var share = keep_where(of.present, cast(here, dy.dtype()));
  g.set(0, of.back(dy * share / maximum(sum(share), share.number(1))));
}

// Gradient of a scattered product: each factor's gradient is dy times the product of the other factors.
void scatter_product_rule(GradientContext& g, const Members& of, bool divided) {
  const auto combined = [&](Var parts) {
    const Var ones = broadcast_to_like(parts.number(1), of.as_rows(g.x(0)));
    return ones.apply("scatter_reduce", {of.numbers, parts}, {{"mode", std::string("mul")}, {"padded", true}});
  };
  const auto spread = [&](Var whole) { return gather_rows_or_zeros(whole, of.numbers); };
  const Var factor = reshape_like(combined(of.rows), g.x(0));
  g.set(0, divided ? g.dy() / factor : g.dy() * factor);
  if (!g.wanted(2)) return;
  if (divided) return g.set(2, of.back(-of.of_group(g.dy() * g.y()) / of.rows));
  const Var others = product_of_others(
      of.rows, [&](Var parts) { return spread(combined(parts)); }, [&](Var parts) { return spread(of.sums(parts)); });
  g.set(2, of.back(of.of_group(g.dy() * g.x(0)) * others));
}

void scatter_reduce_rule(GradientContext& g) {
  if (!g.x(1).shape().ranked) refuse_gradient(g, "the gradient needs the number of dims, which is not known");
  const std::string& mode = g.attr.text("mode");
  const Members of(g, g.x(2), g.x(1), g.x(0));
  if (mode == "mul" || mode == "div") return scatter_product_rule(g, of, mode == "div");
  if (mode == "add" || mode == "sub") {
    g.set(0, g.dy());
    if (g.wanted(2)) g.set(2, of.back(mode == "sub" ? -of.of_group(g.dy()) : of.of_group(g.dy())));
    return;
  }
  // The gradient is divided equally among the element of x and the updates that have the extreme value.
  const Var y = of.as_rows(g.y()), own = cast(of.as_rows(g.x(0)).apply("equal", {y}), y.dtype());
  const Var chosen = keep_where(of.present, cast(of.rows.apply("equal", {of.of_group(g.y())}), y.dtype()));
  const Var share = of.as_rows(g.dy()) / (own + of.sums(chosen));
  g.set(0, reshape_like(own * share, g.x(0)));
  g.set(2, of.back(chosen * of.of_group(share)));
}

std::vector<OpDef> make_segment_rows() {
  return {
      {.name = "segment_reduce",
       .summary =
           "the rows of x (what stands under each element of segments) with equal segment combined, for segments "
           "0 to count - 1; rows of negative segments are left out, one at or above count is an error; sqrt_n "
           "divides the sum by the root of the number of rows; an empty segment gives 0, of prod 1, of max the "
           "lowest finite number, of min the largest, all 0 with empty_is_zero; with sorted a segment that is negative "
           "or "
           "less than the one before is an error",
       .inputs = {{"x", Accepts::numbers}, index_operand("segments"), shape_operand("count")},
       .attributes = {word("mode", "sum", {"sum", "mean", "sqrt_n", "prod", "max", "min"}), flag("empty_is_zero"),
                      flag("sorted")},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_segment_reduce,
       .flops = count_flops,
       .gradient = segment_reduce_rule,
       .reference = segment_reduce,
       .oracle = {"segment_reduce(x, segments, int(count), mode, empty_is_zero)"},
       .cases = {"f32[4, 3], i64[4]=[1, 0, 1, 3], i64[]=[5]", "f32[4, 3], i32[4]=[1, -1, 1, 3], i32[]=[4] {mode = max}",
                 "f32[6], i64[6]=[0, 0, 2, 2, 2, 3], i64[]=[4] {mode = mean}",
                 "f32[6, 2], i64[6]=[0, 0, 2, 2, 2, 3], i64[]=[4] {mode = sqrt_n}",
                 "f32[2, 2, 3], i64[2, 2]=[0, 1, 1, 4], i64[]=[5] {mode = prod}",
                 "f32[4], i64[4]=[0, 0, 2, 2], i64[]=[4] {mode = min}",
                 "f32[4], i64[4]=[0, 0, 2, 2], i64[]=[4] {mode = max, empty_is_zero = true}",
                 "f32[4, 2], i64[4]=[0, 0, 2, 3], i64[]=[4] {sorted = true}", "f32[0, 3], i64[0]=[], i64[]=[2]",
                 "f32[3], i64[3]=[-1, -1, -1], i64[]=[0]", "i32[4], i64[4]=[1, 1, 0, 1], i64[]=[2]",
                 "f16[5], i64[5]=[1, 1, 0, 1, 0], i64[]=[2]"}},
      {.name = "gather_reduce",
       .summary = "for the segments 0 to count - 1 the sum of those rows of x, times their weight (1 without weights), "
                  "that the "
                  "indices of equal segment name; mean and sqrt_n divide it by their number or its root; a negative "
                  "index counts "
                  "from the end, from_start makes it an error; negative segments are left out, one at or above count "
                  "is an error",
       .inputs = {{"x", Accepts::floats},
                  index_operand("indices"),
                  index_operand("segments"),
                  shape_operand("count"),
                  {"weights", Accepts::floats, InputDef::Arity::optional}},
       .attributes = {word("mode", "sum", {"sum", "mean", "sqrt_n"}), flag("from_start"), flag("sorted")},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_gather_reduce,
       .flops = gather_flops,
       .gradient = by_decomposition,
       .decompose = gather_then_reduce,
       .reference = gather_reduce,
       .oracle = {"segment_reduce(x[indices] * (1 if weights is None else weights.reshape((-1,) + (1,) * (x.ndim - "
                  "1))), segments, "
                  "int(count), mode, False)"},
       .cases = {"f32[4, 3], i64[5]=[1, 0, 3, -1, 1], i64[5]=[0, 2, 2, 1, 0], i64[]=[4]",
                 "f32[4, 3], i32[3]=[1, 0, 3], i64[3]=[0, 1, 0], i32[]=[2], f32[3] {mode = mean}",
                 "f32[4], i32[3]=[1, 0, 3], i32[3]=[0, -1, 0], i64[]=[1], f32[3] {mode = sqrt_n, from_start = true}",
                 "f32[2, 3, 2], i64[0]=[], i64[0]=[], i64[]=[2]",
                 "f16[4, 2], i64[3]=[2, 2, 0], i64[3]=[1, 1, 1], i64[]=[2]"}},
  };
}

std::vector<OpDef> make_row_scatter_rows() {
  return {
      {.name = "scatter_reduce",
       .summary =
           "x with each row of updates combined into the row of x that its index names, in their order; an index "
           "that is no row is an error, but with padded a negative one leaves its row out; integers wrap",
       .inputs = {{"x", Accepts::numbers}, index_operand("indices"), {"updates", Accepts::numbers}},
       .attributes = {word("mode", "add", {"add", "sub", "mul", "div", "min", "max"}), flag("padded")},
       .traits = kInPlace,
       .precision = Precision::accumulate_f32,
       .infer = infer_scatter_reduce,
       .gradient = scatter_reduce_rule,
       .reference = scatter_reduce,
       .oracle = {"scatter_reduce(x, indices, updates, mode, padded)"},
       .cases = {"f32[6], i64[3]=[1, 4, 1], f32[3]", "f32[4, 3], i32[2]=[2, 0], f32[2, 3] {mode = sub}",
                 "f32[4, 3], i64[2, 2]=[3, 0, 3, 1], f32[2, 2, 3] {mode = mul}",
                 "f32[4, 3], i64[]=[3], f32[3] {mode = max}", "f32[4], i64[2]=[3, 1], f32[2] {mode = min}",
                 "f32[4], i64[2]=[3, 1], f32[2]=[2, -0.5] {mode = div}", "f32[3, 2], i64[0]=[], f32[0, 2]",
                 "i32[4], i64[2]=[3, 3], i32[2]", "f16[4], i64[2]=[3, 3], f16[2]",
                 "f32[5, 3], i64[4]=[4, -1, 0, -1], f32[4, 3] {padded = true}"}},
      {.name = "scatter_elements",
       .summary = "x with each part of updates, which is what stands behind the dims of the indices, put at or "
                  "combined into a "
                  "part of x, in their order: its position along the axis is the index, along the other axes that of "
                  "the index "
                  "itself; a negative index counts from the end; integers wrap",
       .inputs = {{"x", Accepts::numbers}, index_operand("indices"), {"updates", Accepts::numbers}},
       .attributes = {integer("axis", 0), word("mode", "update", {"update", "add", "mul", "min", "max"})},
       .traits = kInPlace,
       .precision = Precision::accumulate_f32,
       .infer = infer_scatter_elements,
       .gradient = by_decomposition,
       .decompose = scatter_elements_by_rows,
       .reference = scatter_elements,
       .oracle = {"scatter_elements(x, indices, updates, axis, mode)"},
       .cases = {"f32[4, 3], i64[2, 3]=[1, 0, 3, 2, -1, 0], f32[2, 3]",
                 "f32[4, 3], i32[3, 2]=[1, 0, 2, 2, -3, 0], f32[3, 2] {axis = 1, mode = add}",
                 "f32[3, 4, 2], i64[2, 3]=[1, 0, 1, 3, 3, 3], f32[2, 3, 2] {axis = 1, mode = add}",
                 "f32[3, 4, 2], i64[3, 1]=[1, 0, -1], f32[3, 1, 2] {axis = -2}",
                 "f32[5], i64[4]=[4, 4, 1, 4], f32[4] {mode = mul}",
                 "f32[2, 3], i64[1, 2]=[1, 0], f32[1, 2] {mode = max}",
                 "f16[3, 2], i64[2, 2]=[1, 0, 1, 2], f16[2, 2] {mode = min}",
                 "i32[3], i64[3]=[0, 2, 2], i32[3] {mode = add}", "f32[3, 2], i64[0, 2]=[], f32[0, 2]"}},
      {.name = "require_distinct",
       .summary = "x itself; an error when a number is there twice",
       .inputs = {{"x", Accepts::i32_or_i64}},
       .infer = [](InferContext& context) { context.result(context.dtype(0), context.shape(0)); },
       .reference = require_distinct,
       .oracle = {"x"},
       .cases = {"i64[3]=[3, 1, 2]", "i32[1]=[-1]", "i64[0]=[]"}},
  };
}

}  // namespace

std::span<const OpDef> segment_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> all = make_segment_rows();
    for (OpDef& row : make_row_scatter_rows()) all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

}  // namespace cairn
