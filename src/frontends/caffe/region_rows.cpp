// Layers that read images at computed places: regions that a net proposes, and images turned and stretched.
#include "frontends/caffe/boxes.h"
#include "ops/gradients.h"

namespace cairn::caffe {
namespace {

/// Rows of image, x1, y1, x2, y2: [n, 5], with dims of 1 behind, or as Proposal gives them, [images, 5, n].
Var regions(LayerContext& c) {
  Value* rows = c.in[1];
  if (c.rank(1) == 3 && c.size(1, 1) == 5) rows = transposed(rows, {0, 2, 1}, c.b);
  return {c.b, c.b.add("reshape", {rows, c.b.ints({-1, 5})})};
}

Var corners(Var rows) {
  Builder& b = *rows.builder;
  return rows.apply("slice", {{b, b.ints({0, 1})}, {b, b.ints({kToTheEnd, kToTheEnd})}});
}
Value* images(Var rows) {
  return rows.builder->add("reshape", {cast(column(rows, 0), kI64).value, rows.builder->ints({-1})});
}

/// `op` over the NHWC image.
Value* of_regions(LayerContext& c, const char* op, Var boxes, Value* index, Attributes attributes) {
  if (c.rank() != 4) c.refuse("images of {} dims are not supported, only 4", c.rank());
  Value* y = c.b.add(op, {transposed(c.in[0], {0, 2, 3, 1}, c.b), boxes.value, index}, std::move(attributes));
  return transposed(y, {0, 3, 1, 2}, c.b);
}

std::vector<int64_t> pooled_size(LayerContext& c, const Message& params) {
  const std::vector<int64_t> size{params.integer("pooled_h", 0), params.integer("pooled_w", 0)};
  constexpr int64_t kMost = 1 << 12;
  for (int64_t side : size)
    if (side < 1 || side > kMost) c.invalid("pooled_h and pooled_w are {} and {}", size[0], size[1]);
  return size;
}

/// The largest element in each of pooled_h x pooled_w parts of a region, in whole pixels.
void roi_pooling(LayerContext& c) {
  c.expect(2, 3);
  const Message params = c.params("roi_pooling_param");
  const double scale = params.real("spatial_scale", 1);
  const auto down = static_cast<float>(params.real("spatial_scale_h", scale)),
             across = static_cast<float>(params.real("spatial_scale_w", scale));
  const Var rows = regions(c);
  c.out = {of_regions(c, "roi_pool", corners(rows) * numbers(c.b, {4}, {across, down, across, down}), images(rows),
                      {{"size", pooled_size(c, params)}})};
}

/// The mean of each part of a region, of a channel that the part has for its own.
void placed_roi_pooling(LayerContext& c) {
  c.expect(2);
  const Message params = c.params("psroi_pooling_param");
  const int64_t side = params.integer("group_size", 0), outputs = params.integer("output_dim", 0);
  constexpr int64_t kMost = 1 << 12;
  if (side < 1 || side > kMost || outputs < 1 || outputs > kMost * kMost || c.size(1) != side * side * outputs)
    c.invalid("{} channels are not {} of {} x {} parts", c.size(1), outputs, side, side);
  const Var rows = regions(c);
  c.out = {of_regions(c, "roi_pool", corners(rows), images(rows),
                      {{"size", std::vector{side, side}},
                       {"mode", std::string("placed_mean")},
                       {"scale", params.real("spatial_scale", 1)}})};
}

/// The mean of samples between pixels; with roi_end_mode 1 a region's last pixel counts.
void aligned_regions(LayerContext& c) {
  c.expect(2, 3);
  const Message params = c.params("roi_align_param");
  const int64_t end = params.integer("roi_end_mode", 0);
  if (end != 0 && end != 1) c.refuse("roi_end_mode {} is not supported", end);
  const Var rows = regions(c);
  Var boxes = corners(rows);
  if (end == 1) boxes = boxes + numbers(c.b, {4}, {0, 0, 1, 1});
  const int64_t samples = params.integer("sampling_ratio", 2);
  if (samples < 0 || samples > 1024) c.invalid("sampling_ratio is {}", samples);
  c.out = {
      of_regions(c, "roi_align", boxes, images(rows),
                 {{"size", pooled_size(c, params)}, {"samples", samples}, {"scale", params.real("spatial_scale", 1)}})};
}

/// The image at places that six numbers of each image tell: those that the layer fixes, the others by the second bottom. Rows come first.
void spatial_transformer(LayerContext& c) {
  c.expect(1, 2);
  Builder& b = c.b;
  const Message params = c.params("st_param");
  const std::string_view kind = params.has("transform_type") ? params.text("transform_type") : "affine",
                         sampler = params.has("sampler_type") ? params.text("sampler_type") : "bilinear";
  if (kind != "affine" || sampler != "bilinear")
    c.refuse("only affine transforms with bilinear sampling are supported");
  const int64_t height = params.integer("output_H", c.size(2)), width = params.integer("output_W", c.size(3));
  constexpr int64_t kMost = 1 << 12;
  if (height < 1 || width < 1 || height > kMost || width > kMost)
    c.invalid("the top has {} x {} pixels", height, width);
  std::vector<Var> theta;
  int64_t next = 0;
  for (const char* name : {"theta_1_1", "theta_1_2", "theta_1_3", "theta_2_1", "theta_2_2", "theta_2_3"}) {
    if (params.has(name)) {
      theta.push_back(numbers(b, {1, 1, 1}, {static_cast<float>(params.real(name, 0))}));
    } else {
      if (c.in.size() < 2 || next >= c.size(1, 1))
        c.invalid("{} is neither a parameter nor in the second bottom", name);
      theta.push_back({b, c.reshape(column({b, c.in[1]}, next++).value, {{-1, 0}, {1}, {1}})});
    }
  }
  const auto line = [&](int64_t size, std::vector<int64_t> dims) {
    std::vector<float> at;
    for (int64_t i = 0; i < size; ++i) at.push_back(static_cast<float>(i) / static_cast<float>(size) * 2 - 1);
    return numbers(b, std::move(dims), at);
  };
  const Var row = line(height, {1, height, 1}), across = line(width, {1, 1, width});
  const auto place = [&](size_t i, size_t axis) {
    const Var at = theta[i] * row + theta[i + 1] * across + theta[i + 2];
    const Var pixels = (at + 1.0) * (0.5 * static_cast<double>(c.size(axis)));
    const Var all = pixels + zeros_like(row + across) +
                    Var{b, b.add("broadcast_to", {b.scalar(0), joined({dim_of(c.in[0], 0, b), b.ints({1, 1})}, b)})};
    return Var{b, expand_dims(all.value, {3}, b)};
  };
  const Var grid = beside({place(3, 3), place(0, 2)}, 3);
  Value* y =
      b.add("grid_sample", {transposed(c.in[0], {0, 2, 3, 1}, b), grid.value}, {{"coordinates", std::string("pixel")}});
  c.out = {transposed(y, {0, 3, 1, 2}, b)};
}

constexpr Row kRegionRows[] = {
    {"PSROIPooling", placed_roi_pooling},
    {"ROIAlign", aligned_regions},
    {"ROIPooling", roi_pooling},
    {"SpatialTransformer", spatial_transformer},
};

}  // namespace

std::span<const Row> region_rows() { return kRegionRows; }

}  // namespace cairn::caffe
