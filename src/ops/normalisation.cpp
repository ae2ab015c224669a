// Normalisations along axes. Sums are kept in f64.
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

double element_flops(const InferContext& context, double each) {
  return each * static_cast<double>(known_count(context.shape(0)).value_or(0));
}

// The tensor as rows along one axis: `outer` x `size` x `inner` elements.
struct Rows {
  int64_t outer, size, inner;
};
Rows rows_of(const Dims& dims, int64_t axis) {
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
  return {count_between(dims, 0, at), dims[at], count_between(dims, at + 1, dims.size())};
}

void infer_along_axis(InferContext& context) {
  if (context.shape(0).ranked) axis_of(context, context.attr.integer("axis"), context.shape(0).rank());
  infer_same(context);
}

template <bool kLog>
void softmax(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  if (x.count() == 0) return;
  const Rows rows = rows_of(x.dims(), context.attr.integer("axis"));
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t row = 0; row < rows.outer * rows.inner; ++row) {
      const int64_t base = row / rows.inner * rows.size * rows.inner + row % rows.inner;
      const T* from = data<T>(x) + base;
      T* to = data<T>(context.output(0)) + base;
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < rows.size; ++i) most = maximum(most, static_cast<double>(from[i * rows.inner]));
      for (int64_t i = 0; i < rows.size; ++i) sum += std::exp(static_cast<double>(from[i * rows.inner]) - most);
      for (int64_t i = 0; i < rows.size; ++i) {
        const double centred = static_cast<double>(from[i * rows.inner]) - most;
        to[i * rows.inner] = T(static_cast<Compute<T>>(kLog ? centred - std::log(sum) : std::exp(centred) / sum));
      }
    }
  });
}

// x minus its largest element along the axis, and the attribute list that reduces along it.
std::pair<Value*, Attributes> centred(Builder& b, const Node& node) {
  Attributes along = {{"axes", std::vector<int64_t>{node.attr().integer("axis")}}, {"keep_dims", true}};
  return {b.add("sub", {node.inputs[0], b.add("reduce_max", {node.inputs[0]}, along)}), along};
}
std::vector<Value*> softmax_by_exp(Builder& b, const Node& node) {
  auto [x, along] = centred(b, node);
  Value* powers = b.add("exp", {x});
  return {b.add("div", {powers, b.add("reduce_sum", {powers}, along)})};
}
std::vector<Value*> log_softmax_by_exp(Builder& b, const Node& node) {
  auto [x, along] = centred(b, node);
  return {b.add("sub", {x, b.add("log", {b.add("reduce_sum", {b.add("exp", {x})}, along)})})};
}

void check_epsilon(const InferContext& context) {
  const double epsilon = context.attr.number("epsilon");
  if (!(epsilon >= 0)) context.fail("epsilon must not be negative, found {}", epsilon);
}

void infer_batch_norm(InferContext& context) {
  check_epsilon(context);
  for (size_t i = 1; i < 5; ++i) {
    if (context.dtype(i) != context.dtype(0) && context.dtype(i) != kF32)
      context.fail("parameters must be f32 or {}, found {}", to_string(context.dtype(0)), to_string(context.dtype(i)));
    ranked(context, i, 1);
  }
  Shape shape = context.shape(0);
  if (shape.ranked) {
    Dim& channels = shape.dims[axis_of(context, context.attr.integer("axis"), shape.rank())];
    for (size_t i = 1; i < 5; ++i)
      if (context.shape(i).ranked)
        channels = same_size(context, channels, context.shape(i).dims[0], "channels and parameters");
  }
  context.result(number_type(context, 0), std::move(shape));
}

void batch_norm(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  if (x.count() == 0) return;
  const Rows rows = rows_of(x.dims(), context.attr.integer("axis"));
  std::vector<double> parameters[4];
  for (size_t i = 0; i < 4; ++i) parameters[i] = context.input(i + 1).as_f64();
  const auto& [scale, offset, mean, variance] = parameters;
  const double epsilon = context.attr.number("epsilon");
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = 0; i < x.count(); ++i) {
      const auto c = static_cast<size_t>(i / rows.inner % rows.size);
      const double y =
          (static_cast<double>(data<T>(x)[i]) - mean[c]) / std::sqrt(variance[c] + epsilon) * scale[c] + offset[c];
      data<T>(context.output(0))[i] = T(static_cast<Compute<T>>(y));
    }
  });
}

std::vector<Value*> batch_norm_by_mul(Builder& b, const Node& node) {
  const Shape& shape = node.inputs[0]->type.shape;
  const int64_t axis = node.attr().integer("axis"), rank = static_cast<int64_t>(shape.rank());
  std::vector<int64_t> column(static_cast<size_t>(axis < 0 ? -axis : rank - axis), 1);
  column[0] = -1;
  Value* values[5] = {node.inputs[0]};
  for (size_t i = 1; i < 5; ++i) {
    values[i] = node.inputs[i];
    if (values[i]->type.dtype != values[0]->type.dtype)
      values[i] = b.add("cast", {values[i]}, {{"dtype", values[0]->type.dtype}});
    if (column.size() > 1) values[i] = b.add("reshape", {values[i], b.ints(column)});
  }
  auto [x, scale, offset, mean, variance] = values;
  Value* deviation = b.add("sqrt", {b.add("add", {variance, scalar_like(b, variance, node.attr().number("epsilon"))})});
  return {b.add("add", {b.add("mul", {b.add("div", {b.add("sub", {x, mean}), deviation}), scale}), offset})};
}

void infer_layer_norm(InferContext& context) {
  check_epsilon(context);
  const Shape& x = context.shape(0);
  DType dtype = equal_types(context);
  if (!x.ranked) return context.result(dtype, x);
  axis_of(context, context.attr.integer("axis"), x.rank());
  for (size_t i : {1, 2}) {
    Shape both = broadcast(context, x, context.shape(i));
    if (!both.ranked) continue;
    bool same = both.rank() == x.rank();
    for (size_t d = 0; same && d < x.rank(); ++d)
      same = !both.dims[d].known() || !x.dims[d].known() || both.dims[d].size == x.dims[d].size;
    if (!same) context.fail("{} does not broadcast to {}", to_string(context.input(i)), to_string(context.input(0)));
  }
  context.result(dtype, x);
}

void layer_norm(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  const Dims& dims = x.dims();
  if (x.count() == 0) return;
  const int64_t axis = context.attr.integer("axis");
  const int64_t size =
      count_between(dims, static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis), dims.size());
  std::vector<double> means, deviations;
  const std::vector<double> values = x.as_f64();
  for (auto row = values.begin(); row != values.end(); row += size) {
    double sum = 0, squares = 0;
    for (auto value = row; value != row + size; ++value) sum += *value;
    const double mean = sum / static_cast<double>(size);
    for (auto value = row; value != row + size; ++value) squares += (*value - mean) * (*value - mean);
    means.push_back(mean);
    deviations.push_back(std::sqrt(squares / static_cast<double>(size) + context.attr.number("epsilon")));
  }
  const Tensor &scale = context.input(1), &offset = context.input(2);
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    walk<2>(dims, {broadcast_strides(scale.dims(), dims), broadcast_strides(offset.dims(), dims)},
            [&](int64_t n, auto& at) {
              const auto row = static_cast<size_t>(n / size);
              const double y = (values[static_cast<size_t>(n)] - means[row]) / deviations[row] *
                                   static_cast<double>(data<T>(scale)[at[0]]) +
                               static_cast<double>(data<T>(offset)[at[1]]);
              data<T>(context.output(0))[n] = T(static_cast<Compute<T>>(y));
            });
  });
}

std::vector<Value*> layer_norm_by_mean(Builder& b, const Node& node) {
  Value* x = node.inputs[0];
  const int64_t axis = node.attr().integer("axis"), rank = static_cast<int64_t>(x->type.shape.rank());
  std::vector<int64_t> axes;
  for (int64_t at = axis < 0 ? axis + rank : axis; at < rank; ++at) axes.push_back(at);
  const Attributes along = {{"axes", axes}, {"keep_dims", true}};
  Value* difference = b.add("sub", {x, b.add("reduce_mean", {x}, along)});
  Value* variance = b.add("reduce_mean", {b.add("mul", {difference, difference})}, along);
  Value* deviation = b.add("sqrt", {b.add("add", {variance, scalar_like(b, x, node.attr().number("epsilon"))})});
  return {b.add("add", {b.add("mul", {b.add("div", {difference, deviation}), node.inputs[1]}), node.inputs[2]})};
}

std::vector<OpDef> make_rows() {
  const std::vector<const char*> softmax_cases = {"f32[2, 3]",
                                                  "f32[3, 5, 4] {axis = 1}",
                                                  "f32[2, 67]",
                                                  "f32[4, 3] {axis = 0}",
                                                  "f32[0, 3]",
                                                  "f32[3, 0]",
                                                  "f32[5]",
                                                  "f16[2, 9]",
                                                  "f32[3]=[1000, 0, -1000]",
                                                  "f32[2]=[-inf, 0]"};
  return {
      {.name = "softmax",
       .summary = "exp(x - max) / sum(exp(x - max)) along one axis; a row of -inf, or with NaN or +inf, gives NaN",
       .inputs = {{"x", Accepts::floats}},
       .attributes = {integer("axis", -1)},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_along_axis,
       .flops = [](const InferContext& context) { return element_flops(context, 5); },
       .decompose = softmax_by_exp,
       .reference = softmax<false>,
       .oracle = {"tf.nn.softmax(x, axis)", kTensorFlow},
       .cases = softmax_cases},
      {.name = "log_softmax",
       .summary = "logarithm of softmax, without its overflow",
       .inputs = {{"x", Accepts::floats}},
       .attributes = {integer("axis", -1)},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_along_axis,
       .flops = [](const InferContext& context) { return element_flops(context, 5); },
       .decompose = log_softmax_by_exp,
       .reference = softmax<true>,
       .oracle = {"tf.nn.log_softmax(x, axis)", kTensorFlow},
       .cases = softmax_cases},
      {.name = "batch_norm",
       .summary = "(x - mean) / sqrt(variance + epsilon) * scale + offset with one of each for every position along "
                  "the axis (inference form); "
                  "parameters are of x's element type or f32",
       .inputs = {{"x", Accepts::floats},
                  {"scale", Accepts::floats},
                  {"offset", Accepts::floats},
                  {"mean", Accepts::floats},
                  {"variance", Accepts::floats}},
       .attributes = {{"epsilon", AttrKind::number}, integer("axis", -1)},
       .precision = Precision::accumulate_f32,
       .infer = infer_batch_norm,
       .flops = [](const InferContext& context) { return element_flops(context, 2); },
       .decompose = batch_norm_by_mul,
       .reference = batch_norm,
       .oracle = {"np.moveaxis((np.moveaxis(x, axis, -1) - mean) / np.sqrt(variance + np.float32(epsilon)) * scale + "
                  "offset, -1, axis)"},
       .cases = {"f32[2, 3, 3, 4], f32[4], f32[4], f32[4], f32[4]=[0.5, 1, 2, 0.01] {epsilon = 0.001}",
                 "f32[2, 4, 3, 3], f32[4], f32[4], f32[4], f32[4]=[0.5, 1, 2, 0.01] {epsilon = 0.001, axis = 1}",
                 "f32[5, 2], f32[2], f32[2], f32[2], f32[2]=[1, 3] {epsilon = 0.00001}",
                 "f32[0, 2], f32[2], f32[2], f32[2], f32[2]=[1, 3] {epsilon = 0.1}",
                 "f16[3, 2], f32[2], f32[2], f32[2], f32[2]=[1, 3] {epsilon = 0.001}"}},
      {.name = "layer_norm",
       .summary = "(x - mean) / sqrt(variance + epsilon) * scale + offset, mean and biased variance taken over the "
                  "dims from the axis to the last; scale "
                  "and offset broadcast to x",
       .inputs = {{"x", Accepts::floats}, {"scale", Accepts::floats}, {"offset", Accepts::floats}},
       .attributes = {{"epsilon", AttrKind::number}, integer("axis", -1)},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_layer_norm,
       .flops = [](const InferContext& context) { return element_flops(context, 8); },
       .decompose = layer_norm_by_mean,
       .reference = layer_norm,
       .oracle = {"(x - x.mean(tuple(range(axis % x.ndim, x.ndim)), keepdims=True)) / "
                  "np.sqrt(x.var(tuple(range(axis % x.ndim, x.ndim)), keepdims=True) + np.float32(epsilon)) * scale + "
                  "offset"},
       .cases = {"f32[2, 5], f32[5], f32[5] {epsilon = 0.001}", "f32[3, 4, 67], f32[67], f32[67] {epsilon = 0.00001}",
                 "f32[2, 3, 4], f32[3, 4], f32[3, 4] {epsilon = 0.001, axis = 1}",
                 "f32[0, 4], f32[4], f32[4] {epsilon = 0.001}", "f32[2, 6], f32[], f32[6] {epsilon = 0.001}"}},
  };
}

}  // namespace

std::span<const OpDef> normalisation_ops() {
  static const std::vector<OpDef> rows = make_rows();
  return rows;
}

}  // namespace cairn
