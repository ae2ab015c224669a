// Pooling over windows of NHWC images, and its gradients.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// Dims of the pooled image.
std::vector<Dim> pooled_dims(const InferContext& context, const std::vector<Dim>& x) {
  check_windows(context);
  const auto& window = context.attr.integers("window");
  if (window.size() != 2) context.fail("window must have 2 values, found {}", window.size());
  std::vector<Dim> y = {x[0], Dim(), Dim(), x[3]};
  for (size_t i : {0, 1}) {
    WindowSpec spec = window_spec(context.attr, window[i], i);
    y[1 + i] = slide(context, x[1 + i], spec);
    if (spec.before >= spec.reach() || spec.after >= spec.reach())
      context.fail("padding {} and {} must be less than the window of {}", spec.before, spec.after, spec.reach());
  }
  return y;
}

void infer_pool(InferContext& context) {
  const DType dtype = number_type(context, 0);
  context.result(dtype, Shape(pooled_dims(context, four_dims(context, 0))));
}

// The gradient by an image of dims x, when dy is operand `at`.
void infer_gradient(InferContext& context, std::vector<Dim> x, size_t at) {
  const std::vector<Dim> y = pooled_dims(context, x), dy = four_dims(context, at);
  for (size_t i = 0; i < 4; ++i) {
    const Dim size = same_size(context, y[i], dy[i], "sizes of dy and of the pooled image");
    if (i == 0 || i == 3) x[i] = size;
  }
  context.result(number_type(context, at), Shape(std::move(x)));
}
void infer_max_pool_gradient(InferContext& context) {
  equal_types(context);
  infer_gradient(context, four_dims(context, 0), 1);
}
void infer_avg_pool_gradient(InferContext& context) {
  Shape shape = shape_operand(context, 1);
  if (!shape.ranked) shape = Shape(std::vector<Dim>(4));
  if (shape.rank() != 4) context.fail("shape must have 4 sizes, found {}", shape.rank());
  infer_gradient(context, std::move(shape.dims), 0);
}

double window_flops(const InferContext& context, const Shape& y) {
  const auto& window = context.attr.integers("window");
  return static_cast<double>(known_count(y).value_or(0)) * static_cast<double>(window[0]) *
         static_cast<double>(window[1]);
}
double pool_flops(const InferContext& context) {
  InferContext copy = context;
  infer_pool(copy);
  return window_flops(context, copy.results()[0].shape);
}

// The part of one window along one axis: taps first, first + step, ... before last lie inside the image.
struct Taps {
  int64_t first, last, step;
  int64_t padded;  // positions of the undilated window inside the padded image
};
Taps taps_at(const WindowSpec& spec, int64_t in, int64_t before, int64_t at) {
  int64_t start = at * spec.stride - before, end = start + spec.reach();
  if (spec.padding == "valid" || spec.padding == "explicit") end = std::min(end, in + spec.after);
  int64_t first = start < 0 ? start + (-start + spec.dilation - 1) / spec.dilation * spec.dilation : start;
  return {first, std::min(start + spec.reach(), in), spec.dilation, end - start};
}

// Calls visit(result index, top-left pixel of the channel, row taps, column taps) for every result.
template <class Visit>
void for_each_window(const KernelContext& context, const Dims& in, const Dims& out, Visit&& visit) {
  const auto& window = context.attr.integers("window");
  const WindowSpec rows = window_spec(context.attr, window[0], 0), columns = window_spec(context.attr, window[1], 1);
  const int64_t top = rows.padding_before(in[1], out[1]), left = columns.padding_before(in[2], out[2]);
  walk<1>(out, {strides_of(out)}, [&](int64_t n, auto&) {
    const int64_t channel = n % out[3], column = n / out[3] % out[2], row = n / out[3] / out[2] % out[1],
                  image = n / out[3] / out[2] / out[1];
    visit(n, image * in[1] * in[2] * in[3] + channel, taps_at(rows, in[1], top, row),
          taps_at(columns, in[2], left, column));
  });
}

void max_pool2d(KernelContext& context) {
  allocate_results(context);
  const Dims& in = context.input(0).dims();
  with_numbers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    const T* xs = data<T>(context.input(0));
    T* to = data<T>(context.output(0));
    const C least =
        std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
    for_each_window(context, in, context.output(0).dims(),
                    [&](int64_t n, int64_t base, const Taps& rows, const Taps& columns) {
                      C most = least;
                      for (int64_t h = rows.first; h < rows.last; h += rows.step)
                        for (int64_t w = columns.first; w < columns.last; w += columns.step)
                          most = maximum(most, static_cast<C>(xs[base + (h * in[2] + w) * in[3]]));
                      to[n] = T(most);
                    });
  });
}

void avg_pool2d(KernelContext& context) {
  allocate_results(context);
  const Dims& in = context.input(0).dims();
  const bool count_padding = context.attr.boolean("count_padding");
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* xs = data<T>(context.input(0));
    T* to = data<T>(context.output(0));
    for_each_window(
        context, in, context.output(0).dims(), [&](int64_t n, int64_t base, const Taps& rows, const Taps& columns) {
          double sum = 0;
          int64_t count = 0;
          for (int64_t h = rows.first; h < rows.last; ++h)
            for (int64_t w = columns.first; w < columns.last; ++w, ++count)
              sum += static_cast<double>(xs[base + (h * in[2] + w) * in[3]]);
          to[n] = T(
              static_cast<Compute<T>>(sum / static_cast<double>(count_padding ? rows.padded * columns.padded : count)));
        });
  });
}

// Calls visit(result index, index of the window's first largest element; -1 when the window is all padding).
template <class T, class Visit>
void for_each_first_largest(const KernelContext& context, const Tensor& x, const Dims& out, Visit&& visit) {
  const Dims& in = x.dims();
  const T* xs = data<T>(x);
  for_each_window(context, in, out, [&](int64_t n, int64_t base, const Taps& rows, const Taps& columns) {
    int64_t most = -1;
    for (int64_t h = rows.first; h < rows.last; h += rows.step)
      for (int64_t w = columns.first; w < columns.last; w += columns.step) {
        const int64_t at = base + (h * in[2] + w) * in[3];
        if (most < 0 || static_cast<Compute<T>>(xs[most]) < static_cast<Compute<T>>(xs[at])) most = at;
      }
    visit(n, most);
  });
}

void max_pool2d_indices(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  with_numbers(x.dtype(), [&](auto tag) {
    for_each_first_largest<decltype(tag)>(context, x, context.output(0).dims(),
                                          [&](int64_t n, int64_t most) { data<int64_t>(context.output(0))[n] = most; });
  });
}

// The gradient of a window goes to its first largest element; a window of padding only has none.
void max_pool2d_gradient(KernelContext& context) {
  allocate_results(context);
  const Tensor &x = context.input(0), &dy = context.input(1);
  Tensor& dx = context.output(0);
  std::vector<double> sums(static_cast<size_t>(dx.count()));
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* dys = data<T>(dy);
    for_each_first_largest<T>(context, x, dy.dims(), [&](int64_t n, int64_t most) {
      if (most >= 0) sums[static_cast<size_t>(most)] += static_cast<double>(dys[n]);
    });
    for (size_t i = 0; i < sums.size(); ++i) data<T>(dx)[i] = T(static_cast<Compute<T>>(sums[i]));
  });
}

void avg_pool2d_gradient(KernelContext& context) {
  allocate_results(context);
  const Tensor& dy = context.input(0);
  Tensor& dx = context.output(0);
  const Dims& in = dx.dims();
  const bool count_padding = context.attr.boolean("count_padding");
  std::vector<double> sums(static_cast<size_t>(dx.count()));
  with_floats(dy.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* dys = data<T>(dy);
    for_each_window(context, in, dy.dims(), [&](int64_t n, int64_t base, const Taps& rows, const Taps& columns) {
      const int64_t inside = (rows.last - rows.first) * (columns.last - columns.first);
      const double share =
          static_cast<double>(dys[n]) / static_cast<double>(count_padding ? rows.padded * columns.padded : inside);
      for (int64_t h = rows.first; h < rows.last; ++h)
        for (int64_t w = columns.first; w < columns.last; ++w)
          sums[static_cast<size_t>(base + (h * in[2] + w) * in[3])] += share;
    });
    for (size_t i = 0; i < sums.size(); ++i) data<T>(dx)[i] = T(static_cast<Compute<T>>(sums[i]));
  });
}

// A pooling op with the attributes of the node.
Var pooled(const GradientContext& g, const char* op, std::vector<Value*> inputs, const Shape& shape) {
  const std::vector<Type> type = {Type::tensor(inputs[0]->type.dtype, shape)};
  return {g.b, g.b.add_node(op_named(op), inputs, g.node().attributes, {}, type)->result()};
}

void max_pool2d_rule(GradientContext& g) {
  g.set(0, pooled(g, "max_pool2d_gradient", {g.x(0).value, g.dy().value}, g.x(0).shape()));
}
void avg_pool2d_rule(GradientContext& g) {
  g.set(0, pooled(g, "avg_pool2d_gradient", {g.dy().value, dims_of(g.x(0)).value}, g.x(0).shape()));
}
// By dy: the elements at the positions of the windows' largest elements. By x: zero, since the positions are piecewise
// constant.
void max_pool2d_gradient_rule(GradientContext& g) {
  if (!g.wanted(1)) return;
  const Var places = {g.b, g.b.add("max_pool2d_indices", {g.x(0).value}, g.node().attributes)};
  g.set(1, gather_rows_or_zeros(flattened(g.dy()), places));
}
void avg_pool2d_gradient_rule(GradientContext& g) { g.set(0, pooled(g, "avg_pool2d", {g.dy().value}, g.x(0).shape())); }

std::vector<AttrDef> window_attributes(std::vector<AttrDef> more) {
  std::vector<AttrDef> all = {{"window", AttrKind::integers},
                              integers("strides", {1, 1}),
                              word("padding", "valid", {"valid", "same", "same_lower", "explicit"}),
                              integers("pads", {0, 0, 0, 0}),
                              flag("ceil_mode")};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<OpDef> pooling_rows() {
  return {
      {.name = "max_pool2d",
       .summary = "largest element of each window, NaN when one is NaN; padding never wins: a window all in padding "
                  "gives -inf, of integers the "
                  "least; ceil_mode adds a last partial window if it starts inside the image or its leading padding",
       .inputs = {{"x", Accepts::numbers}},
       .attributes = window_attributes({integers("dilations", {1, 1})}),
       .traits = kReduction,
       .infer = infer_pool,
       .flops = pool_flops,
       .gradient = max_pool2d_rule,
       .reference = max_pool2d,
       .oracle = {"pool2d('MAX', x, window, strides, dilations, padding, pads, ceil_mode, False)", kTensorFlow},
       .cases = {"f32[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
                 "f32[2, 7, 8, 19] {window = [3, 3], strides = [2, 2], padding = same}",
                 "f32[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], strides = [2, 2]}",
                 "f32[1, 9, 9, 2] {window = [2, 3], dilations = [3, 2]}",
                 "f32[1, 6, 6, 3] {window = [3, 3], strides = [2, 2], ceil_mode = true}",
                 "f32[0, 4, 4, 1] {window = [2, 2]}", "f32[1, 5, 6, 2] {window = [2, 2], padding = same_lower}",
                 "f16[1, 4, 4, 3] {window = [2, 2]}", "i32[1, 4, 4, 3] {window = [2, 2]}"}},
      {.name = "avg_pool2d",
       .summary = "mean of each window over the elements inside the image; count_padding divides by the window's part "
                  "in the padded image instead",
       .inputs = {{"x", Accepts::floats}},
       .attributes = window_attributes({flag("count_padding")}),
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_pool,
       .flops = pool_flops,
       .gradient = avg_pool2d_rule,
       .reference = avg_pool2d,
       .oracle = {"pool2d('AVG', x, window, strides, [1, 1], padding, pads, ceil_mode, count_padding)", kTensorFlow},
       .cases = {"f32[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
                 "f32[2, 7, 8, 19] {window = [3, 3], strides = [2, 2], padding = same}",
                 "f32[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], strides = [2, 2]}",
                 "f32[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], count_padding = true}",
                 "f32[1, 6, 6, 3] {window = [3, 3], strides = [2, 2], ceil_mode = true}",
                 "f32[0, 4, 4, 1] {window = [2, 2]}", "f32[1, 7, 7, 65] {window = [7, 7]}",
                 "f32[1, 5, 6, 2] {window = [2, 2], padding = same_lower}", "f16[1, 4, 4, 3] {window = [2, 2]}"}},
      {.name = "max_pool2d_indices",
       .summary =
           "places in x, counted in row-major order, of the first largest element of each window (a NaN only when "
           "it comes first); -1 of a window all in padding",
       .inputs = {{"x", Accepts::numbers}},
       .attributes = window_attributes({integers("dilations", {1, 1})}),
       .traits = kReduction,
       .infer =
           [](InferContext& context) {
             number_type(context, 0);
             context.result(kI64, Shape(pooled_dims(context, four_dims(context, 0))));
           },
       .flops = pool_flops,
       .reference = max_pool2d_indices,
       .oracle = {"tf.nn.max_pool_with_argmax(x, window, strides, padding.upper(), output_dtype=tf.int64, "
                  "include_batch_in_index=True)[1]",
                  kTensorFlow},
       .cases = {"f32[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
                 "f32[2, 7, 8, 5] {window = [3, 3], strides = [2, 2], padding = same}",
                 "i32[1, 4, 4, 3] {window = [2, 2]}", "f32[1, 3, 3, 1]=[1, 1, 1, 1, 1, 1, 1, 1, 1] {window = [2, 2]}"}},
  };
}

std::vector<OpDef> pooling_gradient_rows() {
  return {
      {.name = "max_pool2d_gradient",
       .summary = "gradient of max_pool2d by its image x: each element of dy goes to the first largest element of its "
                  "window in row-major order (a NaN only when it comes first); a window all in padding gives nothing",
       .inputs = {{"x", Accepts::floats}, {"dy", Accepts::floats}},
       .attributes = window_attributes({integers("dilations", {1, 1})}),
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_max_pool_gradient,
       .flops = [](const InferContext& context) { return window_flops(context, context.shape(1)); },
       .gradient = max_pool2d_gradient_rule,
       .reference = max_pool2d_gradient,
       .oracle = {"pool2d_gradient('MAX', x, dy, window, strides, dilations, padding, pads, False)"},
       .cases = {"f32[1, 4, 4, 1], f32[1, 2, 2, 1] {window = [2, 2], strides = [2, 2]}",
                 "f32[2, 7, 8, 19], f32[2, 4, 4, 19] {window = [3, 3], strides = [2, 2], padding = same}",
                 "f32[1, 7, 8, 3], f32[1, 4, 4, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], "
                 "strides = [2, 2]}",
                 "f32[1, 9, 9, 2], f32[1, 6, 5, 2] {window = [2, 3], dilations = [3, 2]}",
                 "f32[1, 6, 6, 3], f32[1, 3, 3, 3] {window = [3, 3], strides = [2, 2], ceil_mode = true}",
                 "f32[0, 4, 4, 1], f32[0, 3, 3, 1] {window = [2, 2]}",
                 "f32[1, 5, 6, 2], f32[1, 5, 6, 2] {window = [2, 2], padding = same_lower}",
                 "f32[1, 3, 3, 1]=[1, 1, 1, 1, 1, 1, 1, 1, 1], f32[1, 2, 2, 1] {window = [2, 2]}",
                 "f16[1, 4, 4, 3], f16[1, 3, 3, 3] {window = [2, 2]}"}},
      {.name = "avg_pool2d_gradient",
       .summary = "gradient of avg_pool2d by its image of the given shape: each element of dy in equal parts to the "
                  "elements of its window inside the image",
       .inputs = {{"dy", Accepts::floats}, shape_operand("shape")},
       .attributes = window_attributes({flag("count_padding")}),
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_avg_pool_gradient,
       .flops = [](const InferContext& context) { return window_flops(context, context.shape(0)); },
       .gradient = avg_pool2d_gradient_rule,
       .reference = avg_pool2d_gradient,
       .oracle = {"pool2d_gradient('AVG', np.zeros(shape, dy.dtype), dy, window, strides, [1, 1], padding, pads, "
                  "count_padding)"},
       .cases = {"f32[1, 2, 2, 1], i64[4]=[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
                 "f32[2, 4, 4, 19], i64[4]=[2, 7, 8, 19] {window = [3, 3], strides = [2, 2], padding = same}",
                 "f32[1, 4, 4, 3], i32[4]=[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], "
                 "strides = [2, 2]}",
                 "f32[1, 7, 8, 3], i64[4]=[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], "
                 "count_padding = true}",
                 "f32[1, 3, 3, 3], i64[4]=[1, 6, 6, 3] {window = [3, 3], strides = [2, 2], ceil_mode = true}",
                 "f32[0, 3, 3, 1], i64[4]=[0, 4, 4, 1] {window = [2, 2]}",
                 "f32[1, 1, 1, 65], i64[4]=[1, 7, 7, 65] {window = [7, 7]}",
                 "f32[1, 5, 6, 2], i64[4]=[1, 5, 6, 2] {window = [2, 2], padding = same_lower}",
                 "f16[1, 3, 3, 3], i64[4]=[1, 4, 4, 3] {window = [2, 2]}"}},
  };
}

}  // namespace

std::span<const OpDef> pooling_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> all = pooling_rows(), gradients = pooling_gradient_rows();
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  }();
  return rows;
}

}  // namespace cairn
