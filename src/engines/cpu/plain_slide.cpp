// Sliding windows in plain C++, for processors without AVX2: a tile is followed in the run, where window.cpp else makes code.
#include <algorithm>
#include <limits>

#include "engines/cpu/slide_tile.h"

namespace cairn {

namespace {

constexpr int64_t kSlideLanes = 8;
typedef float SlideLanes __attribute__((vector_size(4 * kSlideLanes), aligned(4), may_alias));

/// The channels of x that so many channels of y read, spread over their lanes.
void spread_channels(const float* x, int64_t count, int64_t multiplier, SlideLanes& lanes) {
  if (count == kSlideLanes && multiplier == 1) {
    lanes = *reinterpret_cast<const SlideLanes*>(x);
    return;
  }
  for (int64_t i = 0; i < count; ++i) lanes[i] = x[i / multiplier];
}

void add_taps(const SlideSpec& spec, const SlideTile& tile, size_t pixel, const float* x, const float* packed,
              int64_t count, SlideLanes& sum) {
  SlideLanes value{};
  for (const SlideTap& tap : tile.taps) {
    if (tap.pixels >> pixel & 1) {
      spread_channels(x + tap.x_bytes / 4, count, spec.multiplier, value);
      if (spec.work == WindowWork::multiply_add)
        sum += value * *reinterpret_cast<const SlideLanes*>(packed);
      else if (spec.work == WindowWork::mean)
        sum += value;
      else
        sum = (sum > value) | (sum != sum) ? sum : value;  // NaN if either is
    }
    if (spec.work == WindowWork::multiply_add) packed += kSlideLanes;
  }
}

float activated_as(const Activation& activation, float value) {
  if (activation.kind == Activation::Kind::none) return value;
  const bool clip = activation.kind == Activation::Kind::clip;
  value = std::max(value, clip ? activation.low : 0.f);  // NaN stays: it is the first operand
  return clip ? std::min(value, activation.high) : value;
}

}  // namespace

void slide_plainly(const SlideSpec& spec, const SlideTile& tile, const float* x, const float* packed, float* y,
                   const float* residual, int64_t vectors, int64_t rest, const float* bias) {
  const int64_t left = rest ? spec.channels % kSlideLanes : 0;
  for (int64_t block = 0; block < vectors + (left > 0); ++block) {
    const int64_t count = block < vectors ? kSlideLanes : left;
    SlideLanes start{};
    if (spec.work == WindowWork::maximum) start += -std::numeric_limits<float>::infinity();
    for (size_t pixel = 0; pixel < tile.pixel_bytes.size(); ++pixel) {
      SlideLanes sum = start;
      add_taps(spec, tile, pixel, x + tile.pixel_bytes[pixel] / 4, packed, count, sum);
      if (spec.work == WindowWork::mean) sum /= tile.divisors[pixel];
      if (spec.work == WindowWork::multiply_add)
        sum += *reinterpret_cast<const SlideLanes*>(bias);  // whole vectors are packed
      const int64_t at = static_cast<int64_t>(pixel) * spec.channels;
      for (int64_t i = 0; i < count; ++i)
        y[at + i] = activated_as(spec.activation, residual ? sum[i] + residual[at + i] : sum[i]);
    }
    x += kSlideLanes / spec.multiplier, y += kSlideLanes;
    if (residual) residual += kSlideLanes;
    if (spec.work == WindowWork::multiply_add) packed += std::ssize(tile.taps) * kSlideLanes, bias += kSlideLanes;
  }
}

}  // namespace cairn
