// TensorFlow's 3-D convolutions and pooling.
#include <algorithm>

#include "frontends/tensorflow/importer.h"
#include "frontends/volume.h"

namespace cairn::tensorflow {
namespace {

/// A volume converted to NDHWC from the node's format, and the windows that slide over it.
class VolumeInput {
 public:
  explicit VolumeInput(OpContext& c) : c_(c), first_(c.text("data_format", "NDHWC") == "NCDHW") {
    if (c.rank(0) != 5) fail(ErrorKind::invalid_model, "", "the volume has {} dims, expected 5", c.rank(0));
    x = first_ ? transposed(c.in[0], {0, 2, 3, 4, 1}) : c.in[0];
    check_volume(x);
    std::string padding = c.text("padding", "");
    if (padding != "SAME" && padding != "VALID") c.refuse("padding '{}' is not supported", printable(padding));
    same_ = padding == "SAME";
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

  DepthWindow depth(int64_t size) const {
    DepthWindow window{size, spatial("strides")[0], spatial("dilations")[0]};
    const int64_t depth = x->type.shape.dims[1].size, count = (depth + window.stride - 1) / window.stride;
    if (!same_ || size < 1 || size > kMost) return window;
    const int64_t missing = std::max<int64_t>(0, (count - 1) * window.stride + window.reach() - depth);
    window.before = missing / 2, window.after = missing - missing / 2;
    return window;
  }
  Attributes plane() const {
    const std::vector<int64_t> strides = spatial("strides");
    return {{"strides", std::vector<int64_t>{strides[1], strides[2]}},
            {"padding", std::string(same_ ? "same" : "valid")}};
  }
  Value* out(Value* y) { return first_ ? transposed(y, {0, 4, 1, 2, 3}) : y; }

  Value* x;

 private:
  static constexpr int64_t kMost = 1 << 16;

  Value* transposed(Value* value, std::vector<int64_t> permutation) {
    return c_.b.add("transpose", {value}, {{"permutation", std::move(permutation)}});
  }
  OpContext& c_;
  bool first_, same_;
};

void conv(OpContext& c) {
  c.expect_inputs(2);
  if (c.rank(1) != 5 || !c.in[1]->type.shape.known()) c.refuse("the kernel must have 5 known dims");
  VolumeInput volume(c);
  Attributes plane = volume.plane();
  const std::vector<int64_t> dilations = volume.spatial("dilations");
  plane.set("dilations", std::vector<int64_t>{dilations[1], dilations[2]});
  // A kernel with fewer input channels than the volume means groups.
  const int64_t channels = volume.x->type.shape.dims[4].size, taken = c.in[1]->type.shape.sizes()[3];
  if (taken < 1 || channels % taken != 0)
    fail(ErrorKind::invalid_model, "", "kernel has {} input channels, volume has {}", taken, channels);
  if (channels != taken) plane.set("groups", channels / taken);
  c.out = {volume.out(conv3d(volume.x, c.in[1], volume.depth(c.in[1]->type.shape.sizes()[0]), plane, c.b))};
}

template <Pooling kPooling>
void pool(OpContext& c) {
  c.expect_inputs(1);
  VolumeInput volume(c);
  if (!c.has("ksize")) fail(ErrorKind::invalid_model, "", "attribute ksize is missing");
  const std::vector<int64_t> window = volume.spatial("ksize");
  Attributes plane = volume.plane();
  plane.set("window", std::vector<int64_t>{window[1], window[2]});
  c.out = {volume.out(pool3d(volume.x, kPooling, volume.depth(window[0]), plane, c.b))};
}

constexpr Row kVolumeRows[] = {
    {"AvgPool3D", pool<Pooling::mean>},
    {"Conv3D", conv, Trait::heavy},
    {"MaxPool3D", pool<Pooling::largest>},
};

}  // namespace

std::span<const Row> volume_rows() { return kVolumeRows; }

}  // namespace cairn::tensorflow
