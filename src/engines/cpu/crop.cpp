#include "engines/cpu/crop.h"

#include <algorithm>

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "ops/image.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

CAIRN_VECTORISED(void, blend_f32,
                 (int64_t channels, const CropTap& row, const CropTap& column, const float* const* corners,
                  float* __restrict y)) {
  const float *a = corners[0], *b = corners[1], *p = corners[2], *q = corners[3];
  for (int64_t c = 0; c < channels; ++c) {
    const float above = a[c] + (b[c] - a[c]) * column.fraction, below = p[c] + (q[c] - p[c]) * column.fraction;
    y[c] = above + (below - above) * row.fraction;
  }
}

template <class T>
void blend(int64_t channels, const CropTap& row, const CropTap& column, const T* const* corners, float* y) {
  if constexpr (std::is_same_v<T, float>) {
    blend_f32(channels, row, column, corners, y);
  } else {
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = [&](size_t i) { return static_cast<float>(corners[i][c]); };
      const float above = at(0) + (at(1) - at(0)) * column.fraction, below = at(2) + (at(3) - at(2)) * column.fraction;
      y[c] = above + (below - above) * row.fraction;
    }
  }
}

CAIRN_VECTORISED(void, add_weighted,
                 (int64_t channels, float weight, const float* __restrict dy, float* __restrict dx)) {
  for (int64_t c = 0; c < channels; ++c) dx[c] += weight * dy[c];
}

/// The operands and sizes of a crop, or of its gradient, whose image is a result.
struct Crops {
  Crops(const Group& group, const Node& node, const Value* image, const Value* crop, size_t boxes_at)
      : in(image->type.shape.sizes()), out(crop->type.shape.sizes()), boxes(index_of(group, node.inputs[boxes_at])),
        index(index_of(group, node.inputs[boxes_at + 1])), wide(node.inputs[boxes_at + 1]->type.dtype == kI64),
        smooth(node.attr().text("mode") == "bilinear"), name(node.op->name) {}

  int64_t image_of(const StepArgs& args, int64_t box) const {
    return wide ? input<int64_t>(args, index)[box] : input<int32_t>(args, index)[box];
  }
  CropTap row(const StepArgs& args, int64_t box, int64_t h) const {
    const float* at = input(args, boxes) + 4 * box;
    return crop_tap(smooth, at[0], at[2], in[1], out[1], h);
  }
  CropTap column(const StepArgs& args, int64_t box, int64_t w) const {
    const float* at = input(args, boxes) + 4 * box;
    return crop_tap(smooth, at[1], at[3], in[2], out[2], w);
  }
  void check(const StepArgs& args) const {
    for (int64_t box = 0; box < out[0]; ++box)
      if (const int64_t image = image_of(args, box); image < 0 || image >= in[0])
        fail(ErrorKind::invalid_argument, name, "box index {} is out of range for {} images", image, in[0]);
  }

  Dims in, out;
  size_t boxes, index;
  bool wide, smooth;
  const char* name;
};

}  // namespace

Refusal refuses_crop(const Group& group) {
  return single_node(group, "crop_and_resize") ? std::nullopt : Refusal("is another operation");
}

std::unique_ptr<Step> make_crop(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Crops crops(group, node, node.inputs[0], node.result(), 1);
  const DType dtype = node.inputs[0]->type.dtype;
  const auto outside = static_cast<float>(node.attr().number("outside"));
  const size_t x = index_of(group, node.inputs[0]);
  const auto run = [=](const StepArgs& args) {
    crops.check(args);
    const Dims &in = crops.in, &out = crops.out;
    with_numbers(dtype, [&](auto tag) {
      using T = decltype(tag);
      for_each(args.executor, out[0] * out[1], out[2] * out[3] * 8, [&](int64_t i) {
        const int64_t box = i / out[1], channels = out[3];
        const CropTap row = crops.row(args, box, i % out[1]);
        const T* image = input<T>(args, x) + crops.image_of(args, box) * in[1] * in[2] * channels;
        float* y = output(args) + i * out[2] * channels;
        for (int64_t w = 0; w < out[2]; ++w, y += channels) {
          const CropTap column = crops.column(args, box, w);
          if (!row.inside || !column.inside) {
            std::fill_n(y, channels, outside);
            continue;
          }
          const auto at = [&](int64_t h, int64_t c) { return image + (h * in[2] + c) * channels; };
          const T* corners[] = {at(row.before, column.before), at(row.before, column.after),
                                at(row.after, column.before), at(row.after, column.after)};
          blend<T>(channels, row, column, corners, y);
        }
      });
    });
  };
  return call(fmt::format("crop {}", node.attr().text("mode")), run);
}

Refusal refuses_crop_gradient(const Group& group) {
  return single_node(group, "crop_and_resize_gradient") ? std::nullopt : Refusal("is another operation");
}

// Each worker has rows of the image, and adds to them in the order of the crops' pixels.
std::unique_ptr<Step> make_crop_gradient(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Crops crops(group, node, node.result(), node.inputs[0], 1);
  const size_t dy = index_of(group, node.inputs[0]);
  const auto run = [=](const StepArgs& args) {
    crops.check(args);
    const Dims &in = crops.in, &out = crops.out;
    const int64_t channels = in[3], rows = in[0] * in[1];
    const int64_t work = count_of(out) * 4, bands = std::clamp<int64_t>(work >> 14, 1, args.executor.width() * 4);
    args.executor.run(static_cast<int>(bands), [&](int band, int) {
      const int64_t first = rows * band / bands, last = rows * (band + 1) / bands;
      std::fill(output(args) + first * in[2] * channels, output(args) + last * in[2] * channels, 0.f);
      for (int64_t box = 0; box < out[0]; ++box) {
        const int64_t image = crops.image_of(args, box) * in[1];
        if (image >= last || image + in[1] <= first) continue;
        for (int64_t h = 0; h < out[1]; ++h) {
          const CropTap row = crops.row(args, box, h);
          const auto mine = [&](int64_t at) { return image + at >= first && image + at < last; };
          if (!row.inside || (!mine(row.before) && !mine(row.after))) continue;
          const float* from = input(args, dy) + (box * out[1] + h) * out[2] * channels;
          for (int64_t w = 0; w < out[2]; ++w, from += channels) {
            const CropTap column = crops.column(args, box, w);
            if (!column.inside) continue;
            const auto add = [&](int64_t at, float share) {
              if (!mine(at)) return;
              float* to = output(args) + (image + at) * in[2] * channels;
              add_weighted(channels, share * (1 - column.fraction), from, to + column.before * channels);
              add_weighted(channels, share * column.fraction, from, to + column.after * channels);
            };
            add(row.before, 1 - row.fraction);
            add(row.after, row.fraction);
          }
        }
      }
    });
  };
  return call("crop gradient", run);
}

}  // namespace cairn
