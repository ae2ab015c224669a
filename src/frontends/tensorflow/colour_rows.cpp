// TensorFlow's ops on the colours of images, and resampling by weights that are known while importing.
#include <algorithm>
#include <cmath>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

Value* plus(OpContext& c, Value* x, double number) { return c.b.add("add", {x, c.b.scalar_like(x, number)}); }
Value* times(OpContext& c, Value* x, double number) { return c.b.add("mul", {x, c.b.scalar_like(x, number)}); }
Value* clipped(OpContext& c, Value* x) { return c.b.add("clip", {x}, {{"low", 0.0}, {"high", 1.0}}); }

struct Colours {
  Value *first, *second, *third;  // of one channel each
};

Colours channels(OpContext& c, Value* x) {
  if (c.rank(0) < 1 || x->type.shape.dims.back() != Dim(3)) c.refuse("the last dim must be 3");
  auto one = [&](int64_t channel) {
    std::vector<int64_t> begins(c.rank(0), 0), ends(c.rank(0), kToTheEnd);
    begins.back() = channel, ends.back() = channel + 1;
    return c.b.add("slice", {x, c.b.ints(begins), c.b.ints(ends)});
  };
  return {one(0), one(1), one(2)};
}

Value* together(OpContext& c, const Colours& parts) {
  return c.b.add("concat", {parts.first, parts.second, parts.third}, {{"axis", int64_t{-1}}});
}

/// Hue, saturation and value, each from 0 to 1 for colours that are.
Colours hsv(OpContext& c, const Colours& rgb) {
  Builder& b = c.b;
  auto [red, green, blue] = rgb;
  Value* most = b.add("maximum", {b.add("maximum", {red, green}), blue});
  Value* range = b.add("sub", {most, b.add("minimum", {b.add("minimum", {red, green}), blue})});
  Value* zero = b.scalar_like(most, 0);
  Value* saturation = b.add("select", {b.add("greater", {most, zero}), b.add("div", {range, most}), zero});
  Value* scale = b.add("reciprocal", {times(c, range, 6)});
  auto part = [&](Value* x, Value* y) { return b.add("mul", {scale, b.add("sub", {x, y})}); };
  Value* hue = b.add(
      "select", {b.add("equal", {green, most}), plus(c, part(blue, red), 2.0 / 6), plus(c, part(red, green), 4.0 / 6)});
  hue = b.add("select", {b.add("equal", {red, most}), part(green, blue), hue});
  hue = b.add("select", {b.add("greater", {range, zero}), hue, zero});
  hue = b.add("select", {b.add("less", {hue, zero}), plus(c, hue, 1), hue});
  return {hue, saturation, most};
}

Colours rgb(OpContext& c, const Colours& hsv) {
  Builder& b = c.b;
  Value* place = times(c, hsv.first, 6);
  Value* white = b.add("sub", {b.scalar_like(place, 1), hsv.second});
  auto one = [&](double middle, double sign, double offset) {
    Value* distance = b.add("abs", {plus(c, place, -middle)});
    Value* share = clipped(c, plus(c, times(c, distance, sign), offset));
    return b.add("mul", {b.add("add", {white, b.add("mul", {hsv.second, share})}), hsv.third});
  };
  return {one(3, 1, -1), one(2, -1, 2), one(4, -1, 2)};
}

void rgb_to_hsv(OpContext& c) {
  c.expect_inputs(1);
  c.out = {together(c, hsv(c, channels(c, c.in[0])))};
}

void hsv_to_rgb(OpContext& c) {
  c.expect_inputs(1);
  c.out = {together(c, rgb(c, channels(c, c.in[0])))};
}

void adjust_hue(OpContext& c) {
  c.expect_inputs(2);
  Colours colours = hsv(c, channels(c, c.in[0]));
  Value* delta = cast_to(c.in[1], c.in[0]->type.dtype, c.b);
  colours.first = c.b.add("mod", {c.b.add("add", {colours.first, delta}), c.b.scalar_like(colours.first, 1)});
  c.out = {together(c, rgb(c, colours))};
}

void adjust_saturation(OpContext& c) {
  c.expect_inputs(2);
  Colours colours = hsv(c, channels(c, c.in[0]));
  Value* factor = cast_to(c.in[1], c.in[0]->type.dtype, c.b);
  colours.second = clipped(c, c.b.add("mul", {colours.second, factor}));
  c.out = {together(c, rgb(c, colours))};
}

/// Scales the distance of each pixel from the mean of its channel.
void adjust_contrast(OpContext& c) {
  c.expect_inputs(2);
  const auto rank = static_cast<int64_t>(c.rank(0));
  if (rank < 3) fail(ErrorKind::invalid_model, "", "the image has {} dims, expected 3 or more", rank);
  Value* mean =
      c.b.add("reduce_mean", {c.in[0]}, {{"axes", std::vector<int64_t>{rank - 3, rank - 2}}, {"keep_dims", true}});
  Value* factor = cast_to(c.in[1], c.in[0]->type.dtype, c.b);
  c.out = {c.b.add("add", {c.b.add("mul", {c.b.add("sub", {c.in[0], mean}), factor}), mean})};
}

/// Weights of `in` pixels in each of `out`, row by row.
struct Weights {
  int64_t in, out;
  std::vector<float> values = std::vector<float>(static_cast<size_t>(in * out), 0.0f);
  float& at(int64_t to, int64_t from) { return values[static_cast<size_t>(to * in + from)]; }
};

constexpr int64_t kLongestSide = 4096;

/// Height and width of the image and of the result.
struct Sides {
  int64_t in[2], out[2];
};

Sides sides(OpContext& c) {
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "the image has {} dims, expected 4", c.rank(0));
  const std::vector<int64_t> sizes = c.constant_integers(1, "the size");
  if (sizes.size() != 2) fail(ErrorKind::invalid_model, "", "the size has {} numbers, expected 2", sizes.size());
  Sides result{};
  for (size_t i : {0, 1}) {
    const Dim dim = c.in[0]->type.shape.dims[1 + i];
    if (!dim.known()) c.refuse("dim {} of the image is not known; declare the shapes of the model's inputs", 1 + i);
    result.in[i] = dim.size, result.out[i] = sizes[i];
    if (dim.size < 1 || sizes[i] < 1 || dim.size > kLongestSide || sizes[i] > kLongestSide)
      c.refuse("from {} to {} pixels is not supported", dim.size, sizes[i]);
  }
  return result;
}

/// Applies one set of weights to the rows, the other to the columns.
Value* resampled(OpContext& c, const Weights& rows, const Weights& columns) {
  Value* x = cast_to(c.in[0], kF32, c.b);
  const Dim last = x->type.shape.dims[3];
  if (!last.known()) c.refuse("the number of channels is not known");
  auto constant = [&](const Weights& weights) {
    return c.b.constant(Tensor::of<float>(kF32, {weights.out, weights.in}, weights.values));
  };
  x = reshape_to(x, {{-1, 0}, {rows.in}, {columns.in * last.size}}, c.b);
  x = c.b.add("matmul", {constant(rows), x});
  const Dim batch = c.in[0]->type.shape.dims[0];
  x = reshape_to(x, {batch.known() ? NewDim{batch.size * rows.out} : NewDim{}, {columns.in}, {last.size}}, c.b);
  x = c.b.add("matmul", {constant(columns), x});
  return reshape_to(x, {batch.known() ? NewDim{batch.size} : NewDim{}, {rows.out}, {columns.out}, {last.size}}, c.b);
}

/// Each pixel of the result is the mean of the pixels that it covers, weighted by the covered area.
void resize_area(OpContext& c) {
  c.expect_inputs(2);
  const Sides size = sides(c);
  std::vector<Weights> axes;
  for (size_t i : {0, 1}) {
    Weights weights{size.in[i], size.out[i]};
    const bool corners = c.boolean("align_corners", false) && size.out[i] > 1;
    const float scale = corners ? static_cast<float>(size.in[i] - 1) / static_cast<float>(size.out[i] - 1)
                                : static_cast<float>(size.in[i]) / static_cast<float>(size.out[i]);
    for (int64_t to = 0; to < size.out[i]; ++to) {
      const float begin = static_cast<float>(to) * scale, end = static_cast<float>(to + 1) * scale;
      for (auto from = static_cast<int64_t>(std::floor(begin)); from < static_cast<int64_t>(std::ceil(end)); ++from) {
        const float low = std::max(begin, static_cast<float>(from)), high = std::min(end, static_cast<float>(from + 1));
        weights.at(to, std::clamp<int64_t>(from, 0, size.in[i] - 1)) += (high - low) / scale;
      }
    }
    axes.push_back(std::move(weights));
  }
  c.out = {resampled(c, axes[0], axes[1])};
}

/// A kernel of TensorFlow's sampling, 0 from its radius on.
struct Kernel {
  float radius;
  float (*at)(float x);
};

float sinc(float x) { return std::sin(x) / x; }

template <int kRadius>
float lanczos(float x) {
  constexpr float kPi = 3.14159265359f;
  x = std::abs(x);
  if (x > kRadius) return 0;
  return x <= 1e-3f ? 1 : sinc(kPi * x) * sinc(kPi * x / kRadius);
}

float cubic(float x) {  // Keys, a = -0.5
  x = std::abs(x);
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : ((1.5f * x - 2.5f) * x) * x + 1;
}

float mitchell(float x) {
  x = std::abs(x);
  if (x >= 2) return 0;
  return x >= 1 ? (((-7.0f / 18) * x + 2) * x - 10.0f / 3) * x + 16.0f / 9 : (((7.0f / 6) * x - 2) * x) * x + 8.0f / 9;
}

float gaussian(float x) {
  constexpr float kRadius = 1.5f, kSigma = kRadius / 3;
  x = std::abs(x);
  return x >= kRadius ? 0 : std::exp(-x * x / (2 * kSigma * kSigma));
}

Kernel kernel_named(OpContext& c, const std::string& name) {
  if (name == "lanczos1") return {1, lanczos<1>};
  if (name == "lanczos3") return {3, lanczos<3>};
  if (name == "lanczos5") return {5, lanczos<5>};
  if (name == "gaussian") return {1.5f, gaussian};
  if (name == "box")
    return {0.5f, [](float x) { return std::abs(x) < 0.5f ? 1.0f : std::abs(x) == 0.5f ? 0.5f : 0.0f; }};
  if (name == "triangle") return {1, [](float x) { return std::max(0.0f, 1 - std::abs(x)); }};
  if (name == "keyscubic") return {2, cubic};
  if (name == "mitchellcubic") return {2, mitchell};
  c.refuse("kernel '{}' is not supported", printable(name));
}

/// Pixels scaled and moved; where they come from is weighted by the kernel, which is as wide as the scale with
/// antialiasing (scale_and_translate_op.cc).
void scale_and_translate(OpContext& c) {
  c.expect_inputs(4);
  const Sides size = sides(c);
  const Tensor scale = c.constant(2, "the scale"), shift = c.constant(3, "the translation");
  if (scale.dtype() != kF32 || scale.count() != 2 || shift.dtype() != kF32 || shift.count() != 2)
    fail(ErrorKind::invalid_model, "", "the scale and the translation must be two numbers each");
  const Kernel kernel = kernel_named(c, c.text("kernel_type", "lanczos3"));
  const bool antialias = c.boolean("antialias", true);
  std::vector<Weights> axes;
  for (size_t i : {0, 1}) {
    Weights weights{size.in[i], size.out[i]};
    const float factor = scale.values<float>()[i];
    if (!(factor > 0)) fail(ErrorKind::invalid_model, "", "the scale is {}", factor);
    const float inverse = 1 / factor, wide = antialias ? std::max(inverse, 1.0f) : 1;
    for (int64_t to = 0; to < size.out[i]; ++to) {
      const float middle = (static_cast<float>(to) + 0.5f) * inverse - inverse * shift.values<float>()[i];
      if (!(middle >= 0 && middle <= static_cast<float>(size.in[i]))) continue;  // NaN too
      const float reach = kernel.radius * wide, last = static_cast<float>(size.in[i] - 1);
      const auto begin = static_cast<int64_t>(std::clamp(std::ceil(middle - reach - 0.5f), 0.0f, last));
      const auto end = static_cast<int64_t>(std::clamp(std::floor(middle + reach - 0.5f), 0.0f, last));
      float sum = 0;
      for (int64_t from = begin; from <= end; ++from) {
        weights.at(to, from) = kernel.at(std::abs((static_cast<float>(from) + 0.5f - middle) / wide));
        sum += weights.at(to, from);
      }
      for (int64_t from = begin; from <= end && std::abs(sum) > 1000 * std::numeric_limits<float>::min(); ++from)
        weights.at(to, from) /= sum;
    }
    axes.push_back(std::move(weights));
  }
  c.out = {resampled(c, axes[0], axes[1])};
}

constexpr Row kColourRows[] = {
    {"AdjustContrastv2", adjust_contrast},
    {"AdjustHue", adjust_hue},
    {"AdjustSaturation", adjust_saturation},
    {"HSVToRGB", hsv_to_rgb},
    {"RGBToHSV", rgb_to_hsv},
    {"ResizeArea", resize_area, Trait::host},
    {"ScaleAndTranslate", scale_and_translate, Trait::host},
};

}  // namespace

std::span<const Row> colour_rows() { return kColourRows; }

}  // namespace cairn::tensorflow
