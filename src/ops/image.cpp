// Ops on images and boxes: resampling, crops, suppression of overlapping boxes.
#include <queue>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/image.h"
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
  for (int64_t i = 0; i < out; ++i) {
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
    for (int64_t n = 0; n < out[0]; ++n)
      for (size_t h = 0; h < rows.taps.size(); ++h)
        for (size_t w = 0; w < columns.taps.size(); ++w)
          for (int64_t c = 0; c < out[3]; ++c) {
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
    for (int64_t b = 0; b < out[0]; ++b) {
      const int64_t image = indices[static_cast<size_t>(b)];
      if (image < 0 || image >= in[0]) context.fail("box index {} is out of range for {} images", image, in[0]);
      const float* box = boxes + 4 * b;
      for (int64_t h = 0; h < out[1]; ++h)
        for (int64_t w = 0; w < out[2]; ++w) {
          const CropTap row = crop_tap(smooth, box[0], box[2], in[1], out[1], h),
                        column = crop_tap(smooth, box[1], box[3], in[2], out[2], w);
          for (int64_t c = 0; c < out[3]; ++c) {
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

// Intersection over union of two boxes, each given by two opposite corners.
float overlap(const float* a, const float* b) {
  const float top_a = std::min(a[0], a[2]), bottom_a = std::max(a[0], a[2]), left_a = std::min(a[1], a[3]),
              right_a = std::max(a[1], a[3]), top_b = std::min(b[0], b[2]), bottom_b = std::max(b[0], b[2]),
              left_b = std::min(b[1], b[3]), right_b = std::max(b[1], b[3]);
  const float area_a = (bottom_a - top_a) * (right_a - left_a), area_b = (bottom_b - top_b) * (right_b - left_b);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float common = std::max(std::min(bottom_a, bottom_b) - std::max(top_a, top_b), 0.0f) *
                       std::max(std::min(right_a, right_b) - std::max(left_a, left_b), 0.0f);
  return common / (area_a + area_b - common);
}

struct Candidate {
  float score;
  int64_t box;
  size_t compared;  // number of selected boxes that it was compared with
  bool operator<(const Candidate& other) const {
    return score < other.score || (score == other.score && box > other.box);
  }
};

// Non-maximum suppression: the selected boxes, best score first. With `sigma` above 0 (soft NMS), the scores of
// overlapping boxes are lowered instead of dropping the boxes.
std::vector<Candidate> suppress(const float* boxes, int64_t stride, const std::vector<float>& scores, int64_t most,
                                float iou, float least_score, float sigma) {
  std::priority_queue<Candidate> queue;
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > least_score) queue.push({scores[i], static_cast<int64_t>(i), 0});
  std::vector<Candidate> chosen;
  while (static_cast<int64_t>(chosen.size()) < most && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    bool dropped = false;
    for (size_t i = chosen.size(); i-- > next.compared && !dropped;) {
      const float common = overlap(boxes + next.box * stride, boxes + chosen[i].box * stride);
      if (sigma <= 0 && common > iou) dropped = true;
      if (sigma > 0) next.score *= common <= iou ? std::exp(-0.5f / sigma * common * common) : 0.0f;
      if (next.score <= least_score) break;
    }
    next.compared = chosen.size();
    if (dropped) continue;
    if (next.score == before)
      chosen.push_back(next);
    else if (next.score > least_score)
      queue.push(next);
  }
  return chosen;
}

void infer_suppression(InferContext& context) {
  const bool boxes = ranked(context, 0, 2);
  if (boxes) same_size(context, context.shape(0).dims[1], 4, "columns of boxes and 4");
  if (ranked(context, 1, 1) && boxes)
    same_size(context, context.shape(0).dims[0], context.shape(1).dims[0], "numbers of boxes and scores");
  for (size_t i : {2, 3, 4, 5}) require_scalar(context, i);
  for (size_t i : {0, 1, 3, 4, 5})
    if (context.dtype(i) != kF32) context.fail("input {} must be f32, found {}", i, to_string(context.dtype(i)));
  Dim count;
  if (context.attr.boolean("pad"))
    if (auto most = constant_integers(context, 2)) count = std::max<int64_t>(0, (*most)[0]);
  context.result(kI64, Shape{count});
  context.result(kF32, Shape{count});
  context.result(kI64, Shape());
}

void non_max_suppression(KernelContext& context) {
  const Tensor& scores = context.input(1);
  auto number = [&](size_t i) { return *data<float>(context.input(i)); };
  const int64_t most = std::max<int64_t>(0, context.input(2).as_i64()[0]);
  const std::vector<float> list(data<float>(scores), data<float>(scores) + scores.count());
  auto chosen = suppress(data<float>(context.input(0)), 4, list, most, number(3), number(4), number(5));
  const auto count = static_cast<int64_t>(chosen.size()), length = context.attr.boolean("pad") ? most : count;
  Tensor &indices = context.allocate(0, kI64, {length}), &left = context.allocate(1, kF32, {length});
  std::memset(indices.mutable_data(), 0, indices.bytes());
  std::memset(left.mutable_data(), 0, left.bytes());
  for (size_t i = 0; i < chosen.size(); ++i) {
    data<int64_t>(indices)[i] = chosen[i].box;
    data<float>(left)[i] = chosen[i].score;
  }
  *data<int64_t>(context.allocate(2, kI64, {})) = count;
}

// The number of boxes that combined non-maximum suppression returns for each image.
Dim answered(const InferContext& context) {
  auto each = constant_integers(context, 2), total = constant_integers(context, 3);
  if (!each || !total || !context.shape(1).ranked) return Dim();
  if ((*each)[0] <= 0 || (*total)[0] <= 0)
    context.fail("sizes must be positive, found {} and {}", (*each)[0], (*total)[0]);
  const Dim& classes = context.shape(1).dims[2];
  if (!context.attr.boolean("pad_per_class")) return (*total)[0];
  int64_t all;
  if (!classes.known() || __builtin_mul_overflow((*each)[0], classes.size, &all)) return Dim();
  return std::min((*total)[0], all);
}

void infer_combined(InferContext& context) {
  const bool boxes = ranked(context, 0, 4), scores = ranked(context, 1, 3);
  for (size_t i : {0, 1, 4, 5})
    if (context.dtype(i) != kF32) context.fail("input {} must be f32, found {}", i, to_string(context.dtype(i)));
  for (size_t i : {2, 3, 4, 5}) require_scalar(context, i);
  if (boxes) same_size(context, context.shape(0).dims[3], 4, "columns of boxes and 4");
  Dim batch;
  if (boxes && scores) {
    batch = same_size(context, context.shape(0).dims[0], context.shape(1).dims[0], "batch sizes");
    same_size(context, context.shape(0).dims[1], context.shape(1).dims[1], "numbers of boxes and scores");
    const Dim& sets = context.shape(0).dims[2];
    if (sets.known() && sets.size != 1) same_size(context, sets, context.shape(1).dims[2], "sets of boxes and classes");
  }
  const Dim count = answered(context);
  context.result(kF32, Shape{batch, count, 4});
  context.result(kF32, Shape{batch, count});
  context.result(kF32, Shape{batch, count});
  context.result(kI32, Shape{batch});
}

void combined_non_max_suppression(KernelContext& context) {
  allocate_results(context);
  const Tensor &boxes = context.input(0), &scores = context.input(1);
  const int64_t images = scores.dims()[0], count = scores.dims()[1], classes = scores.dims()[2], sets = boxes.dims()[2];
  const int64_t most = context.input(2).as_i64()[0], places = context.output(1).dims()[1];
  const bool clip = context.attr.boolean("clip_boxes");
  struct Found {
    float score;
    const float* box;
    int64_t number;
  };
  for (size_t i : {0, 1, 2, 3}) std::memset(context.output(i).mutable_data(), 0, context.output(i).bytes());
  for (int64_t image = 0; image < images; ++image) {
    std::vector<Found> found;
    for (int64_t k = 0; k < classes; ++k) {
      const float* from = data<float>(boxes) + (image * count * sets + (sets > 1 ? k : 0)) * 4;
      std::vector<float> list;
      for (int64_t i = 0; i < count; ++i) list.push_back(data<float>(scores)[(image * count + i) * classes + k]);
      for (const Candidate& one :
           suppress(from, 4 * sets, list, most, *data<float>(context.input(4)), *data<float>(context.input(5)), 0))
        found.push_back({one.score, from + one.box * 4 * sets, k});
    }
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.score > b.score; });
    const int64_t kept = std::min<int64_t>(places, static_cast<int64_t>(found.size()));
    for (int64_t i = 0; i < kept; ++i) {
      const Found& one = found[static_cast<size_t>(i)];
      for (int64_t d = 0; d < 4; ++d)
        data<float>(context.output(0))[(image * places + i) * 4 + d] =
            clip ? std::clamp(one.box[d], 0.0f, 1.0f) : one.box[d];
      data<float>(context.output(1))[image * places + i] = one.score;
      data<float>(context.output(2))[image * places + i] = static_cast<float>(one.number);
    }
    data<int32_t>(context.output(3))[image] = static_cast<int32_t>(kept);
  }
}

std::vector<OpDef> make_image_rows() {
  const InputDef scalar_size = shape_operand("most");
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
      {.name = "non_max_suppression",
       .summary = "indices and scores of at most `most` boxes (two corners each) in falling order of score above "
                  "least_score, those left out that overlap a chosen one by more than iou (sigma above 0: lowered by "
                  "exp(-iou^2 / 2 sigma) instead); pad fills up with 0; and how many they are",
       .inputs = {{"boxes", Accepts::floats},
                  {"scores", Accepts::floats},
                  scalar_size,
                  {"iou", Accepts::floats},
                  {"least_score", Accepts::floats},
                  {"sigma", Accepts::floats}},
       .attributes = {flag("pad")},
       .results = {"indices", "scores", "count"},
       .traits = kDynamicResult,
       .infer = infer_suppression,
       .no_gradient = "which boxes stay is piecewise constant; gather the scores by the indices",
       .reference = non_max_suppression,
       .oracle = {"non_max_suppression(boxes, scores, most, iou, least_score, sigma, pad)", kTensorFlow},
       .cases =
           {"f32[4, 4]=[0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3, 1, 1, 0, 0], f32[4]=[0.9, 0.8, 0.7, 0.95], i32[]=[3], "
            "f32[]=[0.5], f32[]=[-inf], f32[]=[0]",
            "f32[3, 4]=[0, 0, 1, 1, 0, 0.5, 1, 1.5, 0, 2, 1, 3], f32[3]=[0.9, 0.8, 0.1], i32[]=[5], f32[]=[0.9], "
            "f32[]=[0.2], f32[]=[0.5] {pad = true}",
            "f32[0, 4], f32[0], i32[]=[2], f32[]=[0.5], f32[]=[0], f32[]=[0]"}},
      {.name = "combined_non_max_suppression",
       .summary =
           "non_max_suppression for each image and class (boxes of one set, or one for each class), then the best "
           "`total` over classes: boxes, scores, classes, and how many; the rest is 0",
       .inputs = {{"boxes", Accepts::floats},
                  {"scores", Accepts::floats},
                  scalar_size,
                  shape_operand("total"),
                  {"iou", Accepts::floats},
                  {"least_score", Accepts::floats}},
       .attributes = {flag("pad_per_class"), flag("clip_boxes", true)},
       .results = {"boxes", "scores", "classes", "count"},
       .infer = infer_combined,
       .no_gradient = "which boxes stay is piecewise constant",
       .reference = combined_non_max_suppression,
       .oracle = {"tuple(tf.image.combined_non_max_suppression(boxes, scores, int(most), int(total), float(iou), "
                  "float(least_score), pad_per_class, clip_boxes))",
                  kTensorFlow},
       .cases =
           {"f32[1, 3, 1, 4]=[0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 0.5, 1, 0.9], f32[1, 3, 2]=[0.9, 0.1, 0.8, 0.3, 0.2, "
            "0.75], i32[]=[2], i32[]=[4], f32[]=[0.5], f32[]=[0.15]",
            "f32[1, 2, 2, 4]=[0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2, 1, 3, 0, 0, 2, 2], f32[1, 2, 2]=[0.9, 0.3, 0.8, 0.7], "
            "i32[]=[3], i32[]=[5], f32[]=[0.5], f32[]=[0] {clip_boxes = false}"}},
  };
}

}  // namespace

std::span<const OpDef> image_ops() {
  static const std::vector<OpDef> rows = make_image_rows();
  return rows;
}

}  // namespace cairn
