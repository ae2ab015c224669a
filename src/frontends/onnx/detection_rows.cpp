// ONNX's ops on boxes, and sampling of images at computed places.
#include <numeric>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "ops/gradients.h"

namespace cairn::onnx {
namespace {

/// Rows [image, class, box] of what is kept for each image and class of boxes [images, n, 4], scores [images, classes, n].
void non_max_suppression(OpContext& c) {
  c.expect_inputs(2, 5);
  Builder& b = c.b;
  const auto scalar = [&](size_t input, Value* fallback) {
    return c.given(input) ? cast_to(reshape_to(c.in[input], {}, b), fallback->type.dtype, b) : fallback;
  };
  Value* boxes = c.in[0];
  if (c.integer("center_point_box", 0) != 0) {  // x, y, width, height
    const auto columns = [&](int64_t first) {
      return b.add("slice", {boxes, b.ints({0, 0, first}), b.ints({kToTheEnd, kToTheEnd, first + 2})});
    };
    if (c.rank(0) != 3) fail(ErrorKind::invalid_model, "", "boxes have {} dims, expected 3", c.rank(0));
    Value* half = b.add("mul", {columns(2), b.scalar_like(boxes, 0.5)});
    boxes =
        b.add("concat", {b.add("sub", {columns(0), half}), b.add("add", {columns(0), half})}, {{"axis", int64_t{2}}});
  }
  c.out = {b.add("class_non_max_suppression",
                 {boxes, c.in[1], scalar(2, b.constant(Tensor::scalar_i64(0))), scalar(3, b.scalar(0)),
                  scalar(4, b.scalar(-std::numeric_limits<float>::infinity()))})};
}

/// x with its channels, dim 1, last.
Value* channels_last(OpContext& c, Value* x) {
  std::vector<int64_t> order{0};
  for (size_t i = 2; i < x->type.shape.rank(); ++i) order.push_back(static_cast<int64_t>(i));
  order.push_back(1);
  return transposed(x, order, c.b);
}
Value* channels_first(OpContext& c, Value* x) {
  const auto rank = static_cast<int64_t>(x->type.shape.rank());
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) order.push_back(i);
  return transposed(x, order, c.b);
}

/// Images [n, c, ..] at places [n, .., dims], the last spatial dim first, each from -1 to 1: [n, c, ..].
void grid_sample(OpContext& c) {
  c.expect_inputs(2, 2);
  if (c.rank(1) != c.rank(0) || c.rank(0) < 3 || c.rank(0) > 5)
    c.refuse("images of {} dims and a grid of {} are not supported", c.rank(0), c.rank(1));
  std::string mode = c.text("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  if (mode != "linear" && mode != "nearest" && mode != "cubic") c.refuse("mode '{}' is not supported", printable(mode));
  const std::string padding = c.text("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    fail(ErrorKind::invalid_model, "", "padding_mode '{}' is unknown", printable(padding));
  const bool corners = c.integer("align_corners", 0) != 0;
  Value* y = c.b.add("grid_sample", {channels_last(c, c.in[0]), c.in[1]},
                     {{"mode", mode}, {"padding", padding}, {"coordinates", corners ? "align_corners" : "half_pixel"}});
  c.out = {channels_first(c, y)};
}

void roi_align(OpContext& c) {
  c.expect_inputs(3, 3);
  const std::string mode = c.text("mode", "avg");
  if (mode != "avg" && mode != "max") fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(mode));
  if (c.rank(0) != 4) c.refuse("images of {} dims are not supported", c.rank(0));
  const bool half =
      c.text("coordinate_transformation_mode", c.opset >= 16 ? "half_pixel" : "output_half_pixel") == "half_pixel";
  Value* y = c.b.add("roi_align", {channels_last(c, c.in[0]), cast_to(c.in[1], kF32, c.b), c.in[2]},
                     {{"size", std::vector{c.integer("output_height", 1), c.integer("output_width", 1)}},
                      {"samples", c.integer("sampling_ratio", 0)},
                      {"scale", c.real("spatial_scale", 1)},
                      {"mode", mode},
                      {"half_pixel", half}});
  c.out = {channels_first(c, y)};
}

/// Regions are rows of image, x1, y1, x2, y2.
void max_roi_pool(OpContext& c) {
  c.expect_inputs(2, 2);
  if (c.rank(0) != 4) c.refuse("images of {} dims are not supported", c.rank(0));
  Builder& b = c.b;
  Value* rows = b.add("reshape", {cast_to(c.in[1], kF32, b), b.ints({-1, 5})});
  const auto columns = [&](int64_t from, int64_t to) {
    return b.add("slice", {rows, b.ints({0, from}), b.ints({kToTheEnd, to})});
  };
  Value* image = b.add("reshape", {cast_to(columns(0, 1), kI64, b), b.ints({-1})});
  c.out = {
      channels_first(c, b.add("roi_pool", {channels_last(c, c.in[0]), columns(1, 5), image},
                              {{"size", c.integers("pooled_shape", 2, 0)}, {"scale", c.real("spatial_scale", 1)}}))};
}

/// A convolution whose taps lie at computed distances from their places: the pixels there, times the mask, times the kernel.
void deform_conv(OpContext& c) {
  c.expect_inputs(3, 5);
  if (c.rank(0) != 4 || c.rank(1) != 4 || c.rank(2) != 4) c.refuse("images of other than two dims are not supported");
  const Shape& kernel = c.in[1]->type.shape;
  if (!c.in[1]->type.is_static() || !c.in[0]->type.shape.dims[1].known())
    c.refuse("the sizes of the kernel must be known");
  const int64_t outputs = kernel.dims[0].size, tall = kernel.dims[2].size, wide = kernel.dims[3].size;
  const int64_t channels = c.in[0]->type.shape.dims[1].size, groups = c.integer("group", 1),
                sets = c.integer("offset_group", 1);
  if (groups < 1 || sets < 1 || channels % groups != 0 || channels % sets != 0 || outputs % groups != 0 ||
      kernel.dims[1].size != channels / groups)
    fail(ErrorKind::invalid_model, "", "{} channels and a kernel {} are not of {} groups and {} offset groups",
         channels, to_string(kernel), groups, sets);
  const std::vector<int64_t> strides = c.integers("strides", 2, 1), dilations = c.integers("dilations", 2, 1),
                             pads = c.integers("pads", 4, 0);
  Builder& b = c.b;
  const Var x(b, c.in[0]), offset(b, c.in[2]);
  const DType dtype = x.dtype();
  const auto number = [&](int64_t size) { return Size(b, size); };
  const Size batch(x, 0), rows(offset, 2), columns(offset, 3), images = batch * number(sets),
                                                               taps = number(tall * wide);
  // Places in pixels without offsets: [rows, columns, taps, (x, y)].
  std::vector<double> tap, across{static_cast<double>(strides[1]), 0}, down{0, static_cast<double>(strides[0])};
  for (int64_t i = 0; i < tall * wide; ++i) {
    tap.push_back(static_cast<double>(i % wide) * static_cast<double>(dilations[1]) - static_cast<double>(pads[1]));
    tap.push_back(static_cast<double>(i / wide) * static_cast<double>(dilations[0]) - static_cast<double>(pads[0]));
  }
  const auto constant = [&](std::vector<int64_t> dims, const std::vector<double>& values) {
    return cast(Var(b, b.constant(Tensor::of<double>(kF64, std::move(dims), values))), dtype);
  };
  const Var base = reshape(cast(counting(rows), dtype), {rows, number(1), number(1), number(1)}) * constant({2}, down) +
                   reshape(cast(counting(columns), dtype), {columns, number(1), number(1)}) * constant({2}, across) +
                   constant({tall * wide, 2}, tap);
  Var place = reshape(offset, {images, taps, number(2), rows, columns});
  place = place.apply("gather", {Var(b, b.ints({1, 0}))}, {{"axis", int64_t{2}}});
  place = transpose(place, {0, 3, 4, 1, 2}) + base;
  const Var pixels = reshape(x, {images, number(channels / sets), Size(x, 2), Size(x, 3)});
  Var y = transpose(pixels, {0, 2, 3, 1}).apply("grid_sample", {place}, {{"coordinates", "pixel"}});
  if (c.given(4)) {
    const Var mask = reshape(Var(b, c.in[4]), {images, taps, rows, columns, number(1)});
    y = y * transpose(mask, {0, 2, 3, 1, 4});
  }
  // [batch, sets, rows, columns, taps, channels of a set] times the kernel, group by group.
  y = reshape(y, {batch, number(sets), rows, columns, taps, number(channels / sets)});
  y = reshape(transpose(y, {0, 2, 3, 4, 1, 5}),
              {batch * rows * columns, taps, number(groups), number(channels / groups)});
  const Size all = number(tall * wide * (channels / groups)), each = number(outputs / groups);
  y = reshape(transpose(y, {2, 0, 1, 3}), {number(groups), batch * rows * columns, all});
  const Var weights = reshape(Var(b, c.in[1]), {number(groups), each, number(channels / groups), taps});
  y = matmul(y, reshape(transpose(weights, {0, 3, 2, 1}), {number(groups), all, each}));
  y = reshape(transpose(y, {1, 0, 2}), {batch, rows, columns, number(outputs)});
  if (c.given(3)) y = y + Var(b, c.in[3]);
  c.out = {channels_first(c, y.value)};
}

constexpr Row kDetectionRows[] = {
    {"DeformConv", deform_conv},  {"GridSample", grid_sample},
    {"MaxRoiPool", max_roi_pool}, {"NonMaxSuppression", non_max_suppression},
    {"RoiAlign", roi_align},
};

}  // namespace

std::span<const Row> detection_rows() { return kDetectionRows; }

}  // namespace cairn::onnx
