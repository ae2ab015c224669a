// Ops that rearrange whole tensors (reshape, transpose, ...), and ops on shapes.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// The product of the dims that are not 0.
int64_t filled_count(const Shape& shape) {
  Dims sizes;
  for (const Dim& dim : shape.dims)
    if (dim.known() && dim.size != 0) sizes.push_back(dim.size);
  return element_count(sizes).value_or(std::numeric_limits<int64_t>::max());
}

// The size that -1 stands for when the others multiply to `others`. For empty tensors the dims that are not 0 decide,
// as in TensorFlow.
Dim inferred_size(const InferContext& context, const Shape& x, int64_t others, const Shape& shape) {
  if (auto count = known_count(x)) {
    if (*count == 0 && others == 0 && filled_count(x) % filled_count(shape) == 0)
      return filled_count(x) / filled_count(shape);
    if (others == 0) context.fail("-1 in shape {} is ambiguous: the other sizes hold no elements", to_string(shape));
    if (*count % others != 0) context.fail("{} cannot have shape {}", to_string(context.input(0)), to_string(shape));
    return *count / others;
  }
  if (!x.ranked) return Dim();
  Dims numbers;
  std::vector<Dim> rest;
  for (const Dim& dim : x.dims)
    if (dim.known())
      numbers.push_back(dim.size);
    else
      rest.push_back(dim);
  return rest.size() == 1 && element_count(numbers) == others && others > 0 ? rest[0] : Dim();
}

void infer_reshape(InferContext& context) {
  DType dtype = moved_type(context, 0);
  auto values = constant_integers(context, 1);
  if (!values || !ranked(context, 1, 1)) return context.result(dtype, shape_operand(context, 1));
  Dims given;
  Shape result;
  std::optional<size_t> free;
  for (int64_t value : *values) {
    if (value < -1) context.fail("shape has a negative size {}", value);
    if (value == -1 && free) context.fail("shape has more than one -1");
    if (value == -1)
      free = result.rank();
    else
      given.push_back(value);
    result.dims.push_back(value == -1 ? Dim() : Dim(value));
  }
  auto product = element_count(given);
  if (!product) context.fail("shape {} is too large", to_string(result));
  if (free)
    result.dims[*free] = inferred_size(context, context.shape(0), *product, result);
  else if (auto count = known_count(context.shape(0)); count && *count != *product)
    context.fail("{} cannot have shape {}", to_string(context.input(0)), to_string(result));
  context.result(dtype, std::move(result));
}

void copy(KernelContext& context) {
  allocate_results(context);
  copy_elements(context.input(0), context.output(0));
}

std::vector<size_t> permutation_of(const InferContext& context, size_t rank) {
  const auto& given = context.attr.integers("permutation");
  if (given.size() != rank) context.fail("permutation has {} axes, input has {} dims", given.size(), rank);
  axis_set(context, given, rank);
  std::vector<size_t> axes;
  for (int64_t axis : given) axes.push_back(axis_of(context, axis, rank));
  return axes;
}

void infer_transpose(InferContext& context) {
  DType dtype = moved_type(context, 0);
  const Shape& x = context.shape(0);
  if (!x.ranked) return context.result(dtype, Shape(std::vector<Dim>(context.attr.integers("permutation").size())));
  Shape result;
  for (size_t axis : permutation_of(context, x.rank())) result.dims.push_back(x.dims[axis]);
  context.result(dtype, std::move(result));
}

// Copies elements to consecutive places of y; at[d] is how far those of x lie apart along dim d of y. The innermost dims of
// both, `across` that of x in y, are walked in tiles that stay in the cache.
template <class T>
void permute(const Dims& dims, const Dims& at, size_t across, const T* x, T* y) {
  constexpr int64_t kTile = 32;
  const Dims to = strides_of(dims);
  const size_t last = dims.size() - 1;
  const int64_t rows = across == last ? 1 : dims[across], columns = dims[last];
  Dims outer = dims;
  outer[across] = outer[last] = 1;
  walk<2>(outer, {at, to}, [&](int64_t, auto& start) {
    for (int64_t row = 0; row < rows; row += kTile)
      for (int64_t column = 0; column < columns; column += kTile, stop_point_after(kTile * kTile))
        for (int64_t i = row; i < std::min(rows, row + kTile); ++i) {
          const T* from = x + start[0] + i * at[across];
          T* place = y + start[1] + i * to[across];
          for (int64_t j = column; j < std::min(columns, column + kTile); ++j) place[j] = from[j * at[last]];
        }
  });
}

void transpose(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  if (y.count() == 0) return;
  const Dims strides = strides_of(x.dims());
  Dims dims{1}, moved{0};  // of y, without those of one element; adjacent ones of both are one
  size_t across = 0;
  for (int64_t axis : context.attr.integers("permutation")) {
    const auto d = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.rank()) : axis);
    if (x.dims()[d] == 1) continue;
    if (moved.back() == x.dims()[d] * strides[d])
      dims.back() *= x.dims()[d], moved.back() = strides[d];
    else
      dims.push_back(x.dims()[d]), moved.push_back(strides[d]);
    if (strides[d] == 1) across = dims.size() - 1;
  }
  with_elements(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    permute(dims, moved, across, data<T>(x), data<T>(y));
  });
}

void infer_broadcast_to(InferContext& context) {
  DType dtype = moved_type(context, 0);
  Shape target = shape_operand(context, 1);
  const Shape& x = context.shape(0);
  if (!x.ranked || !target.ranked) return context.result(dtype, std::move(target));
  bool fits = x.rank() <= target.rank();
  for (size_t i = 0; fits && i < x.rank(); ++i) {
    const Dim &from = x.dims[i], &to = target.dims[target.rank() - x.rank() + i];
    fits = !from.known() || !to.known() || from.size == 1 || from.size == to.size;
  }
  if (!fits) context.fail("{} does not broadcast to {}", to_string(context.input(0)), to_string(target));
  context.result(dtype, std::move(target));
}

void repeat_one(const Tensor& element, Tensor& y) {
  const size_t bytes = y.bytes();
  char* to = static_cast<char*>(y.mutable_data());
  if (bytes > 0) std::memcpy(to, element.data(), element.bytes());
  for (size_t done = element.bytes(); done < bytes; done *= 2) copy_bytes(to + done, to, std::min(done, bytes - done));
}

void broadcast_to(KernelContext& context) {
  allocate_results(context);
  const Dims& from = context.input(0).dims();
  if (context.input(0).count() == 1 && context.input(0).dtype().bits >= 8)
    return repeat_one(context.input(0), context.output(0));
  take_along_axes(context.input(0), context.output(0), [&](size_t axis, int64_t i) { return from[axis] == 1 ? 0 : i; });
}

void infer_concat(InferContext& context) {
  if (context.input_count() == 0) context.fail("takes at least one input");
  DType dtype = equal_types(context);
  std::optional<size_t> first;
  for (size_t i = 0; i < context.input_count() && !first; ++i)
    if (context.shape(i).ranked) first = i;
  if (!first) return context.result(dtype, Shape::unranked());
  Shape result = context.shape(*first);
  if (result.rank() == 0) context.fail("scalars have no axis to join along");
  const size_t axis = axis_of(context, context.attr.integer("axis"), result.rank());
  int64_t sum = 0;
  std::vector<Dim> unknown;
  for (size_t i = 0; i < context.input_count(); ++i) {
    bool known = ranked(context, i, result.rank());
    const Dim along = known ? context.shape(i).dims[axis] : Dim();
    if (!along.known())
      unknown.push_back(along);
    else if (__builtin_add_overflow(sum, along.size, &sum))
      context.fail("the sizes along axis {} add up to too much", axis);
    for (size_t d = 0; known && d < result.rank(); ++d)
      if (d != axis)
        result.dims[d] = same_size(context, result.dims[d], context.shape(i).dims[d], "sizes outside the axis");
  }
  result.dims[axis] = unknown.empty() ? Dim(sum) : unknown.size() == 1 && sum == 0 ? unknown[0] : Dim();
  context.result(dtype, std::move(result));
}

void concat_kernel(KernelContext& context) {
  allocate_results(context);
  Tensor& y = context.output(0);
  const int64_t given = context.attr.integer("axis");
  const auto axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(y.rank()) : given);
  const int64_t outer = count_between(y.dims(), 0, axis), row = count_between(y.dims(), axis, y.rank());
  if (y.count() == 0) return;
  with_elements(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    int64_t start = 0;
    for (size_t i = 0; i < context.input_count(); ++i) {
      const Tensor& x = context.input(i);
      const int64_t part = count_between(x.dims(), axis, x.rank());
      for (const int64_t o : turns(outer, part)) std::copy_n(data<T>(x) + o * part, part, data<T>(y) + o * row + start);
      start += part;
    }
  });
}

void infer_tile(InferContext& context) {
  DType dtype = moved_type(context, 0);
  Shape multiples = shape_operand(context, 1), result = context.shape(0);
  if (!result.ranked) {
    if (multiples.ranked) result = Shape(std::vector<Dim>(multiples.rank()));
    return context.result(dtype, std::move(result));
  }
  if (multiples.ranked && multiples.rank() != result.rank())
    context.fail("{} multiples for {} dims", multiples.rank(), result.rank());
  for (size_t i = 0; i < result.rank(); ++i) {
    const Dim times = multiples.ranked ? multiples.dims[i] : Dim();
    Dim& dim = result.dims[i];
    if (times.size == 1) continue;
    if (times.size == 0)
      dim = 0;
    else if (!dim.known() || !times.known())
      dim = dim.size == 0 ? dim : Dim();
    else if (int64_t size; __builtin_mul_overflow(dim.size, times.size, &size))
      context.fail("{} tiled {} times is too large", to_string(context.input(0)), times.size);
    else
      dim = size;
  }
  context.result(dtype, std::move(result));
}

void tile(KernelContext& context) {
  allocate_results(context);
  const Dims& from = context.input(0).dims();
  take_along_axes(context.input(0), context.output(0), [&](size_t axis, int64_t i) { return i % from[axis]; });
}

DType index_type(const InferContext& context) {
  DType dtype = context.attr.dtype("dtype");
  if (dtype != kI64 && dtype != kI32) context.fail("dtype must be i64 or i32, found {}", to_string(dtype));
  return dtype;
}

void infer_shape_of(InferContext& context) {
  const Shape& x = context.shape(0);
  context.result(index_type(context), Shape{x.ranked ? Dim(static_cast<int64_t>(x.rank())) : Dim()});
}

void infer_size_of(InferContext& context) { context.result(index_type(context), Shape()); }

void store_sizes(KernelContext& context, const Dims& values) {
  allocate_results(context);
  with_integers(context.output(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] > static_cast<int64_t>(std::numeric_limits<T>::max()))
        context.fail("{} does not fit {}", values[i], to_string(context.output(0).dtype()));
      data<T>(context.output(0))[i] = static_cast<T>(values[i]);
    }
  });
}
void shape_of(KernelContext& context) { store_sizes(context, context.input(0).dims()); }
void size_of(KernelContext& context) { store_sizes(context, {context.input(0).count()}); }

void transpose_rule(GradientContext& g) {
  const auto& permutation = g.attr.integers("permutation");
  std::vector<int64_t> back(permutation.size());
  for (size_t i = 0; i < back.size(); ++i) back[axis_from_start(permutation[i], back.size())] = static_cast<int64_t>(i);
  g.set(0, transpose(g.dy(), back));
}

void concat_rule(GradientContext& g) {
  const size_t rank = sizes_of(g, g.x(0)).size(), axis = axis_from_start(g.attr.integer("axis"), rank);
  Sizes begin(rank, Size(g.b, 0)), end(rank, Size(g.b, std::numeric_limits<int64_t>::max()));
  for (size_t i = 0; i < g.input_count(); ++i) {
    begin[axis] = i == 0 ? begin[axis] : end[axis];
    end[axis] = begin[axis] + Size(g.x(i), axis);
    if (!g.wanted(i)) continue;
    const std::vector<Value*> operands = {g.dy().value, as_vector(g.b, begin).value, as_vector(g.b, end).value};
    const Type type = Type::tensor(g.dy().dtype(), g.x(i).shape());
    g.set(i, {g.b, g.b.add_node(op_named("slice"), operands, {}, {}, {type})->result()});
  }
}

// Reshapes dy so that each dim of x has a dim of copies before it, and sums over the copies.
void tile_rule(GradientContext& g) {
  const Sizes sizes = sizes_of(g, g.x(0));
  Sizes parts;
  std::vector<int64_t> copies;
  for (size_t i = 0; i < sizes.size(); ++i) {
    copies.push_back(static_cast<int64_t>(parts.size()));
    parts.push_back(Size::element(g.x(1), i));
    parts.push_back(sizes[i]);
  }
  g.set(0, reduce_sum(reshape(g.dy(), parts), copies));
}

std::vector<OpDef> make_shape_rows() {
  return {
      {.name = "reshape",
       .summary = "the same elements in row-major order under another shape; one size may be -1: what the others leave",
       .inputs = {{"x"}, shape_operand("shape")},
       .traits = kView,
       .infer = infer_reshape,
       .gradient = [](GradientContext& g) { g.set(0, reshape_like(g.dy(), g.x(0))); },
       .reference = copy,
       .oracle = {"np.reshape(x, shape)"},
       .cases = {"f32[2, 6], i64[2]=[3, 4]", "f32[2, 6], i32[3]=[2, -1, 3]", "f32[1], i64[0]=[]",
                 "f32[], i64[2]=[1, 1]", "f32[0, 3], i64[2]=[5, 0]", "f32[2, 3], i64[1]=[-1]", "bool[4], i64[2]=[2, 2]",
                 "f16[2, 3], i64[1]=[6]", "i64[2, 3], i64[2]=[3, 2]"}},
      {.name = "transpose",
       .summary = "dim i of the result is dim permutation[i] of x",
       .inputs = {{"x"}},
       .attributes = {{"permutation", AttrKind::integers}},
       .infer = infer_transpose,
       .gradient = transpose_rule,
       .reference = transpose,
       .oracle = {"np.transpose(x, permutation)"},
       .cases = {"f32[2, 3] {permutation = [1, 0]}", "f32[2, 3, 4] {permutation = [2, 0, 1]}",
                 "f32[] {permutation = []}", "f32[0, 3] {permutation = [1, 0]}",
                 "f32[2, 5, 6, 17] {permutation = [0, 3, 1, 2]}", "f32[2, 17, 5, 6] {permutation = [0, 2, 3, 1]}",
                 "bool[3, 4] {permutation = [-1, 0]}", "f16[3, 4] {permutation = [1, 0]}",
                 "f64[33, 35] {permutation = [1, 0]}"}},
      {.name = "broadcast_to",
       .summary = "x repeated to the given shape by NumPy's rules",
       .inputs = {{"x"}, shape_operand("shape")},
       .infer = infer_broadcast_to,
       .gradient = [](GradientContext& g) { g.set(0, sum_to_like(g.dy(), g.x(0))); },
       .reference = broadcast_to,
       .oracle = {"np.broadcast_to(x, shape)"},
       .cases = {"f32[3], i64[2]=[2, 3]", "f32[2, 1], i32[2]=[2, 4]", "f32[], i64[2]=[2, 3]", "f32[1], i64[1]=[0]",
                 "f32[1, 3, 1], i64[4]=[2, 2, 3, 2]", "f32[], i64[0]=[]", "bool[2, 1], i64[2]=[2, 3]"}},
      {.name = "concat",
       .summary = "the inputs one after the other along an axis; all other sizes agree",
       .inputs = {{"inputs", Accepts::any_tensor, InputDef::Arity::variadic}},
       .attributes = {{"axis", AttrKind::integer}},
       .infer = infer_concat,
       .gradient = concat_rule,
       .reference = concat_kernel,
       .oracle = {"np.concatenate(inputs, axis)"},
       .cases = {"f32[2, 3], f32[2, 4] {axis = 1}", "f32[2, 3], f32[1, 3], f32[4, 3] {axis = 0}",
                 "f32[2, 3, 1], f32[2, 3, 2] {axis = -1}", "f32[5] {axis = 0}", "f32[0, 3], f32[2, 3] {axis = 0}",
                 "i64[1], i64[2], i64[1] {axis = 0}", "f16[2, 3], f16[2, 3] {axis = -2}",
                 "bool[1, 2], bool[1, 2] {axis = 0}"}},
      {.name = "tile",
       .summary = "x repeated multiples[i] times along each dim i",
       .inputs = {{"x"}, shape_operand("multiples")},
       .infer = infer_tile,
       .gradient = tile_rule,
       .reference = tile,
       .oracle = {"np.tile(x, multiples)"},
       .cases = {"f32[2, 3], i64[2]=[2, 1]", "f32[2, 3], i32[2]=[3, 2]", "f32[], i64[0]=[]", "f32[2], i64[1]=[0]",
                 "bool[1, 2, 3], i64[3]=[2, 3, 1]"}},
      {.name = "shape_of",
       .summary = "sizes of x as a vector",
       .inputs = {{"x"}},
       .attributes = {dtype_or(kI64)},
       .traits = kShapeOnly,
       .infer = infer_shape_of,
       .reference = shape_of,
       .oracle = {"np.array(x.shape, dtype)"},
       .cases = {"f32[2, 3]", "f32[] {dtype = i32}", "f32[0, 4] {dtype = i32}", "bool[5]"}},
      {.name = "size_of",
       .summary = "number of elements of x",
       .inputs = {{"x"}},
       .attributes = {dtype_or(kI64)},
       .traits = kShapeOnly,
       .infer = infer_size_of,
       .reference = size_of,
       .oracle = {"np.array(x.size, dtype)"},
       .cases = {"f32[2, 3]", "f32[] {dtype = i32}", "f32[0, 4]"}},
  };
}

}  // namespace

std::span<const OpDef> shape_ops() {
  static const std::vector<OpDef> rows = make_shape_rows();
  return rows;
}

}  // namespace cairn
