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
  const std::vector<Dim> dy = dims_of_rank(context, 0, 4);
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
      for (const int64_t n : turns(out[0]))
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
// How many adjacent pixels became a copy of each source pixel along an axis, if these are all; else 0.
int64_t copies_of_axis(const AttributeView& attr, int64_t in, int64_t out) {
  if (in == 0 || out % in != 0) return 0;
  const Sampling sampling = resize_sampling(attr, in, out);
  const int64_t copies = out / in;
  for (int64_t i = 0; i < out; ++i)
    if (sampling.count != 1 || sampling.taps[static_cast<size_t>(i)][0] != i / copies) return 0;
  return copies;
}

std::vector<Value*> resize_gradient_by_parts(Builder& b, const Node& node) {
  const Value* dy = node.inputs[0];
  CHECK(node.result()->type.is_static() && dy->type.is_static(), "sizes of {} are not known", to_string(dy->type));
  const AttributeView attr = node.attr();
  const Dims in = node.result()->type.shape.sizes(), out = dy->type.shape.sizes();
  const int64_t tall_copies = copies_of_axis(attr, in[1], out[1]), wide_copies = copies_of_axis(attr, in[2], out[2]);
  if (tall_copies * wide_copies > 0 && dy->type.dtype == kF32) {
    const std::vector<int64_t> window{tall_copies, wide_copies};
    Value* mean = b.add("avg_pool2d", {node.inputs[0]}, {{"window", window}, {"strides", window}});
    return {b.add("mul", {mean, b.scalar_like(mean, static_cast<double>(tall_copies * wide_copies))})};
  }
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
      : share(low), at(low), inside(low), before(low), after(low) {
    Builder& b = *low.builder;
    const Var last = in.as(kF32) - 1, count = out.as(kF32), step = cast(counting(out), kF32);
    // A crop of one pixel takes the middle of the box.
    const Var part = select(count > 1, step / maximum(count - 1, count.number(1)), count.number(0.5));
    share = reshape(part, {Size(b, 1), out});
    at = (low + (high - low) * share) * last;
    inside = at.apply("greater_equal", {at.number(0)}).apply("and", {at.apply("less_equal", {last})});
    const auto pixel = [&](Var place) { return cast(minimum(maximum(place, at.number(0)), last), kI64); };
    before = smooth ? pixel(at.apply("floor")) : pixel((at + 0.5).apply("floor"));
    after = smooth ? pixel(at.apply("ceil")) : before;
  }
  Var fraction() const { return at - at.apply("floor"); }
  Var share;          // [1, out]: how far a pixel is from low to high
  Var at, inside;     // [boxes, out]
  Var before, after;  // the pixels around it
};

// The pixels of all crops of an image, in the shape [boxes, height, width, channels].
struct CropGeometry {
  CropGeometry(Builder& b, Var image, Var boxes, Var index, const Size& height, const Size& width, bool smooth)
      : one(b, 1), images(image, 0), tall_in(image, 1), wide_in(image, 2), channels(image, 3), count(boxes, 0),
        tall_out(height), wide_out(width), rows(corner(boxes, 0), corner(boxes, 2), tall_in, height, smooth),
        columns(corner(boxes, 1), corner(boxes, 3), wide_in, width, smooth),
        first(reshape(cast(index, kI64) * tall_in.scalar(), {count, one, one, one})) {}
  static Var corner(Var boxes, int64_t i) {
    Builder& b = *boxes.builder;
    return boxes.apply("slice", {{b, b.ints({0, i})}, {b, b.ints({std::numeric_limits<int64_t>::max(), i + 1})}});
  }
  Var tall(Var x) const { return reshape(x, {count, tall_out, one, one}); }
  Var wide(Var x) const { return reshape(x, {count, one, wide_out, one}); }
  Var inside() const { return tall(rows.inside).apply("and", {wide(columns.inside)}); }
  // The pixels of x (like the image) before or after each position.
  Var at(Var x, bool below, bool right) const {
    const Var place = (first + tall(below ? rows.after : rows.before)) * wide_in.scalar() +
                      wide(right ? columns.after : columns.before);
    const Var pixels = reshape(x, {images * tall_in * wide_in, channels});
    return reshape(gather_rows(pixels, flattened(place)), {count, tall_out, wide_out, channels});
  }

  Size one, images, tall_in, wide_in, channels, count, tall_out, wide_out;
  CropAxis rows, columns;
  Var first;
};

}  // namespace

void crop_and_resize_rule(GradientContext& g) {
  const Attributes mode{{"mode", g.attr.text("mode")}};
  if (g.wanted(0)) {
    const Type type = Type::tensor(kF32, g.x(0).shape());
    const Node* node =
        g.b.add_node(op_named("crop_and_resize_gradient"),
                     {g.dy().value, g.x(1).value, g.x(2).value, dims_of(g.x(0)).value}, mode, {}, {type});
    g.set(0, cast({g.b, node->result()}, g.x(0).dtype()));
  }
  if (g.wanted(1)) g.set(1, g.dy().apply("crop_and_resize_box_gradient", {g.x(0), g.x(1), g.x(2)}, mode));
}

namespace {

void infer_crop_gradient(InferContext& context) {
  const std::vector<Dim> dy = dims_of_rank(context, 0, 4);
  Shape shape = shape_operand(context, 3);
  if (!shape.ranked) shape = Shape(std::vector<Dim>(4));
  if (shape.rank() != 4) context.fail("shape must have 4 sizes, found {}", shape.rank());
  shape.dims[3] = same_size(context, shape.dims[3], dy[3], "channels of dy and of the image");
  for (size_t i : {0, 1})
    if (context.dtype(i) != kF32) context.fail("dy and boxes must be f32, found {}", to_string(context.dtype(i)));
  if (ranked(context, 1, 2)) {
    same_size(context, context.shape(1).dims[1], 4, "columns of boxes and 4");
    same_size(context, context.shape(1).dims[0], dy[0], "numbers of boxes and crops");
  }
  if (ranked(context, 2, 1)) same_size(context, context.shape(2).dims[0], dy[0], "numbers of indices and crops");
  context.result(kF32, std::move(shape));
}

void crop_back(KernelContext& context) {
  allocate_results(context);
  const Tensor& dy = context.input(0);
  Tensor& dx = context.output(0);
  const Dims &in = dx.dims(), &out = dy.dims();
  const Dims indices = context.input(2).as_i64();
  const bool smooth = context.attr.text("mode") == "bilinear";
  std::vector<double> sums(static_cast<size_t>(dx.count()));
  const float* from = data<float>(dy);
  for (const int64_t b : turns(out[0])) {
    const int64_t image = indices[static_cast<size_t>(b)];
    if (image < 0 || image >= in[0]) context.fail("box index {} is out of range for {} images", image, in[0]);
    const float* box = data<float>(context.input(1)) + 4 * b;
    for (const int64_t h : turns(out[1]))
      for (int64_t w = 0; w < out[2]; ++w, from += out[3]) {
        const CropTap row = crop_tap(smooth, box[0], box[2], in[1], out[1], h),
                      column = crop_tap(smooth, box[1], box[3], in[2], out[2], w);
        if (!row.inside || !column.inside) continue;
        const auto add = [&](int64_t i, int64_t j, float weight) {
          double* to = &sums[static_cast<size_t>(((image * in[1] + i) * in[2] + j) * in[3])];
          for (int64_t c = 0; c < out[3]; ++c) to[c] += static_cast<double>(weight * from[c]);
        };
        add(row.before, column.before, (1 - row.fraction) * (1 - column.fraction));
        add(row.before, column.after, (1 - row.fraction) * column.fraction);
        add(row.after, column.before, row.fraction * (1 - column.fraction));
        add(row.after, column.after, row.fraction * column.fraction);
      }
  }
  std::copy(sums.begin(), sums.end(), data<float>(dx));
}

// The gradient is linear in dy, and its product with an image is that of dy and the image's crops.
void crop_gradient_rule(GradientContext& g) {
  const Sizes out = sizes_of(g, g.x(0));
  const Attributes mode{{"mode", g.attr.text("mode")}};
  g.set(0, g.dy().apply("crop_and_resize", {g.x(1), g.x(2), as_vector(g.b, {out[1], out[2]})}, mode));
  if (g.wanted(1)) g.set(1, g.x(0).apply("crop_and_resize_box_gradient", {g.dy(), g.x(1), g.x(2)}, mode));
}

// By the boxes: each pixel's gradient times the image's slope there, and how far each side of the box moves it.
std::vector<Value*> box_gradient_by_slopes(Builder& b, const Node& node) {
  const Var dy(b, node.inputs[0]), image(b, node.inputs[1]), boxes(b, node.inputs[2]), index(b, node.inputs[3]);
  if (node.attr().text("mode") == "nearest") return {zeros_like(boxes).value};
  const CropGeometry crop(b, image, boxes, index, {dy, 1}, {dy, 2}, true);
  const Var x = cast(image, kF32);
  const Var top = crop.at(x, false, false), top_right = crop.at(x, false, true), bottom = crop.at(x, true, false),
            bottom_right = crop.at(x, true, true), right = crop.wide(crop.columns.fraction()),
            below = crop.tall(crop.rows.fraction());
  const Var here = keep_where(crop.inside(), dy);
  const Var slope_y = (top * -1.0 + bottom) * (right * -1.0 + 1.0) + (bottom_right - top_right) * right;
  const Var slope_x = (top_right - top) * (below * -1.0 + 1.0) + (bottom_right - bottom) * below;
  const auto sides = [&](Var slope, const CropAxis& axis, const Size& in, int64_t other) {
    const Var along =
        (here * slope).apply("reduce_sum", {}, {{"axes", std::vector<int64_t>{other, 3}}}) * (in.as(kF32) - 1);
    const auto total = [&](Var share) {
      return (along * share).apply("reduce_sum", {}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}});
    };
    return std::pair(total(axis.share * -1.0 + 1.0), total(axis.share));
  };
  const auto [y1, y2] = sides(slope_y, crop.rows, {image, 1}, 2);
  const auto [x1, x2] = sides(slope_x, crop.columns, {image, 2}, 1);
  return {concat({y1, x1, y2, x2}, 1).value};
}

void infer_box_gradient(InferContext& context) {
  const std::vector<Dim> dy = dims_of_rank(context, 0, 4), image = dims_of_rank(context, 1, 4);
  number_type(context, 1);
  same_size(context, dy[3], image[3], "channels of dy and of the image");
  for (size_t i : {0, 2})
    if (context.dtype(i) != kF32) context.fail("dy and boxes must be f32, found {}", to_string(context.dtype(i)));
  Dim count = dy[0];
  if (ranked(context, 2, 2)) {
    same_size(context, context.shape(2).dims[1], 4, "columns of boxes and 4");
    count = same_size(context, context.shape(2).dims[0], count, "numbers of boxes and crops");
  }
  if (ranked(context, 3, 1)) same_size(context, context.shape(3).dims[0], count, "numbers of indices and crops");
  context.result(kF32, Shape{count, 4});
}

void slopes_of_boxes(KernelContext& context) {
  allocate_results(context);
  const Tensor &dy = context.input(0), &x = context.input(1);
  const Dims &in = x.dims(), &out = dy.dims();
  const Dims indices = context.input(3).as_i64();
  float* to = data<float>(context.output(0));
  if (context.attr.text("mode") == "nearest") {
    std::fill_n(to, context.output(0).count(), 0.0f);
    return;
  }
  const auto share_of = [](int64_t i, int64_t count) {
    return count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0.5;
  };
  with_numbers(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const float* from = data<float>(dy);
    for (int64_t b = 0; b < out[0]; ++b, to += 4) {
      const int64_t image = indices[static_cast<size_t>(b)];
      if (image < 0 || image >= in[0]) context.fail("box index {} is out of range for {} images", image, in[0]);
      const float* box = data<float>(context.input(2)) + 4 * b;
      double sums[4] = {};
      for (const int64_t h : turns(out[1]))
        for (int64_t w = 0; w < out[2]; ++w, from += out[3]) {
          const CropTap row = crop_tap(true, box[0], box[2], in[1], out[1], h),
                        column = crop_tap(true, box[1], box[3], in[2], out[2], w);
          if (!row.inside || !column.inside) continue;
          const double below = row.fraction, right = column.fraction;
          for (const int64_t c : turns(out[3])) {
            const auto at = [&](int64_t i, int64_t j) {
              return static_cast<double>(data<T>(x)[((image * in[1] + i) * in[2] + j) * in[3] + c]);
            };
            const double top = at(row.before, column.before), top_right = at(row.before, column.after),
                         bottom = at(row.after, column.before), bottom_right = at(row.after, column.after);
            const double dh = ((1 - right) * (bottom - top) + right * (bottom_right - top_right)) *
                              static_cast<double>(from[c]) * static_cast<double>(in[1] - 1);
            const double dw = ((1 - below) * (top_right - top) + below * (bottom_right - bottom)) *
                              static_cast<double>(from[c]) * static_cast<double>(in[2] - 1);
            sums[0] += dh * (1 - share_of(h, out[1])), sums[2] += dh * share_of(h, out[1]);
            sums[1] += dw * (1 - share_of(w, out[2])), sums[3] += dw * share_of(w, out[2]);
          }
        }
      for (size_t i = 0; i < 4; ++i) to[i] = static_cast<float>(sums[i]);
    }
  });
}

}  // namespace

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
       .decompose = resize_gradient_by_parts,
       .reference = resample_back,
       .oracle = {"resize2d_gradient(dy, shape, mode, coordinates)", kTensorFlow},
       .cases = {"f32[1, 7, 3, 3], i32[4]=[1, 4, 5, 3]",
                 "f32[1, 7, 7, 2], i64[4]=[1, 4, 4, 2] {coordinates = align_corners, rounding = half_up}",
                 "f32[2, 6, 4, 3], i64[4]=[2, 2, 2, 3]",
                 "f32[1, 4, 6, 2], i64[4]=[1, 2, 3, 2] {coordinates = half_pixel}",
                 "f32[2, 8, 9, 3], i64[4]=[2, 5, 4, 3] {mode = bilinear}",
                 "f32[1, 3, 9, 3], i64[4]=[1, 5, 4, 3] {mode = bilinear, coordinates = half_pixel}",
                 "f32[0, 4, 4, 1], i64[4]=[0, 2, 2, 1] {mode = bilinear}"}},
      {.name = "crop_and_resize_gradient",
       .summary =
           "gradient of crop_and_resize by its image of the given shape (NHWC), for the gradient dy of its result",
       .inputs = {{"dy", Accepts::floats}, {"boxes", Accepts::floats}, index_operand("index"), shape_operand("shape")},
       .attributes = {word("mode", "bilinear", {"nearest", "bilinear"})},
       .precision = Precision::accumulate_f32,
       .infer = infer_crop_gradient,
       .gradient = crop_gradient_rule,
       .reference = crop_back,
       .oracle = {"tf.raw_ops.CropAndResizeGradImage(grads=dy, boxes=boxes, box_ind=tf.cast(index, tf.int32), "
                  "image_size=tf.cast(shape, tf.int32), T=tf.float32, method=mode)",
                  kTensorFlow},
       .cases =
           {"f32[2, 4, 3, 3], f32[2, 4]=[0, 0, 1, 1, 0.2, 0.3, 0.9, 0.6], i32[2]=[0, 1], i32[4]=[2, 6, 7, 3]",
            "f32[2, 3, 3, 1], f32[2, 4]=[0.9, 0.8, 0.1, -0.3, 0.5, 0.5, 0.5, 1.5], i32[2]=[0, 0], i64[4]=[1, 5, 5, 1]",
            "f32[1, 1, 4, 2], f32[1, 4]=[0.1, 0.2, 0.7, 0.9], i32[1]=[0], i32[4]=[1, 5, 5, 2] {mode = nearest}",
            "f32[0, 2, 2, 1], f32[0, 4]=[], i32[0]=[], i32[4]=[1, 3, 3, 1]"}},
      {.name = "crop_and_resize_box_gradient",
       .summary =
           "gradient of crop_and_resize by its boxes, for the gradient dy of its result; 0 for the nearest pixels",
       .inputs =
           {{"dy", Accepts::floats}, {"image", Accepts::numbers}, {"boxes", Accepts::floats}, index_operand("index")},
       .attributes = {word("mode", "bilinear", {"nearest", "bilinear"})},
       .precision = Precision::accumulate_f32,
       .infer = infer_box_gradient,
       .gradient = by_decomposition,
       .decompose = box_gradient_by_slopes,
       .reference = slopes_of_boxes,
       .oracle = {"tf.raw_ops.CropAndResizeGradBoxes(grads=dy, image=image, boxes=boxes, box_ind=tf.cast(index, "
                  "tf.int32)) if "
                  "mode == 'bilinear' else tf.zeros_like(boxes)",
                  kTensorFlow},
       .cases =
           {"f32[2, 4, 3, 3], f32[2, 2, 2, 3], f32[2, 4]=[0.1, 0.15, 0.9, 0.8, 0.2, 0.3, 0.85, 0.6], i32[2]=[0, 1]",
            "f32[2, 1, 3, 1], f32[1, 2, 2, 1], f32[2, 4]=[0.9, 0.8, 0.1, -0.3, 0.5, 0.5, 0.55, 1.9], i64[2]=[0, 0]",
            "f32[1, 2, 4, 2], f32[1, 5, 5, 2], f32[1, 4]=[0.1, 0.2, 0.7, 0.9], i32[1]=[0] {mode = nearest}"}},
  };
  return rows;
}

}  // namespace cairn
