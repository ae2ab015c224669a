// TensorFlow's gradients of 3-D convolution and pooling: sums over depth of the 2-D gradients on slices of the volume.
#include <algorithm>
#include <array>

#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"
#include "support/function_ref.h"

namespace cairn::tensorflow {
namespace {

constexpr int64_t kMostTaps = 1024;
constexpr int64_t kMostReach = 1 << 30;

using Taps = std::array<int64_t, 3>;  // which element of a window, per axis

/// Windows sliding along one axis.
struct Axis {
  Axis() = default;
  Axis(int64_t size, int64_t window, int64_t stride, int64_t dilation, bool same)
      : size(size), window(window), stride(stride), dilation(dilation) {
    const int64_t reach = (window - 1) * dilation + 1;
    count = same ? (size + stride - 1) / stride : size < reach ? 0 : (size - reach) / stride + 1;
    if (count < 1) fail(ErrorKind::invalid_model, "", "a window of {} does not fit into {}", reach, size);
    before = same ? std::max<int64_t>(0, (count - 1) * stride + reach - size) / 2 : 0;
    padded = std::max(before + size, (count - 1) * stride + reach);
  }
  int64_t size = 0, window = 0, stride = 0, dilation = 0;
  int64_t count = 0, before = 0, padded = 0;  // windows; padding in front; size with all padding
};

/// A volume converted to NDHWC from the node's format, and the windows along its depth, height and width.
class Volume {
 public:
  /// Of these sizes, as the node's format orders them.
  Volume(OpContext& c, std::vector<Dim> sizes, const std::vector<int64_t>& window)
      : dims(std::move(sizes)), c_(c), first_(c.text("data_format", "NDHWC") == "NCDHW") {
    if (dims.size() != 5) fail(ErrorKind::invalid_model, "", "the volume has {} dims, expected 5", dims.size());
    if (first_) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
    for (size_t i = 1; i < 5; ++i)
      if (!dims[i].known()) c.refuse("dim {} of the volume is not known; declare the shapes of the model's inputs", i);
    const std::string padding = c.text("padding", "");
    if (padding != "SAME" && padding != "VALID") c.refuse("padding '{}' is not supported", printable(padding));
    same = padding == "SAME";
    const std::vector<int64_t> strides = spatial("strides"), dilations = spatial("dilations");
    for (size_t a = 0; a < 3; ++a) {
      if (window[a] < 1 || window[a] > kMostReach / dilations[a])
        c.refuse("a window of {} is not supported", window[a]);
      axes[a] = Axis(dims[a + 1].size, window[a], strides[a], dilations[a], same);
    }
    if (window[0] > kMostTaps) c.refuse("a window of depth {} is not supported", window[0]);
  }
  Volume(OpContext& c, size_t input, const std::vector<int64_t>& window)
      : Volume(c, c.in[input]->type.shape.dims, window) {}

  /// Depth, height and width of a list of five.
  std::vector<int64_t> spatial(std::string_view attr) const {
    std::vector<int64_t> list = c_.integers(attr);
    if (list.empty()) return {1, 1, 1};
    if (list.size() != 5 || list[0] != 1 || list[first_ ? 1 : 4] != 1)
      c_.refuse("{} over batch or channels is not supported", attr);
    const auto from = list.begin() + (first_ ? 2 : 1);
    for (auto each = from; each != from + 3; ++each)
      if (*each < 1 || *each > kMostReach) fail(ErrorKind::invalid_model, "", "attribute {} has {}", attr, *each);
    return {from, from + 3};
  }

  /// From the node's format to NDHWC, and back.
  Value* in(Value* value) const { return first_ ? transposed(value, {0, 2, 3, 4, 1}) : value; }
  Value* out(Value* value) const { return first_ ? transposed(value, {0, 4, 1, 2, 3}) : value; }

  /// The volume with `fill` around it along the first `along` axes, as far as windows reach.
  Value* padded(Value* x, double fill, size_t along) const {
    std::vector<int64_t> pads(10, 0);
    for (size_t a = 0; a < along; ++a) {
      pads[2 * a + 2] = axes[a].before;
      pads[2 * a + 3] = axes[a].padded - axes[a].before - axes[a].size;
    }
    return pad(x, pads, fill);
  }
  /// The elements of a padded volume that a tap of the windows reads, window by window along the first `along` axes.
  Value* seen_by(const Taps& taps, Value* volume, size_t along) const {
    std::vector<int64_t> begins(5, 0), ends(5, kToTheEnd), steps(5, 1);
    for (size_t a = 0; a < along; ++a) {
      begins[a + 1] = taps[a] * axes[a].dilation;
      ends[a + 1] = begins[a + 1] + (axes[a].count - 1) * axes[a].stride + 1;
      steps[a + 1] = axes[a].stride;
    }
    return c_.b.add("slice", {volume, c_.b.ints(begins), c_.b.ints(ends)}, {{"steps", steps}});
  }
  /// The reverse: puts elements back to the positions that the tap reads, with zeros elsewhere.
  Value* put_back(const Taps& taps, Value* windows, size_t along) const {
    std::vector<int64_t> pads(10, 0);
    for (size_t a = 0; a < along; ++a) {
      windows = apart(windows, a);
      const int64_t begin = taps[a] * axes[a].dilation, length = (axes[a].count - 1) * axes[a].stride + 1;
      pads[2 * a + 2] = begin;
      pads[2 * a + 3] = axes[a].padded - begin - length;
    }
    return pad(windows, pads, 0);
  }
  /// A padded volume without its padding.
  Value* cropped(Value* volume, size_t along) const {
    std::vector<int64_t> begins(5, 0), ends(5, kToTheEnd);
    for (size_t a = 0; a < along; ++a) {
      begins[a + 1] = axes[a].before;
      ends[a + 1] = axes[a].before + axes[a].size;
    }
    return c_.b.add("slice", {volume, c_.b.ints(begins), c_.b.ints(ends)});
  }

  /// Slices as images [n * slices, height, width, channels], and images of the volume's height, width and channels, one for each
  /// window along the depth, as slices.
  Value* images(Value* volume) const {
    const auto& sizes = volume->type.shape.dims;
    const NewDim all = sizes[0].known() ? NewDim{sizes[0].size * sizes[1].size} : NewDim{};
    return reshape_to(volume, {all, {sizes[2].size}, {sizes[3].size}, {sizes[4].size}}, c_.b);
  }
  Value* slices(Value* images) const {
    const NewDim all = dims[0].known() ? NewDim{dims[0].size} : NewDim{};
    return reshape_to(images, {all, {axes[0].count}, {dims[2].size}, {dims[3].size}, {dims[4].size}}, c_.b);
  }
  /// Sizes of the images that slices of the volume give, one for each window along the depth.
  Value* image_sizes(Value* dy_images) const {
    return joined({dim_of(dy_images, 0, c_.b), c_.b.ints({dims[2].size, dims[3].size, dims[4].size})}, c_.b);
  }
  Attributes plane(const char* window = nullptr) const {
    Attributes attributes = {{"strides", std::vector<int64_t>{axes[1].stride, axes[2].stride}},
                             {"padding", std::string(same ? "same" : "valid")}};
    if (window != nullptr) attributes.set(window, std::vector<int64_t>{axes[1].window, axes[2].window});
    return attributes;
  }
  Attributes convolution() const {
    Attributes attributes = plane();
    attributes.set("dilations", std::vector<int64_t>{axes[1].dilation, axes[2].dilation});
    return attributes;
  }

  std::vector<Dim> dims;  // NDHWC
  std::array<Axis, 3> axes;
  bool same = false;

 private:
  Value* transposed(Value* value, std::vector<int64_t> permutation) const {
    return c_.b.add("transpose", {value}, {{"permutation", std::move(permutation)}});
  }
  Value* pad(Value* x, const std::vector<int64_t>& pads, double fill) const {
    if (std::all_of(pads.begin(), pads.end(), [](int64_t each) { return each == 0; })) return x;
    return c_.b.add("pad", {x, c_.b.constant(Tensor::of<int64_t>(kI64, {5, 2}, pads))}, {{"value", fill}});
  }
  /// Inserts zeros between the elements along one axis, so that they are a stride apart.
  Value* apart(Value* x, size_t a) const {
    const Axis& axis = axes[a];
    if (axis.stride == 1 || axis.count == 1) return x;
    std::vector<int64_t> pads(12, 0), begins(5, 0), ends(5, kToTheEnd);
    pads[2 * (a + 2) + 1] = axis.stride - 1;
    Value* single = expand_dims(x, {static_cast<int64_t>(a) + 2}, c_.b);
    Value* wide = c_.b.add("pad", {single, c_.b.constant(Tensor::of<int64_t>(kI64, {6, 2}, pads))});
    std::vector<NewDim> merged;
    for (int i = 0; i < 5; ++i) merged.push_back({-1, i <= static_cast<int>(a) + 1 ? i : i + 1});
    merged[a + 1] = {axis.count * axis.stride};
    ends[a + 1] = (axis.count - 1) * axis.stride + 1;
    return c_.b.add("slice", {reshape_to(wide, merged, c_.b), c_.b.ints(begins), c_.b.ints(ends)});
  }

  OpContext& c_;
  bool first_;
};

/// The sum of `part` over the taps along the depth.
Value* over_depth(OpContext& c, const Volume& volume, FunctionRef<Value*(Taps)> part) {
  Value* all = nullptr;
  for (int64_t tap = 0; tap < volume.axes[0].window; ++tap) {
    Value* next = part({tap, 0, 0});
    all = all == nullptr ? next : c.b.add("add", {all, next});
  }
  return all;
}

/// Kernels are [depth, height, width, channels, made channels].
std::vector<int64_t> kernel_sizes(OpContext& c, const std::optional<std::vector<Dim>>& dims) {
  if (!dims || dims->size() != 5 || !std::all_of(dims->begin(), dims->end(), [](const Dim& d) { return d.known(); }))
    c.refuse("the kernel must have 5 known dims");
  std::vector<int64_t> sizes;
  for (const Dim& dim : *dims) sizes.push_back(dim.size);
  return sizes;
}

Value* kernel_plane(OpContext& c, Value* kernel, const std::vector<int64_t>& sizes, int64_t tap) {
  Value* slice = c.b.add(
      "slice", {kernel, c.b.ints({tap, 0, 0, 0, 0}), c.b.ints({tap + 1, kToTheEnd, kToTheEnd, kToTheEnd, kToTheEnd})});
  return reshape_to(slice, {{sizes[1]}, {sizes[2]}, {sizes[3]}, {sizes[4]}}, c.b);
}

/// The gradient of a result must have the sizes that the windows give.
Value* gradient_images(OpContext& c, const Volume& volume, size_t input) {
  if (c.rank(input) != 5) fail(ErrorKind::invalid_model, "", "the gradient has {} dims, expected 5", c.rank(input));
  Value* dy = volume.in(c.in[input]);
  for (size_t a = 0; a < 3; ++a)
    if (const Dim& size = dy->type.shape.dims[a + 1]; size != Dim(volume.axes[a].count))
      fail(ErrorKind::invalid_model, "", "the gradient has {} elements along axis {}, expected {}", to_string(size),
           a + 1, volume.axes[a].count);
  if (!dy->type.shape.dims[4].known()) c.refuse("the channels of the gradient are not known");
  return volume.images(dy);
}

/// The sizes of the volume come as a vector; the first form has the volume itself.
std::vector<Dim> told_sizes(OpContext& c, size_t input) {
  if (c.rank(input) != 1) return c.in[input]->type.shape.dims;
  std::optional<std::vector<Dim>> dims = dims_told(c.in[input]);
  if (!dims) dims = sizes_in(c.in[input]);
  if (!dims) c.refuse("the sizes must be known while importing");
  return *dims;
}

void conv3d_by_input(OpContext& c) {
  c.expect_inputs(3);
  const std::vector<int64_t> kernel = kernel_sizes(c, c.in[1]->type.shape.dims);
  const Volume volume(c, told_sizes(c, 0), kernel);
  Value* dy = gradient_images(c, volume, 2);
  Value* sum = over_depth(c, volume, [&](Taps taps) {
    Value* plane = kernel_plane(c, c.in[1], kernel, taps[0]);
    Value* part = c.b.add("conv2d_input_gradient", {dy, plane, volume.image_sizes(dy)}, volume.convolution());
    return volume.put_back(taps, volume.slices(part), 1);
  });
  c.out = {volume.out(volume.cropped(sum, 1))};
}

void conv3d_by_kernel(OpContext& c) {
  c.expect_inputs(3);
  const std::vector<int64_t> kernel = kernel_sizes(c, told_sizes(c, 1));
  const Volume volume(c, 0, kernel);
  Value *x = volume.padded(volume.in(c.in[0]), 0, 1), *dy = gradient_images(c, volume, 2);
  Value* plane_sizes = c.b.ints({kernel[1], kernel[2], kernel[3], kernel[4]});
  std::vector<Value*> planes;
  for (int64_t tap = 0; tap < kernel[0]; ++tap) {
    Value* images = volume.images(volume.seen_by({tap, 0, 0}, x, 1));
    Value* plane = c.b.add("conv2d_kernel_gradient", {images, dy, plane_sizes}, volume.convolution());
    planes.push_back(reshape_to(plane, {{1}, {kernel[1]}, {kernel[2]}, {kernel[3]}, {kernel[4]}}, c.b));
  }
  c.out = {planes.size() == 1 ? planes[0] : c.b.add("concat", planes, {{"axis", int64_t{0}}})};
}

std::vector<int64_t> window_of(OpContext& c) {
  std::vector<int64_t> window = c.integers("ksize");
  const bool first = c.text("data_format", "NDHWC") == "NCDHW";
  if (window.size() != 5) fail(ErrorKind::invalid_model, "", "ksize has {} numbers, expected 5", window.size());
  if (window[0] != 1 || window[first ? 1 : 4] != 1) c.refuse("ksize over batch or channels is not supported");
  const auto from = window.begin() + (first ? 2 : 1);
  return {from, from + 3};
}

/// Each largest element of a window gets the window's whole gradient; as in TensorFlow, so does every one of several
/// equal ones.
void max_pool3d_gradient(OpContext& c) {
  c.expect_inputs(3);
  const Volume volume(c, 0, window_of(c));
  const Taps window = {volume.axes[0].window, volume.axes[1].window, volume.axes[2].window};
  if (window[1] > kMostTaps || window[2] > kMostTaps || window[0] * window[1] * window[2] > kMostTaps)
    c.refuse("a window of {} x {} x {} is not supported", window[0], window[1], window[2]);
  gradient_images(c, volume, 1);
  gradient_images(c, volume, 2);
  Value* x = volume.padded(volume.in(c.in[0]), -std::numeric_limits<double>::infinity(), 3);
  Value *y = volume.in(c.in[1]), *dy = volume.in(c.in[2]), *sum = nullptr;
  Taps taps{};
  for (taps[0] = 0; taps[0] < window[0]; ++taps[0])
    for (taps[1] = 0; taps[1] < window[1]; ++taps[1])
      for (taps[2] = 0; taps[2] < window[2]; ++taps[2]) {
        Value* largest = c.b.add("equal", {volume.seen_by(taps, x, 3), y});
        Value* share = c.b.add("select", {largest, dy, c.b.scalar_like(dy, 0)});
        Value* part = volume.put_back(taps, share, 3);
        sum = sum == nullptr ? part : c.b.add("add", {sum, part});
      }
  c.out = {volume.out(volume.cropped(sum, 3))};
}

/// Per window along the depth one over how many slices lie inside the volume, to multiply [n, depth, ...] by.
Value* depth_shares(OpContext& c, const Axis& depth, const Value* like) {
  std::vector<float> shares;
  for (int64_t i = 0; i < depth.count; ++i) {
    const int64_t begin = i * depth.stride - depth.before;
    shares.push_back(1 / static_cast<float>(std::min(begin + depth.window, depth.size) - std::max<int64_t>(begin, 0)));
  }
  return cast_to(c.b.constant(Tensor::of<float>(kF32, {depth.count, 1, 1, 1}, shares)), like->type.dtype, c.b);
}

void avg_pool3d_gradient(OpContext& c) {
  c.expect_inputs(2);
  const Volume volume(c, told_sizes(c, 0), window_of(c));
  gradient_images(c, volume, 1);
  Value* dy = volume.in(c.in[1]);
  Value* images = volume.images(c.b.add("mul", {dy, depth_shares(c, volume.axes[0], dy)}));
  Value* planes = c.b.add("avg_pool2d_gradient", {images, volume.image_sizes(images)}, volume.plane("window"));
  Value* part = volume.slices(planes);
  Value* sum = over_depth(c, volume, [&](Taps taps) { return volume.put_back(taps, part, 1); });
  c.out = {volume.out(volume.cropped(sum, 1))};
}

constexpr Row kVolumeGradientRows[] = {
    {"AvgPool3DGrad", avg_pool3d_gradient},       {"Conv3DBackpropFilter", conv3d_by_kernel},
    {"Conv3DBackpropFilterV2", conv3d_by_kernel}, {"Conv3DBackpropInput", conv3d_by_input},
    {"Conv3DBackpropInputV2", conv3d_by_input},   {"MaxPool3DGrad", max_pool3d_gradient},
};

}  // namespace

std::span<const Row> volume_gradient_rows() { return kVolumeGradientRows; }

}  // namespace cairn::tensorflow
