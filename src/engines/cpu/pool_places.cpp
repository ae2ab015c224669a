// The place of each window's first largest element, as an index into the whole of x.
#include <algorithm>
#include <limits>
#include <vector>

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/training.h"

namespace cairn {

namespace {

constexpr int64_t kBlock = 64;  // channels whose maxima are kept at a time

/// Of a window whose taps begin at these offsets in x; -1 when it has none. A NaN that comes first stays.
CAIRN_VECTORISED(void, first_largest,
                 (int64_t channels, int64_t count, const int64_t* taps, const float* x, int64_t* to)) {
  for (int64_t at = 0; at < channels; at += kBlock) {
    const int64_t part = std::min(kBlock, channels - at);
    float most[kBlock];
    int64_t places[kBlock];
    for (int64_t i = 0; i < part; ++i) most[i] = count > 0 ? x[taps[0] + at + i] : 0.f;
    for (int64_t i = 0; i < part; ++i) places[i] = count > 0 ? taps[0] + at + i : -1;
    for (int64_t tap = 1; tap < count; ++tap) {
      const int64_t first = taps[tap] + at;
      for (int64_t i = 0; i < part; ++i) places[i] = most[i] < x[first + i] ? first + i : places[i];
      for (int64_t i = 0; i < part; ++i) most[i] = most[i] < x[first + i] ? x[first + i] : most[i];
    }
    std::copy_n(places, part, to + at);
  }
}

/// The first and last + 1 of the columns of y whose windows have this tap inside the image.
struct Columns {
  int64_t first, last;
};
Columns columns_of(const SlideSpec& s, int64_t shift) {
  const auto up = [&](int64_t room) { return room <= 0 ? 0 : (room + s.stride_w - 1) / s.stride_w; };
  return {std::min(s.ow, up(-shift)), std::min(s.ow, up(s.w - shift))};
}

/// Columns of y whose windows have the tap `step` apart, which begins at `from` in the image: those that it exceeds get its place.
CAIRN_VECTORISED(void, take_larger,
                 (int64_t count, int64_t step, int64_t from, const float* image, float* most, int32_t* places)) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = image[from + i * step];
    const bool wins = (places[i] < 0) | (most[i] < value);
    places[i] = wins ? static_cast<int32_t>(from + i * step) : places[i];
    most[i] = wins ? value : most[i];
  }
}

/// A row of y of images with one channel: its windows go side by side.
void place_row(const SlideSpec& s, const Taps& slices, const Taps& rows, const float* image, float* most,
               int32_t* places) {
  std::fill_n(places, s.ow, -1);
  for (int64_t d = slices.first; d < slices.last; ++d)
    for (int64_t h = rows.first; h < rows.last; ++h) {
      const int64_t row = ((slices.at + d * s.dilation_d) * s.h + rows.at + h * s.dilation_h) * s.w;
      for (int64_t w = 0; w < s.kw; ++w) {
        const int64_t shift = w * s.dilation_w - s.pad_left;
        const auto [first, last] = columns_of(s, shift);
        if (first < last)
          take_larger(last - first, s.stride_w, row + first * s.stride_w + shift, image, most + first, places + first);
      }
    }
}

}  // namespace

Refusal refuses_pool_places(const Group& group) {
  const Node* node = single_node(group, "max_pool2d_indices");
  if (!node) node = single_node(group, "max_pool3d_indices");
  if (!node) return "is another operation";
  const DType dtype = node->inputs[0]->type.dtype;
  if (dtype != kF32) return fmt::format("elements are {}, takes f32", to_string(dtype));
  return std::nullopt;
}

std::unique_ptr<Step> make_pool_places(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const SlideSpec s = slide_of(node, node.attr().integers("window"));
  const bool side_by_side = s.channels == 1 && s.pixels() <= std::numeric_limits<int32_t>::max();
  const auto run = [=](const StepArgs& args) {
    for_each(args.executor, s.n * s.od * s.oh, s.ow * s.taps() * s.channels, [&](int64_t line) {
      const Taps rows = taps_of(line % s.oh, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.h);
      const Taps slices = taps_of(line / s.oh % s.od, s.kd, s.stride_d, s.dilation_d, s.pad_front, s.d);
      const int64_t image = line / s.oh / s.od * s.pixels() * s.channels;
      int64_t* to = output<int64_t>(args) + line * s.ow * s.channels;
      if (side_by_side) {
        std::vector<float> most(static_cast<size_t>(s.ow));
        std::vector<int32_t> places(static_cast<size_t>(s.ow));
        place_row(s, slices, rows, input(args, 0) + image, most.data(), places.data());
        std::ranges::transform(places, to, [&](int32_t place) { return place < 0 ? -1 : image + place; });
        return;
      }
      std::vector<int64_t> taps;
      for (int64_t column = 0; column < s.ow; ++column, to += s.channels) {
        const Taps columns = taps_of(column, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.w);
        taps.clear();
        for (int64_t d = slices.first; d < slices.last; ++d)
          for (int64_t h = rows.first; h < rows.last; ++h) {
            const int64_t row = (slices.at + d * s.dilation_d) * s.h + rows.at + h * s.dilation_h;
            for (int64_t w = columns.first; w < columns.last; ++w)
              taps.push_back(image + (row * s.w + columns.at + w * s.dilation_w) * s.channels);
          }
        first_largest(s.channels, std::ssize(taps), taps.data(), input(args, 0), to);
      }
    });
  };
  return call(node.op->name, run);
}

}  // namespace cairn
