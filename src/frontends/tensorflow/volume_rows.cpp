// TensorFlow's 3-D convolutions and pooling: sums, largest or means over depth of the 2-D forms on slices of the volume.
#include <algorithm>

#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostDepth = 1024;

/// A volume in NDHWC whatever the node's format, and how windows slide along its depth.
class Volume {
 public:
  explicit Volume(OpContext& c, int64_t window, std::string_view strides = "strides")
      : c_(c), first_(c.text("data_format", "NDHWC") == "NCDHW") {
    if (c.rank(0) != 5) fail(ErrorKind::invalid_model, "", "the volume has {} dims, expected 5", c.rank(0));
    x = first_ ? transposed(c.in[0], {0, 2, 3, 4, 1}) : c.in[0];
    const auto& dims = x->type.shape.dims;
    for (size_t i = 1; i < 5; ++i)
      if (!dims[i].known()) c.refuse("dim {} of the volume is not known; declare the shapes of the model's inputs", i);
    std::string padding = c.text("padding", "");
    if (padding != "SAME" && padding != "VALID") c.refuse("padding '{}' is not supported", printable(padding));
    same = padding == "SAME";
    stride = spatial(strides);
    dilation = spatial("dilations");
    depth = dims[1].size;
    reach = (window - 1) * dilation[0] + 1;
    if (window < 1 || window > kMostDepth) c.refuse("a window of depth {} is not supported", window);
    count = same ? (depth + stride[0] - 1) / stride[0] : (depth - reach + stride[0]) / stride[0];
    before = same ? std::max<int64_t>(0, (count - 1) * stride[0] + reach - depth) / 2 : 0;
    if (count < 1) fail(ErrorKind::invalid_model, "", "a window of depth {} does not fit into {}", reach, depth);
  }

  /// Depth, height and width of a list of five.
  std::vector<int64_t> spatial(std::string_view attr) const {
    std::vector<int64_t> list = c_.integers(attr);
    if (list.empty()) return {1, 1, 1};
    if (list.size() != 5 || list[0] != 1 || list[first_ ? 1 : 4] != 1)
      c_.refuse("{} over batch or channels is not supported", attr);
    size_t at = first_ ? 2 : 1;
    for (size_t i = at; i < at + 3; ++i)
      if (list[i] < 1) fail(ErrorKind::invalid_model, "", "attribute {} has {}", attr, list[i]);
    return {list[at], list[at + 1], list[at + 2]};
  }

  /// The volume with `fill` before and behind its depth, as far as windows reach.
  Value* padded(double fill) {
    int64_t after = std::max<int64_t>(0, (count - 1) * stride[0] + reach - depth - before);
    if (before == 0 && after == 0) return x;
    Tensor pads = Tensor::of<int64_t>(kI64, {5, 2}, {0, 0, before, after, 0, 0, 0, 0, 0, 0});
    return c_.b.add("pad", {x, c_.b.constant(pads)}, {{"value", fill}});
  }
  /// Slices number tap, tap + stride, ... as images [n * count, height, width, channels].
  Value* slices(Value* volume, int64_t tap) {
    const int64_t begin = tap * dilation[0], end = begin + (count - 1) * stride[0] + 1;
    Value* part = c_.b.add("slice", {volume, c_.b.ints({0, begin, 0, 0, 0}), c_.b.ints({kAll, end, kAll, kAll, kAll})},
                           {{"steps", std::vector<int64_t>{1, stride[0], 1, 1, 1}}});
    return images(part);
  }
  Value* images(Value* volume) {
    const auto& dims = volume->type.shape.dims;
    NewDim all = dims[0].known() ? NewDim{dims[0].size * dims[1].size} : NewDim{};
    return reshape_to(volume, {all, {dims[2].size}, {dims[3].size}, {dims[4].size}}, c_.b);
  }
  /// Images back to a volume, in the node's format.
  Value* volume(Value* images) {
    const auto& dims = images->type.shape.dims;
    const Dim batch = x->type.shape.dims[0];
    NewDim all = batch.known() ? NewDim{batch.size} : NewDim{};
    Value* y = reshape_to(images, {all, {count}, {dims[1].size}, {dims[2].size}, {dims[3].size}}, c_.b);
    return first_ ? transposed(y, {0, 4, 1, 2, 3}) : y;
  }
  Attributes plane() const {
    return {{"strides", std::vector<int64_t>{stride[1], stride[2]}}, {"padding", std::string(same ? "same" : "valid")}};
  }

  Value* x;
  bool same;
  std::vector<int64_t> stride, dilation;
  int64_t depth, reach, count, before;

 private:
  Value* transposed(Value* value, std::vector<int64_t> permutation) {
    return c_.b.add("transpose", {value}, {{"permutation", std::move(permutation)}});
  }
  OpContext& c_;
  bool first_;
};

void conv3d(OpContext& c) {
  c.expect_inputs(2);
  if (c.rank(1) != 5 || !c.in[1]->type.shape.known()) c.refuse("the kernel must have 5 known dims");
  const std::vector<int64_t> kernel = c.in[1]->type.shape.sizes();
  Volume volume(c, kernel[0]);
  Value* x = volume.padded(0);
  Attributes attributes = volume.plane();
  attributes.set("dilations", std::vector<int64_t>{volume.dilation[1], volume.dilation[2]});
  Value* sum = nullptr;
  for (int64_t tap = 0; tap < kernel[0]; ++tap) {
    Value* slice =
        c.b.add("slice", {c.in[1], c.b.ints({tap, 0, 0, 0, 0}), c.b.ints({tap + 1, kAll, kAll, kAll, kAll})});
    Value* plane = reshape_to(slice, {{kernel[1]}, {kernel[2]}, {kernel[3]}, {kernel[4]}}, c.b);
    Value* part = c.b.add("conv2d", {volume.slices(x, tap), plane}, attributes);
    sum = sum == nullptr ? part : c.b.add("add", {sum, part});
  }
  c.out = {volume.volume(sum)};
}

std::vector<int64_t> window_of(OpContext& c) {
  std::vector<int64_t> window = c.integers("ksize");
  bool first = c.text("data_format", "NDHWC") == "NCDHW";
  if (window.size() != 5) fail(ErrorKind::invalid_model, "", "ksize has {} numbers, expected 5", window.size());
  if (window[0] != 1 || window[first ? 1 : 4] != 1) c.refuse("ksize over batch or channels is not supported");
  auto from = window.begin() + (first ? 2 : 1);
  return {from, from + 3};
}

void max_pool3d(OpContext& c) {
  c.expect_inputs(1);
  const std::vector<int64_t> window = window_of(c);
  Volume volume(c, window[0]);
  Value* x = volume.padded(-std::numeric_limits<double>::infinity());
  Attributes attributes = volume.plane();
  attributes.set("window", std::vector<int64_t>{window[1], window[2]});
  Value* most = nullptr;
  for (int64_t tap = 0; tap < window[0]; ++tap) {
    Value* part = volume.slices(x, tap);
    most = most == nullptr ? part : c.b.add("maximum", {most, part});
  }
  c.out = {volume.volume(c.b.add("max_pool2d", {most}, attributes))};
}

/// Means of the planes, then over depth: each divided by how many slices lie inside the volume.
void avg_pool3d(OpContext& c) {
  c.expect_inputs(1);
  const std::vector<int64_t> window = window_of(c);
  Volume volume(c, window[0]);
  Value* x = volume.padded(0);
  Attributes attributes = volume.plane();
  attributes.set("window", std::vector<int64_t>{window[1], window[2]});
  Value* sum = nullptr;
  for (int64_t tap = 0; tap < window[0]; ++tap) {
    Value* part = volume.slices(x, tap);
    sum = sum == nullptr ? part : c.b.add("add", {sum, part});
  }
  Value* y = volume.volume(c.b.add("avg_pool2d", {sum}, attributes));
  std::vector<float> shares;
  for (int64_t i = 0; i < volume.count; ++i) {
    const int64_t begin = i * volume.stride[0] - volume.before;
    shares.push_back(1 / static_cast<float>(std::min(begin + window[0], volume.depth) - std::max<int64_t>(begin, 0)));
  }
  bool first = c.text("data_format", "NDHWC") == "NCDHW";
  std::vector<int64_t> dims =
      first ? std::vector<int64_t>{volume.count, 1, 1} : std::vector<int64_t>{volume.count, 1, 1, 1};
  c.out = {c.b.add("mul", {y, c.b.constant(Tensor::of<float>(kF32, dims, shares))})};
}

constexpr Row kRows[] = {
    {"AvgPool3D", avg_pool3d},
    {"Conv3D", conv3d},
    {"MaxPool3D", max_pool3d},
};

}  // namespace

std::span<const Row> volume_rows() { return kRows; }

}  // namespace cairn::tensorflow
