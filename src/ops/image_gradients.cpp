// The gradient of resampling, and gradient rules of ops on images.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/image.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void infer_resize_gradient(InferContext& context) {
  const DType dtype = number_type(context, 0);
  const std::vector<Dim> dy = four_dims(context, 0);
  Shape shape = shape_operand(context, 1);
  if (!shape.ranked) shape = Shape(std::vector<Dim>(4));
  if (shape.rank() != 4) context.fail("shape must have 4 sizes, found {}", shape.rank());
  for (size_t i : {0, 3}) shape.dims[i] = same_size(context, shape.dims[i], dy[i], "sizes of dy and of the image");
  for (size_t i : {1, 2})
    if (shape.dims[i].size == 0 && dy[i].size > 0) context.fail("an empty image cannot be resized");
  context.result(dtype, std::move(shape));
}

// Adds every pixel of dy, times the weights, to the source pixels from which it was computed.
void resample_back(KernelContext& context) {
  allocate_results(context);
  const Tensor& dy = context.input(0);
  Tensor& dx = context.output(0);
  const Dims &in = dx.dims(), &out = dy.dims();
  std::vector<double> sums(static_cast<size_t>(dx.count()));
  with_floats(dy.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (dy.count() > 0) {
      const Sampling rows = resize_sampling(context.attr, in[1], out[1]),
                     columns = resize_sampling(context.attr, in[2], out[2]);
      const T* from = data<T>(dy);
      for (int64_t n = 0; n < out[0]; ++n)
        for (size_t h = 0; h < rows.taps.size(); ++h)
          for (size_t w = 0; w < columns.taps.size(); ++w, from += out[3])
            for (size_t i = 0; i < rows.count; ++i)
              for (size_t j = 0; j < columns.count; ++j) {
                const double weight =
                    static_cast<double>(rows.weights[h][i]) * static_cast<double>(columns.weights[w][j]);
                double* to =
                    &sums[static_cast<size_t>(((n * in[1] + rows.taps[h][i]) * in[2] + columns.taps[w][j]) * in[3])];
                for (int64_t c = 0; c < out[3]; ++c) to[c] += weight * static_cast<double>(from[c]);
              }
    }
    for (size_t i = 0; i < sums.size(); ++i) data<T>(dx)[i] = T(static_cast<Compute<T>>(sums[i]));
  });
}

// The weights of one axis as a matrix [resized, original].
Value* weights_of_axis(Builder& b, const AttributeView& attr, int64_t in, int64_t out, DType dtype) {
  const Sampling sampling = resize_sampling(attr, in, out);
  std::vector<double> weights(static_cast<size_t>(in * out));
  for (size_t i = 0; i < sampling.taps.size(); ++i)
    for (size_t k = 0; k < sampling.count; ++k)
      weights[i * static_cast<size_t>(in) + static_cast<size_t>(sampling.taps[i][k])] +=
          static_cast<double>(sampling.weights[i][k]);
  return cast(Var{b, b.constant(Tensor::of<double>(kF64, {out, in}, weights))}, dtype).value;
}

// Resampling is linear along each axis, so its gradient is a product with the transposed weights along both.
std::vector<Value*> resize_gradient_by_products(Builder& b, const Node& node) {
  const Value* dy = node.inputs[0];
  CHECK(node.result()->type.is_static() && dy->type.is_static(), "sizes of {} are not known", to_string(dy->type));
  const AttributeView attr = node.attr();
  const Dims in = node.result()->type.shape.sizes(), out = dy->type.shape.sizes();
  Value* flat = b.add("reshape", {node.inputs[0], b.ints({out[0], out[1], out[2] * out[3]})});
  Value* tall = weights_of_axis(b, attr, in[1], out[1], dy->type.dtype);
  Value* by_rows = b.add("matmul", {tall, flat}, {{"transpose_a", true}});
  Value* rows = b.add("reshape", {by_rows, b.ints({out[0], in[1], out[2], out[3]})});
  Value* wide = weights_of_axis(b, attr, in[2], out[2], dy->type.dtype);
  return {b.add("matmul", {wide, rows}, {{"transpose_a", true}})};
}

void resize2d_gradient_rule(GradientContext& g) {
  const Sizes sizes = sizes_of(g, g.x(0));
  g.set(0, g.dy().apply("resize2d", {as_vector(g.b, {sizes[1], sizes[2]})}, g.node().attributes));
}

}  // namespace

void resize2d_rule(GradientContext& g) {
  const Type type = Type::tensor(g.dy().dtype(), g.x(0).shape());
  g.set(0, {g.b, g.b.add_node(op_named("resize2d_gradient"), {g.dy().value, dims_of(g.x(0)).value}, g.node().attributes,
                              {}, {type})
                     ->result()});
}

namespace {

// One axis of a crop: the image coordinate of each pixel of each box.
struct CropAxis {
  CropAxis(Var low, Var high, const Size& in, const Size& out, bool smooth)
      : at(low), inside(low), before(low), after(low) {
    Builder& b = *low.builder;
    const Var last = in.as(kF32) - 1, count = out.as(kF32), step = cast(counting(out), kF32);
    // A crop of one pixel takes the middle of the box.
    const Var part = select(count > 1, step / maximum(count - 1, count.number(1)), count.number(0.5));
    at = (low + (high - low) * reshape(part, {Size(b, 1), out})) * last;
    inside = at.apply("greater_equal", {at.number(0)}).apply("and", {at.apply("less_equal", {last})});
    const auto pixel = [&](Var place) { return cast(minimum(maximum(place, at.number(0)), last), kI64); };
    before = smooth ? pixel(at.apply("floor")) : pixel((at + 0.5).apply("floor"));
    after = smooth ? pixel(at.apply("ceil")) : before;
  }
  Var fraction() const { return at - at.apply("floor"); }
  Var at, inside;     // [boxes, out]
  Var before, after;  // the pixels around it
};

// The kernel's computation as a formula of ops.
std::vector<Value*> crop_formula(GradientContext& g, const std::vector<Var>& inputs) {
  Builder& b = g.b;
  const Var image = inputs[0], boxes = inputs[1];
  const Sizes in = sizes_of(g, image), out = sizes_of(g, g.y());
  const Size boxes_count = out[0], one(b, 1);
  const bool smooth = g.attr.text("mode") == "bilinear";
  const auto corner = [&](int64_t i) {
    return boxes.apply("slice", {{b, b.ints({0, i})}, {b, b.ints({std::numeric_limits<int64_t>::max(), i + 1})}});
  };
  const CropAxis rows(corner(0), corner(2), in[1], out[1], smooth),
      columns(corner(1), corner(3), in[2], out[2], smooth);
  const auto tall = [&](Var x) { return reshape(x, {boxes_count, out[1], one, one}); };
  const auto wide = [&](Var x) { return reshape(x, {boxes_count, one, out[2], one}); };
  const Var pixels = reshape(cast(image, kF32), {in[0] * in[1] * in[2], in[3]});
  const Var first = reshape(cast(inputs[2], kI64) * in[1].scalar(), {boxes_count, one, one, one});
  const auto at = [&](Var row, Var column) {
    const Var place = (first + tall(row)) * in[2].scalar() + wide(column);
    return reshape(gather_rows(pixels, flattened(place)), out);
  };
  Var value = at(rows.before, columns.before);
  if (smooth) {
    const Var right = wide(columns.fraction()), below = tall(rows.fraction());
    const Var top = value + (at(rows.before, columns.after) - value) * right;
    const Var left = at(rows.after, columns.before);
    const Var bottom = left + (at(rows.after, columns.after) - left) * right;
    value = top + (bottom - top) * below;
  }
  const Var inside = tall(rows.inside).apply("and", {wide(columns.inside)});
  return {select(inside, value, value.number(g.attr.number("outside"))).value};
}

}  // namespace

void crop_and_resize_rule(GradientContext& g) {
  differentiate_formula(g, [&](const std::vector<Var>& inputs) { return crop_formula(g, inputs); });
}

std::span<const OpDef> image_gradient_ops() {
  static const std::vector<OpDef> rows = {
      {.name = "resize2d_gradient",
       .summary = "gradient of resize2d by its image of the given shape (NHWC), for the gradient dy of its result and "
                  "with its attributes; what is infinite in dy may make any element of its image NaN",
       .inputs = {{"dy", Accepts::floats}, shape_operand("shape")},
       .attributes = resize_attributes(),
       .precision = Precision::accumulate_f32,
       .infer = infer_resize_gradient,
       .gradient = resize2d_gradient_rule,
       .decompose = resize_gradient_by_products,
       .reference = resample_back,
       .oracle = {"resize2d_gradient(dy, shape, mode, coordinates)", kTensorFlow},
       .cases = {"f32[1, 7, 3, 3], i32[4]=[1, 4, 5, 3]",
                 "f32[1, 7, 7, 2], i64[4]=[1, 4, 4, 2] {coordinates = align_corners, rounding = half_up}",
                 "f32[2, 8, 9, 3], i64[4]=[2, 5, 4, 3] {mode = bilinear}",
                 "f32[1, 3, 9, 3], i64[4]=[1, 5, 4, 3] {mode = bilinear, coordinates = half_pixel}",
                 "f32[0, 4, 4, 1], i64[4]=[0, 2, 2, 1] {mode = bilinear}"}},
  };
  return rows;
}

}  // namespace cairn
