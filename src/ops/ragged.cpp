// Ragged tensors: flat values and, for each ragged dim, the boundaries of its rows (row splits).
#include <limits>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

constexpr const char* kRaggedTests = "its rows are compared with TensorFlow by tests/python/test_texts.py";

/// Reads row splits and checks that they ascend from 0 to `count`.
Dims checked_splits(const KernelContext& context, const Tensor& tensor, int64_t count) {
  Dims splits = tensor.as_i64();
  if (splits.empty() || splits.front() != 0 || !std::is_sorted(splits.begin(), splits.end()) || splits.back() != count)
    context.fail("row splits do not go from 0 to {} in order", count);
  return splits;
}

/// Row splits of every dim, the outermost first, of tensors of those kinds.
std::vector<Dims> all_splits(const KernelContext& context, std::span<const Tensor> parts,
                             const std::vector<std::string>& kinds, int64_t values) {
  std::vector<Dims> result;
  int64_t rows = -1;  // rows of the next dim, -1 when unknown
  for (size_t i = 0; i < parts.size(); ++i) {
    if (kinds[i] == "FIRST_DIM_SIZE") {
      rows = parts[i].as_i64().at(0);
      continue;
    }
    const bool last = i + 1 == parts.size();
    if (kinds[i] == "ROW_SPLITS") {
      const int64_t end = parts[i].count() ? parts[i].as_i64().back() : 0;
      result.push_back(checked_splits(context, parts[i], last ? values : end));
      if (rows >= 0 && rows + 1 != parts[i].count())
        context.fail("there are {} rows and splits of {}", rows, parts[i].count() - 1);
    } else {
      const Dims ids = parts[i].as_i64();
      if (rows < 0 || !element_count({rows, 8})) context.fail("there are {} rows", rows);
      if (!std::is_sorted(ids.begin(), ids.end()) || (!ids.empty() && (ids.front() < 0 || ids.back() >= rows)))
        context.fail("row numbers are not in order, or outside of {} rows", rows);
      if (last && std::ssize(ids) != values) context.fail("{} row numbers for {} values", ids.size(), values);
      Dims splits(static_cast<size_t>(rows) + 1, 0);
      for (int64_t id : ids) ++splits[static_cast<size_t>(id) + 1];
      for (size_t row = 1; row < splits.size(); ++row) splits[row] += splits[row - 1];
      result.push_back(std::move(splits));
    }
    rows = result.back().back();
  }
  for (size_t i = 0; i + 1 < result.size(); ++i)
    if (result[i].back() + 1 != std::ssize(result[i + 1]))
      context.fail("dim {} ends at {}, the next has {} rows", i, result[i].back(), result[i + 1].size() - 1);
  return result;
}

const std::vector<std::string>& kinds_of(const AttributeView& attr) {
  return std::get<std::vector<std::string>>(attr.get("kinds"));
}

void infer_ragged_to_dense(InferContext& context) {
  const DType dtype = moved_type(context, 1);
  if (context.dtype(2) != dtype)
    context.fail("values are {}, the default is {}", to_string(dtype), to_string(context.dtype(2)));
  const std::vector<std::string>& kinds = kinds_of(context.attr);
  size_t dims = 1;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const bool size = kinds[i] == "FIRST_DIM_SIZE";
    if (kinds[i] != "ROW_SPLITS" && kinds[i] != "VALUE_ROWIDS" && (!size || i > 0))
      context.fail("rows of kind '{}' are not known", printable(kinds[i]));
    dims += !size;
    if (3 + i >= context.input_count() || context.dtype(3 + i) != context.dtype(3) || !context.dtype(3).is_integer())
      context.fail("{} kinds of rows for {} inputs", kinds.size(), context.input_count());
    if (size)
      require_scalar(context, 3 + i);
    else
      ranked(context, 3 + i, 1);
  }
  if (kinds.size() + 3 != context.input_count() || dims == 1)
    context.fail("{} kinds of rows for {} inputs", kinds.size(), context.input_count());
  if (!context.shape(1).ranked) return context.result(dtype, Shape::unranked());
  if (context.shape(1).rank() == 0) context.fail("values have no dims");
  Shape shape = Shape(std::vector<Dim>(dims));
  for (size_t d = 1; d < context.shape(1).rank(); ++d) shape.dims.push_back(context.shape(1).dims[d]);
  if (auto wanted = constant_integers(context, 0); wanted && context.shape(0).ranked && context.shape(0).rank() == 1) {
    if (wanted->size() != shape.rank())
      context.fail("the shape has {} dims, expected {}", wanted->size(), shape.rank());
    for (size_t d = 0; d < wanted->size(); ++d)
      if ((*wanted)[d] >= 0)
        shape.dims[d] =
            d < dims ? Dim((*wanted)[d]) : same_size(context, Dim((*wanted)[d]), shape.dims[d], "sizes of the values");
  }
  context.result(dtype, std::move(shape));
}

void ragged_to_dense(KernelContext& context) {
  const Tensor &values = context.input(1), &fallback = context.input(2);
  std::vector<Tensor> parts;
  for (size_t i = 3; i < context.input_count(); ++i) parts.push_back(context.input(i));
  const auto splits = all_splits(context, parts, kinds_of(context.attr), values.dims()[0]);
  Dims dims{std::ssize(splits[0]) - 1};
  for (const Dims& each : splits) {
    int64_t longest = 0;
    for (size_t row = 1; row < each.size(); ++row) longest = std::max(longest, each[row] - each[row - 1]);
    dims.push_back(longest);
  }
  dims.insert(dims.end(), values.dims().begin() + 1, values.dims().end());
  const Dims wanted = context.input(0).as_i64();
  const bool any = context.input(0).rank() == 0;
  if (any ? wanted[0] != -1 : wanted.size() != dims.size())
    context.fail("a shape of {} dims for {}", wanted.size(), dims.size());
  for (size_t d = 0; !any && d < dims.size(); ++d) {
    if (wanted[d] < -1 || (d > splits.size() && wanted[d] >= 0 && wanted[d] != dims[d]))
      context.fail("dim {} cannot have size {}", d, wanted[d]);
    if (wanted[d] >= 0) dims[d] = wanted[d];
  }
  if (!element_count(dims)) context.fail("the result has more elements than can be counted");
  Tensor& y = context.allocate(0, values.dtype(), dims);
  std::vector<int64_t> places(splits[0].size() - 1);
  for (size_t row = 0; row < places.size(); ++row)
    places[row] = static_cast<int64_t>(row) < dims[0] ? static_cast<int64_t>(row) : -1;
  for (size_t level = 0; level < splits.size(); ++level) {
    std::vector<int64_t> inner(static_cast<size_t>(splits[level].back()), -1);
    for (size_t row = 0; row < places.size(); ++row)
      for (int64_t i = splits[level][row]; i < splits[level][row + 1] && places[row] >= 0; ++i)
        if (const int64_t column = i - splits[level][row]; column < dims[level + 1])
          inner[static_cast<size_t>(i)] = places[row] * dims[level + 1] + column;
    places = std::move(inner);
  }
  const int64_t part = count_between(values.dims(), 1, values.rank());
  if (fallback.count() != 1 && fallback.count() != part)
    context.fail("the default has {} elements, expected 1 or {}", fallback.count(), part);
  with_elements(values.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = 0; i < y.count(); ++i) data<T>(y)[i] = data<T>(fallback)[fallback.count() == 1 ? 0 : i % part];
    for (size_t i = 0; i < places.size(); ++i)
      if (places[i] >= 0)
        std::copy_n(data<T>(values) + static_cast<int64_t>(i) * part, part, data<T>(y) + places[i] * part);
  });
}

void infer_ragged_range(InferContext& context) {
  const DType dtype = number_type(context, 0);
  Dim rows = Dim(1);
  for (size_t i = 0; i < 3; ++i) {
    if (context.dtype(i) != dtype) context.fail("inputs are {} and {}", to_string(dtype), to_string(context.dtype(i)));
    if (!context.shape(i).ranked)
      rows = Dim();
    else if (context.shape(i).rank() > 1)
      context.fail("input {} has {} dims", i, context.shape(i).rank());
    else if (context.shape(i).rank() == 1)
      rows = context.shape(i).dims[0];
  }
  context.result(kI64, Shape{rows.known() ? Dim(rows.size + 1) : Dim()});
  context.result(dtype, Shape{Dim()});
}

void ragged_range(KernelContext& context) {
  int64_t rows = 1;
  for (size_t i = 0; i < 3; ++i)
    if (context.input(i).rank() == 1) rows = context.input(i).dims()[0];
  for (size_t i = 0; i < 3; ++i)
    if (context.input(i).rank() == 1 && context.input(i).dims()[0] != rows)
      context.fail("inputs have {} and {} rows", rows, context.input(i).dims()[0]);
  auto* splits = data<int64_t>(context.allocate(0, kI64, {rows + 1}));
  splits[0] = 0;
  with_numbers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    auto at = [&](size_t input, int64_t row) {
      return data<T>(context.input(input))[context.input(input).rank() == 1 ? row : 0];
    };
    for (const int64_t row : turns(rows)) {
      const auto start = static_cast<double>(at(0, row)), limit = static_cast<double>(at(1, row)),
                 step = static_cast<double>(at(2, row));
      if (step == 0) context.fail("the step of row {} is 0", row);
      const double count = std::ceil((limit - start) / step);
      if (!(count < 0x1p28)) context.fail("row {} is too long", row);
      splits[row + 1] = splits[row] + (count > 0 ? static_cast<int64_t>(count) : 0);
    }
    if (splits[rows] > int64_t{1} << 28) context.fail("the rows have {} elements", splits[rows]);
    auto* to = data<T>(context.allocate(1, context.input(0).dtype(), {splits[rows]}));
    for (const int64_t row : turns(rows)) {
      T value = at(0, row);
      for (int64_t i = splits[row]; i < splits[row + 1]; ++i, stop_point_after(1)) {
        *to++ = value;
        if constexpr (kIsFloat<T>)
          value = T(static_cast<Compute<T>>(value) + static_cast<Compute<T>>(at(2, row)));
        else
          value = wrapped(value, at(2, row), std::plus<>());
      }
    }
  });
}

void infer_ragged_gather(InferContext& context) {
  const size_t levels = context.input_count() - 2;
  if (context.input_count() < 3) context.fail("takes indices, values and at least one vector of row splits");
  const bool known = ranked(context, 0, 1);
  const DType dtype = moved_type(context, 1);
  for (size_t i = 0; i < levels; ++i) {
    ranked(context, 2 + i, 1);
    const bool rows = i == 0 && known && context.shape(0).dims[0].known();
    context.result(context.dtype(2 + i), Shape{rows ? Dim(context.shape(0).dims[0].size + 1) : Dim()});
  }
  Shape values = context.shape(1);
  if (values.ranked && values.rank() == 0) context.fail("values have no dims");
  if (values.ranked) values.dims[0] = Dim();
  context.result(dtype, std::move(values));
}

void ragged_gather(KernelContext& context) {
  const Tensor& values = context.input(1);
  const size_t levels = context.input_count() - 2;
  std::vector<std::pair<int64_t, int64_t>> ranges;  // of rows at the current level
  for (int64_t index : context.input(0).as_i64()) {
    if (index == std::numeric_limits<int64_t>::max()) context.fail("there is no row {}", index);
    ranges.emplace_back(index, index + 1);
  }
  for (size_t level = 0; level < levels; ++level) {
    const bool last = level + 1 == levels;
    const Dims ends = context.input(2 + level).as_i64();
    const Dims splits =
        checked_splits(context, context.input(2 + level), last ? values.dims()[0] : (ends.empty() ? 0 : ends.back()));
    std::vector<std::pair<int64_t, int64_t>> inner;
    Dims made{0};
    for (auto [begin, end] : ranges)
      for (int64_t row = begin; row < end; ++row, stop_point_after(4)) {
        if (row < 0 || row + 1 >= std::ssize(splits))
          context.fail("index {} is outside of {} rows", row, splits.size() - 1);
        inner.emplace_back(splits[static_cast<size_t>(row)], splits[static_cast<size_t>(row) + 1]);
        made.push_back(made.back() + inner.back().second - inner.back().first);
        if (made.back() > int64_t{1} << 40) context.fail("the result is too large");
      }
    ranges = std::move(inner);
    Tensor& y = context.allocate(level, context.input(2 + level).dtype(), {std::ssize(made)});
    with_integers(y.dtype(), [&](auto tag) {
      std::transform(made.begin(), made.end(), data<decltype(tag)>(y),
                     [](int64_t n) { return static_cast<decltype(tag)>(n); });
    });
  }
  Dims dims = values.dims();
  dims[0] = 0;
  for (auto [begin, end] : ranges) dims[0] += end - begin;
  if (!element_count(dims)) context.fail("the result has more elements than can be counted");
  const int64_t part = count_between(dims, 1, dims.size());
  Tensor& y = context.allocate(levels, values.dtype(), dims);
  with_elements(values.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* to = data<T>(y);
    for (auto [begin, end] : ranges) to = std::copy(data<T>(values) + begin * part, data<T>(values) + end * part, to);
  });
}

void infer_ragged_to_sparse(InferContext& context) {
  const DType dtype = moved_type(context, 0);
  if (context.input_count() < 2) context.fail("takes values and at least one vector of row splits");
  for (size_t i = 1; i < context.input_count(); ++i) ranked(context, i, 1);
  const Shape& values = context.shape(0);
  if (values.ranked && values.rank() == 0) context.fail("values have no dims");
  const Dim rank = values.ranked ? Dim(static_cast<int64_t>(context.input_count() - 1 + values.rank())) : Dim();
  const auto count = known_count(values);
  context.result(kI64, Shape{count ? Dim(*count) : Dim(), rank});
  context.result(dtype, Shape{count ? Dim(*count) : Dim()});
  context.result(kI64, Shape{rank});
}

void ragged_to_sparse(KernelContext& context) {
  const Tensor& values = context.input(0);
  std::vector<Tensor> parts;
  for (size_t i = 1; i < context.input_count(); ++i) parts.push_back(context.input(i));
  const auto splits =
      all_splits(context, parts, std::vector<std::string>(parts.size(), "ROW_SPLITS"), values.dims()[0]);
  Dims dims{std::ssize(splits[0]) - 1};
  std::vector<Dims> index(static_cast<size_t>(dims[0]));  // of each row, then of each element of the next dim
  for (size_t row = 0; row < index.size(); ++row) index[row] = {static_cast<int64_t>(row)};
  for (const Dims& each : splits) {
    int64_t longest = 0;
    std::vector<Dims> inner;
    for (size_t row = 0; row + 1 < each.size(); ++row) {
      longest = std::max(longest, each[row + 1] - each[row]);
      for (int64_t i = each[row]; i < each[row + 1]; ++i, stop_point_after(64)) {
        inner.push_back(index[row]);
        inner.back().push_back(i - each[row]);
      }
    }
    index = std::move(inner);
    dims.push_back(longest);
  }
  dims.insert(dims.end(), values.dims().begin() + 1, values.dims().end());
  const Dims part(values.dims().begin() + 1, values.dims().end());
  const Dims strides = strides_of(part);
  auto* to = data<int64_t>(context.allocate(0, kI64, {values.count(), std::ssize(dims)}));
  for (const Dims& row : index)
    for (int64_t i = 0; i < count_of(part); ++i, stop_point_after(8)) {
      to = std::copy(row.begin(), row.end(), to);
      for (size_t d = 0; d < part.size(); ++d) *to++ = i / strides[d] % part[d];
    }
  Tensor& y = context.allocate(1, values.dtype(), {values.count()});
  copy_elements(values, y);
  std::copy(dims.begin(), dims.end(), data<int64_t>(context.allocate(2, kI64, {std::ssize(dims)})));
}

// Applies the op to the elements' numbers: the result tells which element is at each position; -1 stands for the
// default.
void ragged_to_dense_rule(GradientContext& g) {
  std::vector<Var> inputs = {g.x(0), numbered(g.x(1)), broadcast_to_like(counting(Size(g.b, 1)).number(-1), g.x(2))};
  for (size_t i = 3; i < g.input_count(); ++i) inputs.push_back(g.x(i));
  const Var places = apply_again(g, inputs)[0];
  g.set(1, sum_elements(g.dy(), places, g.x(1)));
  if (g.wanted(2)) g.set(2, sum_to_like(keep_where(places < 0, g.dy()), g.x(2)));
}

// The results are row splits, then the values.
void ragged_gather_rule(GradientContext& g) {
  const size_t last = g.node().results.size() - 1;
  const Sizes sizes = sizes_of(g, g.x(1));
  std::vector<Var> inputs = {g.x(0), counting(sizes[0])};
  for (size_t i = 2; i < g.input_count(); ++i) inputs.push_back(g.x(i));
  const Size width = product_of(g.b, sizes, 1, sizes.size());
  const Var rows = reshape(g.dy(last), {Size(g.dy(last), 0), width});
  g.set(1, reshape_like(sum_rows(rows, apply_again(g, inputs)[last], sizes[0]), g.x(1)));
}

std::vector<OpDef> make_ragged_rows() {
  const InputDef splits = index_operand("splits", Accepts::i32_or_i64, InputDef::Arity::variadic);
  return {
      {.name = "ragged_to_dense",
       .summary =
           "the rows in a dense tensor of the shape, cut off or with the default behind them; -1 in the shape, or for "
           "all of it, is as large as needed; kinds tell what each further input holds of a dim: ROW_SPLITS, "
           "VALUE_ROWIDS, or in the first place FIRST_DIM_SIZE",
       .inputs = {{"shape", Accepts::i32_or_i64},
                  {"values"},
                  {"default"},
                  index_operand("rows", Accepts::i32_or_i64, InputDef::Arity::variadic)},
       .attributes = {{"kinds", AttrKind::texts}},
       .traits = kDynamicResult,
       .infer = infer_ragged_to_dense,
       .gradient = ragged_to_dense_rule,
       .reference = ragged_to_dense,
       .oracle = untested(kRaggedTests)},
      {.name = "ragged_range",
       .summary = "for each row start, start + step, ... below (with a negative step above) the limit, one row after "
                  "the other",
       .inputs = {shape_operand("start", Accepts::numbers), shape_operand("limit", Accepts::numbers),
                  shape_operand("step", Accepts::numbers)},
       .results = {"splits", "values"},
       .traits = kDynamicResult,
       .infer = infer_ragged_range,
       .reference = ragged_range,
       .oracle = {"tuple(tf.raw_ops.RaggedRange(starts=tf.constant(start), limits=tf.constant(limit), "
                  "deltas=tf.constant(step)))",
                  kTensorFlow},
       .cases = {"i64[3]=[0, 5, 8], i64[3]=[4, 5, 2], i64[3]=[1, 1, -3]", "i32[]=[0], i32[2]=[3, 1], i32[]=[2]",
                 "f32[1]=[0.5], f32[1]=[2], f32[]=[0.5]"}},
      {.name = "ragged_gather",
       .summary = "the rows that the indices name: row splits of each dim, then the values",
       .inputs = {index_operand("indices"), {"values"}, splits},
       .results = {},
       .traits = kDynamicResult,
       .infer = infer_ragged_gather,
       .gradient = ragged_gather_rule,
       .reference = ragged_gather,
       .oracle = untested(kRaggedTests)},
      {.name = "ragged_to_sparse",
       .summary = "index vectors and values of all elements, and the smallest shape that holds them",
       .inputs = {{"values"}, splits},
       .results = {"indices", "values", "shape"},
       .traits = kDynamicResult,
       .infer = infer_ragged_to_sparse,
       .gradient = [](GradientContext& g) { g.set(0, reshape_like(g.dy(1), g.x(0))); },
       .reference = ragged_to_sparse,
       .oracle = untested(kRaggedTests)},
  };
}

}  // namespace

std::span<const OpDef> ragged_ops() {
  static const std::vector<OpDef> rows = make_ragged_rows();
  return rows;
}

}  // namespace cairn
