#include "engines/cpu/sampling.h"

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "ops/kernels.h"
#include "ops/sampling.h"

namespace cairn {

namespace {

CAIRN_VECTORISED(void, add_four,
                 (int64_t channels, const float* const* from, const float* weights, float* __restrict y)) {
  const float *a = from[0], *b = from[1], *p = from[2], *q = from[3];
  for (int64_t c = 0; c < channels; ++c)
    y[c] += (weights[0] * a[c] + weights[1] * b[c]) + (weights[2] * p[c] + weights[3] * q[c]);
}

// The largest weighted pixel of a sample, or of it and those before.
CAIRN_VECTORISED(void, raise_by_four,
                 (int64_t channels, const float* const* from, const float* weights, bool first, float* __restrict y)) {
  const float *a = from[0], *b = from[1], *p = from[2], *q = from[3];
  for (int64_t c = 0; c < channels; ++c) {
    const float x = std::max(weights[0] * a[c], weights[1] * b[c]);
    const float most = std::max(std::max(x, weights[2] * p[c]), weights[3] * q[c]);
    y[c] = first ? most : std::max(y[c], most);
  }
}

CAIRN_VECTORISED(void, add_share, (int64_t channels, float weight, const float* __restrict dy, float* __restrict dx)) {
  for (int64_t c = 0; c < channels; ++c) dx[c] += weight * dy[c];
}

/// Adds weighted pixels to a pixel, four at a time.
class PixelSum {
 public:
  PixelSum(int64_t channels, float* y) : channels_(channels), y_(y) { std::fill_n(y, channels, 0.f); }
  ~PixelSum() {
    if (count_ == 0) return;
    while (count_ < 4) from_[count_] = from_[0], weights_[count_++] = 0;
    flush();
  }
  void add(const float* pixel, float weight) {
    if (weight == 0) return;
    from_[count_] = pixel, weights_[count_++] = weight;
    if (count_ == 4) flush();
  }

 private:
  void flush() {
    if (channels_ < 8)
      for (int64_t c = 0; c < channels_; ++c)
        for (size_t k = 0; k < 4; ++k) y_[c] += weights_[k] == 0 ? 0 : weights_[k] * from_[k][c];
    else
      add_four(channels_, from_, weights_, y_);
    count_ = 0;
  }

  int64_t channels_;
  float* y_;
  size_t count_ = 0;
  const float* from_[4];
  float weights_[4];
};

/// One axis of an image between whose pixels points lie.
struct LinearAxis {
  LinearAxis(const GridRule& rule, int64_t size)
      : last(static_cast<float>(size - 1)), half(static_cast<float>(rule.range(size)) / 2),
        low(static_cast<float>(rule.low())), pixels(rule.pixels), border(rule.border) {}

  float last, half, low;
  bool pixels, border;
};

constexpr int64_t kPoints = 64;  // at once

/// The two pixels of each point along an axis with their weights.
struct PointTaps {
  int32_t at[2][kPoints];
  float weight[2][kPoints];
};

// grid_taps() of points whose places lie two numbers apart.
CAIRN_VECTORISED(void, linear_taps, (const LinearAxis& axis, const float* place, int64_t count, PointTaps& taps)) {
  const auto inside = [last = axis.last](float x) __attribute__((always_inline)) {
    return x > 0 ? std::min(x, last) : 0.f;  // NaN: 0
  };
  for (int64_t i = 0; i < count; ++i) {
    float x = axis.pixels ? place[2 * i] : (place[2 * i] + 1) * axis.half + axis.low;
    if (axis.border) x = inside(x);
    const float first = std::floor(x), share = x - first;
    for (int tap : {0, 1}) {
      const float at = first + static_cast<float>(tap), there = inside(at), weight = tap == 0 ? 1 - share : share;
      taps.at[tap][i] = static_cast<int32_t>(there);
      taps.weight[tap][i] = !axis.border && at != there && at == at ? 0 : weight;
    }
  }
}

// What weighs nothing is not read, so that it may be infinite.
CAIRN_VECTORISED(void, linear_points,
                 (const PointTaps& rows, const PointTaps& columns, int64_t count, int64_t width, int64_t channels,
                  const float* image, float* __restrict y)) {
  for (int64_t i = 0; i < count; ++i, y += channels) {
    const float* from[4];
    float weight[4];
    for (int k : {0, 1, 2, 3}) {
      weight[k] = rows.weight[k / 2][i] * columns.weight[k % 2][i];
      from[k] = image + (rows.at[k / 2][i] * width + columns.at[k % 2][i]) * channels;
    }
    const auto part = [&](int k, int64_t c) __attribute__((always_inline)) {
      return weight[k] == 0 ? 0 : weight[k] * from[k][c];
    };
    for (int64_t c = 0; c < channels; ++c) y[c] = (part(0, c) + part(1, c)) + (part(2, c) + part(3, c));
  }
}

/// The operands and sizes of roi_align, or of its gradient, whose image is a result.
struct Regions {
  Regions(const Group& group, const Node& node, const Value* image)
      : rule(node.attr()), in(image->type.shape.sizes()), boxes(index_of(group, node.inputs[1])),
        index(index_of(group, node.inputs[2])), count(dim(node.inputs[1], 0)),
        wide(node.inputs[2]->type.dtype == kI64) {}
  int64_t image_of(const StepArgs& args, int64_t box) const {
    return wide ? input<int64_t>(args, index)[box] : input<int32_t>(args, index)[box];
  }
  Region region(const StepArgs& args, int64_t box) const { return rule.region(input(args, boxes) + 4 * box); }
  void check(const StepArgs& args) const {
    for (int64_t box = 0; box < count; ++box)
      if (const int64_t image = image_of(args, box); image < 0 || image >= in[0])
        fail(ErrorKind::invalid_argument, "roi_align", "box index {} is out of range for {} images", image, in[0]);
  }

  std::span<const int64_t, 3> one_image() const { return std::span<const int64_t, 3>(&in[1], 3); }

  RegionRule rule;
  Dims in;
  size_t boxes, index;
  int64_t count;
  bool wide;
};

Refusal refuses_regions(const Group& group, const char* op) {
  const Node* node = single_node(group, op);
  if (node == nullptr) return "is another operation";
  return node->inputs[0]->type.dtype == kF32 ? std::nullopt : Refusal("is not f32");
}

}  // namespace

Refusal refuses_grid_sample(const Group& group) {
  return single_node(group, "grid_sample") ? not_f32(group) : Refusal("is another operation");
}

/// Points between the pixels of images, zeros or the border's pixels around them.
std::unique_ptr<Step> make_linear_points(const Group& group, const Node& node, const GridRule& rule) {
  const size_t x = index_of(group, node.inputs[0]), grid = index_of(group, node.inputs[1]);
  const Dims in = node.inputs[0]->type.shape.sizes(), out = node.result()->type.shape.sizes();
  const LinearAxis rows(rule, in[1]), columns(rule, in[2]);
  return call("grid_sample linear, two dims", [=](const StepArgs& args) {
    const int64_t channels = in[3], points = count_between(out, 1, out.size() - 1);
    const int64_t blocks = (points + kPoints - 1) / kPoints;
    for_each(args.executor, out[0] * blocks, kPoints * (channels * 4 + 8), [&](int64_t block) {
      const int64_t image = block / blocks, first = block % blocks * kPoints;
      const int64_t count = std::min(kPoints, points - first), at = image * points + first;
      PointTaps up, along;
      linear_taps(columns, input(args, grid) + 2 * at, count, along);
      linear_taps(rows, input(args, grid) + 2 * at + 1, count, up);
      linear_points(up, along, count, in[2], channels, input(args, x) + image * in[1] * in[2] * channels,
                    output(args) + at * channels);
    });
  });
}

std::unique_ptr<Step> make_grid_sample(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const GridRule rule(node.attr());
  if (node.inputs[0]->type.shape.rank() == 4 && !rule.cubic && !rule.nearest && (rule.zeros || rule.border))
    return make_linear_points(group, node, rule);
  const size_t x = index_of(group, node.inputs[0]), grid = index_of(group, node.inputs[1]);
  const Dims in = node.inputs[0]->type.shape.sizes(), out = node.result()->type.shape.sizes();
  const auto run = [=](const StepArgs& args) {
    const size_t dims = in.size() - 2;
    const int64_t channels = in.back(), points = count_between(out, 1, out.size() - 1);
    const int64_t image = count_between(in, 1, in.size());
    for_each(args.executor, out[0] * points, channels * 4 + 64, [&](int64_t point) {
      const float *place = input(args, grid) + point * static_cast<int64_t>(dims),
                  *from = input(args, x) + point / points * image;
      // Fewer than three dims: the first ones have one tap at 0.
      std::array<GridTaps<float>, 3> taps;
      std::array<int64_t, 3> stride{0, 0, channels};
      for (size_t i = 0; i < 3; ++i) taps[i].count = 1, taps[i].at[0] = 0, taps[i].weight[0] = 1;
      for (size_t i = 0; i < dims; ++i) {  // from the last dim
        taps[2 - i] = grid_taps<float>(rule, place[i], in[dims - i]);
        if (i > 0) stride[2 - i] = stride[3 - i] * in[dims + 1 - i];
      }
      PixelSum sum(channels, output(args) + point * channels);
      for (size_t d = 0; d < taps[0].count; ++d)
        for (size_t h = 0; h < taps[1].count; ++h)
          for (size_t w = 0; w < taps[2].count; ++w)
            sum.add(from + taps[0].at[d] * stride[0] + taps[1].at[h] * stride[1] + taps[2].at[w] * stride[2],
                    taps[0].weight[d] * taps[1].weight[h] * taps[2].weight[w]);
    });
  };
  return call(fmt::format("grid_sample {}", node.attr().text("mode")), run);
}

Refusal refuses_roi_align(const Group& group) { return refuses_regions(group, "roi_align"); }

std::unique_ptr<Step> make_roi_align(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Regions regions(group, node, node.inputs[0]);
  const size_t x = index_of(group, node.inputs[0]);
  const auto run = [=](const StepArgs& args) {
    regions.check(args);
    const RegionRule& rule = regions.rule;
    const Dims& in = regions.in;
    const int64_t channels = in[3], work = rule.size[1] * channels * 16;
    for_each(args.executor, regions.count * rule.size[0], work, [&](int64_t i) {
      const int64_t box = i / rule.size[0], h = i % rule.size[0];
      const Region region = regions.region(args, box);
      const float* image = input(args, x) + regions.image_of(args, box) * in[1] * in[2] * channels;
      float* y = output(args) + i * rule.size[1] * channels;
      const float share = rule.most ? 1 : region.share();
      for (int64_t w = 0; w < rule.size[1]; ++w, y += channels) {
        bool first = true;
        std::fill_n(y, channels, 0.f);
        const auto inside = [&](const std::array<int64_t, 4>& corners, const std::array<float, 4>& weights) {
          const float* from[] = {image + corners[0], image + corners[1], image + corners[2], image + corners[3]};
          if (rule.most)
            raise_by_four(channels, from, weights.data(), first, y);
          else
            add_four(channels, from, weights.data(), y);
          first = false;
        };
        region.each_sample(h, w, regions.one_image(), share, inside, [&] {
          for (int64_t c = 0; rule.most && !first && c < channels; ++c) y[c] = std::max(y[c], 0.f);
          first = false;
        });
      }
    });
  };
  return call(fmt::format("roi_align {}", node.attr().text("mode")), run);
}

Refusal refuses_roi_align_gradient(const Group& group) { return refuses_regions(group, "roi_align_gradient"); }

// Each worker has channels of the image, and adds to them in the order of the samples.
std::unique_ptr<Step> make_roi_align_gradient(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Regions regions(group, node, node.result());
  const size_t dy = index_of(group, node.inputs[0]);
  const auto run = [=](const StepArgs& args) {
    regions.check(args);
    const RegionRule& rule = regions.rule;
    const Dims& in = regions.in;
    const int64_t channels = in[3], pixels = in[0] * in[1] * in[2];
    const int64_t parts = std::clamp<int64_t>(channels / 16, 1, args.executor.width());
    args.executor.run(static_cast<int>(parts), [&](int part, int) {
      const int64_t first = channels * part / parts, mine = channels * (part + 1) / parts - first;
      for (int64_t i = 0; i < pixels; ++i) std::fill_n(output(args) + i * channels + first, mine, 0.f);
      const float* from = input(args, dy) + first;
      for (int64_t box = 0; box < regions.count; ++box) {
        const Region region = regions.region(args, box);
        float* image = output(args) + regions.image_of(args, box) * in[1] * in[2] * channels + first;
        for (int64_t bin = 0; bin < rule.size[0] * rule.size[1]; ++bin, from += channels) {
          const auto inside = [&](const std::array<int64_t, 4>& corners, const std::array<float, 4>& weights) {
            for (size_t k = 0; k < 4; ++k) add_share(mine, weights[k] * region.share(), from, image + corners[k]);
          };
          region.each_sample(bin / rule.size[1], bin % rule.size[1], regions.one_image(), 1, inside, [] {});
        }
      }
    });
  };
  return call("roi_align gradient", run);
}

}  // namespace cairn
