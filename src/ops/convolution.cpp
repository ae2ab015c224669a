// Convolutions of images (NHWC) and volumes (NDHWC), with their gradients. Sums are kept in f64 and rounded once.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/quantisation.h"
#include "ops/rows.h"

namespace cairn {

namespace {

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

// Dims of the convolution of images or volumes with a kernel.
std::vector<Dim> conv_dims(const InferContext& context, const std::vector<Dim>& x, const std::vector<Dim>& kernel) {
  const size_t dims = x.size() - 2;
  check_windows(context, dims);
  check_channels(context, x.back(), kernel[dims], kernel[dims + 1]);
  std::vector<Dim> y(x.size());
  y.front() = x.front(), y.back() = kernel.back();
  for (size_t i = 0; i < dims; ++i)
    if (kernel[i].known()) y[1 + i] = slide(context, x[1 + i], window_spec(context.attr, kernel[i].size, i));
  return y;
}

template <size_t kDims>
void infer_conv(InferContext& context) {
  number_type(context, 0);
  DType dtype = equal_types(context);
  context.result(dtype,
                 Shape(conv_dims(context, dims_of_rank(context, 0, kDims + 2), dims_of_rank(context, 1, kDims + 2))));
}

void infer_conv_integer(InferContext& context) {
  for (size_t i : {0, 1}) {
    if (context.dtype(i).bits != 8) context.fail("{} elements are not supported", to_string(context.dtype(i)));
    check_zero_point(context, i, context.shape(i), i + 2);
  }
  context.result(kI32, Shape(conv_dims(context, dims_of_rank(context, 0, 4), dims_of_rank(context, 1, 4))));
}

// Shape rule of a convolution gradient: operand 2 gives the shape of the result, and dy may tell more of its dims.
template <size_t kDims, bool kOfKernel>
void infer_conv_gradient(InferContext& context) {
  constexpr size_t kRank = kDims + 2, kKept = kOfKernel ? kRank - 1 : 0;
  const DType dtype = number_type(context, 0);
  if (context.dtype(1) != dtype)
    context.fail("inputs must have one element type, found {} and {}", to_string(dtype), to_string(context.dtype(1)));
  Shape shape = shape_operand(context, 2);
  if (!shape.ranked) shape = Shape(std::vector<Dim>(kRank));
  if (shape.rank() != kRank) context.fail("shape must have {} sizes, found {}", kRank, shape.rank());
  const std::vector<Dim> dy = dims_of_rank(context, kOfKernel ? 1 : 0, kRank);
  shape.dims[kKept] = same_size(context, shape.dims[kKept], dy[kKept], kOfKernel ? "output channels" : "batch sizes");
  const std::vector<Dim> other = dims_of_rank(context, kOfKernel ? 0 : 1, kRank);
  const std::vector<Dim> y = kOfKernel ? conv_dims(context, other, shape.dims) : conv_dims(context, shape.dims, other);
  for (size_t i = 0; i < kRank; ++i) same_size(context, y[i], dy[i], "sizes of dy and of the convolution");
  context.result(dtype, std::move(shape));
}

// The number of products is that of the forward convolution: elements of dy times taps times channels of a group.
double products_of(const Shape& y, const Shape& kernel) {
  if (!y.known() || !kernel.known()) return 0;
  auto products = static_cast<double>(known_count(y).value_or(0));
  for (size_t i = 0; i + 1 < kernel.rank(); ++i) products *= static_cast<double>(kernel.dims[i].size);
  return products;
}
double conv_flops(InferContext context) {
  context.op().infer(context);
  return 2 * products_of(context.results()[0].shape, context.shape(1));
}
double input_gradient_flops(const InferContext& context) { return 2 * products_of(context.shape(0), context.shape(1)); }
template <size_t kDims>
double kernel_gradient_flops(InferContext context) {
  infer_conv_gradient<kDims, true>(context);
  return 2 * products_of(context.shape(1), context.results()[0].shape);
}

// Dims of images as those of volumes of one slice; `depth`: where that dim stands.
Dims with_depth(const Dims& dims, int64_t depth) {
  Dims all = dims;
  if (all.size() == 4) all.insert(all.begin() + depth, 1);
  return all;
}

// Calls visit(element of y, element of x, element of the kernel) for every product in the convolution y of x with a
// kernel.
template <class Visit>
void for_each_product(const AttributeView& attr, const Dims& x, const Dims& kernel, const Dims& y, Visit&& visit) {
  const Dims in = with_depth(x, 1), k = with_depth(kernel, 0), out = with_depth(y, 1);
  const int64_t groups = attr.integer("groups"), per_group = out[4] / groups;
  WindowSpec windows[3];
  int64_t before[3] = {};
  for (size_t axis = 5 - x.size(); axis < 3; ++axis) {
    windows[axis] = window_spec(attr, k[axis], axis + x.size() - 5);
    before[axis] = windows[axis].padding_before(in[axis + 1], out[axis + 1]);
  }
  const auto inside = [&](size_t axis, int64_t at, int64_t tap) -> int64_t {
    const int64_t place = at * windows[axis].stride + tap * windows[axis].dilation - before[axis];
    return place < in[axis + 1] ? place : -1;
  };
  walk<1>(out, {strides_of(out)}, [&](int64_t n, auto&) {
    const int64_t o = n % out[4], column = n / out[4] % out[3], row = n / out[4] / out[3] % out[2];
    const int64_t slice = n / out[4] / out[3] / out[2] % out[1], volume = n / out[4] / out[3] / out[2] / out[1];
    const int64_t taps = k[3] > 0 ? k[0] * k[1] * k[2] : 0;
    for (const int64_t tap : turns(taps, k[3])) {
      const int64_t d = inside(0, slice, tap / (k[1] * k[2])), h = inside(1, row, tap / k[2] % k[1]);
      const int64_t w = inside(2, column, tap % k[2]);
      if (d < 0 || h < 0 || w < 0) continue;
      const int64_t pixel = (((volume * in[1] + d) * in[2] + h) * in[3] + w) * in[4] + o / per_group * k[3];
      const int64_t weight = tap * k[3] * k[4] + o;
      for (int64_t c = 0; c < k[3]; ++c) visit(n, pixel + c, weight + c * k[4]);
    }
  });
}

enum class Wanted : uint8_t { y, x, kernel };

// Computes one of a convolution's three tensors (result, images, kernel) as sums of products of the other two.
template <Wanted kWanted>
void convolve(KernelContext& context) {
  allocate_results(context);
  const Tensor &a = context.input(0), &b = context.input(1);
  Tensor& result = context.output(0);
  std::vector<double> sums(static_cast<size_t>(result.count()));
  with_floats(result.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T *as = data<T>(a), *bs = data<T>(b);
    const auto add = [&](int64_t to, int64_t i, int64_t j) {
      sums[static_cast<size_t>(to)] += static_cast<double>(as[i]) * static_cast<double>(bs[j]);
    };
    if constexpr (kWanted == Wanted::y)
      for_each_product(context.attr, a.dims(), b.dims(), result.dims(),
                       [&](int64_t y, int64_t x, int64_t k) { add(y, x, k); });
    else if constexpr (kWanted == Wanted::x)
      for_each_product(context.attr, result.dims(), b.dims(), a.dims(),
                       [&](int64_t y, int64_t x, int64_t k) { add(x, y, k); });
    else
      for_each_product(context.attr, a.dims(), result.dims(), b.dims(),
                       [&](int64_t y, int64_t x, int64_t k) { add(k, x, y); });
    for (size_t i = 0; i < sums.size(); ++i) data<T>(result)[i] = T(static_cast<Compute<T>>(sums[i]));
  });
}

void convolve_integers(KernelContext& context) {
  allocate_results(context);
  const Tensor x = centred(context.input(0), context.input(2)), kernel = centred(context.input(1), context.input(3));
  auto* sums = data<int32_t>(context.output(0));
  std::fill_n(sums, context.output(0).count(), 0);
  for_each_product(
      context.attr, x.dims(), kernel.dims(), context.output(0).dims(), [&](int64_t y, int64_t i, int64_t k) {
        const int32_t product = wrapped(data<int32_t>(x)[i], data<int32_t>(kernel)[k], std::multiplies<>());
        sums[y] = wrapped(sums[y], product, std::plus<>());
      });
}

// The three ops over images or volumes.
struct Names {
  const char *forward, *input_gradient, *kernel_gradient;
};
template <size_t kDims>
constexpr Names kNames = kDims == 2 ? Names{"conv2d", "conv2d_input_gradient", "conv2d_kernel_gradient"}
                                    : Names{"conv3d", "conv3d_input_gradient", "conv3d_kernel_gradient"};

// An op with the attributes of the node; gradient ops take the result's shape as a further operand.
Var convolution(const GradientContext& g, const char* op, Var a, Var b) {
  return {g.b, g.b.add(op, {a.value, b.value}, g.node().attributes)};
}
Var convolution_gradient(const GradientContext& g, const char* op, Var a, Var b, Var like) {
  const Type type = Type::tensor(a.dtype(), like.shape());
  return {
      g.b,
      g.b.add_node(op_named(op), {a.value, b.value, dims_of(like).value}, g.node().attributes, {}, {type})->result()};
}

template <size_t kDims>
void conv_rule(GradientContext& g) {
  if (g.wanted(0)) g.set(0, convolution_gradient(g, kNames<kDims>.input_gradient, g.dy(), g.x(1), g.x(0)));
  if (g.wanted(1)) g.set(1, convolution_gradient(g, kNames<kDims>.kernel_gradient, g.x(0), g.dy(), g.x(1)));
}
// A convolution's result is linear in x and in the kernel, so every gradient is again a convolution op.
template <size_t kDims>
void input_gradient_rule(GradientContext& g) {
  if (g.wanted(0)) g.set(0, convolution(g, kNames<kDims>.forward, g.dy(), g.x(1)));
  if (g.wanted(1)) g.set(1, convolution_gradient(g, kNames<kDims>.kernel_gradient, g.dy(), g.x(0), g.x(1)));
}
template <size_t kDims>
void kernel_gradient_rule(GradientContext& g) {
  if (g.wanted(0)) g.set(0, convolution_gradient(g, kNames<kDims>.input_gradient, g.x(1), g.dy(), g.x(0)));
  if (g.wanted(1)) g.set(1, convolution(g, kNames<kDims>.forward, g.x(0), g.dy()));
}

std::vector<AttrDef> conv_attributes(size_t dims) {
  const std::vector<int64_t> ones(dims, 1);
  return {integers("strides", ones), integers("dilations", ones),
          word("padding", "valid", {"valid", "same", "same_lower", "explicit"}),
          integers("pads", std::vector<int64_t>(2 * dims, 0)), integer("groups", 1)};
}

/// What the rows over images and over volumes do not share.
struct Texts {
  const char* forward;
  const char* input_gradient;
  const char* kernel_gradient;
  Oracle oracle, input_oracle, kernel_oracle;
  std::vector<const char*> cases, input_cases, kernel_cases;
};

template <size_t kDims>
void add_rows(Texts texts, std::vector<OpDef>& rows) {
  rows.push_back({.name = kNames<kDims>.forward,
                  .summary = texts.forward,
                  .inputs = {{"x", Accepts::floats}, {"kernel", Accepts::floats}},
                  .attributes = conv_attributes(kDims),
                  .traits = kContraction,
                  .precision = Precision::accumulate_f32,
                  .infer = infer_conv<kDims>,
                  .flops = [](const InferContext& context) { return conv_flops(context); },
                  .gradient = conv_rule<kDims>,
                  .reference = convolve<Wanted::y>,
                  .oracle = texts.oracle,
                  .cases = std::move(texts.cases)});
  rows.push_back({.name = kNames<kDims>.input_gradient,
                  .summary = texts.input_gradient,
                  .inputs = {{"dy", Accepts::floats}, {"kernel", Accepts::floats}, shape_operand("shape")},
                  .attributes = conv_attributes(kDims),
                  .traits = kContraction,
                  .precision = Precision::accumulate_f32,
                  .infer = infer_conv_gradient<kDims, false>,
                  .flops = input_gradient_flops,
                  .gradient = input_gradient_rule<kDims>,
                  .reference = convolve<Wanted::x>,
                  .oracle = texts.input_oracle,
                  .cases = std::move(texts.input_cases)});
  rows.push_back({.name = kNames<kDims>.kernel_gradient,
                  .summary = texts.kernel_gradient,
                  .inputs = {{"x", Accepts::floats}, {"dy", Accepts::floats}, shape_operand("shape")},
                  .attributes = conv_attributes(kDims),
                  .traits = kContraction,
                  .precision = Precision::accumulate_f32,
                  .infer = infer_conv_gradient<kDims, true>,
                  .flops = [](const InferContext& context) { return kernel_gradient_flops<kDims>(context); },
                  .gradient = kernel_gradient_rule<kDims>,
                  .reference = convolve<Wanted::kernel>,
                  .oracle = texts.kernel_oracle,
                  .cases = std::move(texts.kernel_cases)});
}

OpDef integer_row() {
  return {
      .name = "conv2d_integer",
      .summary =
          "conv2d of (x - x_zero) and (kernel - kernel_zero), each of u8 or i8, with sums of i32, which wrap; zero "
          "points broadcast to their operand; outside the image counts as x_zero",
      .inputs = {{"x", Accepts::integers},
                 {"kernel", Accepts::integers},
                 {"x_zero", Accepts::integers},
                 {"kernel_zero", Accepts::integers}},
      .attributes = conv_attributes(2),
      .traits = kContraction,
      .infer = infer_conv_integer,
      .flops = [](const InferContext& context) { return conv_flops(context); },
      .reference = convolve_integers,
      .oracle = {"conv2d(x.astype(np.float64) - x_zero, kernel.astype(np.float64) - kernel_zero, strides, dilations, "
                 "padding, pads, groups).astype(np.int32)",
                 kTensorFlow},
      .cases = {
          "u8[1, 5, 5, 1], i8[3, 3, 1, 1], u8[]=[0], i8[]=[0]",
          "u8[2, 8, 9, 3], i8[3, 3, 3, 16], u8[]=[121], i8[]=[0] {padding = same}",
          "i8[1, 9, 8, 4], i8[3, 3, 4, 8], i8[]=[-5], i8[]=[0] {strides = [2, 2], padding = same}",
          "u8[1, 7, 7, 3], i8[1, 1, 3, 33], u8[]=[1], i8[]=[0]",
          "u8[1, 9, 9, 2], u8[3, 2, 2, 5], u8[]=[3], u8[]=[128] {dilations = [2, 3]}",
          "u8[1, 6, 6, 40], i8[3, 3, 1, 40], u8[]=[77], i8[]=[0] {groups = 40, padding = same}",
          "u8[1, 9, 6, 4], i8[3, 3, 1, 4], u8[]=[5], i8[]=[0] {groups = 4, padding = same, strides = [2, 2]}",
          "u8[2, 6, 5, 6], i8[3, 3, 3, 4], u8[]=[3], i8[]=[0] {groups = 2, padding = same}",
          "u8[1, 6, 6, 8], i8[3, 3, 8, 3], u8[]=[200], i8[3]=[0, 1, -3] {padding = explicit, pads = [1, 0, 2, 1], "
          "strides = [2, 1]}",
          "u8[0, 5, 5, 2], i8[3, 3, 2, 4], u8[]=[0], i8[]=[0]",
          "u8[1, 14, 14, 32], i8[3, 3, 32, 80], u8[]=[114], i8[]=[0] {padding = same}",
          "u8[1, 33, 31, 3], i8[7, 7, 3, 20], u8[]=[114], i8[]=[0] {padding = same, strides = [2, 2]}"}};
}

Texts image_texts() {
  return {
      .forward =
          "2-D convolution (correlation) of NHWC images with a kernel of height, width, channels a group, "
          "output channels; outside "
          "the image is 0; same pads evenly, an odd rest after (same_lower: before); pads are top, bottom, "
          "left, right",
      .input_gradient =
          "gradient of conv2d by its image of the given shape (NHWC), for the gradient dy of its result and with "
          "its attributes; also the transposed convolution of dy",
      .kernel_gradient =
          "gradient of conv2d by its kernel of the given shape, for the gradient dy of its result on the image x "
          "and with its attributes",
      .oracle = {"conv2d(x, kernel, strides, dilations, padding, pads, groups)", kTensorFlow},
      .input_oracle = {"conv_gradients(np.zeros(shape, dy.dtype), kernel, dy, strides, dilations, padding, pads, "
                       "groups)[0]"},
      .kernel_oracle =
          {"conv_gradients(x, np.zeros(shape, x.dtype), dy, strides, dilations, padding, pads, groups)[1]"},
      .cases = {"f32[1, 5, 5, 1], f32[3, 3, 1, 1]", "f32[2, 8, 9, 3], f32[3, 3, 3, 16] {padding = same}",
                "f32[1, 9, 8, 4], f32[3, 3, 4, 8] {strides = [2, 2], padding = same}",
                "f32[1, 7, 7, 3], f32[1, 1, 3, 33]", "f32[1, 9, 9, 2], f32[3, 2, 2, 5] {dilations = [2, 3]}",
                "f32[1, 6, 6, 4], f32[3, 3, 1, 4] {groups = 4, padding = same}",
                "f32[1, 6, 6, 4], f32[3, 3, 1, 8] {groups = 4}",
                "f32[2, 6, 5, 6], f32[3, 3, 3, 4] {groups = 2, padding = same}",
                "f32[1, 6, 6, 2], f32[3, 3, 2, 3] {padding = explicit, pads = [1, 0, 2, 1], strides = [2, 1]}",
                "f32[1, 8, 8, 2], f32[4, 4, 2, 3] {padding = same_lower}", "f32[0, 5, 5, 2], f32[3, 3, 2, 4]",
                "f32[1, 2, 2, 1], f32[3, 3, 1, 2]", "f32[1, 14, 14, 32], f32[3, 3, 32, 32] {padding = same}",
                "f64[1, 5, 5, 2], f64[3, 3, 2, 2]", "f16[1, 5, 5, 8], f16[3, 3, 8, 4]"},
      .input_cases = {"f32[1, 3, 3, 1], f32[3, 3, 1, 1], i64[4]=[1, 5, 5, 1]",
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
                      "f16[1, 3, 3, 4], f16[3, 3, 8, 4], i64[4]=[1, 5, 5, 8]"},
      .kernel_cases = {
          "f32[1, 5, 5, 1], f32[1, 3, 3, 1], i64[4]=[3, 3, 1, 1]",
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
          "f16[1, 5, 5, 8], f16[1, 3, 3, 4], i64[4]=[3, 3, 8, 4]"}};
}

Texts volume_texts() {
  return {
      .forward =
          "3-D convolution (correlation) of NDHWC volumes with a kernel of depth, height, width, channels a "
          "group, output channels; outside the volume is 0; same pads evenly, an odd rest after (same_lower: "
          "before); pads are front, back, top, bottom, left, right",
      .input_gradient =
          "gradient of conv3d by its volume of the given shape (NDHWC), for the gradient dy of its result "
          "and with its attributes; also the transposed convolution of dy",
      .kernel_gradient =
          "gradient of conv3d by its kernel of the given shape, for the gradient dy of its result on the "
          "volume x and with its attributes",
      .oracle = {"convolved(x, kernel, strides, dilations, padding, pads, groups)"},
      .input_oracle = {"conv_gradients(np.zeros(shape, dy.dtype), kernel, dy, strides, dilations, padding, pads, "
                       "groups)[0]"},
      .kernel_oracle =
          {"conv_gradients(x, np.zeros(shape, x.dtype), dy, strides, dilations, padding, pads, groups)[1]"},
      .cases =
          {"f32[1, 3, 4, 5, 1], f32[2, 3, 3, 1, 1]", "f32[2, 4, 5, 6, 3], f32[3, 3, 3, 3, 16] {padding = same}",
           "f32[1, 5, 7, 6, 4], f32[3, 3, 3, 4, 8] {strides = [2, 2, 2], padding = same}",
           "f32[1, 4, 5, 5, 3], f32[1, 1, 1, 3, 33]", "f32[2, 6, 5, 4, 3], f32[3, 1, 1, 3, 5] {padding = same}",
           "f32[2, 3, 6, 5, 3], f32[1, 3, 3, 3, 5] {padding = same}",
           "f32[1, 7, 6, 5, 2], f32[2, 3, 2, 2, 5] {dilations = [3, 1, 2]}",
           "f32[1, 4, 5, 5, 4], f32[3, 3, 3, 1, 4] {groups = 4, padding = same}",
           "f32[2, 3, 4, 5, 6], f32[2, 2, 2, 3, 4] {groups = 2, padding = same_lower}",
           "f32[1, 3, 5, 6, 2], f32[3, 2, 3, 2, 3] {padding = explicit, pads = [1, 2, 0, 1, 2, 0], strides = [2, 1, "
           "2]}",
           "f32[0, 3, 4, 4, 2], f32[2, 2, 2, 2, 3]", "f64[1, 3, 4, 4, 2], f64[2, 2, 2, 2, 2]",
           "f16[1, 3, 4, 4, 8], f16[2, 2, 2, 8, 4]"},
      .input_cases = {"f32[1, 2, 2, 3, 1], f32[2, 3, 3, 1, 1], i64[5]=[1, 3, 4, 5, 1]",
                      "f32[2, 4, 5, 6, 16], f32[3, 3, 3, 3, 16], i64[5]=[2, 4, 5, 6, 3] {padding = same}",
                      "f32[1, 3, 4, 3, 8], f32[3, 3, 3, 4, 8], i32[5]=[1, 5, 7, 6, 4] {strides = [2, 2, 2], padding = "
                      "same}",
                      "f32[1, 2, 5, 5, 3], f32[1, 1, 1, 3, 3], i64[5]=[1, 4, 5, 5, 3] {strides = [2, 1, 1], padding = "
                      "same}",
                      "f32[2, 6, 5, 4, 5], f32[3, 1, 1, 3, 5], i64[5]=[2, 6, 5, 4, 3] {padding = same}",
                      "f32[1, 4, 4, 3, 5], f32[2, 3, 2, 2, 5], i64[5]=[1, 7, 6, 5, 2] {dilations = [3, 1, 2]}",
                      "f32[1, 4, 5, 5, 4], f32[3, 3, 3, 1, 4], i64[5]=[1, 4, 5, 5, 4] {groups = 4, padding = same}",
                      "f32[1, 2, 5, 3, 3], f32[3, 2, 3, 2, 3], i64[5]=[1, 3, 5, 6, 2] {padding = explicit, pads = [1, "
                      "2, 0, 1, 2, 0], strides = [2, 1, 2]}",
                      "f32[0, 2, 3, 3, 3], f32[2, 2, 2, 2, 3], i64[5]=[0, 3, 4, 4, 2]",
                      "f64[1, 2, 3, 3, 2], f64[2, 2, 2, 2, 2], i64[5]=[1, 3, 4, 4, 2]",
                      "f16[1, 2, 3, 3, 4], f16[2, 2, 2, 8, 4], i64[5]=[1, 3, 4, 4, 8]"},
      .kernel_cases = {"f32[1, 3, 4, 5, 1], f32[1, 2, 2, 3, 1], i64[5]=[2, 3, 3, 1, 1]",
                       "f32[2, 4, 5, 6, 3], f32[2, 4, 5, 6, 16], i64[5]=[3, 3, 3, 3, 16] {padding = same}",
                       "f32[1, 5, 7, 6, 4], f32[1, 3, 4, 3, 8], i32[5]=[3, 3, 3, 4, 8] {strides = [2, 2, 2], padding = "
                       "same}",
                       "f32[1, 4, 5, 5, 3], f32[1, 2, 5, 5, 3], i64[5]=[1, 1, 1, 3, 3] {strides = [2, 1, 1], padding = "
                       "same}",
                       "f32[2, 6, 5, 4, 3], f32[2, 6, 5, 4, 5], i64[5]=[3, 1, 1, 3, 5] {padding = same}",
                       "f32[1, 7, 6, 5, 2], f32[1, 4, 4, 3, 5], i64[5]=[2, 3, 2, 2, 5] {dilations = [3, 1, 2]}",
                       "f32[1, 4, 5, 5, 4], f32[1, 4, 5, 5, 4], i64[5]=[3, 3, 3, 1, 4] {groups = 4, padding = same}",
                       "f32[1, 3, 5, 6, 2], f32[1, 2, 5, 3, 3], i64[5]=[3, 2, 3, 2, 3] {padding = explicit, pads = [1, "
                       "2, 0, 1, 2, 0], strides = [2, 1, 2]}",
                       "f32[2, 3, 4, 4, 40], f32[2, 3, 4, 4, 20], i64[5]=[3, 3, 3, 40, 20] {padding = same}",
                       "f32[0, 3, 4, 4, 2], f32[0, 2, 3, 3, 3], i64[5]=[2, 2, 2, 2, 3]",
                       "f64[1, 3, 4, 4, 2], f64[1, 2, 3, 3, 2], i64[5]=[2, 2, 2, 2, 2]",
                       "f16[1, 3, 4, 4, 8], f16[1, 2, 3, 3, 4], i64[5]=[2, 2, 2, 8, 4]"}};
}

}  // namespace

std::span<const OpDef> convolution_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> all;
    add_rows<2>(image_texts(), all);
    add_rows<3>(volume_texts(), all);
    all.push_back(integer_row());
    return all;
  }();
  return rows;
}

}  // namespace cairn
