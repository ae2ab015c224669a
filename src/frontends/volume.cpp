#include "frontends/volume.h"

#include <algorithm>

#include "frontends/fold.h"
#include "frontends/reshape.h"

namespace cairn {
namespace {

constexpr int64_t kMostDepth = 1024, kMostPadding = 1 << 20;

/// A padded volume, cut into the slices that each tap of the window meets.
class Slices {
 public:
  Slices(Value* x, const DepthWindow& depth, double fill, Builder& builder)
      : b_(builder), batch_(x->type.shape.dims[0]), depth_(depth) {
    if (depth.size < 1 || depth.size > kMostDepth)
      fail(ErrorKind::unsupported, "", "a window of depth {} is not supported", depth.size);
    if (depth.stride < 1 || depth.dilation < 1 || depth.before < 0 || depth.after < 0 || depth.before > kMostPadding ||
        depth.after > kMostPadding)
      fail(ErrorKind::invalid_model, "", "the window's stride, dilation or padding along the depth is out of range");
    const int64_t all = x->type.shape.dims[1].size + depth.before + depth.after;
    if (all < depth.reach())
      fail(ErrorKind::invalid_model, "", "a window of depth {} does not fit into {}", depth.reach(), all);
    count = (all - depth.reach()) / depth.stride + 1;
    if (depth.before > 0 || depth.after > 0) {
      Tensor pads = Tensor::of<int64_t>(kI64, {5, 2}, {0, 0, depth.before, depth.after, 0, 0, 0, 0, 0, 0});
      x = b_.add("pad", {x, b_.constant(pads)}, {{"value", fill}});
    }
    volume_ = x;
  }

  /// Slices number tap, tap + stride, ... as images [n * count, height, width, channels].
  Value* at(int64_t tap) {
    const int64_t begin = tap * depth_.dilation, end = begin + (count - 1) * depth_.stride + 1;
    Value* part = b_.add(
        "slice", {volume_, b_.ints({0, begin, 0, 0, 0}), b_.ints({kToTheEnd, end, kToTheEnd, kToTheEnd, kToTheEnd})},
        {{"steps", std::vector<int64_t>{1, depth_.stride, 1, 1, 1}}});
    const auto& dims = part->type.shape.dims;
    NewDim all = batch_.known() ? NewDim{batch_.size * count} : NewDim{};
    return reshape_to(part, {all, {dims[2].size}, {dims[3].size}, {dims[4].size}}, b_);
  }
  Value* volume(Value* images) {
    const auto& dims = images->type.shape.dims;
    NewDim all = batch_.known() ? NewDim{batch_.size} : NewDim{};
    return reshape_to(images, {all, {count}, {dims[1].size}, {dims[2].size}, {dims[3].size}}, b_);
  }
  /// The slices of all taps combined by an op of two operands.
  Value* combined(const char* op) {
    Value* all = at(0);
    for (int64_t tap = 1; tap < depth_.size; ++tap) all = b_.add(op, {all, at(tap)});
    return all;
  }

  int64_t count = 0;  // of slices of the result

 private:
  Builder& b_;
  Dim batch_;
  DepthWindow depth_;
  Value* volume_;
};

}  // namespace

DepthWindow depth_window(int64_t in, int64_t size, int64_t stride, int64_t dilation, bool same) {
  DepthWindow window{size, stride, dilation};
  if (!same) return window;
  const int64_t out = (in + stride - 1) / stride;
  const int64_t missing = std::max<int64_t>(0, (out - 1) * stride + window.reach() - in);
  window.before = missing / 2, window.after = missing - missing / 2;
  return window;
}

void check_volume(const Value* x) {
  const auto& dims = x->type.shape.dims;
  if (dims.size() != 5) fail(ErrorKind::invalid_model, "", "the volume has {} dims, expected 5", dims.size());
  for (size_t i = 1; i < 5; ++i)
    if (!dims[i].known())
      fail(ErrorKind::unsupported, "",
           "the volume's sizes are not all known; declare the shapes of the model's inputs");
}

Value* conv3d(Value* x, Value* kernel, const DepthWindow& depth, const Attributes& plane, Builder& builder) {
  check_volume(x);
  const std::vector<int64_t> sizes = kernel->type.shape.sizes();
  Slices slices(x, depth, 0, builder);
  Value* sum = nullptr;
  for (int64_t tap = 0; tap < depth.size; ++tap) {
    Value* taken = builder.add("slice", {kernel, builder.ints({tap, 0, 0, 0, 0}),
                                         builder.ints({tap + 1, kToTheEnd, kToTheEnd, kToTheEnd, kToTheEnd})});
    Value* flat = reshape_to(taken, {{sizes[1]}, {sizes[2]}, {sizes[3]}, {sizes[4]}}, builder);
    Value* part = builder.add("conv2d", {slices.at(tap), flat}, plane);
    sum = sum == nullptr ? part : builder.add("add", {sum, part});
  }
  return slices.volume(sum);
}

Value* conv3d_transpose(Value* x, Value* kernel, const DepthWindow& depth, const Attributes& plane,
                        const std::vector<int64_t>& sizes, Builder& b) {
  check_volume(x);
  const auto& dims = x->type.shape.dims;
  const std::vector<int64_t> kernels = kernel->type.shape.sizes();
  if (depth.size < 1 || depth.size > kMostDepth)
    fail(ErrorKind::unsupported, "", "a window of depth {} is not supported", depth.size);
  const int64_t slices = dims[1].size, out = kernels[3];
  Value* images = reshape_to(x, {{-1}, {dims[2].size}, {dims[3].size}, {dims[4].size}}, b);
  const Shape image{images->type.shape.dims[0], Dim(sizes[1]), Dim(sizes[2]), Dim(out)};
  Value* image_sizes = joined({dim_of(images, 0, b), b.ints({sizes[1], sizes[2], out})}, b);
  Value* sum = nullptr;
  for (int64_t tap = 0; tap < depth.size; ++tap) {
    Value* taken = b.add(
        "slice", {kernel, b.ints({tap, 0, 0, 0, 0}), b.ints({tap + 1, kToTheEnd, kToTheEnd, kToTheEnd, kToTheEnd})});
    Value* flat = reshape_to(taken, {{kernels[1]}, {kernels[2]}, {kernels[3]}, {kernels[4]}}, b);
    Value* part = b.add_node(op_named("conv2d_input_gradient"), {images, flat, image_sizes}, plane, {},
                             {Type::tensor(x->type.dtype, image)})
                      ->result();
    // Slice i lies at i * stride + tap * dilation: zeros between the slices, before and behind them.
    part = reshape_to(part, {{-1}, {slices}, {1}, {sizes[1] * sizes[2]}, {out}}, b);
    auto padded = [&](std::vector<int64_t> pads) {
      return b.add("pad", {part, b.constant(Tensor::of<int64_t>(kI64, {int64_t(pads.size()) / 2, 2}, pads))});
    };
    if (depth.stride > 1) part = padded({0, 0, 0, 0, 0, depth.stride - 1, 0, 0, 0, 0});
    part = reshape_to(part, {{-1}, {slices * depth.stride}, {sizes[1]}, {sizes[2]}, {out}}, b);
    const int64_t before = tap * depth.dilation;
    const int64_t after = std::max<int64_t>(0, depth.before + sizes[0] - before - slices * depth.stride);
    if (before > 0 || after > 0) part = padded({0, 0, before, after, 0, 0, 0, 0, 0, 0});
    part = b.add("slice", {part, b.ints({0, depth.before, 0, 0, 0}),
                           b.ints({kToTheEnd, depth.before + sizes[0], kToTheEnd, kToTheEnd, kToTheEnd})});
    sum = sum == nullptr ? part : b.add("add", {sum, part});
  }
  return sum;
}

Value* pool3d(Value* x, Pooling pooling, const DepthWindow& depth, Attributes plane, Builder& builder) {
  check_volume(x);
  const int64_t inside = x->type.shape.dims[1].size;
  if (pooling == Pooling::largest) {
    Slices slices(x, depth, -std::numeric_limits<double>::infinity(), builder);
    return slices.volume(builder.add("max_pool2d", {slices.combined("maximum")}, std::move(plane)));
  }
  // Means of the planes, then over depth: each sum divided by how many slices it has.
  Slices slices(x, depth, 0, builder);
  plane.set("count_padding", pooling == Pooling::mean_with_padding);
  Value* y = slices.volume(builder.add("avg_pool2d", {slices.combined("add")}, std::move(plane)));
  std::vector<float> shares;
  for (int64_t i = 0; i < slices.count; ++i) {
    const int64_t begin = i * depth.stride - depth.before, end = begin + depth.size;
    const int64_t count =
        pooling == Pooling::mean_with_padding ? depth.size : std::min(end, inside) - std::max<int64_t>(begin, 0);
    shares.push_back(count > 0 ? 1 / static_cast<float>(count) : 0);
  }
  Value* factors = builder.constant(Tensor::of<float>(kF32, {slices.count, 1, 1, 1}, shares));
  return builder.add("mul", {y, cast_to(factors, y->type.dtype, builder)});
}

}  // namespace cairn
