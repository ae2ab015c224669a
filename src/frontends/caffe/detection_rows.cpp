// Caffe's layers of detection nets.
#include <algorithm>
#include <cmath>

#include "frontends/caffe/importer.h"

namespace cairn::caffe {
namespace {

/// Boxes at each pixel of a feature map, as parts of the image: corners, then the variance of each.
void prior_box(LayerContext& c) {
  c.expect(2);
  const Message params = c.params("prior_box_param");
  const std::vector<float> least = params.reals("min_size"), most = params.reals("max_size");
  if (least.empty()) c.invalid("min_size is missing");
  if (!most.empty() && most.size() != least.size())
    c.invalid("has {} min_size and {} max_size", least.size(), most.size());
  std::vector<float> ratios{1};
  for (float ratio : params.reals("aspect_ratio")) {
    if (!(ratio > 0)) c.invalid("an aspect_ratio is {}", ratio);
    if (std::any_of(ratios.begin(), ratios.end(), [&](float r) { return std::fabs(r - ratio) < 1e-6; })) continue;
    ratios.push_back(ratio);
    if (params.flag("flip", true)) ratios.push_back(1 / ratio);
  }
  std::vector<float> variance = params.reals("variance");
  if (variance.size() != 0 && variance.size() != 1 && variance.size() != 4)
    c.invalid("has {} variances, expected 1 or 4", variance.size());
  if (variance.empty()) variance = {0.1f};
  variance.resize(4, variance[0]);
  const int64_t rows = c.size(2), columns = c.size(3), square = params.integer("img_size", 0);
  const auto width = static_cast<float>(params.integer("img_w", square > 0 ? square : c.size(3, 1))),
             height = static_cast<float>(params.integer("img_h", square > 0 ? square : c.size(2, 1)));
  const auto step = static_cast<float>(params.real("step", 0));
  const auto step_x = static_cast<float>(params.real("step_w", step > 0 ? step : width / static_cast<float>(columns))),
             step_y = static_cast<float>(params.real("step_h", step > 0 ? step : height / static_cast<float>(rows)));
  const auto offset = static_cast<float>(params.real("offset", 0.5));
  constexpr int64_t kMost = 1 << 20;
  const auto each = static_cast<int64_t>(least.size() * ratios.size() + most.size());
  if (rows < 1 || columns < 1 || rows > kMost / columns || each > kMost / (rows * columns))
    c.invalid("has too many boxes");
  std::vector<float> corners;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const float x = (static_cast<float>(column) + offset) * step_x, y = (static_cast<float>(row) + offset) * step_y;
      const auto add = [&](float w, float h) {
        corners.insert(corners.end(),
                       {(x - w / 2) / width, (y - h / 2) / height, (x + w / 2) / width, (y + h / 2) / height});
      };
      for (size_t i = 0; i < least.size(); ++i) {
        add(least[i], least[i]);
        if (!most.empty()) {
          const float side = std::sqrt(least[i] * most[i]);
          add(side, side);
        }
        for (size_t r = 1; r < ratios.size(); ++r)
          add(least[i] * std::sqrt(ratios[r]), least[i] / std::sqrt(ratios[r]));
      }
    }
  if (params.flag("clip", false))
    for (float& corner : corners) corner = std::clamp(corner, 0.0f, 1.0f);
  const auto count = static_cast<int64_t>(corners.size());
  for (int64_t i = 0; i < count; ++i) corners.push_back(variance[static_cast<size_t>(i % 4)]);
  c.out = {c.b.constant(Tensor::of<float>(kF32, {1, 2, count}, corners))};
}

constexpr Row kDetectionRows[] = {
    {"PriorBox", prior_box},
};

}  // namespace

std::span<const Row> detection_rows() { return kDetectionRows; }

}  // namespace cairn::caffe
