// Greyscale dilation of NHWC images by one structuring function per channel, and its gradients.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

std::vector<Dim> dilated_dims(InferContext& context) {
  number_type(context, 0);
  equal_types(context);
  check_windows(context, 2);
  const std::vector<Dim> x = dims_of_rank(context, 0, 4);
  std::vector<Dim> kernel(3);
  if (ranked(context, 1, 3)) kernel = context.shape(1).dims;
  std::vector<Dim> y = {x[0], Dim(), Dim(), same_size(context, x[3], kernel[2], "channels of image and kernel")};
  for (size_t i : {0, 1})
    if (kernel[i].known()) {
      if (kernel[i].size < 1) context.fail("the kernel is empty");
      y[1 + i] = slide(context, x[1 + i], window_spec(context.attr, kernel[i].size, i));
    }
  return y;
}

void infer_dilation(InferContext& context) { context.result(context.dtype(0), Shape(dilated_dims(context))); }

// Shape rule of the gradient by input `kInput`.
template <size_t kInput>
void infer_dilation_gradient(InferContext& context) {
  const std::vector<Dim> y = dilated_dims(context), dy = dims_of_rank(context, 2, 4);
  for (size_t i = 0; i < 4; ++i) same_size(context, y[i], dy[i], "sizes of dy and of the dilated image");
  context.result(context.dtype(0), context.shape(kInput));
}

double dilation_flops(const InferContext& context) {
  InferContext copy = context;
  const std::vector<Dim> y = dilated_dims(copy);
  const Shape& kernel = context.shape(1);
  if (!kernel.known()) return 0;
  return 2 * static_cast<double>(known_count(Shape(y)).value_or(0)) *
         static_cast<double>(kernel.dims[0].size * kernel.dims[1].size);
}

/// Calls visit(result index, largest sum, its index in the image, its index in the kernel) for every window, with the
/// first of equal sums; the indices are -1 when no element of the window is inside the image or all are NaN.
template <class T, class Visit>
void for_each_largest(const KernelContext& context, const Dims& out, Visit&& visit) {
  using C = Compute<T>;
  const Tensor &x = context.input(0), &kernel = context.input(1);
  const Dims &in = x.dims(), &size = kernel.dims();
  const WindowSpec rows = window_spec(context.attr, size[0], 0), columns = window_spec(context.attr, size[1], 1);
  const int64_t top = rows.padding_before(in[1], out[1]), left = columns.padding_before(in[2], out[2]);
  for (const int64_t n : turns(count_of(out))) {
    const int64_t channel = n % out[3], column = n / out[3] % out[2], row = n / out[3] / out[2] % out[1],
                  image = n / out[3] / out[2] / out[1];
    C most = std::numeric_limits<C>::lowest();
    int64_t of_image = -1, of_kernel = -1;
    for (const int64_t i : turns(size[0])) {
      const int64_t h = row * rows.stride - top + i * rows.dilation;
      if (h < 0 || h >= in[1]) continue;
      for (const int64_t j : turns(size[1])) {
        const int64_t w = column * columns.stride - left + j * columns.dilation;
        if (w < 0 || w >= in[2]) continue;
        const int64_t at = ((image * in[1] + h) * in[2] + w) * in[3] + channel,
                      tap = (i * size[1] + j) * size[2] + channel;
        const C sum = static_cast<C>(data<T>(x)[at]) + static_cast<C>(data<T>(kernel)[tap]);
        if (sum > most) most = sum, of_image = at, of_kernel = tap;
      }
    }
    visit(n, most, of_image, of_kernel);
  }
}

void dilation2d(KernelContext& context) {
  allocate_results(context);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    for_each_largest<T>(context, context.output(0).dims(),
                        [&](int64_t n, auto most, int64_t, int64_t) { data<T>(context.output(0))[n] = T(most); });
  });
}

template <size_t kInput>
void dilation2d_gradient(KernelContext& context) {
  allocate_results(context);
  const Tensor& dy = context.input(2);
  std::vector<double> sums(static_cast<size_t>(context.output(0).count()));
  with_floats(dy.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for_each_largest<T>(context, dy.dims(), [&](int64_t n, auto, int64_t of_image, int64_t of_kernel) {
      const int64_t at = kInput == 0 ? of_image : of_kernel;
      if (at >= 0) sums[static_cast<size_t>(at)] += static_cast<double>(data<T>(dy)[n]);
    });
    for (size_t i = 0; i < sums.size(); ++i) data<T>(context.output(0))[i] = T(static_cast<Compute<T>>(sums[i]));
  });
}

void infer_dilation_places(InferContext& context) {
  const Shape shape(dilated_dims(context));
  for (int i = 0; i < 2; ++i) context.result(kI64, shape);
}

void dilation2d_places(KernelContext& context) {
  allocate_results(context);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    for_each_largest<decltype(tag)>(context, context.output(0).dims(),
                                    [&](int64_t n, auto, int64_t of_image, int64_t of_kernel) {
                                      data<int64_t>(context.output(0))[n] = of_image;
                                      data<int64_t>(context.output(1))[n] = of_kernel;
                                    });
  });
}

// An op of this family applied to x, the kernel and dy, with the attributes of the node.
Var dilated(const GradientContext& g, const char* op, size_t like) {
  const Type type = Type::tensor(g.dy().dtype(), g.x(like).shape());
  const std::vector<Value*> operands = {g.x(0).value, g.x(1).value, g.dy().value};
  return {g.b, g.b.add_node(op_named(op), operands, g.node().attributes, {}, {type})->result()};
}
void dilation2d_rule(GradientContext& g) {
  if (g.wanted(0)) g.set(0, dilated(g, "dilation2d_input_gradient", 0));
  if (g.wanted(1)) g.set(1, dilated(g, "dilation2d_kernel_gradient", 1));
}
// By dy: the elements at the positions of the windows' largest sums. By x and the kernel: zero, since the positions are
// piecewise constant.
template <size_t kInput>
void dilation2d_gradient_rule(GradientContext& g) {
  if (!g.wanted(2)) return;
  const Node* found = g.b.add_node(op_named("dilation2d_places"), {g.x(0).value, g.x(1).value}, g.node().attributes);
  const Var places = {g.b, found->result(kInput)};
  g.set(2, gather_rows_or_zeros(flattened(g.dy()), places));
}

OpDef dilation_row(const char* name, const char* summary, void (*infer)(InferContext&),
                   void (*reference)(KernelContext&), void (*gradient)(GradientContext&), Oracle oracle,
                   std::vector<const char*> cases) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::floats}, {"kernel", Accepts::floats}},
          .attributes = {integers("strides", {1, 1}), integers("dilations", {1, 1}),
                         word("padding", "valid", {"valid", "same"}), integers("pads", {0, 0, 0, 0})},
          .traits = kReduction,
          .precision = Precision::accumulate_f32,
          .infer = infer,
          .flops = dilation_flops,
          .gradient = gradient,
          .reference = reference,
          .oracle = oracle,
          .cases = std::move(cases)};
}

std::vector<OpDef> make_morphology_rows() {
  OpDef forward = dilation_row(
      "dilation2d",
      "largest sum of a pixel and the kernel's element over it, for each window and channel; NaN never wins, and a "
      "window "
      "without a number gives the least one",
      infer_dilation, dilation2d, dilation2d_rule,
      {"tf.nn.dilation2d(x, kernel, [1, *strides, 1], padding.upper(), 'NHWC', [1, *dilations, 1])", kTensorFlow},
      {"f32[1, 4, 4, 1], f32[2, 2, 1]", "f32[2, 7, 8, 3], f32[3, 2, 3] {strides = [2, 1], padding = same}",
       "f32[1, 9, 9, 2], f32[2, 3, 2] {dilations = [2, 3], padding = same}", "f64[1, 5, 5, 2], f64[3, 3, 2]"});
  const std::vector<const char*> cases = {
      "f32[1, 4, 4, 1], f32[2, 2, 1], f32[1, 3, 3, 1]",
      "f32[2, 7, 8, 3], f32[3, 2, 3], f32[2, 4, 8, 3] {strides = [2, 1], padding = same}",
      "f32[1, 9, 9, 2], f32[2, 3, 2], f32[1, 9, 9, 2] {dilations = [2, 3], padding = same}"};
  OpDef by_image =
      dilation_row("dilation2d_input_gradient",
                   "gradient of dilation2d by its image: each element of dy goes to the first pixel that won",
                   infer_dilation_gradient<0>, dilation2d_gradient<0>, dilation2d_gradient_rule<0>,
                   {"tf.raw_ops.Dilation2DBackpropInput(input=x, filter=kernel, out_backprop=dy, strides=[1, *strides, "
                    "1], rates=[1, "
                    "*dilations, 1], padding=padding.upper())",
                    kTensorFlow},
                   cases);
  OpDef by_kernel =
      dilation_row("dilation2d_kernel_gradient",
                   "gradient of dilation2d by its kernel: each element of dy goes to the first tap that won",
                   infer_dilation_gradient<1>, dilation2d_gradient<1>, dilation2d_gradient_rule<1>,
                   {"tf.raw_ops.Dilation2DBackpropFilter(input=x, filter=kernel, out_backprop=dy, "
                    "strides=[1, *strides, 1], rates=[1, *dilations, 1], padding=padding.upper())",
                    kTensorFlow},
                   cases);
  for (OpDef* row : {&by_image, &by_kernel}) row->inputs.push_back({"dy", Accepts::floats});
  OpDef places = dilation_row(
      "dilation2d_places",
      "for each window of dilation2d the places of the first largest sum in the image and in the kernel, counted in "
      "row-major order; -1 of a window without a number",
      infer_dilation_places, dilation2d_places, nullptr, {"dilation2d_places(x, kernel, strides, dilations, padding)"},
      forward.cases);
  places.results = {"of_image", "of_kernel"};
  places.precision = Precision::exact;
  return {forward, by_image, by_kernel, places};
}

}  // namespace

std::span<const OpDef> morphology_ops() {
  static const std::vector<OpDef> rows = make_morphology_rows();
  return rows;
}

}  // namespace cairn
