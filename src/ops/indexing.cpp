// Ops that read or write at positions given as data. A negative index counts from the end, unless the op counts all
// indices from the start; an index out of range is an error.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

int64_t checked_index(const KernelContext& context, int64_t index, int64_t size, bool from_start) {
  if (index < (from_start ? 0 : -size) || index >= size)
    context.fail("index {} is out of range for {} elements", index, size);
  return index < 0 ? index + size : index;
}

size_t batch_dims_of(const InferContext& context) {
  const int64_t batch = context.attr.integer("batch_dims");
  if (batch < 0 || batch > kMaxRank) context.fail("batch_dims must not be negative, found {}", batch);
  return static_cast<size_t>(batch);
}

Dim batch_dim(const InferContext& context, size_t i) {
  return same_size(context, context.shape(0).dims[i], context.shape(1).dims[i], "batch sizes");
}

void infer_gather(InferContext& context) {
  DType dtype = moved_type(context, 0);
  const Shape &x = context.shape(0), &indices = context.shape(1);
  const size_t batch = batch_dims_of(context);
  if (!x.ranked || !indices.ranked) return context.result(dtype, Shape::unranked());
  const size_t axis = axis_of(context, context.attr.integer("axis"), x.rank());
  if (batch > indices.rank() || batch > axis)
    context.fail("batch_dims {} exceeds the axis or the dims of the indices", batch);
  Shape result;
  for (size_t i = 0; i < axis; ++i) result.dims.push_back(i < batch ? batch_dim(context, i) : x.dims[i]);
  result.dims.insert(result.dims.end(), indices.dims.begin() + static_cast<int64_t>(batch), indices.dims.end());
  result.dims.insert(result.dims.end(), x.dims.begin() + static_cast<int64_t>(axis) + 1, x.dims.end());
  context.result(dtype, std::move(result));
}

void gather(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const Dims& dims = x.dims();
  const int64_t given = context.attr.integer("axis");
  const auto axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(x.rank()) : given);
  const auto batch = static_cast<size_t>(context.attr.integer("batch_dims"));
  if (y.count() == 0) return;
  const Dims indices = context.input(1).as_i64();
  const int64_t outer = count_between(dims, 0, batch), middle = count_between(dims, batch, axis),
                inner = count_between(dims, axis + 1, x.rank());
  const int64_t picks = static_cast<int64_t>(indices.size()) / outer;
  const bool from_start = context.attr.boolean("from_start");
  with_elements(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* to = data<T>(y);
    for (const int64_t o : turns(outer))
      for (const int64_t m : turns(middle))
        for (const int64_t p : turns(picks, inner)) {
          const int64_t at =
              checked_index(context, indices[static_cast<size_t>(o * picks + p)], dims[axis], from_start);
          to = std::copy_n(data<T>(x) + ((o * middle + m) * dims[axis] + at) * inner, inner, to);
        }
  });
}

// How many dims one index vector of operand `i` addresses: its last dim. Nothing when unknown.
std::optional<size_t> index_depth(const InferContext& context, size_t i, size_t most) {
  const Shape& indices = context.shape(i);
  if (!indices.ranked) return std::nullopt;
  if (indices.rank() == 0) context.fail("indices must be vectors, found {}", to_string(context.input(i)));
  const Dim& depth = indices.dims.back();
  if (!depth.known()) return std::nullopt;
  if (depth.size > static_cast<int64_t>(most))
    context.fail("indices have {} numbers, there are {} dims", depth.size, most);
  return static_cast<size_t>(depth.size);
}

void infer_gather_nd(InferContext& context) {
  DType dtype = moved_type(context, 0);
  const Shape &x = context.shape(0), &indices = context.shape(1);
  const size_t batch = batch_dims_of(context);
  if (!x.ranked || !indices.ranked) return context.result(dtype, Shape::unranked());
  if (batch > x.rank() || batch + 1 > indices.rank())
    context.fail("batch_dims {} exceeds the dims of x or of the indices", batch);
  auto depth = index_depth(context, 1, x.rank() - batch);
  if (!depth) return context.result(dtype, Shape::unranked());
  Shape result;
  for (size_t i = 0; i + 1 < indices.rank(); ++i)
    result.dims.push_back(i < batch ? batch_dim(context, i) : indices.dims[i]);
  result.dims.insert(result.dims.end(), x.dims.begin() + static_cast<int64_t>(batch + *depth), x.dims.end());
  context.result(dtype, std::move(result));
}

// The element offset of an index vector into the dims [first, first + depth).
int64_t offset_of(const KernelContext& context, const int64_t* index, const Dims& dims, const Dims& strides,
                  size_t first, size_t depth, bool from_start) {
  int64_t offset = 0;
  for (size_t d = 0; d < depth; ++d)
    offset += checked_index(context, index[d], dims[first + d], from_start) * strides[first + d];
  return offset;
}

void gather_nd(KernelContext& context) {
  allocate_results(context);
  const Tensor &x = context.input(0), &index_tensor = context.input(1);
  Tensor& y = context.output(0);
  if (y.count() == 0) return;
  const auto batch = static_cast<size_t>(context.attr.integer("batch_dims")),
             depth = static_cast<size_t>(index_tensor.dims().back());
  const Dims indices = index_tensor.as_i64(), strides = strides_of(x.dims());
  const int64_t outer = count_between(x.dims(), 0, batch), each = count_between(x.dims(), batch, x.rank());
  const int64_t part = count_between(x.dims(), batch + depth, x.rank()), picks = y.count() / part / outer;
  const bool from_start = context.attr.boolean("from_start");
  with_elements(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* to = data<T>(y);
    for (const int64_t p : turns(outer * picks, part)) {
      const int64_t at = offset_of(context, indices.data() + p * static_cast<int64_t>(depth), x.dims(), strides, batch,
                                   depth, from_start);
      to = std::copy_n(data<T>(x) + p / picks * each + at, part, to);
    }
  });
}

// Checks that `updates` has the dims of the indices without the last one, then those of `target` from `depth` on.
void check_updates(const InferContext& context, const Shape& target, size_t indices_at, size_t updates_at) {
  if (!target.ranked) return;
  auto depth = index_depth(context, indices_at, target.rank());
  const Shape &indices = context.shape(indices_at), &updates = context.shape(updates_at);
  if (!depth || !updates.ranked) return;
  const size_t lead = indices.rank() - 1;
  if (updates.rank() != lead + target.rank() - *depth)
    context.fail("updates must have {} dims, found {}", lead + target.rank() - *depth,
                 to_string(context.input(updates_at)));
  for (size_t i = 0; i < updates.rank(); ++i)
    same_size(context, updates.dims[i], i < lead ? indices.dims[i] : target.dims[*depth + i - lead],
              "sizes of updates");
}

void infer_scatter_nd(InferContext& context) {
  DType dtype = number_type(context, 1);
  Shape shape = shape_operand(context, 2);
  check_updates(context, shape, 0, 1);
  context.result(dtype, std::move(shape));
}

// Calls store(element of y, element of updates) for every addressed element, in the order of the indices; with
// `padded`, index vectors with a negative number are skipped.
template <class T, class Store>
void scatter(KernelContext& context, const Tensor& index_tensor, const Tensor& updates, Tensor& y, bool padded,
             Store&& store) {
  if (updates.count() == 0) return;
  const auto depth = static_cast<size_t>(index_tensor.dims().back());
  const Dims indices = index_tensor.as_i64(), strides = strides_of(y.dims());
  const int64_t part = count_between(y.dims(), depth, y.rank()), picks = updates.count() / part;
  const bool from_start = context.attr.boolean("from_start");
  for (const int64_t p : turns(picks, part)) {
    const int64_t* index = indices.data() + p * static_cast<int64_t>(depth);
    if (padded && std::any_of(index, index + depth, [](int64_t number) { return number < 0; })) continue;
    const int64_t at = offset_of(context, index, y.dims(), strides, 0, depth, from_start);
    for (int64_t i = 0; i < part; ++i) store(data<T>(y)[at + i], data<T>(updates)[p * part + i]);
  }
}

void scatter_nd(KernelContext& context) {
  allocate_results(context);
  Tensor& y = context.output(0);
  std::memset(y.mutable_data(), 0, y.bytes());
  with_numbers(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    scatter<T>(context, context.input(0), context.input(1), y, false, [](T& to, T update) {
      if constexpr (kIsFloat<T>)
        to = T(static_cast<Compute<T>>(to) + static_cast<Compute<T>>(update));
      else
        to = wrapped(to, update, std::plus<>());
    });
  });
}

void infer_scatter_update(InferContext& context) {
  DType dtype = moved_type(context, 0);
  if (context.dtype(2) != dtype)
    context.fail("updates must be {}, found {}", to_string(dtype), to_string(context.dtype(2)));
  check_updates(context, context.shape(0), 1, 2);
  context.result(dtype, context.shape(0));
}

void scatter_update(KernelContext& context) {
  allocate_results(context);
  copy_elements(context.input(0), context.output(0));
  with_elements(context.output(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    scatter<T>(context, context.input(1), context.input(2), context.output(0), context.attr.boolean("padded"),
               [](T& to, const T& update) { to = update; });
  });
}

size_t new_axis(const AttributeView& attr, size_t rank) {
  const int64_t axis = attr.integer("axis");
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) + 1 : axis);
}

void infer_one_hot(InferContext& context) {
  moved_type(context, 2);
  const DType dtype = equal_types(context, 2);
  for (size_t i : {1, 2, 3}) require_scalar(context, i);
  Shape shape = context.shape(0);
  Dim depth;
  if (auto value = constant_integers(context, 1)) {
    if ((*value)[0] < 0) context.fail("depth must not be negative, found {}", (*value)[0]);
    depth = (*value)[0];
  }
  if (shape.ranked) {
    axis_of(context, context.attr.integer("axis"), shape.rank() + 1);
    shape.dims.insert(shape.dims.begin() + static_cast<int64_t>(new_axis(context.attr, shape.rank())), depth);
  }
  context.result(dtype, std::move(shape));
}

void one_hot(KernelContext& context) {
  allocate_results(context);
  const Dims indices = context.input(0).as_i64();
  Tensor& y = context.output(0);
  const size_t axis = new_axis(context.attr, context.input(0).rank());
  const int64_t depth = y.dims()[axis], inner = count_between(y.dims(), axis + 1, y.rank());
  with_elements(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T on = *data<T>(context.input(2)), off = *data<T>(context.input(3));
    for (const int64_t n : turns(y.count())) {
      const int64_t position = n / inner % depth;
      data<T>(y)[n] = indices[static_cast<size_t>(n / inner / depth * inner + n % inner)] == position ? on : off;
    }
  });
}

// Adds the rows of dy where they were gathered, with x seen as [batch, middle, size, width] and dy as
// [batch, middle, picks, width].
void gather_rule(GradientContext& g) {
  const Sizes sizes = sizes_of(g, g.x(0)), index_sizes = sizes_of(g, g.x(1));
  const auto batch = static_cast<size_t>(g.attr.integer("batch_dims"));
  const size_t axis = axis_from_start(g.attr.integer("axis"), sizes.size());
  const Size outer = product_of(g.b, sizes, 0, batch), middle = product_of(g.b, sizes, batch, axis),
             &size = sizes[axis], width = product_of(g.b, sizes, axis + 1, sizes.size()),
             picks = product_of(g.b, index_sizes, batch, index_sizes.size());
  Var places = reshape(counted_from_start(g.x(1), size.scalar()), {outer, picks});
  if (!outer.is(1)) places = places + reshape(counting(outer) * size.scalar(), {outer, Size(g.b, 1)});
  Var rows = reshape(g.dy(), {outer, middle, picks, width});
  if (!middle.is(1)) rows = transpose(rows, {0, 2, 1, 3});
  const Size lines = outer * size, long_width = middle * width;
  Var sums = sum_rows(reshape(rows, {outer * picks, long_width}), reshape(places, {outer * picks}), lines);
  if (!middle.is(1)) sums = transpose(reshape(sums, {outer, size, middle, width}), {0, 2, 1, 3});
  g.set(0, reshape_like(sums, g.x(0)));
}

void gather_nd_rule(GradientContext& g) {
  const auto batch = static_cast<size_t>(g.attr.integer("batch_dims"));
  const RowNumbers at = row_numbers(g, g.x(1), sizes_of(g, g.x(0)), batch, false);
  g.set(0, reshape_like(sum_rows(reshape(g.dy(), {at.count, at.width}), at.numbers, at.rows), g.x(0)));
}

void scatter_nd_rule(GradientContext& g) {
  const RowNumbers at = row_numbers(g, g.x(0), sizes_of(g, g.dy()), 0, false);
  g.set(1, reshape_like(gather_rows(reshape(g.dy(), {at.rows, at.width}), at.numbers), g.x(1)));
}

// An update gets the gradient of the element that it wrote, unless a later update overwrote that.
void scatter_update_rule(GradientContext& g) {
  if (g.wanted(0)) g.set(0, apply_again(g, {g.dy(), g.x(1), zeros_like(g.x(2))})[0]);
  if (!g.wanted(2)) return;
  const RowNumbers at = row_numbers(g, g.x(1), sizes_of(g, g.x(0)), 0, g.attr.boolean("padded"));
  Var parts = gather_rows_or_zeros(reshape(g.dy(), {at.rows, at.width}), at.numbers);
  if (!at.count.is(1)) {
    const Size one(g.b, 1);
    const Var order = counting(at.count), nobody = order.number(-1);
    const Var last = broadcast_to_like(nobody, counting(at.rows))
                         .apply("scatter_update", {reshape(at.numbers, {at.count, one}), order}, {{"padded", true}});
    const Var stays = gather_rows_or_zeros(last, at.numbers).apply("equal", {order});
    parts = keep_where(reshape(stays, {at.count, one}), parts);
  }
  g.set(2, reshape_like(parts, g.x(2)));
}

void one_hot_rule(GradientContext& g) {
  const Var on = g.x(2).number(1), off = g.x(2).number(0);
  const Var chosen = sum_to_like(g.dy() * apply_again(g, {g.x(0), g.x(1), on, off})[0], on);
  g.set(2, chosen);
  if (g.wanted(3)) g.set(3, sum_to_like(g.dy(), off) - chosen);
}

std::vector<OpDef> make_indexing_rows() {
  const InputDef x = {"x"}, indices = index_operand("indices");
  return {
      {.name = "gather",
       .summary = "parts of x along the axis by index; result dims are x's with the axis replaced by the dims of the "
                  "indices; the first batch_dims dims of "
                  "both go together; a negative index counts from the end, from_start makes it an error",
       .inputs = {x, indices},
       .attributes = {integer("axis", 0), integer("batch_dims", 0), flag("from_start")},
       .infer = infer_gather,
       .gradient = gather_rule,
       .reference = gather,
       .oracle = {"tf.gather(x, indices, axis=axis, batch_dims=batch_dims)", kTensorFlow},
       .cases = {"f32[5, 3], i64[2]=[4, 0]", "f32[2, 5], i32[2, 2]=[0, 4, 1, 1] {axis = 1}", "f32[5], i64[]=[2]",
                 "f32[3, 4, 2], i64[1]=[3] {axis = -2}",
                 "f32[2, 3, 4], i64[2, 2]=[2, 0, 1, 1] {axis = 1, batch_dims = 1}", "f32[3, 2], i64[0]=[]",
                 "f32[0, 2], i64[0]=[]", "bool[4], i32[3]=[3, 3, 0]", "f32[4, 2], i32[2]=[3, 0] {from_start = true}",
                 "f16[4, 2], i64[2]=[1, 3]"}},
      {.name = "gather_nd",
       .summary =
           "parts of x at index vectors (the last dim of the indices) into the dims behind the first batch_dims; "
           "negative ones as in gather",
       .inputs = {x, indices},
       .attributes = {integer("batch_dims", 0), flag("from_start")},
       .infer = infer_gather_nd,
       .gradient = gather_nd_rule,
       .reference = gather_nd,
       .oracle = {"tf.gather_nd(x, indices, batch_dims)", kTensorFlow},
       .cases = {"f32[3, 4], i64[2, 2]=[0, 1, 2, 3]", "f32[3, 4], i32[2, 1]=[2, 0]",
                 "f32[2, 3, 4], i64[2, 1, 1]=[2, 0] {batch_dims = 1}", "f32[3], i64[1]=[2]", "f32[3], i64[0, 1]=[]",
                 "f32[2, 2], i64[3, 0]=[]"}},
      {.name = "scatter_nd",
       .summary = "zeros of the given shape with updates added at index vectors (the last dim of the indices), in "
                  "their order; "
                  "negative ones as in gather",
       .inputs = {indices, {"updates", Accepts::numbers}, shape_operand("shape")},
       .attributes = {flag("from_start")},
       .precision = Precision::accumulate_f32,
       .infer = infer_scatter_nd,
       .gradient = scatter_nd_rule,
       .reference = scatter_nd,
       .oracle = {"tf.scatter_nd(tf.cast(indices, tf.int64), updates, tf.cast(shape, tf.int64))", kTensorFlow},
       .cases = {"i64[3, 1]=[1, 4, 1], f32[3], i64[1]=[6]", "i32[2, 1]=[2, 0], f32[2, 3], i32[2]=[4, 3]",
                 "i64[2, 2]=[0, 1, 2, 2], f32[2], i64[2]=[3, 3]", "i64[0, 1]=[], f32[0], i64[1]=[2]",
                 "i64[2, 1]=[0, 0], i32[2], i64[1]=[1]"}},
      {.name = "scatter_update",
       .summary = "x with updates put at index vectors (the last dim of the indices); of several for one place the "
                  "last stays; "
                  "with padded, vectors with a negative number are left out, else they are as in gather",
       .inputs = {x, indices, {"updates"}},
       .attributes = {flag("padded"), flag("from_start")},
       .traits = kInPlace,
       .infer = infer_scatter_update,
       .gradient = scatter_update_rule,
       .reference = scatter_update,
       .oracle = {"(lambda kept: tf.tensor_scatter_nd_update(x, tf.cast(indices[kept], tf.int64), updates[kept]))("
                  "(indices >= 0).all(-1) if padded else ...)",
                  kTensorFlow},
       .cases = {"f32[6], i64[2, 1]=[1, 4], f32[2]", "f32[4, 3], i32[2, 1]=[2, 0], f32[2, 3]",
                 "f32[3, 3], i64[2, 2]=[0, 1, 2, 2], f32[2]", "f32[3], i64[0, 1]=[], f32[0]",
                 "i64[4], i64[1, 1]=[3], i64[1]", "f32[4, 3], i32[3, 1]=[2, -1, 0], f32[3, 3] {padded = true}"}},
      {.name = "one_hot",
       .summary = "a new axis of size depth: `on` at each index, `off` elsewhere; an index out of range, or negative, "
                  "gives `off` everywhere",
       .inputs = {indices, shape_operand("depth"), {"on", Accepts::number_or_bool}, {"off", Accepts::number_or_bool}},
       .attributes = {integer("axis", -1)},
       .infer = infer_one_hot,
       .gradient = one_hot_rule,
       .reference = one_hot,
       .oracle = {"tf.one_hot(indices, int(depth), on, off, axis)", kTensorFlow},
       .cases = {"i64[3]=[0, 2, 1], i64[]=[3], f32[]=[1], f32[]=[0]",
                 "i32[2, 2]=[0, 5, -1, 1], i32[]=[3], f32[]=[2.5], f32[]=[-1] {axis = 1}",
                 "i64[]=[1], i64[]=[4], i32[]=[1], i32[]=[0] {axis = 0}", "i64[0]=[], i64[]=[3], f32[]=[1], f32[]=[0]",
                 "i64[2]=[0, 1], i64[]=[0], f32[]=[1], f32[]=[0]"}},
  };
}

}  // namespace

std::span<const OpDef> indexing_ops() {
  static const std::vector<OpDef> rows = make_indexing_rows();
  return rows;
}

}  // namespace cairn
