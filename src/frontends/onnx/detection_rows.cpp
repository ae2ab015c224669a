// ONNX's ops on boxes, and sampling of images at computed positions.
#include <numeric>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

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

/// One spatial dim of GridSample: where the samples lie, and their neighbours with their weights, all [n, samples, 1].
class GridAxis {
 public:
  struct Tap {
    Value *at, *weight;  // a place inside the image; null: 1
  };

  GridAxis(OpContext& c, Value* grid, int64_t size) : b_(c.b), size_(static_cast<double>(size)) {
    const std::string mode = c.text("mode", "linear"), padding = c.text("padding_mode", "zeros");
    const bool cubic = mode == "cubic" || mode == "bicubic";
    if (mode != "linear" && mode != "bilinear" && mode != "nearest" && !cubic)
      c.refuse("mode '{}' is not supported", printable(mode));
    if (padding != "zeros" && padding != "border" && padding != "reflection")
      fail(ErrorKind::invalid_model, "", "padding_mode '{}' is unknown", printable(padding));
    const bool corners = c.integer("align_corners", 0) != 0;
    const double step = (corners ? size_ - 1 : size_) / 2;  // from -1 .. 1 to pixels
    Value* place = plus(times(plus(grid, 1), step), corners ? 0 : -0.5);
    if (cubic) {
      Value *first = b_.add("floor", {place}), *share = b_.add("sub", {place, first});
      for (int tap = -1; tap <= 2; ++tap) {
        Value* at = plus(first, tap);
        if (padding == "border") at = inside(at);
        if (padding == "reflection") at = reflected(at, corners ? 0 : -0.5, 2 * step);
        add(at, keys(plus(share, -tap), tap == 0 || tap == 1), padding == "zeros");
      }
      return;
    }
    if (padding == "border") place = inside(place);
    if (padding == "reflection") place = reflected(place, corners ? 0 : -0.5, 2 * step);
    Value* first = b_.add(mode == "nearest" ? "round" : "floor", {place});
    add(first, nullptr, padding == "zeros");
    if (mode == "nearest") return;
    Value* share = b_.add("sub", {place, first});
    taps_[0].weight = product(taps_[0].weight, plus(times(share, -1), 1), b_);
    add(plus(first, 1), share, padding == "zeros");
  }
  const std::vector<Tap>& taps() const { return taps_; }
  static Value* product(Value* x, Value* y, Builder& b) {
    return x == nullptr ? y : y == nullptr ? x : b.add("mul", {x, y});
  }

 private:
  Value* plus(Value* x, double y) { return y == 0 ? x : b_.add("add", {x, b_.scalar_like(x, y)}); }
  Value* times(Value* x, double y) { return b_.add("mul", {x, b_.scalar_like(x, y)}); }
  Value* inside(Value* x) { return b_.add("clip", {x}, {{"low", 0.0}, {"high", size_ - 1}}); }

  /// The weight of Keys' cubic at a distance below 1 (near), or of 1 to 2.
  Value* keys(Value* distance, bool near) {
    constexpr double kA = -0.75;
    const Var d(b_, b_.add("abs", {distance}));
    return (near ? (d * (kA + 2) - (kA + 3)) * d * d + 1.0 : ((d * kA - 5 * kA) * d + 8 * kA) * d - 4 * kA).value;
  }

  /// Reflects x repeatedly into the interval from low to low + range.
  Value* reflected(Value* x, double low, double range) {
    if (range == 0) return times(x, 0);
    Value* way = b_.add("mod", {b_.add("abs", {plus(x, -low)}), b_.scalar_like(x, 2 * range)});
    return plus(times(b_.add("abs", {plus(way, -range)}), -1), low + range);
  }

  void add(Value* at, Value* weight, bool zeros) {
    Value* there = inside(at);
    if (zeros) weight = product(weight, cast_to(b_.add("equal", {at, there}), at->type.dtype, b_), b_);
    taps_.push_back({there, weight});
  }

  Builder& b_;
  double size_;
  std::vector<Tap> taps_;
};

/// Images [n, c, ..] at places [n, .., dims], the last spatial dim first, each from -1 to 1: [n, c, ..].
void grid_sample(OpContext& c) {
  c.expect_inputs(2, 2);
  const size_t rank = c.rank(0), dims = rank - 2;
  if (c.rank(1) != rank || rank < 3 || rank > 5)
    c.refuse("images of {} dims and a grid of {} are not supported", rank, c.rank(1));
  const Shape image = c.in[0]->type.shape, grid = c.in[1]->type.shape;
  std::vector<int64_t> last_channel{0}, sizes;
  std::vector<NewDim> flat{{-1, 0}, {1}, {-1, 1}}, wanted{{-1, 0}};
  int64_t samples = 1;
  for (size_t i = 2; i < rank; ++i) {
    if (!image.dims[i].known() || !grid.dims[i - 1].known()) c.refuse("the sizes of image and grid must be known");
    sizes.push_back(image.dims[i].size);
    if (sizes.back() < 1 || __builtin_mul_overflow(flat[1].size, sizes.back(), &flat[1].size) ||
        __builtin_mul_overflow(samples, grid.dims[i - 1].size, &samples))
      fail(ErrorKind::invalid_model, "", "the image or the grid is too large or empty");
    last_channel.push_back(static_cast<int64_t>(i));
    wanted.push_back({grid.dims[i - 1].size});
  }
  last_channel.push_back(1), wanted.push_back({-1, 1});
  Value* pixels =
      reshape_to(transposed(c.in[0], last_channel, c.b), {{-1, 0}, flat[1], {-1, static_cast<int>(rank) - 1}}, c.b);
  Value* places = reshape_to(c.in[1], {{-1, 0}, {samples}, {static_cast<int64_t>(dims)}}, c.b);
  std::vector<GridAxis> axes;
  for (size_t i = 0; i < dims; ++i) {
    const auto column = static_cast<int64_t>(dims - 1 - i);
    axes.emplace_back(
        c, c.b.add("slice", {places, c.b.ints({0, 0, column}), c.b.ints({kToTheEnd, kToTheEnd, column + 1})}),
        sizes[i]);
  }
  // Floats hold the number of every pixel of so many.
  const bool exact = places->type.dtype == kF32 && flat[1].size <= 1 << 24;
  Value* y = nullptr;
  size_t corners = 1;
  for (const GridAxis& axis : axes) corners *= axis.taps().size();
  for (size_t corner = 0; corner < corners; ++corner) {
    Value *at = nullptr, *weight = nullptr;
    size_t left = corner;
    for (size_t i = 0; i < dims; left /= axes[i++].taps().size()) {
      const GridAxis::Tap& tap = axes[i].taps()[left % axes[i].taps().size()];
      Value* place = exact ? tap.at : cast_to(tap.at, kI64, c.b);
      if (at) at = c.b.add("mul", {at, c.b.scalar_like(at, static_cast<double>(sizes[i]))});
      at = at ? c.b.add("add", {at, place}) : place;
      weight = GridAxis::product(weight, tap.weight, c.b);
    }
    if (exact) at = cast_to(at, kI32, c.b);
    Value* part =
        c.b.add("gather", {pixels, squeeze(at, {2}, c.b)}, {{"axis", int64_t{1}}, {"batch_dims", int64_t{1}}});
    part = GridAxis::product(part, weight == nullptr ? nullptr : cast_to(weight, part->type.dtype, c.b), c.b);
    y = y == nullptr ? part : c.b.add("add", {y, part});
  }
  wanted.back() = {-1, 2};
  y = reshape_to(y, wanted, c.b);
  std::vector<int64_t> first_channel{0, static_cast<int64_t>(rank) - 1};
  for (size_t i = 1; i + 1 < rank; ++i) first_channel.push_back(static_cast<int64_t>(i));
  c.out = {transposed(y, first_channel, c.b)};
}

constexpr Row kDetectionRows[] = {
    {"GridSample", grid_sample},
    {"NonMaxSuppression", non_max_suppression},
};

}  // namespace

std::span<const Row> detection_rows() { return kDetectionRows; }

}  // namespace cairn::onnx
