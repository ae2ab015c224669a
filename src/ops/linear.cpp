// Matrix products and convolutions, with the gradients of convolutions. Sums of floats are kept in f64 and rounded once;
// integers wrap.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// a * b with wrap-around for integers.
template <class T>
Sum<T> product(T a, T b) {
  if constexpr (kIsFloat<T>)
    return static_cast<double>(a) * static_cast<double>(b);
  else
    return wrapped(a, b, std::multiplies<>());
}
template <class S>
S plus(S a, S b) {
  if constexpr (std::is_floating_point_v<S>)
    return a + b;
  else
    return wrapped(a, b, std::plus<>());
}
template <class T>
T rounded(Sum<T> sum) {
  return T(static_cast<Compute<T>>(sum));
}

struct Factors {
  Dim m, ka, kb, n;
};
Factors factors(const InferContext& context) {
  const Shape &a = context.shape(0), &b = context.shape(1);
  size_t ra = a.rank(), rb = b.rank();
  bool ta = context.attr.boolean("transpose_a"), tb = context.attr.boolean("transpose_b");
  return {a.dims[ra - (ta ? 1 : 2)], a.dims[ra - (ta ? 2 : 1)], b.dims[rb - (tb ? 1 : 2)], b.dims[rb - (tb ? 2 : 1)]};
}

void infer_matmul(InferContext& context) {
  number_type(context, 0);
  DType dtype = equal_types(context);
  for (size_t i : {0, 1})
    if (context.shape(i).ranked && context.shape(i).rank() < 2)
      context.fail("input {} must have at least 2 dims, found {}", i, to_string(context.input(i)));
  if (!context.shape(0).ranked || !context.shape(1).ranked) return context.result(dtype, Shape::unranked());
  auto [m, ka, kb, n] = factors(context);
  if (ka.known() && kb.known() && ka.size != kb.size)
    context.fail("inner dims must agree, found {} and {} in {} and {}", ka.size, kb.size, to_string(context.input(0)),
                 to_string(context.input(1)));
  auto batch = [](Shape shape) {
    shape.dims.resize(shape.rank() - 2);
    return shape;
  };
  Shape result = broadcast(context, batch(context.shape(0)), batch(context.shape(1)));
  result.dims.push_back(m);
  result.dims.push_back(n);
  context.result(dtype, std::move(result));
}

double matmul_flops(InferContext context) {
  if (!context.shape(0).ranked || !context.shape(1).ranked) return 0;
  infer_matmul(context);
  const Dim inner = factors(context).ka;
  return 2 * static_cast<double>(known_count(context.results()[0].shape).value_or(0)) *
         static_cast<double>(inner.known() ? inner.size : 0);
}

template <class T>
void matmul_of(const KernelContext& context, Tensor& y) {
  const Tensor &a = context.input(0), &b = context.input(1);
  const Dims& dims = y.dims();
  const size_t rank = dims.size();
  const bool ta = context.attr.boolean("transpose_a"), tb = context.attr.boolean("transpose_b");
  const int64_t m = dims[rank - 2], n = dims[rank - 1], k = a.dims()[a.rank() - (ta ? 2 : 1)];
  auto batch = [](const Dims& all) {
    Dims leading;
    for (size_t i = 0; i + 2 < all.size(); ++i) leading.push_back(all[i]);
    return leading;
  };
  // Strides of whole matrices: those of the batch dims times the matrix size.
  auto batch_strides = [&](const Dims& all) {
    Dims strides = broadcast_strides(batch(all), batch(dims));
    for (int64_t& stride : strides) stride *= count_between(all, all.size() - 2, all.size());
    return strides;
  };
  const int64_t ai = ta ? 1 : k, ak = ta ? m : 1, bk = tb ? 1 : n, bj = tb ? k : 1;
  if (y.count() == 0) return;
  walk<2>(batch(dims), {batch_strides(a.dims()), batch_strides(b.dims())}, [&](int64_t at, auto& offsets) {
    const T *as = data<T>(a) + offsets[0], *bs = data<T>(b) + offsets[1];
    T* to = data<T>(y) + at * m * n;
    for (int64_t i = 0; i < m; ++i) {
      stop_point();
      for (int64_t j = 0; j < n; ++j) {
        Sum<T> sum = 0;
        for (int64_t p = 0; p < k; ++p) sum = plus(sum, product(as[i * ai + p * ak], bs[p * bk + j * bj]));
        to[i * n + j] = rounded<T>(sum);
      }
    }
  });
}

void matmul(KernelContext& context) {
  allocate_results(context);
  with_numbers(context.input(0).dtype(), [&](auto tag) { matmul_of<decltype(tag)>(context, context.output(0)); });
}

void check_channels(const InferContext& context, const Dim& channels, const Dim& kernel_in, const Dim& kernel_out) {
  int64_t groups = context.attr.integer("groups");
  if (groups < 1) context.fail("groups must be at least 1, found {}", groups);
  if (channels.known() && channels.size % groups != 0)
    context.fail("{} input channels do not divide into {} groups", channels.size, groups);
  if (kernel_out.known() && kernel_out.size % groups != 0)
    context.fail("{} output channels do not divide into {} groups", kernel_out.size, groups);
  if (channels.known() && kernel_in.known() && channels.size / groups != kernel_in.size) {
    if (groups == 1) context.fail("kernel has {} input channels, input has {}", kernel_in.size, channels.size);
    context.fail("kernel has {} input channels in each of {} groups, input has {}", kernel_in.size, groups,
                 channels.size);
  }
}

// Dims of the convolution of an image with a kernel.
std::vector<Dim> conv2d_dims(const InferContext& context, const std::vector<Dim>& x, const std::vector<Dim>& kernel) {
  check_windows(context);
  check_channels(context, x[3], kernel[2], kernel[3]);
  std::vector<Dim> y = {x[0], Dim(), Dim(), kernel[3]};
  for (size_t i : {0, 1})
    if (kernel[i].known()) y[1 + i] = slide(context, x[1 + i], window_spec(context.attr, kernel[i].size, i));
  return y;
}

void infer_conv2d(InferContext& context) {
  number_type(context, 0);
  DType dtype = equal_types(context);
  context.result(dtype, Shape(conv2d_dims(context, four_dims(context, 0), four_dims(context, 1))));
}

// Shape rule of a convolution gradient: operand 2 gives the shape of the result, and dy may tell more of its dims.
template <bool kOfKernel>
void infer_conv2d_gradient(InferContext& context) {
  const DType dtype = number_type(context, 0);
  if (context.dtype(1) != dtype)
    context.fail("inputs must have one element type, found {} and {}", to_string(dtype), to_string(context.dtype(1)));
  Shape shape = shape_operand(context, 2);
  if (!shape.ranked) shape = Shape(std::vector<Dim>(4));
  if (shape.rank() != 4) context.fail("shape must have 4 sizes, found {}", shape.rank());
  const std::vector<Dim> dy = four_dims(context, kOfKernel ? 1 : 0);
  shape.dims[kOfKernel ? 3 : 0] = same_size(context, shape.dims[kOfKernel ? 3 : 0], dy[kOfKernel ? 3 : 0],
                                            kOfKernel ? "output channels" : "batch sizes");
  const std::vector<Dim> other = four_dims(context, kOfKernel ? 0 : 1);
  const std::vector<Dim> y =
      kOfKernel ? conv2d_dims(context, other, shape.dims) : conv2d_dims(context, shape.dims, other);
  for (size_t i = 0; i < 4; ++i) same_size(context, y[i], dy[i], "sizes of dy and of the convolution");
  context.result(dtype, std::move(shape));
}

// The number of products is that of the forward convolution: elements of dy times taps times channels of a group.
double products_of(const Shape& y, const Shape& kernel) {
  if (!y.known() || !kernel.known()) return 0;
  return static_cast<double>(known_count(y).value_or(0)) * static_cast<double>(kernel.dims[0].size) *
         static_cast<double>(kernel.dims[1].size) * static_cast<double>(kernel.dims[2].size);
}
double conv2d_flops(InferContext context) {
  infer_conv2d(context);
  return 2 * products_of(context.results()[0].shape, context.shape(1));
}
double conv2d_input_gradient_flops(const InferContext& context) {
  return 2 * products_of(context.shape(0), context.shape(1));
}
double conv2d_kernel_gradient_flops(InferContext context) {
  infer_conv2d_gradient<true>(context);
  return 2 * products_of(context.shape(1), context.results()[0].shape);
}

// Calls visit(element of y, element of x, element of the kernel) for every product in the convolution y of x with a
// kernel.
template <class Visit>
void for_each_product(const AttributeView& attr, const Dims& in, const Dims& k, const Dims& out, Visit&& visit) {
  const int64_t groups = attr.integer("groups"), per_group = out[3] / groups;
  const WindowSpec rows = window_spec(attr, k[0], 0), columns = window_spec(attr, k[1], 1);
  const int64_t top = rows.padding_before(in[1], out[1]), left = columns.padding_before(in[2], out[2]);
  walk<1>(out, {strides_of(out)}, [&](int64_t n, auto&) {
    const int64_t o = n % out[3], column = n / out[3] % out[2], row = n / out[3] / out[2] % out[1],
                  image = n / out[3] / out[2] / out[1];
    for (int64_t h = 0; h < k[0] && k[2] > 0; ++h) {
      const int64_t at_row = row * rows.stride + h * rows.dilation - top;
      if (at_row < 0 || at_row >= in[1]) continue;
      for (int64_t w = 0; w < k[1]; ++w) {
        const int64_t at_column = column * columns.stride + w * columns.dilation - left;
        if (at_column < 0 || at_column >= in[2]) continue;
        const int64_t pixel = ((image * in[1] + at_row) * in[2] + at_column) * in[3] + o / per_group * k[2];
        const int64_t weight = (h * k[1] + w) * k[2] * k[3] + o;
        for (int64_t c = 0; c < k[2]; ++c) visit(n, pixel + c, weight + c * k[3]);
      }
    }
  });
}

enum class Wanted : uint8_t { y, x, kernel };

// Computes one of a convolution's three tensors (result, image, kernel) as sums of products of the other two.
template <Wanted kWanted>
void conv2d(KernelContext& context) {
  allocate_results(context);
  const Tensor &a = context.input(0), &b = context.input(1);
  Tensor& result = context.output(0);
  std::vector<double> sums(static_cast<size_t>(result.count()));
  with_floats(result.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T *as = data<T>(a), *bs = data<T>(b);
    if constexpr (kWanted == Wanted::y)
      for_each_product(context.attr, a.dims(), b.dims(), result.dims(),
                       [&](int64_t y, int64_t x, int64_t k) { sums[static_cast<size_t>(y)] += product(as[x], bs[k]); });
    else if constexpr (kWanted == Wanted::x)
      for_each_product(context.attr, result.dims(), b.dims(), a.dims(),
                       [&](int64_t y, int64_t x, int64_t k) { sums[static_cast<size_t>(x)] += product(as[y], bs[k]); });
    else
      for_each_product(context.attr, a.dims(), result.dims(), b.dims(),
                       [&](int64_t y, int64_t x, int64_t k) { sums[static_cast<size_t>(k)] += product(as[x], bs[y]); });
    for (size_t i = 0; i < sums.size(); ++i) data<T>(result)[i] = rounded<T>(sums[i]);
  });
}

// The gradient of a matrix b that all matrices of the batch of a share: one product over the rows of the whole batch,
// which includes the sum over the batch.
Var of_shared_factor(GradientContext& g, bool transpose_b) {
  const Sizes rows_of_a = sizes_of(g, g.x(0)), rows_of_dy = sizes_of(g, g.dy());
  const size_t last = rows_of_a.size() - 1;
  const Size rows = product_of(g.b, rows_of_a, 0, last);
  const Var a = reshape(g.x(0), {rows, rows_of_a[last]}), dy = reshape(g.dy(), {rows, rows_of_dy[last]});
  return transpose_b ? matmul(dy, a, true) : matmul(a, dy, true);
}

void matmul_rule(GradientContext& g) {
  const bool ta = g.attr.boolean("transpose_a"), tb = g.attr.boolean("transpose_b");
  const Var a = g.x(0), b = g.x(1), dy = g.dy();
  if (g.wanted(0)) g.set(0, sum_to_like(ta ? matmul(b, dy, tb, true) : matmul(dy, b, false, !tb), a));
  if (!g.wanted(1)) return;
  const bool shared = a.shape().ranked && b.shape().ranked && dy.shape().ranked && b.shape().rank() == 2;
  if (shared && a.shape().rank() > 2 && !ta) return g.set(1, of_shared_factor(g, tb));
  g.set(1, sum_to_like(tb ? matmul(dy, a, true, ta) : matmul(a, dy, !ta, false), b));
}

// A convolution op with the attributes of the node; gradient ops take the result's shape as a further operand.
Var convolution(const GradientContext& g, const char* op, Var a, Var b) {
  return {g.b, g.b.add(op, {a.value, b.value}, g.node().attributes)};
}
Var convolution_gradient(const GradientContext& g, const char* op, Var a, Var b, Var like) {
  const Type type = Type::tensor(a.dtype(), like.shape());
  return {
      g.b,
      g.b.add_node(op_named(op), {a.value, b.value, dims_of(like).value}, g.node().attributes, {}, {type})->result()};
}
Var by_image(const GradientContext& g, Var dy, Var kernel, Var like) {
  return convolution_gradient(g, "conv2d_input_gradient", dy, kernel, like);
}
Var by_kernel(const GradientContext& g, Var x, Var dy, Var like) {
  return convolution_gradient(g, "conv2d_kernel_gradient", x, dy, like);
}

void conv2d_rule(GradientContext& g) {
  if (g.wanted(0)) g.set(0, by_image(g, g.dy(), g.x(1), g.x(0)));
  if (g.wanted(1)) g.set(1, by_kernel(g, g.x(0), g.dy(), g.x(1)));
}
// A convolution's result is linear in x and in the kernel, so every gradient is again a convolution op.
void conv2d_input_gradient_rule(GradientContext& g) {
  if (g.wanted(0)) g.set(0, convolution(g, "conv2d", g.dy(), g.x(1)));
  if (g.wanted(1)) g.set(1, by_kernel(g, g.dy(), g.x(0), g.x(1)));
}
void conv2d_kernel_gradient_rule(GradientContext& g) {
  if (g.wanted(0)) g.set(0, by_image(g, g.x(1), g.dy(), g.x(0)));
  if (g.wanted(1)) g.set(1, convolution(g, "conv2d", g.x(0), g.dy()));
}

std::vector<AttrDef> conv2d_attributes() {
  return {integers("strides", {1, 1}), integers("dilations", {1, 1}),
          word("padding", "valid", {"valid", "same", "same_lower", "explicit"}), integers("pads", {0, 0, 0, 0}),
          integer("groups", 1)};
}

std::vector<OpDef> make_linear_rows() {
  return {
      {.name = "matmul",
       .summary = "matrix product over the last two dims, transposed first where told; leading dims broadcast; an "
                  "inner dim of 0 gives 0; "
                  "integers wrap",
       .inputs = {{"a", Accepts::numbers}, {"b", Accepts::numbers}},
       .attributes = {flag("transpose_a"), flag("transpose_b")},
       .traits = kContraction,
       .precision = Precision::accumulate_f32,
       .infer = infer_matmul,
       .flops = [](const InferContext& context) { return matmul_flops(context); },
       .gradient = matmul_rule,
       .reference = matmul,
       .oracle =
           {"np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)"},
       .cases = {"f32[2, 3], f32[3, 4]", "f32[1, 65], f32[65, 17]", "f32[33, 64], f32[64, 48]",
                 "f32[7, 5], f32[7, 3] {transpose_a = true}", "f32[5, 7], f32[3, 7] {transpose_b = true}",
                 "f32[7, 5], f32[3, 7] {transpose_a = true, transpose_b = true}", "f32[2, 1, 4, 5], f32[3, 5, 2]",
                 "f32[6, 3, 4], f32[4, 2]", "f32[0, 3], f32[3, 4]", "f32[2, 0], f32[0, 3]", "f64[5, 6], f64[6, 2]",
                 "i32[3, 4], i32[4, 2]", "f16[9, 8], f16[8, 3]", "bf16[4, 8], bf16[8, 3]"}},
      {.name = "conv2d",
       .summary = "2-D convolution (correlation) of NHWC images with a kernel of height, width, channels a group, "
                  "output channels; outside "
                  "the image is 0; same pads evenly, an odd rest after (same_lower: before); pads are top, bottom, "
                  "left, right",
       .inputs = {{"x", Accepts::floats}, {"kernel", Accepts::floats}},
       .attributes = conv2d_attributes(),
       .traits = kContraction,
       .precision = Precision::accumulate_f32,
       .infer = infer_conv2d,
       .flops = [](const InferContext& context) { return conv2d_flops(context); },
       .gradient = conv2d_rule,
       .reference = conv2d<Wanted::y>,
       .oracle = {"conv2d(x, kernel, strides, dilations, padding, pads, groups)", kTensorFlow},
       .cases = {"f32[1, 5, 5, 1], f32[3, 3, 1, 1]", "f32[2, 8, 9, 3], f32[3, 3, 3, 16] {padding = same}",
                 "f32[1, 9, 8, 4], f32[3, 3, 4, 8] {strides = [2, 2], padding = same}",
                 "f32[1, 7, 7, 3], f32[1, 1, 3, 33]", "f32[1, 9, 9, 2], f32[3, 2, 2, 5] {dilations = [2, 3]}",
                 "f32[1, 6, 6, 4], f32[3, 3, 1, 4] {groups = 4, padding = same}",
                 "f32[1, 6, 6, 4], f32[3, 3, 1, 8] {groups = 4}",
                 "f32[2, 6, 5, 6], f32[3, 3, 3, 4] {groups = 2, padding = same}",
                 "f32[1, 6, 6, 2], f32[3, 3, 2, 3] {padding = explicit, pads = [1, 0, 2, 1], strides = [2, 1]}",
                 "f32[1, 8, 8, 2], f32[4, 4, 2, 3] {padding = same_lower}", "f32[0, 5, 5, 2], f32[3, 3, 2, 4]",
                 "f32[1, 2, 2, 1], f32[3, 3, 1, 2]", "f32[1, 14, 14, 32], f32[3, 3, 32, 32] {padding = same}",
                 "f64[1, 5, 5, 2], f64[3, 3, 2, 2]", "f16[1, 5, 5, 8], f16[3, 3, 8, 4]"}},
  };
}

std::vector<OpDef> conv2d_gradient_rows() {
  return {
      {.name = "conv2d_input_gradient",
       .summary =
           "gradient of conv2d by its image of the given shape (NHWC), for the gradient dy of its result and with "
           "its attributes; also the transposed convolution of dy",
       .inputs = {{"dy", Accepts::floats}, {"kernel", Accepts::floats}, shape_operand("shape")},
       .attributes = conv2d_attributes(),
       .traits = kContraction,
       .precision = Precision::accumulate_f32,
       .infer = infer_conv2d_gradient<false>,
       .flops = conv2d_input_gradient_flops,
       .gradient = conv2d_input_gradient_rule,
       .reference = conv2d<Wanted::x>,
       .oracle =
           {"conv2d_gradients(np.zeros(shape, dy.dtype), kernel, dy, strides, dilations, padding, pads, groups)[0]"},
       .cases = {"f32[1, 3, 3, 1], f32[3, 3, 1, 1], i64[4]=[1, 5, 5, 1]",
                 "f32[2, 8, 9, 16], f32[3, 3, 3, 16], i64[4]=[2, 8, 9, 3] {padding = same}",
                 "f32[1, 5, 4, 8], f32[3, 3, 4, 8], i32[4]=[1, 9, 8, 4] {strides = [2, 2], padding = same}",
                 "f32[1, 7, 7, 33], f32[1, 1, 3, 33], i64[4]=[1, 7, 7, 3]",
                 "f32[1, 4, 4, 5], f32[1, 1, 3, 5], i64[4]=[1, 8, 7, 3] {strides = [2, 2], padding = same}",
                 "f32[1, 5, 6, 5], f32[3, 2, 2, 5], i64[4]=[1, 9, 9, 2] {dilations = [2, 3]}",
                 "f32[1, 6, 6, 8], f32[3, 3, 1, 8], i64[4]=[1, 6, 6, 4] {groups = 4, padding = same}",
                 "f32[2, 6, 5, 4], f32[3, 3, 3, 4], i64[4]=[2, 6, 5, 6] {groups = 2, padding = same}",
                 "f32[1, 3, 7, 3], f32[3, 3, 2, 3], i64[4]=[1, 6, 6, 2] {padding = explicit, pads = [1, 0, 2, 1], "
                 "strides = [2, 1]}",
                 "f32[1, 8, 8, 3], f32[4, 4, 2, 3], i64[4]=[1, 8, 8, 2] {padding = same_lower}",
                 "f32[0, 3, 3, 4], f32[3, 3, 2, 4], i64[4]=[0, 5, 5, 2]",
                 "f32[1, 14, 14, 32], f32[3, 3, 32, 32], i64[4]=[1, 14, 14, 32] {padding = same}",
                 "f64[1, 3, 3, 2], f64[3, 3, 2, 2], i64[4]=[1, 5, 5, 2]",
                 "f16[1, 3, 3, 4], f16[3, 3, 8, 4], i64[4]=[1, 5, 5, 8]"}},
      {.name = "conv2d_kernel_gradient",
       .summary =
           "gradient of conv2d by its kernel of the given shape, for the gradient dy of its result on the image x "
           "and with its attributes",
       .inputs = {{"x", Accepts::floats}, {"dy", Accepts::floats}, shape_operand("shape")},
       .attributes = conv2d_attributes(),
       .traits = kContraction,
       .precision = Precision::accumulate_f32,
       .infer = infer_conv2d_gradient<true>,
       .flops = [](const InferContext& context) { return conv2d_kernel_gradient_flops(context); },
       .gradient = conv2d_kernel_gradient_rule,
       .reference = conv2d<Wanted::kernel>,
       .oracle = {"conv2d_gradients(x, np.zeros(shape, x.dtype), dy, strides, dilations, padding, pads, groups)[1]"},
       .cases = {"f32[1, 5, 5, 1], f32[1, 3, 3, 1], i64[4]=[3, 3, 1, 1]",
                 "f32[2, 8, 9, 3], f32[2, 8, 9, 16], i64[4]=[3, 3, 3, 16] {padding = same}",
                 "f32[1, 9, 8, 4], f32[1, 5, 4, 8], i32[4]=[3, 3, 4, 8] {strides = [2, 2], padding = same}",
                 "f32[1, 7, 7, 3], f32[1, 7, 7, 33], i64[4]=[1, 1, 3, 33]",
                 "f32[1, 8, 7, 3], f32[1, 4, 4, 5], i64[4]=[1, 1, 3, 5] {strides = [2, 2], padding = same}",
                 "f32[1, 9, 9, 2], f32[1, 5, 6, 5], i64[4]=[3, 2, 2, 5] {dilations = [2, 3]}",
                 "f32[1, 6, 6, 4], f32[1, 6, 6, 8], i64[4]=[3, 3, 1, 8] {groups = 4, padding = same}",
                 "f32[2, 6, 5, 6], f32[2, 6, 5, 4], i64[4]=[3, 3, 3, 4] {groups = 2, padding = same}",
                 "f32[1, 6, 6, 2], f32[1, 3, 7, 3], i64[4]=[3, 3, 2, 3] {padding = explicit, pads = [1, 0, 2, 1], "
                 "strides = [2, 1]}",
                 "f32[1, 8, 8, 2], f32[1, 8, 8, 3], i64[4]=[4, 4, 2, 3] {padding = same_lower}",
                 "f32[0, 5, 5, 2], f32[0, 3, 3, 4], i64[4]=[3, 3, 2, 4]",
                 "f32[2, 14, 14, 32], f32[2, 14, 14, 32], i64[4]=[3, 3, 32, 32] {padding = same}",
                 "f64[1, 5, 5, 2], f64[1, 3, 3, 2], i64[4]=[3, 3, 2, 2]",
                 "f16[1, 5, 5, 8], f16[1, 3, 3, 4], i64[4]=[3, 3, 8, 4]"}},
  };
}

}  // namespace

std::span<const OpDef> linear_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> all = make_linear_rows(), gradients = conv2d_gradient_rows();
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  }();
  return rows;
}

}  // namespace cairn
