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

std::unique_ptr<Step> make_grid_sample(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const size_t x = index_of(group, node.inputs[0]), grid = index_of(group, node.inputs[1]);
  const Dims in = node.inputs[0]->type.shape.sizes(), out = node.result()->type.shape.sizes();
  const GridRule rule(node.attr());
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
