// The place of each window's first largest element, as an index into the whole of x.
#include <algorithm>
#include <vector>

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
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
  const auto run = [=](const StepArgs& args) {
    for_each(args.executor, s.n * s.od * s.oh, s.ow * s.taps() * s.channels, [&](int64_t line) {
      const Taps rows = taps_of(line % s.oh, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.h);
      const Taps slices = taps_of(line / s.oh % s.od, s.kd, s.stride_d, s.dilation_d, s.pad_front, s.d);
      const int64_t first_slice = line / s.oh / s.od * s.d + slices.at;
      std::vector<int64_t> taps;
      for (int64_t column = 0; column < s.ow; ++column) {
        const Taps columns = taps_of(column, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.w);
        taps.clear();
        for (int64_t d = slices.first; d < slices.last; ++d)
          for (int64_t h = rows.first; h < rows.last; ++h) {
            const int64_t row = (first_slice + d * s.dilation_d) * s.h + rows.at + h * s.dilation_h;
            for (int64_t w = columns.first; w < columns.last; ++w)
              taps.push_back((row * s.w + columns.at + w * s.dilation_w) * s.channels);
          }
        first_largest(s.channels, std::ssize(taps), taps.data(), input(args, 0),
                      output<int64_t>(args) + (line * s.ow + column) * s.channels);
      }
    });
  };
  return call(node.op->name, run);
}

}  // namespace cairn
