// Ops that sample images between their pixels: at the places of a grid, and in regions of interest.
#include "ops/sampling.h"

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

GridRule::GridRule(const AttributeView& attr)
    : nearest(attr.text("mode") == "nearest"), cubic(attr.text("mode") == "cubic"),
      zeros(attr.text("padding") == "zeros"), border(attr.text("padding") == "border"),
      corners(attr.text("coordinates") == "align_corners"), pixels(attr.text("coordinates") == "pixel") {}

RegionRule::RegionRule(const AttributeView& attr)
    : size{attr.integers("size")[0], attr.integers("size")[1]}, samples(attr.integer("samples")),
      scale(static_cast<float>(attr.number("scale"))), most(attr.text("mode") == "max"),
      half_pixel(attr.boolean("half_pixel")) {}

Region RegionRule::region(const float* box) const {
  constexpr float kMostSamples = 4096;
  Region region;
  for (size_t axis : {0, 1}) {
    const float low = box[1 - axis] * scale, extent = box[3 - axis] * scale - low;
    region.start[axis] = low - (half_pixel ? 0.5f : 0);
    region.bin[axis] = (half_pixel ? extent : std::max(extent, 1.f)) / static_cast<float>(size[axis]);
    const float count = samples > 0 ? static_cast<float>(samples) : std::ceil(region.bin[axis]);
    if (count > kMostSamples)
      fail(ErrorKind::invalid_argument, "roi_align", "a box of {} pixels takes more than {} samples along an axis",
           extent, kMostSamples);
    region.samples[axis] = count > 0 ? static_cast<int64_t>(count) : 0;
  }
  return region;
}

namespace {

// --- grid_sample

void infer_grid_sample(InferContext& context) {
  const DType dtype = number_type(context, 0);
  number_type(context, 1);
  const Shape &x = context.shape(0), &grid = context.shape(1);
  if (x.ranked && (x.rank() < 3 || x.rank() > 5)) context.fail("x has {} dims, needs 3 to 5", x.rank());
  if (grid.ranked && grid.rank() < 2) context.fail("the grid has {} dims, needs 2 or more", grid.rank());
  if (!x.ranked || !grid.ranked) return context.result(dtype, Shape::unranked());
  same_size(context, grid.dims.back(), static_cast<int64_t>(x.rank()) - 2, "coordinates of the grid and spatial dims");
  Shape result = grid;
  result.dims.back() = x.dims.back();
  result.dims[0] = same_size(context, x.dims[0], grid.dims[0], "batch sizes");
  const bool samples = std::ranges::all_of(result.dims, [](const Dim& dim) { return dim.known() && dim.size > 0; });
  for (size_t i = 1; i + 1 < x.rank(); ++i)
    if (samples && x.dims[i].size == 0) context.fail("an empty image cannot be sampled");
  context.result(dtype, std::move(result));
}

void grid_sample(KernelContext& context) {
  allocate_results(context);
  const Tensor &x = context.input(0), &grid = context.input(1);
  Tensor& y = context.output(0);
  if (y.count() == 0) return;
  const GridRule rule(context.attr);
  const size_t dims = x.rank() - 2;
  const int64_t channels = x.dims().back(), batch = x.dims()[0], points = y.count() / channels / batch;
  const int64_t image = count_between(x.dims(), 1, x.rank());
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    with_floats(grid.dtype(), [&](auto place_tag) {
      using P = decltype(place_tag);
      using M = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<P, double>, double, float>;
      const P* place = data<P>(grid);
      T* to = data<T>(y);
      std::array<GridTaps<M>, 3> axes;
      for (int64_t point = 0; point < batch * points; ++point, place += dims) {
        size_t corners = 1;
        for (size_t i = 0; i < dims; ++i) {
          axes[i] = grid_taps<M>(rule, static_cast<M>(static_cast<Compute<P>>(place[dims - 1 - i])), x.dims()[i + 1]);
          corners *= axes[i].count;
        }
        for (const int64_t c : turns(channels)) {
          double sum = 0;
          for (size_t corner = 0; corner < corners; ++corner) {
            int64_t at = 0;
            M weight = 1;
            size_t left = corner;
            for (size_t i = 0; i < dims; left /= axes[i++].count) {
              const size_t tap = left % axes[i].count;
              at = at * x.dims()[i + 1] + axes[i].at[tap];
              weight *= axes[i].weight[tap];
            }
            if (weight != 0)
              sum += static_cast<double>(weight) *
                     static_cast<double>(data<T>(x)[point / points * image + at * channels + c]);
          }
          *to++ = T(static_cast<Compute<T>>(sum));
        }
      }
    });
  });
}

// One spatial dim of grid_sample in rows: places inside the image and their weights, all [n, points, 1].
class GridAxis {
 public:
  struct Tap {
    Var at, weight;
  };

  GridAxis(const GridRule& rule, Var place, const Size& size)
      : rule_(rule), last_(size.as(place.dtype()) - 1), range_(rule.corners ? last_ : last_ + 1) {
    if (!rule.pixels) place = (place + 1) * (range_ * 0.5) + rule.low();
    if (rule.cubic) {
      const Var first = place.apply("floor"), share = place - first;
      for (int tap = -1; tap <= 2; ++tap) {
        const Var at = first + tap, d = abs(share - tap);
        constexpr double kA = -0.75;
        const Var weight = tap == 0 || tap == 1 ? (d * (kA + 2) - (kA + 3)) * d * d + 1.0
                                                : ((d * kA - 5 * kA) * d + 8 * kA) * d - 4 * kA;
        add(rule.zeros || rule.border ? at : reflected(at), weight);
      }
      return;
    }
    if (rule.border) place = inside(place);
    if (!rule.zeros && !rule.border) place = reflected(place);
    if (rule.nearest) {
      add(place.apply("round"), ones_like(place));
      return;
    }
    const Var first = place.apply("floor"), share = place - first;
    add(first, 1.0 - share), add(first + 1, share);
  }
  const std::vector<Tap>& taps() const { return taps_; }

 private:
  Var inside(Var x) const { return minimum(maximum(x, x.number(0)), last_); }
  Var reflected(Var x) const {
    const Var whole = range_ * 2;
    const Var way = abs(x - rule_.low()).apply("mod", {select(whole > 0, whole, ones_like(whole))});
    return select(whole > 0, range_ - abs(way - range_) + rule_.low(), x * 0);
  }
  void add(Var at, Var weight) {
    const Var there = inside(at);
    if (rule_.zeros) weight = keep_where(at.apply("equal", {there}), weight);
    taps_.push_back({cast(there, kI64), weight});
  }

  const GridRule& rule_;
  Var last_, range_;
  std::vector<Tap> taps_;
};

std::vector<Value*> grid_sample_by_gathers(Builder& b, const Node& node) {
  const GridRule rule(node.attr());
  const Var x(b, node.inputs[0]);
  Var grid(b, node.inputs[1]);
  const size_t dims = x.shape().rank() - 2, last = grid.shape().rank() - 1;
  if (grid.dtype().bits == 16 || x.dtype() == kF64) grid = cast(grid, x.dtype() == kF64 ? kF64 : kF32);
  Sizes sizes, wanted;
  for (size_t i = 0; i < x.shape().rank(); ++i) sizes.emplace_back(x, i);
  for (size_t i = 0; i < last; ++i) wanted.emplace_back(grid, i);
  const Size points = product_of(b, wanted, 1, last), channels = sizes.back();
  const Var pixels = reshape(x, {sizes[0], product_of(b, sizes, 1, dims + 1), channels});
  const Var places = reshape(grid, {wanted[0], points, Size(b, static_cast<int64_t>(dims))});
  std::vector<GridAxis> axes;
  size_t corners = 1;
  for (size_t i = 0; i < dims; ++i) {
    const auto column = static_cast<int64_t>(dims - 1 - i);
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    axes.emplace_back(rule, places.apply("slice", {{b, b.ints({0, 0, column})}, {b, b.ints({kAll, kAll, column + 1})}}),
                      sizes[i + 1]);
    corners *= axes.back().taps().size();
  }
  std::optional<Var> y;
  for (size_t corner = 0; corner < corners; ++corner) {
    size_t left = corner;
    std::optional<Var> at, weight;
    for (size_t i = 0; i < dims; left /= axes[i++].taps().size()) {
      const GridAxis::Tap& tap = axes[i].taps()[left % axes[i].taps().size()];
      at = at ? *at * sizes[i + 1].scalar() + tap.at : tap.at;
      weight = weight ? *weight * tap.weight : tap.weight;
    }
    const Var part =
        pixels.apply("gather", {reshape(*at, {wanted[0], points})}, {{"axis", int64_t{1}}, {"batch_dims", int64_t{1}}});
    const Var share = cast(part, weight->dtype()) * *weight;
    y = y ? *y + share : share;
  }
  wanted.push_back(channels);
  return {cast(reshape(*y, wanted), x.dtype()).value};
}

// --- roi_align

std::vector<AttrDef> region_attributes() {
  return {integers("size", {1, 1}), integer("samples", 0), number("scale", 1), word("mode", "avg", {"avg", "max"}),
          flag("half_pixel")};
}

void check_regions(InferContext& context, size_t boxes) {
  if (context.dtype(boxes) != kF32) context.fail("boxes must be f32, found {}", to_string(context.dtype(boxes)));
  const std::vector<int64_t>& size = context.attr.integers("size");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) context.fail("size must be two positive numbers");
  if (!ranked(context, boxes, 2)) return;
  same_size(context, context.shape(boxes).dims[1], 4, "columns of boxes and 4");
  if (ranked(context, boxes + 1, 1))
    same_size(context, context.shape(boxes).dims[0], context.shape(boxes + 1).dims[0], "numbers of boxes and indices");
}

void check_samples(const InferContext& context) {
  if (context.attr.integer("samples") < 0) context.fail("samples must not be negative");
}

void infer_roi_align(InferContext& context) {
  const DType dtype = number_type(context, 0);
  check_samples(context);
  check_regions(context, 1);
  const std::vector<Dim> x = dims_of_rank(context, 0, 4);
  const std::vector<int64_t>& size = context.attr.integers("size");
  context.result(dtype, Shape{dims_of_rank(context, 1, 2)[0], size[0], size[1], x[3]});
}

void infer_roi_align_gradient(InferContext& context) {
  const DType dtype = number_type(context, 0);
  if (context.attr.text("mode") == "max") context.fail("has the mean of samples alone");
  check_samples(context);
  check_regions(context, 1);
  const std::vector<Dim> dy = dims_of_rank(context, 0, 4);
  Shape shape = shape_operand(context, 3);
  if (!shape.ranked) shape = Shape(std::vector<Dim>(4));
  if (shape.rank() != 4) context.fail("shape must have 4 sizes, found {}", shape.rank());
  shape.dims[3] = same_size(context, shape.dims[3], dy[3], "channels of dy and of the image");
  context.result(dtype, std::move(shape));
}

/// Calls visit(bin, region, image, h, w) for each bin of each box, with its image's first element.
template <class Visit>
void visit_bins(KernelContext& context, const Dims& in, Visit&& visit) {
  const Dims indices = context.input(2).as_i64();
  const RegionRule rule(context.attr);
  int64_t bin = 0;
  for (size_t box = 0; box < indices.size(); ++box) {
    const int64_t image = indices[box];
    if (image < 0 || image >= in[0]) context.fail("box index {} is out of range for {} images", image, in[0]);
    const Region region = rule.region(data<float>(context.input(1)) + 4 * box);
    for (const int64_t h : turns(rule.size[0]))
      for (int64_t w = 0; w < rule.size[1]; ++w, ++bin) visit(bin, region, image * in[1] * in[2] * in[3], h, w);
  }
}

std::span<const int64_t, 3> one_image(const Dims& images) { return std::span<const int64_t, 3>(&images[1], 3); }

void roi_align(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const int64_t channels = x.dims()[3];
  const bool most = context.attr.text("mode") == "max";
  std::vector<double> found(static_cast<size_t>(y.count()));
  std::vector<bool> begun(found.size());
  const auto put = [&](int64_t i, double sample) {
    const auto at = static_cast<size_t>(i);
    found[at] = !most ? found[at] + sample : begun[at] ? std::max(found[at], sample) : sample;
    begun[at] = true;
  };
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    visit_bins(context, x.dims(), [&](int64_t bin, const Region& region, int64_t image, int64_t h, int64_t w) {
      const auto inside = [&](const auto& corners, const auto& weights) {
        for (const int64_t c : turns(channels)) {
          std::array<double, 4> parts;
          for (size_t k = 0; k < 4; ++k)
            parts[k] = static_cast<double>(weights[k]) *
                       static_cast<double>(static_cast<Compute<T>>(data<T>(x)[image + corners[k] + c]));
          put(bin * channels + c,
              most ? std::max(std::max(std::max(parts[0], parts[1]), parts[2]), parts[3])
                   : (parts[0] + parts[1] + parts[2] + parts[3]) * static_cast<double>(region.share()));
        }
      };
      region.each_sample(h, w, one_image(x.dims()), 1, inside, [&] {
        for (int64_t c = 0; c < channels; ++c) put(bin * channels + c, 0);
      });
    });
    for (size_t i = 0; i < found.size(); ++i) data<T>(y)[i] = T(static_cast<Compute<T>>(found[i]));
  });
}

void roi_align_back(KernelContext& context) {
  allocate_results(context);
  const Tensor& dy = context.input(0);
  Tensor& dx = context.output(0);
  const int64_t channels = dx.dims()[3];
  std::vector<double> sums(static_cast<size_t>(dx.count()));
  with_floats(dy.dtype(), [&](auto tag) {
    using T = decltype(tag);
    visit_bins(context, dx.dims(), [&](int64_t bin, const Region& region, int64_t image, int64_t h, int64_t w) {
      const auto inside = [&](const auto& corners, const auto& weights) {
        for (size_t k = 0; k < 4; ++k)
          for (const int64_t c : turns(channels))
            sums[static_cast<size_t>(image + corners[k] + c)] +=
                static_cast<double>(weights[k]) * static_cast<double>(region.share()) *
                static_cast<double>(static_cast<Compute<T>>(data<T>(dy)[bin * channels + c]));
      };
      region.each_sample(h, w, one_image(dx.dims()), 1, inside, [] {});
    });
    for (size_t i = 0; i < sums.size(); ++i) data<T>(dx)[i] = T(static_cast<Compute<T>>(sums[i]));
  });
}

void roi_align_rule(GradientContext& g) {
  if (g.attr.text("mode") == "max") refuse_gradient(g, "has a gradient for the mean of samples alone");
  const Type type = Type::tensor(g.x(0).dtype(), g.x(0).shape());
  const std::vector<Value*> inputs{g.dy().value, g.x(1).value, g.x(2).value, dims_of(g.x(0)).value};
  g.set(0, {g.b, g.b.add_node(op_named("roi_align_gradient"), inputs, g.node().attributes, {}, {type})->result()});
}

void roi_align_gradient_rule(GradientContext& g) {
  g.set(0, g.dy().apply("roi_align", {g.x(1), g.x(2)}, g.node().attributes));
}

// --- roi_pool

void infer_roi_pool(InferContext& context) {
  const DType dtype = number_type(context, 0);
  check_regions(context, 1);
  const std::vector<int64_t>& size = context.attr.integers("size");
  Dim channels = dims_of_rank(context, 0, 4)[3];
  if (context.attr.text("mode") == "placed_mean" && channels.known()) {
    int64_t parts;
    if (__builtin_mul_overflow(size[0], size[1], &parts) || channels.size % parts != 0)
      context.fail("{} channels do not divide into {} x {} parts", channels.size, size[0], size[1]);
    channels = channels.size / parts;
  } else if (context.attr.text("mode") == "placed_mean") {
    channels = Dim();
  }
  context.result(dtype, Shape{dims_of_rank(context, 1, 2)[0], size[0], size[1], channels});
}

/// The pixels begin .. end - 1 of each part of a box along one axis of `pixels`.
struct Parts {
  Parts(float low, float high, float scale, bool placed, int64_t count, int64_t pixels) : pixels_(pixels) {
    if (placed) {
      start_ = std::round(low) * scale;
      part_ = std::max((std::round(high) + 1) * scale - start_, 0.1f) / static_cast<float>(count);
      return;
    }
    start_ = std::round(low * scale);
    part_ = std::max(std::round(high * scale) - start_ + 1, 1.0f) / static_cast<float>(count);
    whole_ = true;
  }
  std::pair<int64_t, int64_t> operator[](int64_t i) const {
    const float first = static_cast<float>(i) * part_, last = static_cast<float>(i + 1) * part_;
    return {pixel(whole_ ? std::floor(first) + start_ : std::floor(first + start_)),
            pixel(whole_ ? std::ceil(last) + start_ : std::ceil(last + start_))};
  }

 private:
  int64_t pixel(float at) const {
    return at > 0 ? static_cast<int64_t>(std::min(at, static_cast<float>(pixels_)))
                  : 0;  // 0 also for what is no number
  }

  float start_, part_;
  int64_t pixels_;
  bool whole_ = false;
};

void roi_pool(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const std::vector<int64_t>& size = context.attr.integers("size");
  const bool placed = context.attr.text("mode") == "placed_mean";
  const auto scale = static_cast<float>(context.attr.number("scale"));
  const int64_t height = x.dims()[1], width = x.dims()[2], channels = x.dims()[3], made = y.dims()[3];
  const Dims indices = context.input(2).as_i64();
  int64_t out = 0;
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    for (size_t box = 0; box < indices.size(); ++box) {
      const int64_t image = indices[box];
      if (image < 0 || image >= x.dims()[0])
        context.fail("box index {} is out of range for {} images", image, x.dims()[0]);
      const float* corner = data<float>(context.input(1)) + 4 * box;
      const Parts rows(corner[1], corner[3], scale, placed, size[0], height),
          columns(corner[0], corner[2], scale, placed, size[1], width);
      for (const int64_t h : turns(size[0]))
        for (int64_t w = 0; w < size[1]; ++w)
          for (int64_t c = 0; c < made; ++c) {
            const auto [top, bottom] = rows[h];
            const auto [left, right] = columns[w];
            const int64_t channel = placed ? (c * size[0] + h) * size[1] + w : c;
            C sum = 0, most = -std::numeric_limits<C>::infinity();
            for (int64_t i = top; i < bottom; ++i)
              for (int64_t j = left; j < right; ++j) {
                const auto pixel = static_cast<C>(data<T>(x)[((image * height + i) * width + j) * channels + channel]);
                sum += pixel, most = std::max(most, pixel);
              }
            const int64_t count = std::max<int64_t>(bottom - top, 0) * std::max<int64_t>(right - left, 0);
            data<T>(y)[out++] = count == 0 ? T(C(0)) : placed ? T(sum / static_cast<C>(count)) : T(most);
          }
    }
  });
}

std::vector<OpDef> make_sampling_rows() {
  const InputDef boxes = index_operand("boxes", Accepts::floats);
  return {
      {.name = "grid_sample",
       .summary =
           "images or volumes x [n, .., c] at the places [n, .., d] of a grid, the last spatial dim first; a place "
           "is a number of pixels, or from -1 to 1 over the image (align_corners: from the middle of the first "
           "pixel to that of the last); linear, the nearest pixel (halves to even) or Keys' cubic (-0.75); pixels "
           "outside are 0, the border's, or the image reflected; a place that is not a number gives NaN or pixel 0",
       .inputs = {{"x", Accepts::floats}, {"grid", Accepts::floats}},
       .attributes = {word("mode", "linear", {"linear", "nearest", "cubic"}),
                      word("padding", "zeros", {"zeros", "border", "reflection"}),
                      word("coordinates", "half_pixel", {"half_pixel", "align_corners", "pixel"})},
       .precision = Precision::accumulate_f32,
       .infer = infer_grid_sample,
       .gradient = by_decomposition,
       .decompose = grid_sample_by_gathers,
       .reference = grid_sample,
       .oracle = untested("tests/python/peers/test_sampling.py compares it with torch; the node tests of ONNX"),
       .cases =
           {"f32[2, 5, 4, 3], f32[2, 3, 2, 2]=[-0.93, 0.12, 0.27, -0.35, 0.81, 0.94, -1.2, 0.3, 0.1, 1.6, 0.52, 0.23, "
            "-0.42, -0.71, 0.64, 0.02, -0.15, 0.55, 0.33, -0.88, 0.9, -0.27, -0.6, 0.41]",
            "f32[1, 5, 4, 2], f32[1, 3, 2]=[-0.93, 0.12, 1.31, -1.37, 0.81, 0.94] {padding = border, coordinates = "
            "align_corners}",
            "f32[1, 5, 4, 2], f32[1, 3, 2]=[-1.93, 0.12, 3.31, -1.37, 0.81, 0.94] {mode = cubic, padding = reflection}",
            "f32[1, 4, 5, 2], f32[1, 3, 2]=[-0.93, 0.12, 0.31, -1.07, 0.81, 0.94] {mode = cubic}",
            "f32[1, 4, 5, 2], f32[1, 3, 2]=[-0.93, 0.12, 0.31, -1.47, 0.81, 0.94] {mode = nearest, padding = "
            "reflection, "
            "coordinates = align_corners}",
            "f32[1, 3, 4, 2, 2], f32[1, 2, 3]=[0.3, -0.2, 0.7, -0.9, 1.1, 0.15]",
            "f32[1, 7, 3], f32[1, 2, 2, 1]=[0.3, -0.22, 0.71, 1.1] {padding = reflection}",
            "f32[1, 5, 4, 2], f32[1, 3, 2]=[2.3, 1.6, -0.4, 3.7, 3.4, 4.2] {coordinates = pixel}",
            "f16[1, 5, 4, 2], f32[1, 1, 2]=[0.3, -0.2]", "f32[0, 5, 4, 2], f32[0, 3, 2]"}},
      {.name = "roi_align",
       .summary =
           "for each box (x1, y1, x2, y2, times scale) over the NHWC image with its index the mean, or the largest "
           "weighted pixel, of samples in bins of `size` (height, width); samples: along each axis of a bin, 0 for "
           "about one a pixel; half_pixel shifts boxes by half a pixel, else they measure at least one; samples "
           "more than a pixel outside count as 0, and bins without samples are 0",
       .inputs = {{"x", Accepts::floats}, boxes, index_operand("index")},
       .attributes = region_attributes(),
       .precision = Precision::accumulate_f32,
       .infer = infer_roi_align,
       .gradient = roi_align_rule,
       .reference = roi_align,
       .oracle = untested(
           "tests/python/peers/test_sampling.py compares it with a statement in NumPy; the node tests of ONNX"),
       .cases = {"f32[2, 6, 7, 3], f32[3, 4]=[0.5, 1, 5.5, 4, -1, -2, 3, 8, 2, 2, 2.5, 2.25], i64[3]=[0, 1, 1] {size = "
                 "[2, 3], "
                 "samples = 2}",
                 "f32[1, 9, 8, 5], f32[2, 4]=[1, 2, 14, 17, 3, 1, 4, 19], i32[2]=[0, 0] {size = [2, 2], scale = 0.5, "
                 "half_pixel = true}",
                 "f16[1, 4, 4, 2], f32[1, 4]=[0, 0, 3, 3], i64[1]=[0] {size = [1, 2], samples = 1}",
                 "f32[1, 4, 4, 2], f32[0, 4]=[], i64[0]=[] {size = [3, 3]}",
                 "f32[1, 5, 6, 9], f32[4, 4]=[0.5, 1, 5.5, 4, -4, -3, 2, 2, 30, 20, 40, 30, 3, 3, 2, 1], i64[4]=[0, 0, "
                 "0, 0] "
                 "{size = [2, 2], mode = max, half_pixel = true}",
                 "f32[1, 5, 6, 9], f32[2, 4]=[-4, -3, 2, 2, 3, 3, 2, 1], i64[2]=[0, 0] {size = [2, 3], samples = 2, "
                 "mode = max}",
                 "f32[1, 0, 6, 3], f32[1, 4]=[-4, -3, 2, 2], i64[1]=[0] {size = [2, 3], samples = 2}"}},
      {.name = "roi_pool",
       .summary =
           "for each box (x1, y1, x2, y2, times scale, rounded) over the NHWC image with its index the largest pixel "
           "in each of `size` (height, width) parts; placed_mean: the box is rounded before it is scaled, and each "
           "part "
           "has the mean of a channel of its own, [result channels, height, width] of them; empty parts are 0",
       .inputs = {{"x", Accepts::floats}, boxes, index_operand("index")},
       .attributes = {integers("size", {1, 1}), number("scale", 1), word("mode", "max", {"max", "placed_mean"})},
       .precision = Precision::accumulate_f32,
       .infer = infer_roi_pool,
       .no_gradient = "regions in whole pixels serve inference; roi_align has a gradient",
       .reference = roi_pool,
       .oracle =
           untested("tests/python/test_caffe_boxes.py states it in NumPy; ONNX Runtime has the largest as MaxRoiPool"),
       .cases = {"f32[2, 6, 7, 3], f32[3, 4]=[0.5, 1, 5.5, 4, -1, -2, 3, 8, 2, 2, 2.5, 2.25], i64[3]=[0, 1, 1] {size = "
                 "[2, 3]}",
                 "f32[1, 9, 8, 12], f32[2, 4]=[1, 2, 14, 17, 3, 1, 4, 19], i32[2]=[0, 0] {size = [2, 3], scale = 0.5, "
                 "mode = placed_mean}",
                 "f16[1, 4, 4, 2], f32[1, 4]=[0, 0, 3, 3], i64[1]=[0] {size = [1, 2]}",
                 "f32[1, 4, 4, 2], f32[0, 4]=[], i64[0]=[] {size = [3, 3]}",
                 "f32[1, 0, 6, 3], f32[1, 4]=[-4, -3, 2, 2], i64[1]=[0] {size = [2, 3]}"}},
      {.name = "roi_align_gradient",
       .summary = "gradient of roi_align by its image of the given shape (NHWC), for the gradient dy of its result",
       .inputs = {{"dy", Accepts::floats}, boxes, index_operand("index"), shape_operand("shape")},
       .attributes = region_attributes(),
       .precision = Precision::accumulate_f32,
       .infer = infer_roi_align_gradient,
       .gradient = roi_align_gradient_rule,
       .reference = roi_align_back,
       .oracle = untested("no framework at hand has it; tests/autodiff compares roi_align with differences"),
       .cases =
           {"f32[2, 2, 3, 3], f32[2, 4]=[0.5, 1, 5.5, 4, -1, -2, 3, 8], i64[2]=[0, 1], i64[4]=[2, 6, 7, 3] {size = [2, "
            "3], samples = 2}",
            "f32[1, 2, 2, 2], f32[1, 4]=[1, 2, 7, 8], i32[1]=[0], i32[4]=[1, 9, 8, 2] {size = [2, 2], half_pixel = "
            "true}"}},
  };
}

}  // namespace

std::span<const OpDef> sampling_ops() {
  static const std::vector<OpDef> rows = make_sampling_rows();
  return rows;
}

}  // namespace cairn
