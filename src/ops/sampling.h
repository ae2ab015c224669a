// Which pixels grids and regions of images take, shared by the reference kernels and the engines.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "ir/op_def.h"
#include "ops/image.h"

namespace cairn {

/// The attributes of grid_sample, read once.
struct GridRule {
  explicit GridRule(const AttributeView& attr);
  /// The interval of `size` pixels in which reflected places lie: from low() on, range(size) wide.
  double low() const { return corners ? 0 : -0.5; }
  int64_t range(int64_t size) const { return corners ? size - 1 : size; }

  bool nearest, cubic, zeros, border, corners, pixels;
};

/// Up to four pixels along one axis with their weights; pixels outside have weight 0 and a place inside.
template <class M>
struct GridTaps {
  size_t count = 0;
  std::array<int64_t, 4> at;
  std::array<M, 4> weight;
};

/// Keys' cubic with a = -0.75 at a distance below 1 (near), or of 1 to 2.
template <class M>
M keys_cubic(M d, bool near) {
  const M a = M(-0.75);
  return near ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

/// The pixels of an axis of `size` at this place of a grid, in arithmetic of type M.
template <class M>
GridTaps<M> grid_taps(const GridRule& rule, M place, int64_t size) {
  const M last = static_cast<M>(size - 1), low = static_cast<M>(rule.low()), range = static_cast<M>(rule.range(size));
  const auto inside = [last](M x) { return x > 0 ? std::min(x, last) : M(0); };  // NaN: 0
  const auto reflected = [&](M x) {
    return range == 0 ? M(0) : range - std::abs(std::fmod(std::abs(x - low), 2 * range) - range) + low;
  };
  GridTaps<M> taps;
  const auto add = [&](M at, M weight) {
    const M there = inside(at);
    taps.at[taps.count] = static_cast<int64_t>(there);
    taps.weight[taps.count++] = rule.zeros && at != there && !std::isnan(at) ? 0 : weight;
  };
  if (!rule.pixels) place = (place + 1) * (range / 2) + low;
  if (rule.cubic) {
    const M first = std::floor(place), share = place - first;
    for (int tap = -1; tap <= 2; ++tap) {
      M at = first + static_cast<M>(tap);
      if (!rule.zeros && !rule.border) at = reflected(at);
      add(at, keys_cubic(std::abs(share - static_cast<M>(tap)), tap == 0 || tap == 1));
    }
    return taps;
  }
  if (rule.border) place = inside(place);
  if (!rule.zeros && !rule.border) place = reflected(place);
  if (rule.nearest) {
    add(std::nearbyint(place), 1);
    return taps;
  }
  const M first = std::floor(place), share = place - first;
  add(first, 1 - share), add(first + 1, share);
  return taps;
}

/// A box of roi_align over an image: where its bins begin along each axis (height, width), and how many samples each takes.
struct Region {
  std::array<float, 2> start, bin;
  std::array<int64_t, 2> samples;

  /// Sample i of bin `at` along an axis of `size` pixels; places up to one pixel outside are moved to the border.
  CropTap tap(size_t axis, int64_t at, int64_t i, int64_t size) const {
    const float share = (static_cast<float>(i) + 0.5f) / static_cast<float>(samples[axis]);
    float place = start[axis] + static_cast<float>(at) * bin[axis] + share * bin[axis];
    if (size == 0 || !(place >= -1 && place <= static_cast<float>(size))) return {false, 0, 0, 0};
    place = std::max(place, 0.f);
    const auto before = static_cast<int64_t>(place);
    if (before >= size - 1) return {true, size - 1, size - 1, 0};
    return {true, before, before + 1, place - static_cast<float>(before)};
  }
  float share() const { return 1 / static_cast<float>(std::max<int64_t>(samples[0] * samples[1], 1)); }

  /// For each sample of bin (h, w) of an image [height, width, channels] calls visit(offsets of four pixels, their weights, which
  /// add up to `weight`), or outside() where it lies outside.
  template <class Visit, class Outside>
  void each_sample(int64_t h, int64_t w, std::span<const int64_t, 3> image, float weight, Visit&& visit,
                   Outside&& outside) const {
    for (int64_t i = 0; i < samples[0]; ++i) {
      const CropTap row = tap(0, h, i, image[0]);
      for (int64_t j = 0; j < samples[1]; ++j) {
        const CropTap column = tap(1, w, j, image[1]);
        if (!row.inside || !column.inside) {
          outside();
          continue;
        }
        const auto at = [&](int64_t y, int64_t x) { return (y * image[1] + x) * image[2]; };
        const float above = (1 - row.fraction) * weight, below = row.fraction * weight;
        visit(std::array{at(row.before, column.before), at(row.before, column.after), at(row.after, column.before),
                         at(row.after, column.after)},
              std::array{above * (1 - column.fraction), above * column.fraction, below * (1 - column.fraction),
                         below * column.fraction});
      }
    }
  }
};

/// The attributes of roi_align, read once.
struct RegionRule {
  explicit RegionRule(const AttributeView& attr);
  /// The region of a box (x1, y1, x2, y2). A box that is not a number takes no samples; throws Error invalid_argument when one
  /// takes too many.
  Region region(const float* box) const;

  std::array<int64_t, 2> size;
  int64_t samples;
  float scale;
  bool most, half_pixel;
};

}  // namespace cairn
