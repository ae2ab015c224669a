// Reductions, running sums and rankings along axes. Sums of floats are kept in f64; integers wrap.
#include <functional>
#include <numeric>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

size_t axis_in(const KernelContext& context, size_t rank) {
  const int64_t axis = context.attr.integer("axis");
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

void infer_reduce(InferContext& context) {
  DType dtype = number_type(context, 0);
  const Shape& x = context.shape(0);
  const auto& axes = context.attr.integers("axes");
  const bool keep_dims = context.attr.boolean("keep_dims");
  if (!x.ranked) return context.result(dtype, x);
  context.result(dtype, reduced(x, axis_set(context, axes, x.rank()), keep_dims));
}

double reduce_flops(const InferContext& context) {
  return static_cast<double>(known_count(context.shape(0)).value_or(0));
}

// y = finish(combination of a group's elements, their number), beginning with `start`; A is the accumulator type.
template <class T, class A, class Combine, class Finish>
void fold(KernelContext& context, A start, Combine&& combine, Finish&& finish) {
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const size_t rank = x.rank();
  std::vector<bool> dropped(rank, false);
  for (int64_t axis : context.attr.integers("axes"))
    dropped[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
  Dims kept = x.dims();
  for (size_t i = 0; i < rank; ++i)
    if (dropped[i]) kept[i] = 1;
  std::vector<A> sums(static_cast<size_t>(y.count()), start);
  walk<1>(x.dims(), {broadcast_strides(kept, x.dims())}, [&](int64_t n, auto& at) {
    A& sum = sums[static_cast<size_t>(at[0])];
    sum = combine(sum, static_cast<A>(data<T>(x)[n]));
  });
  const int64_t group = y.count() ? x.count() / y.count() : 0;
  for (const int64_t i : turns(y.count()))
    data<T>(y)[i] = T(static_cast<Compute<T>>(finish(sums[static_cast<size_t>(i)], group)));
}
constexpr auto kAsIs = [](auto value, int64_t) { return value; };

void reduce_sum(KernelContext& context) {
  allocate_results(context);
  with_numbers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    fold<T, Sum<T>>(
        context, 0,
        [](Sum<T> a, Sum<T> b) {
          if constexpr (kIsFloat<T>)
            return a + b;
          else
            return wrapped(a, b, std::plus<>());
        },
        kAsIs);
  });
}
void infer_sum_to(InferContext& context) {
  DType dtype = number_type(context, 0);
  Shape target = shape_operand(context, 1);
  const Shape& x = context.shape(0);
  bool fits = !x.ranked || !target.ranked || target.rank() <= x.rank();
  for (size_t i = 0; fits && x.ranked && target.ranked && i < target.rank(); ++i) {
    const Dim &to = target.dims[i], &from = x.dims[x.rank() - target.rank() + i];
    fits = !from.known() || !to.known() || to.size == 1 || from.size == to.size;
  }
  if (!fits) context.fail("{} does not broadcast to {}", to_string(target), to_string(context.input(0)));
  context.result(dtype, std::move(target));
}

void sum_to(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  if (x.dims() == y.dims()) return copy_elements(x, y);
  Dims kept(x.rank() - y.rank(), 1);
  kept.insert(kept.end(), y.dims().begin(), y.dims().end());
  with_numbers(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<Sum<T>> sums(static_cast<size_t>(y.count()), 0);
    walk<1>(x.dims(), {broadcast_strides(kept, x.dims())}, [&](int64_t n, auto& at) {
      Sum<T>& sum = sums[static_cast<size_t>(at[0])];
      if constexpr (kIsFloat<T>)
        sum += static_cast<double>(data<T>(x)[n]);
      else
        sum = wrapped(sum, data<T>(x)[n], std::plus<>());
    });
    for (int64_t i = 0; i < y.count(); ++i) data<T>(y)[i] = T(static_cast<Compute<T>>(sums[static_cast<size_t>(i)]));
  });
}

void reduce_prod(KernelContext& context) {
  allocate_results(context);
  with_numbers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    fold<T, Sum<T>>(
        context, 1,
        [](Sum<T> a, Sum<T> b) {
          if constexpr (kIsFloat<T>)
            return a * b;
          else
            return wrapped(a, b, std::multiplies<>());
        },
        kAsIs);
  });
}
void reduce_mean(KernelContext& context) {
  allocate_results(context);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    fold<T, double>(context, 0, std::plus<>(),
                    [](double sum, int64_t count) { return sum / static_cast<double>(count); });
  });
}
template <bool kMost>
void reduce_extreme(KernelContext& context) {
  allocate_results(context);
  with_numbers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    using Limits = std::numeric_limits<C>;
    const C infinity = Limits::has_infinity ? Limits::infinity() : Limits::max();
    const C least = Limits::has_infinity ? static_cast<C>(-Limits::infinity()) : Limits::lowest();
    fold<T, C>(
        context, kMost ? least : infinity, [](C a, C b) { return kMost ? maximum(a, b) : minimum(a, b); }, kAsIs);
  });
}
template <bool kAll>
void reduce_bools(KernelContext& context) {
  allocate_results(context);
  fold<uint8_t, uint8_t>(
      context, kAll, [](uint8_t a, uint8_t b) -> uint8_t { return kAll ? a && b : a || b; }, kAsIs);
}

void infer_arg(InferContext& context) {
  number_type(context, 0);
  const DType dtype = context.attr.dtype("dtype");
  if (dtype != kI64 && dtype != kI32) context.fail("dtype must be i64 or i32, found {}", to_string(dtype));
  const Shape& x = context.shape(0);
  const int64_t axis = context.attr.integer("axis");
  if (!x.ranked) return context.result(dtype, x);
  if (x.dims[axis_of(context, axis, x.rank())].size == 0)
    context.fail("axis {} of {} is empty", axis, to_string(context.input(0)));
  context.result(dtype, reduced(x, axis_set(context, {axis}, x.rank()), context.attr.boolean("keep_dims")));
}

template <bool kMost>
void arg_extreme(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const size_t axis = axis_in(context, x.rank());
  const int64_t size = x.dims()[axis], inner = count_between(x.dims(), axis + 1, x.rank());
  with_numbers(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    for (const int64_t row : turns(y.count())) {
      const T* from = data<T>(x) + row / inner * size * inner + row % inner;
      C best = kMost ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
      int64_t index = 0;
      for (const int64_t i : turns(size)) {
        const C value = static_cast<C>(from[i * inner]);
        if (kMost ? value > best : value < best) best = value, index = i;
      }
      if (y.dtype() == kI64)
        data<int64_t>(y)[row] = index;
      else
        data<int32_t>(y)[row] = static_cast<int32_t>(index);
    }
  });
}

void infer_cumsum(InferContext& context) {
  if (context.shape(0).ranked) axis_of(context, context.attr.integer("axis"), context.shape(0).rank());
  infer_same(context);
}

void cumsum(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  if (x.count() == 0) return;
  const size_t axis = axis_in(context, x.rank());
  const int64_t size = x.dims()[axis], inner = count_between(x.dims(), axis + 1, x.rank());
  const bool exclusive = context.attr.boolean("exclusive"), backwards = context.attr.boolean("reverse");
  with_numbers(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (const int64_t row : turns(x.count() / size)) {
      const int64_t base = row / inner * size * inner + row % inner;
      Sum<T> sum = 0;
      for (const int64_t i : turns(size)) {
        const int64_t at = base + (backwards ? size - 1 - i : i) * inner;
        const Sum<T> before = sum;
        if constexpr (kIsFloat<T>)
          sum += static_cast<double>(data<T>(x)[at]);
        else
          sum = wrapped(sum, data<T>(x)[at], std::plus<>());
        data<T>(context.output(0))[at] = T(static_cast<Compute<T>>(exclusive ? before : sum));
      }
    }
  });
}

void infer_top_k(InferContext& context) {
  DType dtype = number_type(context, 0);
  require_scalar(context, 1);
  Shape shape = context.shape(0);
  if (shape.ranked && shape.rank() == 0) context.fail("a scalar has no largest elements");
  if (shape.ranked) {
    Dim& last = shape.dims.back();
    Dim k;
    if (auto value = constant_integers(context, 1)) k = (*value)[0];
    if (context.constant(1) && !k.known())
      context.fail("k must not be negative, found {}", (*constant_integers(context, 1))[0]);
    if (k.known() && last.known() && k.size > last.size)
      context.fail("k is {}, there are {} elements", k.size, last.size);
    last = k;
  }
  context.result(dtype, shape);
  context.result(kI64, std::move(shape));
}

void top_k(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor &values = context.output(0), &indices = context.output(1);
  const int64_t size = x.dims().back(), k = values.dims().back();
  if (values.count() == 0) return;
  std::vector<int64_t> order(static_cast<size_t>(size));
  with_numbers(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    for (const int64_t row : turns(values.count() / k)) {
      const T* from = data<T>(x) + row * size;
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
        stop_point_after(1);
        const C left = static_cast<C>(from[a]), right = static_cast<C>(from[b]);
        if (is_nan(left) || is_nan(right)) return is_nan(left) && (!is_nan(right) || a < b);
        return left > right || (left == right && a < b);
      });
      for (const int64_t i : turns(k)) {
        data<T>(values)[row * k + i] = from[order[static_cast<size_t>(i)]];
        data<int64_t>(indices)[row * k + i] = order[static_cast<size_t>(i)];
      }
    }
  });
}

// A reduced tensor with the axes that the node reduced put back as dims of size 1.
Var with_reduced_axes(const GradientContext& g, Var reduced) {
  return with_axes(g, reduced, g.x(0), g.attr.integers("axes"), g.attr.boolean("keep_dims"));
}

void reduce_sum_rule(GradientContext& g) { g.set(0, broadcast_to_like(with_reduced_axes(g, g.dy()), g.x(0))); }
void reduce_mean_rule(GradientContext& g) {
  const Sizes sizes = sizes_of(g, g.x(0));
  Size count(g.b, 1);
  for (int64_t axis : g.attr.integers("axes")) count = count * sizes[axis_from_start(axis, sizes.size())];
  g.set(0, broadcast_to_like(with_reduced_axes(g, divided(g.dy(), count)), g.x(0)));
}
// The gradient is divided equally among all elements that have the extreme value.
void reduce_extreme_rule(GradientContext& g) {
  const Var x = g.x(0), here = x.apply("equal", {with_reduced_axes(g, g.y())});
  const Var parts = cast(here, x.dtype()), count = reduce_sum(parts, g.attr.integers("axes"), true);
  g.set(0, parts * (with_reduced_axes(g, g.dy()) / count));
}
void reduce_prod_rule(GradientContext& g) {
  const auto product = [&](Var x) {
    return x.apply("reduce_prod", {}, {{"axes", g.attr.integers("axes")}, {"keep_dims", true}});
  };
  const auto sum = [&](Var x) { return reduce_sum(x, g.attr.integers("axes"), true); };
  g.set(0, product_of_others(g.x(0), product, sum) * with_reduced_axes(g, g.dy()));
}
void cumsum_rule(GradientContext& g) {
  Attributes attributes = g.node().attributes;
  attributes.set("reverse", !g.attr.boolean("reverse"));
  g.set(0, g.dy().apply("cumsum", {}, attributes));
}
void top_k_rule(GradientContext& g) {
  const Sizes sizes = sizes_of(g, g.x(0)), chosen = sizes_of(g, g.y());
  const Size &size = sizes.back(), rows = product_of(g.b, sizes, 0, sizes.size() - 1);
  const Var offsets = reshape(counting(rows) * size.scalar(), {rows, Size(g.b, 1)});
  g.set(0, sum_elements(g.dy(), reshape(g.y(1), {rows, chosen.back()}) + offsets, g.x(0)));
}

OpDef reduction(const char* name, const char* summary, Accepts accepts, Precision precision,
                void (*reference)(KernelContext&), Oracle oracle, void (*gradient)(GradientContext&) = nullptr) {
  OpDef row = {.name = name,
               .summary = summary,
               .inputs = {{"x", accepts}},
               .attributes = {{"axes", AttrKind::integers}, flag("keep_dims")},
               .traits = kReduction,
               .precision = precision,
               .infer = infer_reduce,
               .flops = reduce_flops,
               .gradient = gradient,
               .reference = reference,
               .oracle = oracle};
  if (accepts == Accepts::boolean)
    row.cases = {"bool[2, 3] {axes = [1]}", "bool[4] {axes = [0], keep_dims = true}", "bool[0, 2] {axes = [0]}",
                 "bool[] {axes = []}"};
  else
    row.cases = {"f32[2, 3] {axes = [1]}",
                 "f32[2, 3] {axes = [0], keep_dims = true}",
                 "f32[3, 4, 5] {axes = [0, -1]}",
                 "f32[3, 4] {axes = []}",
                 "f32[] {axes = []}",
                 "f32[4, 129] {axes = [-1]}",
                 "f32[2, 7, 7, 19] {axes = [1, 2]}",
                 "f32[3, 0] {axes = [0]}",
                 "f64[3, 5] {axes = [0, 1]}",
                 "f16[4, 9] {axes = [1]}",
                 "bf16[9] {axes = [0]}"};
  if (accepts == Accepts::numbers)
    row.cases.insert(row.cases.end(), {"i32[3, 4] {axes = [1]}", "i64[5] {axes = [0]}", "u8[3, 2] {axes = [0]}"});
  return row;
}

OpDef arg_row(const char* name, const char* summary, void (*reference)(KernelContext&), const char* oracle) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::numbers}},
          .attributes = {{"axis", AttrKind::integer}, dtype_or(kI64), flag("keep_dims")},
          .traits = kReduction,
          .infer = infer_arg,
          .flops = reduce_flops,
          .reference = reference,
          .oracle = {oracle, kTensorFlow},
          .cases = {"f32[2, 3] {axis = 1}", "f32[4, 37, 3] {axis = 1, dtype = i32}",
                    "f32[5] {axis = -1, keep_dims = true}", "i32[4, 5] {axis = 0}", "f32[4]=[1, 3, 3, 2] {axis = 0}",
                    "f32[4]=[nan, 1, nan, 2] {axis = 0}", "f32[0, 3] {axis = 1}", "f16[9] {axis = 0}"}};
}

std::vector<OpDef> make_reduction_rows() {
  const auto kSums = Precision::accumulate_f32, kExact = Precision::exact;
  return {
      reduction("reduce_sum", "sum along the axes; of no elements 0; no axes: x itself", Accepts::numbers, kSums,
                reduce_sum, {"np.sum(x, tuple(axes), x.dtype, keepdims=keep_dims)"}, reduce_sum_rule),
      {.name = "sum_to",
       .summary = "x summed over what a broadcast of the given shape to that of x repeats",
       .inputs = {{"x", Accepts::numbers}, shape_operand("shape")},
       .precision = kSums,
       .infer = infer_sum_to,
       .flops = reduce_flops,
       .gradient = [](GradientContext& g) { g.set(0, broadcast_to_like(g.dy(), g.x(0))); },
       .decompose =
           [](Builder& b, const Node& node) {
             return std::vector<Value*>{sum_to_like({b, node.inputs[0]}, {b, node.result()}).value};
           },
       .reference = sum_to,
       .oracle = {"np.sum(x, tuple(i for i in range(x.ndim) if i < x.ndim - len(shape) or shape[i - x.ndim + "
                  "len(shape)] == 1), x.dtype, keepdims=True).reshape(shape)"},
       .cases = {"f32[2, 3], i64[2]=[2, 3]", "f32[2, 3], i64[1]=[3]", "f32[4, 5, 3], i64[3]=[4, 1, 3]",
                 "f32[4, 5, 3], i32[2]=[1, 3]", "f32[4, 5], i64[0]=[]", "f32[0, 3], i64[2]=[1, 3]",
                 "i32[4, 5], i64[2]=[4, 1]", "f16[3, 4], i64[1]=[4]"}},
      reduction("reduce_mean", "mean along the axes; of no elements NaN", Accepts::floats, kSums, reduce_mean,
                {"np.mean(x, tuple(axes), keepdims=keep_dims)"}, reduce_mean_rule),
      reduction("reduce_max", "largest along the axes, NaN when one is NaN; of no elements -inf, of integers the least",
                Accepts::numbers, kExact, reduce_extreme<true>, {"np.max(x, tuple(axes), keepdims=keep_dims)"},
                reduce_extreme_rule),
      reduction("reduce_min",
                "smallest along the axes, NaN when one is NaN; of no elements inf, of integers the largest",
                Accepts::numbers, kExact, reduce_extreme<false>, {"np.min(x, tuple(axes), keepdims=keep_dims)"},
                reduce_extreme_rule),
      reduction("reduce_prod", "product along the axes; of no elements 1", Accepts::numbers, kSums, reduce_prod,
                {"np.prod(x, tuple(axes), x.dtype, keepdims=keep_dims)"}, reduce_prod_rule),
      reduction("reduce_all", "true where all along the axes are; of no elements true", Accepts::boolean, kExact,
                reduce_bools<true>, {"np.all(x, tuple(axes), keepdims=keep_dims)"}),
      reduction("reduce_any", "true where one along the axes is; of no elements false", Accepts::boolean, kExact,
                reduce_bools<false>, {"np.any(x, tuple(axes), keepdims=keep_dims)"}),
      arg_row("arg_max",
              "index of the first largest element along the axis; NaN never wins, and where all are NaN or -inf it is "
              "0; an empty axis is an error",
              arg_extreme<true>,
              "(tf.expand_dims if keep_dims else lambda y, axis: y)(tf.argmax(x, axis, dtype), axis)"),
      arg_row("arg_min",
              "index of the first smallest element along the axis; NaN never wins, and where all are NaN or inf it is "
              "0; an empty axis is an error",
              arg_extreme<false>,
              "(tf.expand_dims if keep_dims else lambda y, axis: y)(tf.argmin(x, axis, dtype), axis)"),
      {.name = "cumsum",
       .summary = "running sum along the axis; exclusive leaves the element itself out, reverse starts at the end",
       .inputs = {{"x", Accepts::numbers}},
       .attributes = {{"axis", AttrKind::integer}, flag("exclusive"), flag("reverse")},
       .precision = kSums,
       .infer = infer_cumsum,
       .flops = reduce_flops,
       .gradient = cumsum_rule,
       .reference = cumsum,
       .oracle = {"tf.cumsum(x, axis, exclusive, reverse)", kTensorFlow},
       .cases = {"f32[2, 3] {axis = 1}", "f32[3, 5] {axis = 0, exclusive = true}",
                 "f32[67] {axis = -1, reverse = true}", "f32[2, 3, 4] {axis = 1, exclusive = true, reverse = true}",
                 "f32[0] {axis = 0}", "i32[5] {axis = 0}", "f16[5] {axis = 0}"}},
      {.name = "top_k",
       .summary = "the k largest elements along the last dim in falling order, and their indices; of equal ones the "
                  "first wins, NaN counts as largest",
       .inputs = {{"x", Accepts::numbers}, shape_operand("k")},
       .attributes = {flag("sorted", true)},
       .results = {"values", "indices"},
       .traits = kReduction,
       .infer = infer_top_k,
       .flops = reduce_flops,
       .gradient = top_k_rule,
       .reference = top_k,
       .oracle = {"(lambda values, indices: (values, tf.cast(indices, tf.int64)))(*tf.math.top_k(x, int(k)))",
                  kTensorFlow},
       .cases = {"f32[2, 5], i64[]=[3]", "f32[67], i32[]=[10]", "f32[4]=[1, 3, 3, 2], i64[]=[3] {sorted = false}",
                 "f32[3], i64[]=[0]", "f32[0, 4], i64[]=[2]", "i32[9], i64[]=[9]"}},
  };
}

}  // namespace

std::span<const OpDef> reduction_ops() {
  static const std::vector<OpDef> rows = make_reduction_rows();
  return rows;
}

}  // namespace cairn
