// Sparse tensors, given as three dense ones: index vectors [n, rank], n values, and the shape.
#include <map>
#include <numeric>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"
#include "ops/text_hash.h"

namespace cairn {

namespace {

constexpr const char* kSparseTests = "tests/python/test_texts.py compares it with TensorFlow";

const InputDef kIndices = index_operand("indices"), kShape = {"shape", Accepts::i32_or_i64};

/// Refuses unless the three operands from `first` on are index vectors, values and a shape that match.
void check_sparse(InferContext& context, size_t first) {
  const bool matrix = ranked(context, first, 2), vector = ranked(context, first + 1, 1);
  const bool shape = ranked(context, first + 2, 1);
  if (context.dtype(first) != kI64 || context.dtype(first + 2) != kI64) context.fail("indices and shape must be i64");
  if (matrix && vector)
    same_size(context, context.shape(first).dims[0], context.shape(first + 1).dims[0],
              "numbers of indices and of values");
  if (matrix && shape)
    same_size(context, context.shape(first).dims[1], context.shape(first + 2).dims[0], "ranks of indices and of shape");
}

Dim rank_of(const InferContext& context, size_t first) {
  if (context.shape(first + 2).ranked && context.shape(first + 2).dims[0].known())
    return context.shape(first + 2).dims[0];
  return context.shape(first).ranked ? context.shape(first).dims[1] : Dim();
}

/// The sparse tensor given by the operands from `first` on; checks that every index is inside the shape.
struct Sparse {
  int64_t count, rank;
  const int64_t* indices;
  Dims shape;

  Sparse(const KernelContext& context, size_t first)
      : count(context.input(first).dims()[0]), rank(context.input(first).dims()[1]),
        indices(data<int64_t>(context.input(first))), shape(context.input(first + 2).as_i64()) {
    if (std::ssize(shape) != rank || context.input(first + 1).count() != count)
      context.fail("{} indices of {} numbers, {} values and a shape of {}", count, rank,
                   context.input(first + 1).count(), shape.size());
    for (int64_t size : shape)
      if (size < 0) context.fail("size {} is negative", size);
    for (const int64_t i : turns(count))
      for (int64_t d = 0; d < rank; ++d)
        if (at(i)[d] < 0 || at(i)[d] >= shape[static_cast<size_t>(d)])
          context.fail("index {} of dim {} is outside of its {} elements", at(i)[d], d, shape[static_cast<size_t>(d)]);
  }
  const int64_t* at(int64_t i) const { return indices + i * rank; }
  bool before(int64_t a, int64_t b) const {
    return std::lexicographical_compare(at(a), at(a) + rank, at(b), at(b) + rank);
  }
};

void copy_shape(KernelContext& context, size_t result, const Dims& shape) {
  Tensor& y = context.allocate(result, kI64, {std::ssize(shape)});
  std::copy(shape.begin(), shape.end(), data<int64_t>(y));
}

void copy_rows(KernelContext& context, size_t first, const std::vector<int64_t>& picked,
               const Dims* moved_by = nullptr) {
  const Sparse x(context, first);
  const auto count = std::ssize(picked);
  auto* indices = data<int64_t>(context.allocate(0, kI64, {count, x.rank}));
  const Tensor& from = context.input(first + 1);
  Tensor& values = context.allocate(1, from.dtype(), {count});
  for (const int64_t i : turns(count, x.rank))
    for (int64_t d = 0; d < x.rank; ++d)
      indices[i * x.rank + d] =
          x.at(picked[static_cast<size_t>(i)])[d] - (moved_by ? (*moved_by)[static_cast<size_t>(d)] : 0);
  with_elements(from.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (size_t i = 0; i < picked.size(); ++i) data<T>(values)[i] = data<T>(from)[picked[i]];
  });
}

void infer_sparse_reshape(InferContext& context) {
  const bool matrix = ranked(context, 0, 2);
  ranked(context, 1, 1);
  const Dim rank = ranked(context, 2, 1) ? context.shape(2).dims[0] : Dim();
  context.result(kI64, Shape{matrix ? context.shape(0).dims[0] : Dim(), rank});
  context.result(kI64, Shape{rank});
}

/// The sizes with a -1 among them replaced by the size that it stands for.
Dims settled(const KernelContext& context, Dims to, int64_t total) {
  int64_t others = 1, free = -1;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == -1 && free < 0) {
      free = static_cast<int64_t>(d);
    } else if (to[d] < 0 || __builtin_mul_overflow(others, to[d], &others)) {
      context.fail("size {} of dim {} is not possible", to[d], d);
    }
  }
  if (free >= 0) {
    if (others == 0 ? total != 0 : total % others != 0)
      context.fail("{} elements cannot have dims that need a multiple of {}", total, others);
    to[static_cast<size_t>(free)] = others == 0 ? 0 : total / others;
  } else if (others != total) {
    context.fail("{} elements cannot become {}", total, others);
  }
  return to;
}

void sparse_reshape(KernelContext& context) {
  const Dims from = context.input(1).as_i64();
  const int64_t count = context.input(0).dims()[0], rank = context.input(0).dims()[1];
  if (std::ssize(from) != rank) context.fail("indices have {} numbers, the shape {}", rank, from.size());
  const auto total = element_count(from);
  if (!total) context.fail("the shape has more elements than can be counted, or a negative size");
  const Dims to = settled(context, context.input(2).as_i64(), *total);
  copy_shape(context, 1, to);
  auto* indices = data<int64_t>(context.allocate(0, kI64, {count, std::ssize(to)}));
  const auto* old = data<int64_t>(context.input(0));
  for (const int64_t i : turns(count)) {
    int64_t place = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      const int64_t number = *old++;
      if (number < 0 || number >= from[d])
        context.fail("index {} of dim {} is outside of its {} elements", number, d, from[d]);
      place = place * from[d] + number;
    }
    for (size_t d = to.size(); d-- > 0; place /= to[d])
      indices[i * std::ssize(to) + static_cast<int64_t>(d)] = place % to[d];
  }
}

void infer_sparse_reorder(InferContext& context) {
  check_sparse(context, 0);
  const Dim count = context.shape(1).ranked   ? context.shape(1).dims[0]
                    : context.shape(0).ranked ? context.shape(0).dims[0]
                                              : Dim();
  context.result(kI64, Shape{count, rank_of(context, 0)});
  context.result(moved_type(context, 1), Shape{count});
}

void sparse_reorder(KernelContext& context) {
  const Sparse x(context, 0);
  std::vector<int64_t> order(static_cast<size_t>(x.count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    stop_point_after(4);
    return x.before(a, b);
  });
  copy_rows(context, 0, order);
}

void infer_fill_empty_rows(InferContext& context) {
  check_sparse(context, 0);
  const DType dtype = moved_type(context, 1);
  if (context.dtype(3) != dtype)
    context.fail("values are {}, the default is {}", to_string(dtype), to_string(context.dtype(3)));
  require_scalar(context, 3);
  Dim rows;
  if (auto shape = constant_integers(context, 2); shape && !shape->empty() && (*shape)[0] >= 0) rows = (*shape)[0];
  context.result(kI64, Shape{Dim(), rank_of(context, 0)});
  context.result(dtype, Shape{Dim()});
  context.result(kBool, Shape{rows});
  context.result(kI64, Shape{context.shape(1).ranked ? context.shape(1).dims[0] : Dim()});
}

/// Orders the elements by row, keeping the order within a row, and adds a default element to each empty row.
void fill_empty_rows(KernelContext& context) {
  const Sparse x(context, 0);
  if (x.rank < 1) context.fail("the shape has no rows");
  const int64_t rows = x.shape[0];
  if (!element_count({rows, x.rank})) context.fail("{} rows cannot be counted", rows);
  Tensor& empty = context.allocate(2, kBool, {rows});
  std::vector<int64_t> ends(static_cast<size_t>(rows), 0);
  for (int64_t i = 0; i < x.count; ++i) ++ends[static_cast<size_t>(x.at(i)[0])];
  int64_t total = 0;
  for (size_t row = 0; row < ends.size(); ++row) {
    const bool is_empty = ends[row] == 0;
    data<uint8_t>(empty)[row] = is_empty;
    total += is_empty ? 1 : ends[row];
    ends[row] = total - (is_empty ? 1 : ends[row]);  // from here on the row's begin
  }
  auto* indices = data<int64_t>(context.allocate(0, kI64, {total, x.rank}));
  auto* places = data<int64_t>(context.allocate(3, kI64, {x.count}));
  Tensor& values = context.allocate(1, context.input(1).dtype(), {total});
  with_elements(values.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (const size_t row : turns(ends.size())) {
      if (!data<uint8_t>(empty)[row]) continue;
      int64_t* index = indices + ends[row] * x.rank;
      std::fill_n(index, x.rank, 0);
      index[0] = static_cast<int64_t>(row);
      data<T>(values)[ends[row]] = *data<T>(context.input(3));
    }
    for (const int64_t i : turns(x.count)) {
      const int64_t to = ends[static_cast<size_t>(x.at(i)[0])]++;
      std::copy_n(x.at(i), x.rank, indices + to * x.rank);
      data<T>(values)[to] = data<T>(context.input(1))[i];
      places[i] = to;
    }
  });
}

void infer_sparse_slice(InferContext& context) {
  check_sparse(context, 0);
  for (size_t i : {3, 4}) ranked(context, i, 1);
  const Dim rank = rank_of(context, 0);
  context.result(kI64, Shape{Dim(), rank});
  context.result(moved_type(context, 1), Shape{Dim()});
  context.result(kI64, Shape{rank});
}

void sparse_slice(KernelContext& context) {
  const Sparse x(context, 0);
  const Dims start = context.input(3).as_i64(), size = context.input(4).as_i64();
  if (std::ssize(start) != x.rank || std::ssize(size) != x.rank)
    context.fail("start and size have {} and {} numbers, the shape {}", start.size(), size.size(), x.rank);
  Dims shape(start.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (start[d] < 0 || size[d] < 0) context.fail("start {} or size {} is negative", start[d], size[d]);
    shape[d] = start[d] < x.shape[d] ? std::min(size[d], x.shape[d] - start[d]) : 0;
  }
  std::vector<int64_t> picked;
  for (const int64_t i : turns(x.count)) {
    bool inside = true;
    for (size_t d = 0; d < shape.size(); ++d)
      inside = inside && x.at(i)[d] >= start[d] && x.at(i)[d] - start[d] < shape[d];
    if (inside) picked.push_back(i);
  }
  copy_rows(context, 0, picked, &start);
  copy_shape(context, 2, shape);
}

void infer_sparse_add(InferContext& context) {
  check_sparse(context, 0), check_sparse(context, 3);
  const DType dtype = number_type(context, 1);
  if (context.dtype(4) != dtype) context.fail("values are {} and {}", to_string(dtype), to_string(context.dtype(4)));
  require_scalar(context, 6);
  const Dim rank = rank_of(context, 0);
  context.result(kI64, Shape{Dim(), rank});
  context.result(dtype, Shape{Dim()});
  context.result(kI64, Shape{rank});
}

void sparse_add(KernelContext& context) {
  const Sparse a(context, 0), b(context, 3);
  if (a.shape != b.shape) context.fail("the shapes differ");
  const double threshold = context.input(6).as_f64()[0];
  with_numbers(context.input(1).dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T *left = data<T>(context.input(1)), *right = data<T>(context.input(4));
    std::vector<const int64_t*> found;
    std::vector<T> sums;
    for (int64_t i = 0, j = 0; i < a.count || j < b.count;) {
      stop_point_after(a.rank + 8);
      auto less = [&](const int64_t* x, const int64_t* y) {
        return std::lexicographical_compare(x, x + a.rank, y, y + a.rank);
      };
      const bool first = j == b.count || (i < a.count && !less(b.at(j), a.at(i)));
      const bool second = i == a.count || (j < b.count && !less(a.at(i), b.at(j)));
      T sum = first ? left[i] : right[j];
      if (first && second) {
        if constexpr (kIsFloat<T>)
          sum = T(static_cast<Compute<T>>(left[i]) + static_cast<Compute<T>>(right[j]));
        else
          sum = wrapped(left[i], right[j], std::plus<>());
      }
      if (std::abs(static_cast<double>(sum)) >= threshold)
        found.push_back(first ? a.at(i) : b.at(j)), sums.push_back(sum);
      i += first, j += second;
    }
    auto* indices = data<int64_t>(context.allocate(0, kI64, {std::ssize(found), a.rank}));
    for (const int64_t* each : found) indices = std::copy_n(each, a.rank, indices);
    std::copy(sums.begin(), sums.end(), data<T>(context.allocate(1, context.input(1).dtype(), {std::ssize(sums)})));
  });
  copy_shape(context, 2, a.shape);
}

void infer_sparse_reduce(InferContext& context) {
  check_sparse(context, 0);
  const DType dtype = number_type(context, 1);
  const Dim rank = rank_of(context, 0);
  if (!rank.known()) return context.result(dtype, Shape::unranked());
  if (rank.size > kMaxRank) context.fail("{} dims are too many", rank.size);
  Shape shape(std::vector<Dim>(static_cast<size_t>(rank.size)));
  if (auto sizes = constant_integers(context, 2)) shape = shape_operand(context, 2);
  context.result(dtype, reduced(shape, axis_set(context, context.attr.integers("axes"), shape.rank()),
                                context.attr.boolean("keep_dims")));
}

void sparse_reduce(KernelContext& context) {
  const Sparse x(context, 0);
  Shape kept = Shape::of(x.shape);
  std::vector<bool> gone(x.shape.size(), false);
  for (int64_t axis : context.attr.integers("axes")) gone[static_cast<size_t>(axis < 0 ? axis + x.rank : axis)] = true;
  const Dims dims = reduced(kept, gone, context.attr.boolean("keep_dims")).sizes();
  const Dims strides = strides_of(reduced(kept, gone, true).sizes());
  if (!element_count(dims)) context.fail("the result has more elements than can be counted");
  Tensor& y = context.allocate(0, context.input(1).dtype(), dims);
  const bool largest = context.attr.text("mode") == "max";
  std::vector<bool> seen(static_cast<size_t>(y.count()), false);
  std::memset(y.mutable_data(), 0, y.bytes());
  with_numbers(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (const int64_t i : turns(x.count)) {
      int64_t to = 0;
      for (size_t d = 0; d < gone.size(); ++d) to += gone[d] ? 0 : x.at(i)[d] * strides[d];
      const T value = data<T>(context.input(1))[i];
      T& sum = data<T>(y)[to];
      if (!seen[static_cast<size_t>(to)])
        sum = value;
      else if (largest)
        sum = T(maximum(static_cast<Compute<T>>(sum), static_cast<Compute<T>>(value)));
      else if constexpr (kIsFloat<T>)
        sum = T(static_cast<Compute<T>>(sum) + static_cast<Compute<T>>(value));
      else
        sum = wrapped(sum, value, std::plus<>());
      seen[static_cast<size_t>(to)] = true;
    }
  });
}

void infer_sparse_softmax(InferContext& context) {
  check_sparse(context, 0);
  if (!context.dtype(1).is_float()) context.fail("values must be floats, found {}", to_string(context.dtype(1)));
  context.result(context.dtype(1), context.shape(1).ranked ? context.shape(1) : Shape{Dim()});
}

void sparse_softmax(KernelContext& context) {
  const Sparse x(context, 0);
  if (x.rank < 1) context.fail("the shape has no dims");
  Tensor& y = context.allocate(0, context.input(1).dtype(), context.input(1).dims());
  with_floats(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* from = data<T>(context.input(1));
    for (int64_t begin = 0, end; begin < x.count; stop_point_after(8 * (end - begin)), begin = end) {
      for (end = begin + 1; end < x.count && std::equal(x.at(begin), x.at(begin) + x.rank - 1, x.at(end));) ++end;
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = begin; i < end; ++i) most = std::max(most, static_cast<double>(from[i]));
      for (int64_t i = begin; i < end; ++i) sum += std::exp(static_cast<double>(from[i]) - most);
      for (int64_t i = begin; i < end; ++i)
        data<T>(y)[i] = T(static_cast<Compute<T>>(std::exp(static_cast<double>(from[i]) - most) / sum));
    }
  });
}

/// The features of one input of a cross, grouped by batch row.
struct CrossColumn {
  const Tensor* values;
  std::vector<std::vector<int64_t>> rows;  // for each row, the indices of its features among the values
};

std::vector<CrossColumn> cross_columns(const KernelContext& context, int64_t& batch) {
  const auto sparse = static_cast<size_t>(context.attr.integer("sparse"));
  batch = -1;
  auto rows_are = [&](int64_t rows) {
    if (batch >= 0 && rows != batch) context.fail("inputs have {} and {} rows", batch, rows);
    batch = rows;
  };
  std::vector<CrossColumn> columns;
  for (size_t k = 0; k < sparse; ++k) {
    const Tensor &indices = context.input(k), &values = context.input(sparse + k);
    const Dims shape = context.input(2 * sparse + k).as_i64();
    if (shape.size() != 2 || indices.dims()[1] != 2 || indices.dims()[0] != values.count())
      context.fail("input {} is no sparse matrix", k);
    if (shape[0] < 0 || !element_count({shape[0], 64})) context.fail("input {} has {} rows", k, shape[0]);
    rows_are(shape[0]);
    CrossColumn column{&values, std::vector<std::vector<int64_t>>(static_cast<size_t>(shape[0]))};
    for (const int64_t i : turns(values.count())) {
      const int64_t row = data<int64_t>(indices)[2 * i];
      if (row < 0 || row >= shape[0]) context.fail("row {} of input {} is outside of {}", row, k, shape[0]);
      column.rows[static_cast<size_t>(row)].push_back(i);
    }
    columns.push_back(std::move(column));
  }
  for (size_t k = 3 * sparse; k < context.input_count(); ++k) {
    const Tensor& values = context.input(k);
    if (values.rank() != 2) context.fail("input {} has {} dims, expected 2", k, values.rank());
    rows_are(values.dims()[0]);
    CrossColumn column{&values, std::vector<std::vector<int64_t>>(static_cast<size_t>(values.dims()[0]))};
    for (int64_t i = 0; i < values.count(); ++i) column.rows[static_cast<size_t>(i / values.dims()[1])].push_back(i);
    columns.push_back(std::move(column));
  }
  if (batch < 0) context.fail("has no input");
  return columns;
}

void infer_sparse_cross(InferContext& context) {
  const int64_t sparse = context.attr.integer("sparse"), inputs = static_cast<int64_t>(context.input_count());
  if (sparse < 0 || sparse > inputs / 3) context.fail("{} sparse tensors need more than {} inputs", sparse, inputs);
  for (int64_t i = 0; i < inputs; ++i) {
    const auto k = static_cast<size_t>(i);
    const bool values = (i >= sparse && i < 2 * sparse) || i >= 3 * sparse;
    if (values ? context.dtype(k) != kI64 && context.dtype(k) != kString : context.dtype(k) != kI64)
      context.fail("input {} is {}", i, to_string(context.dtype(k)));
    if (i < sparse || i >= 3 * sparse)
      ranked(context, k, 2);
    else
      ranked(context, k, 1);
  }
  context.result(kI64, Shape{Dim(), Dim(2)});
  context.result(context.attr.boolean("hashed") ? kI64 : kString, Shape{Dim()});
  context.result(kI64, Shape{Dim(2)});
}

uint64_t feature_hash(const Tensor& values, int64_t at) {
  return values.dtype() == kString ? fingerprint64(data<std::string>(values)[at])
                                   : static_cast<uint64_t>(data<int64_t>(values)[at]);
}

std::string feature_text(const Tensor& values, int64_t at) {
  return values.dtype() == kString ? data<std::string>(values)[at] : fmt::format("{}", data<int64_t>(values)[at]);
}

/// Crosses the columns: every combination of one feature per column, the last column changing fastest.
void sparse_cross(KernelContext& context) {
  int64_t batch = 0, widest = 0;
  const std::vector<CrossColumn> columns = cross_columns(context, batch);
  const bool hashed = context.attr.boolean("hashed");
  const auto key = static_cast<uint64_t>(context.attr.integer("key"));
  const int64_t buckets = context.attr.integer("buckets");
  const uint64_t divisor = buckets > 0 ? static_cast<uint64_t>(buckets) : static_cast<uint64_t>(INT64_MAX);
  constexpr int64_t kMost = int64_t{1} << 28;
  std::vector<int64_t> numbers, counts;
  std::vector<std::string> texts;
  int64_t total = 0;
  for (size_t row = 0; row < static_cast<size_t>(batch); ++row) {
    int64_t crosses = 1;
    for (const CrossColumn& column : columns)
      if (__builtin_mul_overflow(crosses, std::ssize(column.rows[row]), &crosses) || crosses > kMost)
        context.fail("row {} has more than {} crosses", row, kMost);
    if ((total += crosses) > kMost) context.fail("there are more than {} crosses", kMost);
    counts.push_back(crosses);
    widest = std::max(widest, crosses);
    for (const int64_t n : turns(crosses)) {
      std::vector<int64_t> picked(columns.size());
      int64_t rest = n;
      for (size_t k = columns.size(); k-- > 0; rest /= std::ssize(columns[k].rows[row]))
        picked[k] = columns[k].rows[row][static_cast<size_t>(rest % std::ssize(columns[k].rows[row]))];
      uint64_t hash = key;
      std::string text;
      for (size_t k = 0; k < columns.size(); ++k) {
        if (hashed)
          hash = fingerprint_of_two(hash, feature_hash(*columns[k].values, picked[k]));
        else
          text += (k > 0 ? context.attr.text("separator") : "") + feature_text(*columns[k].values, picked[k]);
      }
      if (hashed)
        numbers.push_back(static_cast<int64_t>(hash % divisor));
      else
        texts.push_back(std::move(text));
    }
  }
  auto* indices = data<int64_t>(context.allocate(0, kI64, {total, 2}));
  for (size_t row = 0; row < counts.size(); ++row)
    for (int64_t n = 0; n < counts[row]; ++n) *indices++ = static_cast<int64_t>(row), *indices++ = n;
  Tensor& values = context.allocate(1, hashed ? kI64 : kString, {total});
  if (hashed)
    std::copy(numbers.begin(), numbers.end(), data<int64_t>(values));
  else
    std::move(texts.begin(), texts.end(), data<std::string>(values));
  copy_shape(context, 2, {batch, widest});
}

std::vector<OpDef> make_sparse_rows() {
  const InputDef values{"values"};
  return {
      {.name = "sparse_reshape",
       .summary = "index vectors of the same elements under another shape, of which one size may be -1, and that shape",
       .inputs = {kIndices, kShape, {"new_shape", Accepts::i32_or_i64}},
       .results = {"indices", "shape"},
       .infer = infer_sparse_reshape,
       .reference = sparse_reshape,
       .oracle = {"tuple(tf.raw_ops.SparseReshape(input_indices=indices, input_shape=shape, new_shape=new_shape))",
                  kTensorFlow},
       .cases = {"i64[3, 2]=[0, 0, 0, 3, 1, 2], i64[2]=[2, 6], i64[3]=[3, -1, 2]",
                 "i64[2, 3]=[0, 1, 0, 1, 0, 3], i64[3]=[2, 2, 4], i64[1]=[16]",
                 "i64[0, 2]=[], i64[2]=[2, 3], i64[2]=[3, 2]", "i64[0, 2]=[], i64[2]=[0, 3], i64[2]=[-1, 3]"}},
      {.name = "sparse_reorder",
       .summary = "the elements in row-major order of their index vectors, equal ones as they were",
       .inputs = {kIndices, values, kShape},
       .results = {"indices", "values"},
       .infer = infer_sparse_reorder,
       .gradient = sparse_reorder_rule,
       .reference = sparse_reorder,
       .oracle = {"tuple(tf.raw_ops.SparseReorder(input_indices=indices, input_values=values, input_shape=shape))",
                  kTensorFlow},
       .cases = {"i64[3, 2]=[1, 2, 0, 3, 0, 1], f32[3], i64[2]=[2, 6]", "i64[4, 1]=[3, 0, 2, 1], bool[4], i64[1]=[4]",
                 "i64[0, 2]=[], i32[0], i64[2]=[2, 2]"}},
      {.name = "sparse_fill_empty_rows",
       .summary = "the elements by rows, with the default at column 0 of each row that had none; which rows these are; "
                  "and where each element now stands",
       .inputs = {kIndices, values, kShape, {"default"}},
       .results = {"indices", "values", "empty", "places"},
       .traits = kDynamicResult,
       .infer = infer_fill_empty_rows,
       .gradient = sparse_fill_empty_rows_rule,
       .reference = fill_empty_rows,
       .oracle = {"tuple(tf.raw_ops.SparseFillEmptyRows(indices=indices, values=values, dense_shape=shape, "
                  "default_value=default))",
                  kTensorFlow},
       .cases = {"i64[3, 2]=[1, 0, 1, 3, 3, 2], f32[3], i64[2]=[5, 6], f32[]",
                 "i64[3, 2]=[2, 0, 0, 3, 2, 2], i64[3], i64[2]=[3, 6], i64[]",
                 "i64[0, 2]=[], i32[0], i64[2]=[3, 4], i32[]"}},
      {.name = "sparse_slice",
       .summary =
           "the elements inside a box of that start and size, cut off at the shape, with indices from its start on",
       .inputs = {kIndices, values, kShape, {"start", Accepts::i32_or_i64}, {"size", Accepts::i32_or_i64}},
       .results = {"indices", "values", "shape"},
       .traits = kDynamicResult,
       .infer = infer_sparse_slice,
       .gradient = sparse_slice_rule,
       .reference = sparse_slice,
       .oracle = {"tuple(tf.raw_ops.SparseSlice(indices=indices, values=values, shape=shape, start=start, size=size))",
                  kTensorFlow},
       .cases = {"i64[3, 2]=[0, 0, 0, 3, 1, 2], f32[3], i64[2]=[2, 6], i64[2]=[0, 1], i64[2]=[2, 9]",
                 "i64[2, 1]=[1, 2], i32[2], i64[1]=[4], i64[1]=[2], i64[1]=[1]"}},
      {.name = "sparse_add",
       .summary =
           "the sum of two sparse tensors in row-major order, without elements whose size is below the threshold",
       .inputs = {index_operand("a_indices"),
                  {"a_values", Accepts::numbers},
                  {"a_shape", Accepts::i32_or_i64},
                  index_operand("b_indices"),
                  {"b_values", Accepts::numbers},
                  {"b_shape", Accepts::i32_or_i64},
                  {"threshold", Accepts::numbers}},
       .results = {"indices", "values", "shape"},
       .traits = kDynamicResult,
       .infer = infer_sparse_add,
       .gradient = sparse_add_rule,
       .reference = sparse_add,
       .oracle =
           {"tuple(tf.raw_ops.SparseAdd(a_indices=a_indices, a_values=a_values, a_shape=a_shape, b_indices=b_indices, "
            "b_values=b_values, b_shape=b_shape, thresh=threshold))",
            kTensorFlow},
       .cases = {"i64[2, 2]=[0, 1, 1, 0], f32[2]=[1, 2], i64[2]=[2, 3], i64[2, 2]=[0, 0, 1, 0], f32[2]=[3, -2], "
                 "i64[2]=[2, 3], f32[]=[0.5]",
                 "i64[1, 1]=[2], i32[1], i64[1]=[4], i64[0, 1]=[], i32[0], i64[1]=[4], i32[]=[0]"}},
  };
}

std::vector<OpDef> make_sparse_reduction_rows() {
  return {
      {.name = "sparse_reduce",
       .summary =
           "sum or largest of the elements that are there along the axes, as a dense tensor; 0 where there are none",
       .inputs = {kIndices, {"values", Accepts::numbers}, kShape},
       .attributes = {word("mode", "sum", {"sum", "max"}), integers("axes", {}), flag("keep_dims")},
       .traits = kDynamicResult,
       .precision = Precision::accumulate_f32,
       .infer = infer_sparse_reduce,
       .gradient = sparse_reduce_rule,
       .reference = sparse_reduce,
       .oracle =
           {"getattr(tf.raw_ops, 'SparseReduceSum' if mode == 'sum' else 'SparseReduceMax')(input_indices=indices, "
            "input_values=values, input_shape=shape, reduction_axes=axes, keep_dims=keep_dims)",
            kTensorFlow},
       .cases = {"i64[3, 2]=[0, 0, 0, 3, 1, 2], f32[3], i64[2]=[3, 6] {axes = [1]}",
                 "i64[3, 2]=[0, 0, 0, 3, 1, 2], i32[3], i64[2]=[3, 6] {mode = max, axes = [-1], keep_dims = true}",
                 "i64[3, 2]=[0, 0, 0, 3, 1, 3], f32[3], i64[2]=[2, 4] {axes = [0]}"}},
      {.name = "sparse_softmax",
       .summary = "softmax along the last dim over the elements that are there, which stand in row-major order",
       .inputs = {kIndices, {"values", Accepts::floats}, kShape},
       .precision = Precision::rounded,
       .infer = infer_sparse_softmax,
       .gradient = sparse_softmax_rule,
       .reference = sparse_softmax,
       .oracle = {"tf.raw_ops.SparseSoftmax(sp_indices=indices, sp_values=values, sp_shape=shape)", kTensorFlow},
       .cases = {"i64[4, 2]=[0, 0, 0, 3, 1, 2, 1, 5], f32[4], i64[2]=[3, 6]"}},
  };
}

std::vector<OpDef> make_cross_rows() {
  return {
      {.name = "sparse_cross",
       .summary =
           "all choices of one feature from each input of a row, hashed to a bucket (by fingerprints, beginning with "
           "the key) or joined as text; indices, values and shapes of so many sparse matrices, then dense matrices",
       .inputs = {{"inputs", Accepts::any_tensor, InputDef::Arity::variadic}},
       .attributes = {{"sparse", AttrKind::integer},
                      flag("hashed"),
                      integer("buckets", 0),
                      integer("key", 0),
                      {"separator", AttrKind::text, Attribute(std::string("_X_"))}},
       .results = {"indices", "values", "shape"},
       .traits = kHostValue | kDynamicResult,
       .infer = infer_sparse_cross,
       .no_gradient = "features are numbers of buckets or texts",
       .reference = sparse_cross,
       .oracle = untested(kSparseTests)},
  };
}

}  // namespace

std::span<const OpDef> sparse_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> all = make_sparse_rows();
    for (auto make : {make_sparse_reduction_rows, make_cross_rows})
      for (const OpDef& row : make()) all.push_back(row);
    return all;
  }();
  return rows;
}

}  // namespace cairn
