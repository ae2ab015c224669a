// Ops whose result dims depend on element values: the nodes after them are planned once these dims are known.
#include <unordered_map>

#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void infer_non_zero(InferContext& context) {
  number_type(context, 0);
  const Shape& x = context.shape(0);
  context.result(kI64, Shape{Dim(), x.ranked ? Dim(static_cast<int64_t>(x.rank())) : Dim()});
}

void non_zero(KernelContext& context) {
  const Tensor& x = context.input(0);
  const Dims strides = strides_of(x.dims());
  with_numbers_or_bool(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<int64_t> found;
    for (const int64_t n : turns(x.count()))
      if (static_cast<Compute<T>>(data<T>(x)[n]) != 0) found.push_back(n);
    Tensor& y = context.allocate(0, kI64, {static_cast<int64_t>(found.size()), static_cast<int64_t>(x.rank())});
    int64_t* to = data<int64_t>(y);
    for (const size_t i : turns(found.size()))
      for (size_t d = 0; d < x.rank(); ++d) *to++ = found[i] / strides[d] % x.dims()[d];
  });
}

void infer_broadcast_axes(InferContext& context) {
  for (size_t i : {0, 1}) {
    ranked(context, i, 1);
    context.result(kI64, Shape{Dim()});
  }
}

void broadcast_axes(KernelContext& context) {
  std::vector<int64_t> dims[2] = {context.input(0).as_i64(), context.input(1).as_i64()};
  const size_t rank = std::max(dims[0].size(), dims[1].size());
  for (size_t side : {0, 1}) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < rank; ++i) {
      const size_t lead = rank - dims[side].size();
      if (i < lead || dims[side][i - lead] == 1) axes.push_back(static_cast<int64_t>(i));
    }
    Tensor& y = context.allocate(side, kI64, {static_cast<int64_t>(axes.size())});
    std::copy(axes.begin(), axes.end(), data<int64_t>(y));
  }
}

void infer_unique(InferContext& context) {
  const DType dtype =
      context.dtype(0) == kString || context.dtype(0) == kBool ? context.dtype(0) : number_type(context, 0);
  ranked(context, 0, 1);
  context.result(dtype, Shape{Dim()});
  context.result(kI64, context.shape(0).ranked ? context.shape(0) : Shape{Dim()});
}

void unique_texts(KernelContext& context) {
  const Tensor& x = context.input(0);
  std::unordered_map<std::string_view, int64_t> places;
  std::vector<std::string_view> values;
  int64_t* index = data<int64_t>(context.allocate(1, kI64, x.dims()));
  for (const std::string& text : x.values<std::string>()) {
    stop_point_after(32 + std::ssize(text));
    const auto [place, fresh] = places.emplace(text, std::ssize(values));
    if (fresh) values.push_back(text);
    *index++ = place->second;
  }
  std::copy(values.begin(), values.end(), data<std::string>(context.allocate(0, kString, {std::ssize(values)})));
}

void unique(KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.dtype() == kString) return unique_texts(context);
  Tensor& index = context.allocate(1, kI64, x.dims());
  with_numbers_or_bool(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::unordered_map<Compute<T>, int64_t> places;
    std::vector<T> values;
    for (const int64_t i : turns(x.count(), 32)) {
      const T value = data<T>(x)[i];
      const auto next = static_cast<int64_t>(values.size());
      int64_t place = next;
      if (!is_nan(value)) place = places.emplace(static_cast<Compute<T>>(value), next).first->second;
      if (place == next) values.push_back(value);
      data<int64_t>(index)[i] = place;
    }
    Tensor& y = context.allocate(0, x.dtype(), {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), data<T>(y));
  });
}

void infer_unique_padded(InferContext& context) {
  ranked(context, 0, 1);
  const Shape shape = context.shape(0).ranked ? context.shape(0) : Shape{Dim()};
  Shape values = shape;
  const int64_t below = context.attr.integer("below");
  if (below > 0 && shape.known()) values.dims[0] = Dim(std::min(shape.dims[0].size, below));
  context.result(context.dtype(0), values);
  context.result(kI64, shape);
}

void unique_padded(KernelContext& context) {
  allocate_results(context);
  const int64_t below = context.attr.integer("below");
  with_integers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::unordered_map<T, int64_t> places;
    T* values = data<T>(context.output(0));
    for (const int64_t i : turns(context.input(0).count(), 32)) {
      const T value = data<T>(context.input(0))[i];
      if (value < 0) context.fail("element {} is negative", value);
      if (below > 0 && static_cast<int64_t>(value) >= below) context.fail("element {} is not below {}", value, below);
      const auto [found, fresh] = places.emplace(value, std::ssize(places));
      if (fresh) values[found->second] = value;
      data<int64_t>(context.output(1))[i] = found->second;
    }
    std::fill(values + std::ssize(places), values + context.output(0).count(), T(-1));
  });
}

std::vector<OpDef> make_dynamic_rows() {
  return {
      {.name = "broadcast_axes",
       .summary =
           "the axes along which a broadcast of two shapes to each other may repeat the first, and the second: those "
           "that it lacks, and those of size 1",
       .inputs = {{"a", Accepts::i32_or_i64}, {"b", Accepts::i32_or_i64}},
       .results = {"a_axes", "b_axes"},
       .traits = kDynamicResult,
       .infer = infer_broadcast_axes,
       .reference = broadcast_axes,
       .oracle = {"tuple(np.array([i for i in range(max(len(a), len(b))) if i < max(len(a), len(b)) - len(s) or s[i - "
                  "max(len(a), len(b)) + len(s)] == 1], np.int64) for s in (a, b))"},
       .cases = {"i64[2]=[2, 3], i64[2]=[2, 1]", "i64[2]=[2, 3], i64[1]=[3]", "i32[0]=[], i32[3]=[1, 2, 1]"}},
      {.name = "non_zero",
       .summary = "index vectors of the elements that are not 0 (NaN is not), in row-major order",
       .inputs = {{"x", Accepts::number_or_bool}},
       .traits = kDynamicResult,
       .infer = infer_non_zero,
       .reference = non_zero,
       .oracle = {"tf.where(x)", kTensorFlow},
       .cases = {"f32[2, 3]=[0, 1, 2, 0, 0, -1]", "bool[4, 5]", "i32[6]=[0, 0, 3, 0, 1, 0]", "f32[0, 2]",
                 "bool[3]=[false, false, false]", "f32[3]=[nan, 0, -0.0]"}},
      {.name = "unique",
       .summary = "the different elements of a vector in order of first appearance, and for each element its place "
                  "among them; every NaN is different",
       .inputs = {{"x"}},
       .results = {"values", "index"},
       .traits = kDynamicResult,
       .infer = infer_unique,
       .no_gradient = "equal elements of x become one: at them the result has no slope",
       .reference = unique,
       .oracle = {"tuple(tf.unique(x, tf.int64))", kTensorFlow},
       .cases = {"i32[6]=[3, 1, 3, 2, 1, 9]", "f32[5]=[0.5, -1, 0.5, 2, -1]", "i64[0]", "i64[40]"}},
      {.name = "unique_padded",
       .summary =
           "the different elements of a vector in order of first appearance and then -1 as often as elements are "
           "there again, and for each element its place among them; a negative element is an error; with below, so is "
           "one that is "
           "not below it, and the values are no more than that",
       .inputs = {{"x", Accepts::i32_or_i64}},
       .attributes = {integer("below", 0)},
       .results = {"values", "index"},
       .infer = infer_unique_padded,
       .reference = unique_padded,
       .oracle = {"(lambda v, i: (np.pad(v, (0, min(len(x), below or len(x)) - len(v)), constant_values=-1), "
                  "i))(*[t.numpy() for t in "
                  "tf.unique(x, tf.int64)])",
                  kTensorFlow},
       .cases = {"i32[6]=[3, 1, 3, 2, 1, 9]", "i64[5]=[7, 7, 7, 7, 7]", "i64[0]=[]", "i32[3]=[2147483647, 0, 5]",
                 "i32[6]=[2, 1, 2, 2, 1, 2] {below = 4}", "i64[3]=[0, 2, 0] {below = 9}"}},
  };
}

}  // namespace

std::span<const OpDef> dynamic_ops() {
  static const std::vector<OpDef> rows = make_dynamic_rows();
  return rows;
}

}  // namespace cairn
