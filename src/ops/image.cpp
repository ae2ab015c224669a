// Ops on images: resampling and crops.
#include "ops/image.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

Dim known_size(const InferContext& context, size_t operand, size_t i) {
  auto sizes = constant_integers(context, operand);
  if (!sizes) return Dim();
  if (sizes->size() != 2) context.fail("the size must be 2 numbers, found {}", sizes->size());
  if ((*sizes)[i] < 0) context.fail("sizes must not be negative, found {}", (*sizes)[i]);
  return (*sizes)[i];
}

void infer_resize(InferContext& context) {
  DType dtype = number_type(context, 0);
  if (context.attr.text("mode") != "nearest" && !dtype.is_float())
    context.fail("{} needs floats, found {}", context.attr.text("mode"), to_string(dtype));
  if (ranked(context, 1, 1)) same_size(context, context.shape(1).dims[0], 2, "sizes and 2");
  const bool known = ranked(context, 0, 4);
  Shape result{Dim(), known_size(context, 1, 0), known_size(context, 1, 1), Dim()};
  if (known) {
    const auto& x = context.shape(0).dims;
    for (size_t i : {1, 2})
      if (x[i].size == 0 && result.dims[i].size > 0) context.fail("an empty image cannot be resized");
    result.dims[0] = x[0], result.dims[3] = x[3];
  }
  context.result(dtype, std::move(result));
}

float place(std::string_view coordinates, float scale, int64_t i) {
  const auto at = static_cast<float>(i);
  return coordinates == "half_pixel" ? (at + 0.5f) * scale - 0.5f : at * scale;
}

int64_t nearest(std::string_view coordinates, std::string_view rounding, float scale, int64_t i) {
  const auto at = static_cast<float>(i);
  if (rounding == "floor" && coordinates == "half_pixel")  // without the half: floor of the pixel's middle
    return static_cast<int64_t>(std::floor((at + 0.5f) * scale));
  const float x = place(coordinates, scale, i);
  if (rounding == "floor") return static_cast<int64_t>(std::floor(x));
  if (rounding == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (rounding == "half_down") return static_cast<int64_t>(std::ceil(x - 0.5f));
  return static_cast<int64_t>(std::round(x));
}

// Keys' cubic weights of the four pixels around a position `fraction` behind the second; quantised to 1/1024 with
// `steps`.
std::array<float, 4> cubic(float fraction, float a, bool steps) {
  const double x = steps ? static_cast<double>(std::lrint(fraction * 1024.0f)) / 1024 : static_cast<double>(fraction);
  auto near = [a](double d) { return static_cast<float>(((a + 2) * d - (a + 3)) * d * d + 1); };
  auto far = [a](double d) { return static_cast<float>(((a * d - 5 * a) * d + 8 * a) * d - 4 * a); };
  return {far(x + 1), near(x), near(1 - x), far(2 - x)};
}

}  // namespace

std::vector<AttrDef> resize_attributes() {
  return {word("mode", "nearest", {"nearest", "bilinear", "bicubic"}),
          word("coordinates", "asymmetric", {"asymmetric", "half_pixel", "align_corners"}),
          word("rounding", "floor", {"floor", "half_up", "half_down", "ceil"}),
          number("cubic", -0.75),
          flag("exclude_outside"),
          flag("steps")};
}

Sampling resize_sampling(const AttributeView& attr, int64_t in, int64_t out) {
  const std::string &mode = attr.text("mode"), &coordinates = attr.text("coordinates");
  const bool corners = coordinates == "align_corners" && out > 1;
  const float scale = corners ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                              : static_cast<float>(in) / static_cast<float>(out);
  auto inside = [in](int64_t at) { return std::clamp<int64_t>(at, 0, in - 1); };
  Sampling result;
  result.count = mode == "nearest" ? 1 : mode == "bilinear" ? 2 : 4;
  for (const int64_t i : turns(out)) {
    if (mode == "nearest") {
      result.taps.push_back({inside(nearest(coordinates, attr.text("rounding"), scale, i))});
      result.weights.push_back({1});
      continue;
    }
    const float at = place(coordinates, scale, i), floor = std::floor(at), fraction = at - floor;
    const auto low = static_cast<int64_t>(floor);
    if (mode == "bilinear") {
      result.taps.push_back({inside(low), inside(static_cast<int64_t>(std::ceil(at)))});
      result.weights.push_back({1 - fraction, fraction});
      continue;
    }
    std::array<int64_t, 4> taps;
    std::array<float, 4> weights = cubic(fraction, static_cast<float>(attr.number("cubic")), attr.boolean("steps"));
    float sum = 0;
    for (size_t k = 0; k < 4; ++k) {
      const int64_t tap = low - 1 + static_cast<int64_t>(k);
      taps[k] = inside(tap);
      if (attr.boolean("exclude_outside") && taps[k] != tap) weights[k] = 0;
      sum += weights[k];
    }
    if (attr.boolean("exclude_outside") && std::abs(sum) > 1e-35f)
      for (float& weight : weights) weight /= sum;
    result.taps.push_back(taps);
    result.weights.push_back(weights);
  }
  return result;
}

namespace {

void resize(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  if (y.count() == 0) return;
  const Dims &in = x.dims(), &out = y.dims();
  const Sampling rows = resize_sampling(context.attr, in[1], out[1]),
                 columns = resize_sampling(context.attr, in[2], out[2]);
  with_numbers(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* to = data<T>(y);
    for (const int64_t n : turns(out[0]))
      for (size_t h = 0; h < rows.taps.size(); ++h)
        for (size_t w = 0; w < columns.taps.size(); ++w)
          for (const int64_t c : turns(out[3])) {
            auto at = [&](size_t i, size_t j) {
              return data<T>(x)[((n * in[1] + rows.taps[h][i]) * in[2] + columns.taps[w][j]) * in[3] + c];
            };
            if (rows.count == 1) {
              *to++ = at(0, 0);
              continue;
            }
            double sum = 0;
            for (size_t i = 0; i < rows.count; ++i)
              for (size_t j = 0; j < columns.count; ++j)
                sum += static_cast<double>(rows.weights[h][i]) * static_cast<double>(columns.weights[w][j]) *
                       static_cast<double>(static_cast<Compute<T>>(at(i, j)));
            *to++ = saturate<T>(sum);
          }
  });
}

void infer_crop(InferContext& context) {
  number_type(context, 0);
  if (context.dtype(1) != kF32) context.fail("boxes must be f32, found {}", to_string(context.dtype(1)));
  const bool boxes = ranked(context, 1, 2);
  if (boxes) same_size(context, context.shape(1).dims[1], 4, "columns of boxes and 4");
  if (ranked(context, 2, 1) && boxes)
    same_size(context, context.shape(1).dims[0], context.shape(2).dims[0], "numbers of boxes and indices");
  const bool known = ranked(context, 0, 4);
  context.result(kF32, Shape{boxes ? context.shape(1).dims[0] : Dim(), known_size(context, 3, 0),
                             known_size(context, 3, 1), known ? context.shape(0).dims[3] : Dim()});
}

void crop_and_resize(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const Dims &in = x.dims(), &out = y.dims();
  const Dims indices = context.input(2).as_i64();
  const float* boxes = data<float>(context.input(1));
  const bool smooth = context.attr.text("mode") == "bilinear";
  const auto outside = static_cast<float>(context.attr.number("outside"));
  with_numbers(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    float* to = data<float>(y);
    for (const int64_t b : turns(out[0])) {
      const int64_t image = indices[static_cast<size_t>(b)];
      if (image < 0 || image >= in[0]) context.fail("box index {} is out of range for {} images", image, in[0]);
      const float* box = boxes + 4 * b;
      for (const int64_t h : turns(out[1]))
        for (const int64_t w : turns(out[2])) {
          const CropTap row = crop_tap(smooth, box[0], box[2], in[1], out[1], h),
                        column = crop_tap(smooth, box[1], box[3], in[2], out[2], w);
          for (const int64_t c : turns(out[3])) {
            const auto at = [&](int64_t i, int64_t j) {
              return static_cast<float>(data<T>(x)[((image * in[1] + i) * in[2] + j) * in[3] + c]);
            };
            if (!row.inside || !column.inside) {
              *to++ = outside;
              continue;
            }
            const float top = at(row.before, column.before), bottom = at(row.after, column.before);
            const float above = top + (at(row.before, column.after) - top) * column.fraction;
            const float below = bottom + (at(row.after, column.after) - bottom) * column.fraction;
            *to++ = above + (below - above) * row.fraction;
          }
        }
    }
  });
}

std::vector<OpDef> make_image_rows() {
  return {
      {.name = "resize2d",
       .summary =
           "NHWC images resampled to size (height, width); a pixel's place is i * in / out, half pixels shifted, or "
           "corner on corner; cubic is Keys' parameter; exclude_outside leaves taps outside the image out, steps "
           "rounds distances to 1/1024; half_down rounds halves down, half_up away from 0",
       .inputs = {{"x", Accepts::numbers}, shape_operand("size")},
       .attributes = resize_attributes(),
       .precision = Precision::accumulate_f32,
       .infer = infer_resize,
       .gradient = resize2d_rule,
       .reference = resize,
       .oracle = {"resize2d(x, size, mode, coordinates)", kTensorFlow},
       .cases = {"f32[1, 4, 5, 3], i32[2]=[7, 3]", "i32[2, 3, 3, 1], i32[2]=[6, 6] {coordinates = half_pixel}",
                 "f32[1, 4, 4, 2], i32[2]=[7, 7] {coordinates = align_corners, rounding = half_up}",
                 "f32[2, 5, 4, 3], i32[2]=[8, 9] {mode = bilinear}",
                 "f32[1, 5, 4, 3], i32[2]=[3, 9] {mode = bilinear, coordinates = half_pixel}",
                 "f32[1, 5, 4, 3], i32[2]=[10, 1] {mode = bilinear, coordinates = align_corners}",
                 "f32[1, 5, 6, 2], i32[2]=[9, 4] {mode = bicubic, coordinates = half_pixel, cubic = -0.5, "
                 "exclude_outside = true, steps = true}",
                 "f32[1, 5, 6, 2], i32[2]=[9, 4] {mode = bicubic, steps = true}",
                 "f32[0, 2, 2, 1], i32[2]=[4, 4] {mode = bilinear}"}},
      {.name = "crop_and_resize",
       .summary =
           "for each box (y1, x1, y2, x2; 0 to 1 from first to last pixel) that part of the image with its index, "
           "resampled to size; places outside the image give `outside`",
       .inputs =
           {{"image", Accepts::numbers}, {"boxes", Accepts::floats}, index_operand("index"), shape_operand("size")},
       .attributes = {word("mode", "bilinear", {"nearest", "bilinear"}), number("outside", 0)},
       .precision = Precision::accumulate_f32,
       .infer = infer_crop,
       .gradient = crop_and_resize_rule,
       .reference = crop_and_resize,
       .oracle =
           {"tf.image.crop_and_resize(image, boxes, tf.cast(index, tf.int32), tf.cast(size, tf.int32), mode, outside)",
            kTensorFlow},
       .cases = {"f32[2, 6, 7, 3], f32[2, 4]=[0, 0, 1, 1, 0.2, 0.3, 0.9, 0.6], i32[2]=[0, 1], i32[2]=[4, 3]",
                 "f32[1, 5, 5, 1], f32[2, 4]=[0.9, 0.8, 0.1, -0.3, 0.5, 0.5, 0.5, 1.5], i32[2]=[0, 0], i32[2]=[3, 3] "
                 "{outside = -2}",
                 "f32[1, 5, 5, 2], f32[1, 4]=[0.1, 0.2, 0.7, 0.9], i32[1]=[0], i32[2]=[1, 4] {mode = nearest}"}},
  };
}

}  // namespace

std::span<const OpDef> image_ops() {
  static const std::vector<OpDef> rows = make_image_rows();
  return rows;
}

}  // namespace cairn
