// Normalisations along axes, and batch normalisation's training form. Sums are kept in f64.
#include "ops/families.h"
#include "ops/gradients.h"
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
    for (const int64_t row : turns(rows.outer * rows.inner)) {
      const int64_t base = row / rows.inner * rows.size * rows.inner + row % rows.inner;
      const T* from = data<T>(x) + base;
      T* to = data<T>(context.output(0)) + base;
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < rows.size; ++i) most = maximum(most, static_cast<double>(from[i * rows.inner]));
      for (int64_t i = 0; i < rows.size; ++i) sum += std::exp(static_cast<double>(from[i * rows.inner]) - most);
      for (const int64_t i : turns(rows.size)) {
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

// Checks the inputs from `first` on, the parameters: vectors of one number per channel (position along the axis) of
// input `x`. Returns the shape of x, with the number of channels if the parameters tell it.
Shape channels_and_parameters(const InferContext& context, size_t x, size_t first) {
  check_epsilon(context);
  number_type(context, x);
  Shape shape = context.shape(x);
  for (size_t i = first; i < context.input_count(); ++i) {
    if (context.dtype(i) != context.dtype(x) && context.dtype(i) != kF32)
      context.fail("parameters must be f32 or {}, found {}", to_string(context.dtype(x)), to_string(context.dtype(i)));
    if (!ranked(context, i, 1) || !shape.ranked) continue;
    Dim& channels = shape.dims[axis_of(context, context.attr.integer("axis"), shape.rank())];
    channels = same_size(context, channels, context.shape(i).dims[0], "channels and parameters");
  }
  if (shape.ranked) axis_of(context, context.attr.integer("axis"), shape.rank());
  return shape;
}

void infer_batch_norm(InferContext& context) {
  context.result(context.dtype(0), channels_and_parameters(context, 0, 1));
}

// Adds a result that is a vector over the channels, in the element type of the parameters.
void parameter_result(InferContext& context, size_t parameter, const Shape& x) {
  Dim channels;
  if (context.shape(parameter).ranked) channels = context.shape(parameter).dims[0];
  if (x.ranked) channels = x.dims[axis_of(context, context.attr.integer("axis"), x.rank())];
  context.result(context.dtype(parameter), Shape{channels});
}

void infer_batch_norm_training(InferContext& context) {
  const Shape x = channels_and_parameters(context, 0, 1);
  context.result(context.dtype(0), x);
  for (int i = 0; i < 2; ++i) parameter_result(context, 1, x);
}

void infer_batch_norm_gradient(InferContext& context) {
  if (context.dtype(1) != context.dtype(0))
    context.fail("x must be {}, found {}", to_string(context.dtype(0)), to_string(context.dtype(1)));
  Shape x = channels_and_parameters(context, 1, 2);
  const Shape& dy = context.shape(0);
  if (x.ranked && ranked(context, 0, x.rank()))
    for (size_t i = 0; i < x.rank(); ++i) x.dims[i] = same_size(context, x.dims[i], dy.dims[i], "sizes of x and dy");
  context.result(context.dtype(0), x);
  for (int i = 0; i < 2; ++i) parameter_result(context, 2, x);
}

void store(Tensor& to, const std::vector<double>& values) {
  with_floats(to.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (const size_t i : turns(values.size())) data<T>(to)[i] = T(static_cast<Compute<T>>(values[i]));
  });
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
    for (const int64_t i : turns(x.count())) {
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
  Value* deviation = b.add("sqrt", {b.add("add", {variance, b.scalar_like(variance, node.attr().number("epsilon"))})});
  return {b.add("add", {b.add("mul", {b.add("div", {b.add("sub", {x, mean}), deviation}), scale}), offset})};
}

// For each channel the mean of f(position, channel) over its positions; NaN when there are none.
template <class F>
std::vector<double> channel_means(const Rows& rows, F&& f) {
  std::vector<double> sums(static_cast<size_t>(rows.size));
  for (const int64_t i : turns(rows.outer * rows.size * rows.inner)) {
    const auto c = static_cast<size_t>(i / rows.inner % rows.size);
    sums[c] += f(static_cast<size_t>(i), c);
  }
  for (double& sum : sums) sum /= static_cast<double>(rows.outer * rows.inner);
  return sums;
}

void batch_norm_training(KernelContext& context) {
  allocate_results(context);
  const Rows rows = rows_of(context.input(0).dims(), context.attr.integer("axis"));
  const std::vector<double> x = context.input(0).as_f64(), scale = context.input(1).as_f64(),
                            offset = context.input(2).as_f64();
  const auto mean = channel_means(rows, [&](size_t i, size_t) { return x[i]; });
  const auto variance = channel_means(rows, [&](size_t i, size_t c) { return (x[i] - mean[c]) * (x[i] - mean[c]); });
  std::vector<double> y(x.size());
  for (const size_t i : turns(y.size())) {
    const auto c = static_cast<size_t>(static_cast<int64_t>(i) / rows.inner % rows.size);
    y[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + context.attr.number("epsilon")) * scale[c] + offset[c];
  }
  store(context.output(0), y);
  store(context.output(1), mean);
  store(context.output(2), variance);
}

void batch_norm_gradient(KernelContext& context) {
  allocate_results(context);
  const Rows rows = rows_of(context.input(0).dims(), context.attr.integer("axis"));
  const auto count = static_cast<double>(rows.outer * rows.inner);
  std::vector<double> inputs[5];
  for (size_t i = 0; i < 5; ++i) inputs[i] = context.input(i).as_f64();
  const auto& [dy, x, scale, mean, variance] = inputs;
  std::vector<double> factor = variance;  // 1 / deviation
  for (double& each : factor) each = 1 / std::sqrt(each + context.attr.number("epsilon"));
  // Means of dy, and of dy times the normalised x.
  const auto level = channel_means(rows, [&](size_t i, size_t) { return dy[i]; });
  const auto slope = channel_means(rows, [&](size_t i, size_t c) { return dy[i] * (x[i] - mean[c]) * factor[c]; });
  std::vector<double> dx(x.size()), dscale(scale.size()), doffset(scale.size());
  for (const size_t i : turns(dx.size())) {
    const auto c = static_cast<size_t>(static_cast<int64_t>(i) / rows.inner % rows.size);
    dx[i] = scale[c] * factor[c] * (dy[i] - level[c] - (x[i] - mean[c]) * factor[c] * slope[c]);
  }
  for (size_t c = 0; c < dscale.size() && count > 0; ++c) dscale[c] = slope[c] * count, doffset[c] = level[c] * count;
  store(context.output(0), dx);
  store(context.output(1), dscale);
  store(context.output(2), doffset);
}

// The decomposition of batch normalisation into simpler ops, computed in the parameters' element type.
class Channels {
 public:
  Channels(Builder& b, const Node& node, const Value* x, const Value* parameter)
      : b_(b), dtype_(parameter->type.dtype) {
    const int64_t rank = static_cast<int64_t>(x->type.shape.rank()), axis = node.attr().integer("axis");
    const int64_t channel = axis < 0 ? axis + rank : axis;
    for (int64_t i = 0; i < rank; ++i)
      if (i != channel) axes_.push_back(i);
    column_.assign(static_cast<size_t>(rank - channel), 1);
    column_[0] = -1;
    epsilon_ = node.attr().number("epsilon");
  }
  Value* cast(Value* x) { return cast(x, dtype_); }
  Value* cast(Value* x, DType dtype) { return x->type.dtype == dtype ? x : b_.add("cast", {x}, {{"dtype", dtype}}); }
  /// A vector over channels, reshaped to broadcast.
  Value* column(Value* vector) { return b_.add("reshape", {cast(vector), b_.ints(column_)}); }
  Value* mean(Value* x) { return b_.add("reduce_mean", {x}, {{"axes", axes_}}); }
  Value* sum(Value* x) { return b_.add("reduce_sum", {x}, {{"axes", axes_}}); }
  Value* mul(Value* a, Value* b) { return b_.add("mul", {a, b}); }
  Value* sub(Value* a, Value* b) { return b_.add("sub", {a, b}); }
  Value* add(Value* a, Value* b) { return b_.add("add", {a, b}); }
  /// 1 / deviation.
  Value* factor(Value* variance) {
    Value* one = b_.scalar_like(variance, 1);
    return b_.add("div", {one, b_.add("sqrt", {add(variance, b_.scalar_like(variance, epsilon_))})});
  }

 private:
  Builder& b_;
  DType dtype_;
  std::vector<int64_t> axes_, column_;
  double epsilon_ = 0;
};

std::vector<Value*> batch_norm_training_by_means(Builder& b, const Node& node) {
  Value *scale = node.inputs[1], *offset = node.inputs[2];
  Channels c(b, node, node.inputs[0], scale);
  Value* x = c.cast(node.inputs[0]);
  Value* mean = c.mean(x);
  Value* centred = c.sub(x, c.column(mean));
  Value* variance = c.mean(c.mul(centred, centred));
  Value* normal = c.mul(centred, c.column(c.factor(variance)));
  Value* y = c.add(c.mul(normal, c.column(scale)), c.column(offset));
  return {c.cast(y, node.inputs[0]->type.dtype), mean, variance};
}

std::vector<Value*> batch_norm_gradient_by_means(Builder& b, const Node& node) {
  Channels c(b, node, node.inputs[1], node.inputs[2]);
  Value *dy = c.cast(node.inputs[0]), *x = c.cast(node.inputs[1]);
  Value* factor = c.factor(c.cast(node.inputs[4]));
  Value* normal = c.mul(c.sub(x, c.column(node.inputs[3])), c.column(factor));
  Value* steep = c.mul(dy, normal);
  Value* rest = c.sub(c.sub(dy, c.column(c.mean(dy))), c.mul(normal, c.column(c.mean(steep))));
  Value* dx = c.mul(rest, c.column(c.mul(c.cast(node.inputs[2]), factor)));
  return {c.cast(dx, node.inputs[0]->type.dtype), c.sum(steep), c.sum(dy)};
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
  for (auto row = values.begin(); row != values.end(); row += size, stop_point_after(2 * size)) {
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
  Value* deviation = b.add("sqrt", {b.add("add", {variance, b.scalar_like(x, node.attr().number("epsilon"))})});
  return {b.add("add", {b.add("mul", {b.add("div", {difference, deviation}), node.inputs[1]}), node.inputs[2]})};
}

std::vector<OpDef> training_rows() {
  return {
      {.name = "batch_norm_training",
       .summary =
           "batch_norm with the mean and the biased variance of x itself for every position along the axis, and "
           "these two (of no elements NaN); parameters are of x's element type or f32, and so are the statistics",
       .inputs = {{"x", Accepts::floats}, {"scale", Accepts::floats}, {"offset", Accepts::floats}},
       .attributes = {{"epsilon", AttrKind::number}, integer("axis", -1)},
       .results = {"y", "mean", "variance"},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_batch_norm_training,
       .flops = [](const InferContext& context) { return element_flops(context, 6); },
       .gradient = batch_norm_training_rule,
       .decompose = batch_norm_training_by_means,
       .reference = batch_norm_training,
       .oracle = {"batch_norm_training(x, scale, offset, epsilon, axis)"},
       .cases = {"f32[2, 3, 3, 4], f32[4], f32[4] {epsilon = 0.001}",
                 "f32[2, 4, 3, 3], f32[4], f32[4] {epsilon = 0.001, axis = 1}",
                 "f32[5, 2], f32[2], f32[2] {epsilon = 0.00001}",
                 "f32[8, 7, 7, 37], f32[37], f32[37] {epsilon = 0.001}", "f32[0, 2], f32[2], f32[2] {epsilon = 0.1}",
                 "f16[3, 2], f32[2], f32[2] {epsilon = 0.001}"}},
      {.name = "batch_norm_gradient",
       .summary = "gradients of batch_norm_training by x, scale and offset, for the gradient dy of its y and with its "
                  "mean and variance; of no elements those by scale and offset are 0",
       .inputs = {{"dy", Accepts::floats},
                  {"x", Accepts::floats},
                  {"scale", Accepts::floats},
                  {"mean", Accepts::floats},
                  {"variance", Accepts::floats}},
       .attributes = {{"epsilon", AttrKind::number}, integer("axis", -1)},
       .results = {"dx", "dscale", "doffset"},
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_batch_norm_gradient,
       .flops = [](const InferContext& context) { return element_flops(context, 10); },
       .gradient = by_decomposition,
       .decompose = batch_norm_gradient_by_means,
       .reference = batch_norm_gradient,
       .oracle = {"batch_norm_gradient(dy, x, scale, mean, variance, epsilon, axis)"},
       .cases = {"f32[2, 3, 3, 4], f32[2, 3, 3, 4], f32[4], f32[4], f32[4]=[0.5, 1, 2, 0.01] {epsilon = 0.001}",
                 "f32[2, 4, 3, 3], f32[2, 4, 3, 3], f32[4], f32[4], f32[4]=[0.5, 1, 2, 3] {epsilon = 0.1, axis = 1}",
                 "f32[5, 2], f32[5, 2], f32[2], f32[2], f32[2]=[1, 3] {epsilon = 0.00001}",
                 "f32[0, 2], f32[0, 2], f32[2], f32[2], f32[2]=[1, 3] {epsilon = 0.1}",
                 "f16[3, 2], f16[3, 2], f32[2], f32[2], f32[2]=[1, 3] {epsilon = 0.001}"}},
  };
}

std::vector<OpDef> inference_rows() {
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
       .gradient = softmax_rule,
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
       .gradient = log_softmax_rule,
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
       .gradient = by_decomposition,
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
       .gradient = layer_norm_rule,
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

std::vector<OpDef> make_normalisation_rows() {
  std::vector<OpDef> rows = inference_rows(), rows_of_training = training_rows();
  for (OpDef& row : rows_of_training) rows.push_back(std::move(row));
  return rows;
}

}  // namespace

std::span<const OpDef> normalisation_ops() {
  static const std::vector<OpDef> rows = make_normalisation_rows();
  return rows;
}

}  // namespace cairn
