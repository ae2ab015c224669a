// Caffe's layers that resample images.
#include "frontends/caffe/importer.h"

namespace cairn::caffe {
namespace {

Value* resized(LayerContext& c, Value* x, int64_t height, int64_t width, const char* mode, const char* coordinates) {
  constexpr int64_t kMost = 1 << 24;
  if (height < 1 || width < 1 || height > kMost || width > kMost)
    c.invalid("the top has {} x {} pixels", height, width);
  Value* y = c.b.add("resize2d", {transposed(x, {0, 2, 3, 1}, c.b), c.b.ints({height, width})},
                     {{"mode", std::string(mode)}, {"coordinates", std::string(coordinates)}});
  return transposed(y, {0, 3, 1, 2}, c.b);
}

/// Bilinear, corner on corner; negative pads cut the image first.
void interpolate(LayerContext& c) {
  c.expect(1, 2);
  const Message params = c.params("interp_param");
  const int64_t shrink = params.integer("shrink_factor", 1), zoom = params.integer("zoom_factor", 1);
  const int64_t before = params.integer("pad_beg", 0), after = params.integer("pad_end", 0);
  if (shrink < 1 || zoom < 1 || before > 0 || after > 0)
    c.invalid("shrink_factor {}, zoom_factor {}, pad_beg {}, pad_end {} are not possible", shrink, zoom, before, after);
  Value* x = c.in[0];
  if (before < 0 || after < 0)
    x = c.b.add("slice", {x, c.b.ints({0, 0, -before, -before}),
                          c.b.ints({kToTheEnd, kToTheEnd, c.size(2) + after, c.size(3) + after})});
  const auto size = [&](size_t axis, const char* name) {
    if (c.in.size() == 2) return c.size(axis, 1);
    if (params.has(name)) return params.integer(name, 0);
    const int64_t kept = (c.size(axis) + before + after - 1) / shrink + 1;
    return kept + (kept - 1) * (zoom - 1);
  };
  c.out = {resized(c, x, size(2, "height"), size(3, "width"), "bilinear", "align_corners")};
}

/// Each pixel repeated `stride` times, times `scale`. Where there is no stride, the scale is it, as for YOLO's nets.
void upsample(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("upsample_param");
  const bool strided = params.has("stride") || params.has("stride_h") || params.has("stride_w");
  const double scale = params.real("scale", 1);
  const bool is_stride = !strided && scale > 1;
  const int64_t stride = params.integer("stride", is_stride ? static_cast<int64_t>(std::min(scale, 1e6)) : 2);
  const int64_t height = params.integer("stride_h", stride), width = params.integer("stride_w", stride);
  constexpr int64_t kMost = 1 << 15;
  if (height < 1 || width < 1 || height > kMost || width > kMost) c.invalid("strides are {} and {}", height, width);
  Value* y = resized(c, c.in[0], c.size(2) * height, c.size(3) * width, "nearest", "asymmetric");
  c.out = {is_stride || scale == 1 ? y : c.b.add("mul", {y, c.b.scalar_like(y, scale)})};
}

constexpr Row kImageRows[] = {
    {"Interp", interpolate},
    {"Upsample", upsample},
};

}  // namespace

std::span<const Row> image_rows() { return kImageRows; }

}  // namespace cairn::caffe
