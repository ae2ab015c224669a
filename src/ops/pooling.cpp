// Pooling over windows of NHWC images and NDHWC volumes, and its gradients.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// Dims of the pooled images or volumes.
std::vector<Dim> pooled_dims(const InferContext& context, const std::vector<Dim>& x) {
  const size_t dims = x.size() - 2;
  check_windows(context, dims);
  const auto& window = context.attr.integers("window");
  if (window.size() != dims) context.fail("window must have {} values, found {}", dims, window.size());
  std::vector<Dim> y = x;
  for (size_t i = 0; i < dims; ++i) {
    WindowSpec spec = window_spec(context.attr, window[i], i);
    y[1 + i] = slide(context, x[1 + i], spec);
    if (spec.before >= spec.reach() || spec.after >= spec.reach())
      context.fail("padding {} and {} must be less than the window of {}", spec.before, spec.after, spec.reach());
  }
  return y;
}

template <size_t kDims>
void infer_pool(InferContext& context) {
  const DType dtype = number_type(context, 0);
  context.result(dtype, Shape(pooled_dims(context, dims_of_rank(context, 0, kDims + 2))));
}
template <size_t kDims>
void infer_indices(InferContext& context) {
  number_type(context, 0);
  context.result(kI64, Shape(pooled_dims(context, dims_of_rank(context, 0, kDims + 2))));
}

// The gradient by images or volumes of dims x, when dy is operand `at`.
void infer_gradient(InferContext& context, std::vector<Dim> x, size_t at) {
  const std::vector<Dim> y = pooled_dims(context, x), dy = dims_of_rank(context, at, x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const Dim size = same_size(context, y[i], dy[i], "sizes of dy and of the pooled image");
    if (i == 0 || i + 1 == x.size()) x[i] = size;
  }
  context.result(number_type(context, at), Shape(std::move(x)));
}
template <size_t kDims>
void infer_max_pool_gradient(InferContext& context) {
  equal_types(context);
  infer_gradient(context, dims_of_rank(context, 0, kDims + 2), 1);
}
template <size_t kDims>
void infer_avg_pool_gradient(InferContext& context) {
  Shape shape = shape_operand(context, 1);
  if (!shape.ranked) shape = Shape(std::vector<Dim>(kDims + 2));
  if (shape.rank() != kDims + 2) context.fail("shape must have {} sizes, found {}", kDims + 2, shape.rank());
  infer_gradient(context, std::move(shape.dims), 0);
}

// Of the taps of a window those beyond the image do no work.
double window_flops(const InferContext& context, const Shape& x, const Shape& y) {
  auto flops = static_cast<double>(known_count(y).value_or(0));
  const auto& sizes = context.attr.integers("window");
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Dim in = x.ranked && x.rank() > i + 1 ? x.dims[i + 1] : Dim();
    flops *= static_cast<double>(in.known() ? std::min(sizes[i], std::max<int64_t>(1, in.size)) : sizes[i]);
  }
  return flops;
}
template <size_t kDims>
double pool_flops(const InferContext& context) {
  InferContext copy = context;
  infer_pool<kDims>(copy);
  return window_flops(context, context.shape(0), copy.results()[0].shape);
}

template <void (*kInfer)(InferContext&), size_t kOfResult>
double gradient_flops(const InferContext& context) {
  InferContext copy = context;
  kInfer(copy);
  return window_flops(context, copy.results()[0].shape, context.shape(kOfResult));
}

// The part of one window along one axis: taps first, first + step, ... before last lie inside the image.
struct Taps {
  int64_t first = 0, last = 1, step = 1;
  int64_t padded = 1;  // positions of the undilated window inside the padded image
  int64_t count() const { return last > first ? (last - first + step - 1) / step : 0; }
};
Taps taps_at(const WindowSpec& spec, int64_t in, int64_t before, int64_t at) {
  int64_t start = at * spec.stride - before, end = start + spec.reach();
  if (spec.padding == "valid" || spec.padding == "explicit") end = std::min(end, in + spec.after);
  int64_t first = start < 0 ? start + (-start + spec.dilation - 1) / spec.dilation * spec.dilation : start;
  return {first, std::min(start + spec.reach(), in), spec.dilation, end - start};
}

/// The taps of one window in one channel; of images those along the depth are one.
struct Window {
  Taps taps[3];
  int64_t base, height, width, channels;

  int64_t count() const { return taps[0].count() * taps[1].count() * taps[2].count(); }
  int64_t padded() const { return taps[0].padded * taps[1].padded * taps[2].padded; }
  /// Calls visit(index in x) in row-major order.
  template <class Visit>
  void each(Visit&& visit) const {
    for (int64_t d = taps[0].first; d < taps[0].last; d += taps[0].step)
      for (int64_t h = taps[1].first; h < taps[1].last; h += taps[1].step, stop_point_after(taps[2].count()))
        for (int64_t w = taps[2].first; w < taps[2].last; w += taps[2].step)
          visit(base + ((d * height + h) * width + w) * channels);
  }
};

// Calls visit(result index, window) for every result.
template <class Visit>
void for_each_window(const KernelContext& context, const Dims& in, const Dims& out, Visit&& visit) {
  const auto& sizes = context.attr.integers("window");
  const size_t rank = in.size(), dims = rank - 2;
  std::vector<WindowSpec> specs;
  for (size_t i = 0; i < dims; ++i) specs.push_back(window_spec(context.attr, sizes[i], i));
  walk<1>(out, {strides_of(out)}, [&](int64_t n, auto&) {
    Window window{{}, n % in.back(), in[rank - 3], in[rank - 2], in.back()};
    int64_t place = n / in.back();
    for (size_t i = dims; i-- > 0; place /= out[1 + i])
      window.taps[i + 3 - dims] =
          taps_at(specs[i], in[1 + i], specs[i].padding_before(in[1 + i], out[1 + i]), place % out[1 + i]);
    window.base += place * count_between(in, 1, rank);
    visit(n, window);
  });
}

void max_pool(KernelContext& context) {
  allocate_results(context);
  const Dims& in = context.input(0).dims();
  with_numbers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    const T* xs = data<T>(context.input(0));
    T* to = data<T>(context.output(0));
    const C least =
        std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
    for_each_window(context, in, context.output(0).dims(), [&](int64_t n, const Window& window) {
      C most = least;
      window.each([&](int64_t at) { most = maximum(most, static_cast<C>(xs[at])); });
      to[n] = T(most);
    });
  });
}

void avg_pool(KernelContext& context) {
  allocate_results(context);
  const Dims& in = context.input(0).dims();
  const bool count_padding = context.attr.boolean("count_padding");
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* xs = data<T>(context.input(0));
    T* to = data<T>(context.output(0));
    for_each_window(context, in, context.output(0).dims(), [&](int64_t n, const Window& window) {
      double sum = 0;
      window.each([&](int64_t at) { sum += static_cast<double>(xs[at]); });
      to[n] = T(static_cast<Compute<T>>(sum / static_cast<double>(count_padding ? window.padded() : window.count())));
    });
  });
}

// Calls visit(result index, index of the window's first largest element; -1 when the window is all padding; window).
template <class T, class Visit>
void for_each_first_largest(const KernelContext& context, const Tensor& x, const Dims& out, Visit&& visit) {
  const T* xs = data<T>(x);
  for_each_window(context, x.dims(), out, [&](int64_t n, const Window& window) {
    int64_t most = -1;
    window.each([&](int64_t at) {
      if (most < 0 || static_cast<Compute<T>>(xs[most]) < static_cast<Compute<T>>(xs[at])) most = at;
    });
    visit(n, most, window);
  });
}

void max_pool_indices(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  with_numbers(x.dtype(), [&](auto tag) {
    for_each_first_largest<decltype(tag)>(
        context, x, context.output(0).dims(),
        [&](int64_t n, int64_t most, const Window&) { data<int64_t>(context.output(0))[n] = most; });
  });
}

// The gradient of a window goes to its first largest element, or to each that equals it; a window of padding only has
// none.
void max_pool_gradient(KernelContext& context) {
  allocate_results(context);
  const Tensor &x = context.input(0), &dy = context.input(1);
  Tensor& dx = context.output(0);
  const bool to_all = context.attr.has("ties") && context.attr.text("ties") == "all";
  std::vector<double> sums(static_cast<size_t>(dx.count()));
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T *xs = data<T>(x), *dys = data<T>(dy);
    for_each_first_largest<T>(context, x, dy.dims(), [&](int64_t n, int64_t most, const Window& window) {
      const auto add = [&](int64_t at) { sums[static_cast<size_t>(at)] += static_cast<double>(dys[n]); };
      if (most >= 0 && !to_all) add(most);
      if (!to_all) return;
      const auto largest = most < 0 ? Compute<T>(0) : static_cast<Compute<T>>(xs[most]);
      window.each([&](int64_t at) {
        if (static_cast<Compute<T>>(xs[at]) == largest) add(at);
      });
    });
    for (size_t i = 0; i < sums.size(); ++i) data<T>(dx)[i] = T(static_cast<Compute<T>>(sums[i]));
  });
}

void avg_pool_gradient(KernelContext& context) {
  allocate_results(context);
  const Tensor& dy = context.input(0);
  Tensor& dx = context.output(0);
  const bool count_padding = context.attr.boolean("count_padding");
  std::vector<double> sums(static_cast<size_t>(dx.count()));
  with_floats(dy.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* dys = data<T>(dy);
    for_each_window(context, dx.dims(), dy.dims(), [&](int64_t n, const Window& window) {
      const double share =
          static_cast<double>(dys[n]) / static_cast<double>(count_padding ? window.padded() : window.count());
      window.each([&](int64_t at) { sums[static_cast<size_t>(at)] += share; });
    });
    for (size_t i = 0; i < sums.size(); ++i) data<T>(dx)[i] = T(static_cast<Compute<T>>(sums[i]));
  });
}

// The ops over images or volumes.
struct Names {
  const char *max, *avg, *indices, *max_gradient, *avg_gradient;
};
template <size_t kDims>
constexpr Names kNames =
    kDims == 2 ? Names{"max_pool2d", "avg_pool2d", "max_pool2d_indices", "max_pool2d_gradient", "avg_pool2d_gradient"}
               : Names{"max_pool3d", "avg_pool3d", "max_pool3d_indices", "max_pool3d_gradient", "avg_pool3d_gradient"};

// A pooling op with the attributes of the node.
Var pooled(const GradientContext& g, const char* op, std::vector<Value*> inputs, const Shape& shape) {
  const std::vector<Type> type = {Type::tensor(inputs[0]->type.dtype, shape)};
  return {g.b, g.b.add_node(op_named(op), inputs, g.node().attributes, {}, type)->result()};
}

template <size_t kDims>
void max_pool_rule(GradientContext& g) {
  g.set(0, pooled(g, kNames<kDims>.max_gradient, {g.x(0).value, g.dy().value}, g.x(0).shape()));
}
template <size_t kDims>
void avg_pool_rule(GradientContext& g) {
  g.set(0, pooled(g, kNames<kDims>.avg_gradient, {g.dy().value, dims_of(g.x(0)).value}, g.x(0).shape()));
}
// By dy: the elements at the positions of the windows' largest elements. By x: zero, since the positions are piecewise
// constant. Of several equal elements the first counts, with ties = all as well, as in TensorFlow's MaxPool3DGradGrad.
template <size_t kDims>
void max_pool_gradient_rule(GradientContext& g) {
  if (!g.wanted(1)) return;
  Attributes attributes = g.node().attributes;
  attributes.erase("ties");
  const Var places = {g.b, g.b.add(kNames<kDims>.indices, {g.x(0).value}, attributes)};
  g.set(1, gather_rows_or_zeros(flattened(g.dy()), places));
}
template <size_t kDims>
void avg_pool_gradient_rule(GradientContext& g) {
  g.set(0, pooled(g, kNames<kDims>.avg, {g.dy().value}, g.x(0).shape()));
}

std::vector<AttrDef> window_attributes(size_t dims, std::vector<AttrDef> more) {
  std::vector<AttrDef> all = {{"window", AttrKind::integers},
                              integers("strides", std::vector<int64_t>(dims, 1)),
                              word("padding", "valid", {"valid", "same", "same_lower", "explicit"}),
                              integers("pads", std::vector<int64_t>(2 * dims, 0)),
                              flag("ceil_mode")};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
AttrDef dilations(size_t dims) { return integers("dilations", std::vector<int64_t>(dims, 1)); }

/// What one row over images or over volumes does not share with the other.
struct Texts {
  const char* summary;
  Oracle oracle;
  std::vector<const char*> cases;
};

template <size_t kDims>
void add_rows(Texts most, Texts mean, Texts indices, std::vector<OpDef>& rows) {
  rows.push_back({.name = kNames<kDims>.max,
                  .summary = most.summary,
                  .inputs = {{"x", Accepts::numbers}},
                  .attributes = window_attributes(kDims, {dilations(kDims)}),
                  .traits = kReduction,
                  .infer = infer_pool<kDims>,
                  .flops = pool_flops<kDims>,
                  .gradient = max_pool_rule<kDims>,
                  .reference = max_pool,
                  .oracle = most.oracle,
                  .cases = std::move(most.cases)});
  rows.push_back({.name = kNames<kDims>.avg,
                  .summary = mean.summary,
                  .inputs = {{"x", Accepts::floats}},
                  .attributes = window_attributes(kDims, {flag("count_padding")}),
                  .traits = kReduction,
                  .precision = Precision::accumulate_f32,
                  .infer = infer_pool<kDims>,
                  .flops = pool_flops<kDims>,
                  .gradient = avg_pool_rule<kDims>,
                  .reference = avg_pool,
                  .oracle = mean.oracle,
                  .cases = std::move(mean.cases)});
  rows.push_back({.name = kNames<kDims>.indices,
                  .summary = indices.summary,
                  .inputs = {{"x", Accepts::numbers}},
                  .attributes = window_attributes(kDims, {dilations(kDims)}),
                  .traits = kReduction,
                  .infer = infer_indices<kDims>,
                  .flops = pool_flops<kDims>,
                  .reference = max_pool_indices,
                  .oracle = indices.oracle,
                  .cases = std::move(indices.cases)});
}

template <size_t kDims>
void add_gradient_rows(Texts most, Texts mean, std::vector<OpDef>& rows) {
  std::vector<AttrDef> more{dilations(kDims)};
  if (kDims == 3) more.push_back(word("ties", "first", {"first", "all"}));
  rows.push_back({.name = kNames<kDims>.max_gradient,
                  .summary = most.summary,
                  .inputs = {{"x", Accepts::floats}, {"dy", Accepts::floats}},
                  .attributes = window_attributes(kDims, std::move(more)),
                  .traits = kReduction,
                  .precision = Precision::accumulate_f32,
                  .infer = infer_max_pool_gradient<kDims>,
                  .flops = gradient_flops<infer_max_pool_gradient<kDims>, 1>,
                  .gradient = max_pool_gradient_rule<kDims>,
                  .reference = max_pool_gradient,
                  .oracle = most.oracle,
                  .cases = std::move(most.cases)});
  rows.push_back({.name = kNames<kDims>.avg_gradient,
                  .summary = mean.summary,
                  .inputs = {{"dy", Accepts::floats}, shape_operand("shape")},
                  .attributes = window_attributes(kDims, {flag("count_padding")}),
                  .traits = kReduction,
                  .precision = Precision::accumulate_f32,
                  .infer = infer_avg_pool_gradient<kDims>,
                  .flops = gradient_flops<infer_avg_pool_gradient<kDims>, 0>,
                  .gradient = avg_pool_gradient_rule<kDims>,
                  .reference = avg_pool_gradient,
                  .oracle = mean.oracle,
                  .cases = std::move(mean.cases)});
}

void add_image_rows(std::vector<OpDef>& rows) {
  add_rows<2>(
      {"largest element of each window, NaN when one is NaN; padding never wins: a window all in padding gives -inf, "
       "of "
       "integers the least; ceil_mode adds a last partial window if it starts inside the image or its leading padding",
       {"pool2d('MAX', x, window, strides, dilations, padding, pads, ceil_mode, False)", kTensorFlow},
       {"f32[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
        "f32[2, 7, 8, 19] {window = [3, 3], strides = [2, 2], padding = same}",
        "f32[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], strides = [2, 2]}",
        "f32[1, 9, 9, 2] {window = [2, 3], dilations = [3, 2]}",
        "f32[1, 6, 6, 3] {window = [3, 3], strides = [2, 2], ceil_mode = true}", "f32[0, 4, 4, 1] {window = [2, 2]}",
        "f32[1, 5, 6, 2] {window = [2, 2], padding = same_lower}", "f16[1, 4, 4, 3] {window = [2, 2]}",
        "i32[1, 4, 4, 3] {window = [2, 2]}"}},
      {"mean of each window over the elements inside the image; count_padding divides by the window's part in the "
       "padded image instead",
       {"pool2d('AVG', x, window, strides, [1, 1], padding, pads, ceil_mode, count_padding)", kTensorFlow},
       {"f32[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
        "f32[2, 7, 8, 19] {window = [3, 3], strides = [2, 2], padding = same}",
        "f32[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], strides = [2, 2]}",
        "f32[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], count_padding = true}",
        "f32[1, 6, 6, 3] {window = [3, 3], strides = [2, 2], ceil_mode = true}", "f32[0, 4, 4, 1] {window = [2, 2]}",
        "f32[1, 7, 7, 65] {window = [7, 7]}", "f32[1, 5, 6, 2] {window = [2, 2], padding = same_lower}",
        "f16[1, 4, 4, 3] {window = [2, 2]}"}},
      {"places in x, counted in row-major order, of the first largest element of each window (a NaN only when it comes "
       "first); -1 of a window all in padding",
       {"tf.nn.max_pool_with_argmax(x, window, strides, padding.upper(), output_dtype=tf.int64, "
        "include_batch_in_index=True)[1]",
        kTensorFlow},
       {"f32[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
        "f32[2, 7, 8, 5] {window = [3, 3], strides = [2, 2], padding = same}", "i32[1, 4, 4, 3] {window = [2, 2]}",
        "f32[1, 3, 3, 1]=[1, 1, 1, 1, 1, 1, 1, 1, 1] {window = [2, 2]}"}},
      rows);
  add_gradient_rows<2>(
      {"gradient of max_pool2d by its image x: each element of dy goes to the first largest element of its window in "
       "row-major order (a NaN only when it comes first); a window all in padding gives nothing",
       {"pool_gradient('MAX', x, dy, window, strides, dilations, padding, pads, False)"},
       {"f32[1, 4, 4, 1], f32[1, 2, 2, 1] {window = [2, 2], strides = [2, 2]}",
        "f32[2, 7, 8, 19], f32[2, 4, 4, 19] {window = [3, 3], strides = [2, 2], padding = same}",
        "f32[1, 7, 8, 3], f32[1, 4, 4, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], "
        "strides = [2, 2]}",
        "f32[1, 9, 9, 2], f32[1, 6, 5, 2] {window = [2, 3], dilations = [3, 2]}",
        "f32[1, 6, 6, 3], f32[1, 3, 3, 3] {window = [3, 3], strides = [2, 2], ceil_mode = true}",
        "f32[0, 4, 4, 1], f32[0, 3, 3, 1] {window = [2, 2]}",
        "f32[1, 5, 6, 2], f32[1, 5, 6, 2] {window = [2, 2], padding = same_lower}",
        "f32[1, 3, 3, 1]=[1, 1, 1, 1, 1, 1, 1, 1, 1], f32[1, 2, 2, 1] {window = [2, 2]}",
        "f16[1, 4, 4, 3], f16[1, 3, 3, 3] {window = [2, 2]}"}},
      {"gradient of avg_pool2d by its image of the given shape: each element of dy in equal parts to the elements of "
       "its "
       "window inside the image",
       {"pool_gradient('AVG', np.zeros(shape, dy.dtype), dy, window, strides, [1, 1], padding, pads, count_padding)"},
       {"f32[1, 2, 2, 1], i64[4]=[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
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
      rows);
}

void add_volume_rows(std::vector<OpDef>& rows) {
  add_rows<3>(
      {"largest element of each window of a volume, NaN when one is NaN; padding and ceil_mode as in max_pool2d",
       {"pooled('MAX', x, window, strides, dilations, padding, pads, ceil_mode, False)"},
       {"f32[1, 4, 4, 6, 1] {window = [2, 2, 2], strides = [2, 2, 2]}",
        "f32[2, 5, 7, 8, 19] {window = [3, 3, 3], strides = [2, 2, 2], padding = same}",
        "f32[1, 4, 5, 6, 3] {window = [1, 2, 2], strides = [1, 2, 2]}", "f32[1, 6, 4, 3, 3] {window = [3, 1, 1]}",
        "f32[1, 4, 7, 6, 3] {window = [2, 3, 2], padding = explicit, pads = [1, 0, 1, 1, 0, 1], strides = [2, 1, 2]}",
        "f32[1, 7, 6, 5, 2] {window = [3, 2, 2], dilations = [2, 3, 1]}",
        "f32[1, 5, 4, 6, 3] {window = [3, 3, 3], strides = [2, 2, 2], ceil_mode = true}",
        "f32[1, 5, 6, 4, 2] {window = [2, 2, 2], padding = same_lower}", "f32[0, 4, 4, 4, 1] {window = [2, 2, 2]}",
        "i32[1, 4, 4, 4, 3] {window = [2, 2, 2]}"}},
      {"mean of each window of a volume over the elements inside it; count_padding as in avg_pool2d",
       {"pooled('AVG', x, window, strides, [1, 1, 1], padding, pads, ceil_mode, count_padding)"},
       {"f32[1, 4, 4, 6, 1] {window = [2, 2, 2], strides = [2, 2, 2]}",
        "f32[2, 5, 7, 8, 19] {window = [3, 3, 3], strides = [2, 2, 2], padding = same}",
        "f32[1, 4, 7, 6, 3] {window = [2, 3, 2], padding = explicit, pads = [1, 0, 1, 1, 0, 1], count_padding = true}",
        "f32[1, 4, 5, 6, 3] {window = [1, 2, 2], strides = [1, 2, 2]}",
        "f32[1, 6, 4, 3, 3] {window = [3, 1, 1], padding = same}",
        "f32[1, 5, 4, 6, 3] {window = [3, 3, 3], strides = [2, 2, 2], ceil_mode = true}",
        "f32[1, 7, 7, 7, 20] {window = [7, 7, 7]}", "f32[0, 4, 4, 4, 1] {window = [2, 2, 2]}",
        "f16[1, 4, 4, 4, 3] {window = [2, 2, 2]}"}},
      {"places in x, counted in row-major order, of the first largest element of each window of a volume (a NaN only "
       "when it comes first); -1 of a window all in padding",
       {"pool_places(x, window, strides, dilations, padding, pads)"},
       {"f32[1, 4, 4, 4, 1] {window = [2, 2, 2], strides = [2, 2, 2]}",
        "f32[2, 3, 5, 4, 5] {window = [3, 3, 3], strides = [2, 2, 2], padding = same}",
        "i32[1, 3, 4, 4, 3] {window = [2, 2, 2]}"}},
      rows);
  add_gradient_rows<3>(
      {"gradient of max_pool3d by its volume x: each element of dy goes to the first largest element of its window in "
       "row-major order, or with ties = all to every one that equals it; a window all in padding gives nothing",
       {"pool_gradient('MAX', x, dy, window, strides, dilations, padding, pads, False, ties == 'all')"},
       {"f32[1, 4, 4, 6, 1], f32[1, 2, 2, 3, 1] {window = [2, 2, 2], strides = [2, 2, 2]}",
        "f32[2, 5, 7, 8, 19], f32[2, 3, 4, 4, 19] {window = [3, 3, 3], strides = [2, 2, 2], padding = same}",
        "f32[2, 5, 7, 8, 19], f32[2, 3, 4, 4, 19] {window = [3, 3, 3], strides = [2, 2, 2], padding = same, ties = "
        "all}",
        "f32[1, 2, 2, 2, 3]=[1, 2, 0, 1, 2, 0, 1, 1, 0, 1, 0, 0, 1, 2, 0, 1, 2, 3, 1, 1, 0, 1, 1, 3], f32[1, 1, 1, 2, "
        "3] "
        "{window = [2, 2, 1], ties = all}",
        "f32[1, 7, 6, 5, 2], f32[1, 3, 3, 4, 2] {window = [3, 2, 2], dilations = [2, 3, 1]}",
        "f32[1, 4, 7, 6, 3], f32[1, 2, 7, 3, 3] {window = [2, 3, 2], padding = explicit, pads = [1, 0, 1, 1, 0, 1], "
        "strides = [2, 1, 2]}",
        "f32[0, 4, 4, 4, 1], f32[0, 3, 3, 3, 1] {window = [2, 2, 2]}"}},
      {"gradient of avg_pool3d by its volume of the given shape: each element of dy in equal parts to the elements of "
       "its window inside the volume",
       {"pool_gradient('AVG', np.zeros(shape, dy.dtype), dy, window, strides, [1, 1, 1], padding, pads, "
        "count_padding)"},
       {"f32[1, 2, 2, 3, 1], i64[5]=[1, 4, 4, 6, 1] {window = [2, 2, 2], strides = [2, 2, 2]}",
        "f32[2, 3, 4, 4, 19], i64[5]=[2, 5, 7, 8, 19] {window = [3, 3, 3], strides = [2, 2, 2], padding = same}",
        "f32[1, 4, 7, 6, 3], i64[5]=[1, 4, 7, 6, 3] {window = [2, 3, 2], padding = explicit, pads = [1, 0, 1, 1, 0, "
        "1], "
        "count_padding = true}",
        "f32[0, 3, 3, 3, 1], i64[5]=[0, 4, 4, 4, 1] {window = [2, 2, 2]}"}},
      rows);
}

}  // namespace

std::span<const OpDef> pooling_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> all;
    add_image_rows(all);
    add_volume_rows(all);
    return all;
  }();
  return rows;
}

}  // namespace cairn
