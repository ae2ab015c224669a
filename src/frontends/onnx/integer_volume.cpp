// Convolutions of integers in volumes: the taps along the depth are convolutions of images, whose sums add up.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/onnx/convolution.h"
#include "frontends/reshape.h"

namespace cairn::onnx {
namespace {

struct Depth {
  int64_t stride, dilation, taps, before, after;
  int64_t reach() const { return (taps - 1) * dilation + 1; }
};

/// Moves what the attributes say of the depth out of them.
Depth take_depth(OpContext& c, const Value* x, const Value* kernel, Attributes& attributes) {
  const Dim taps = kernel->type.shape.dims[0], size = x->type.shape.dims[1];
  constexpr int64_t kMostTaps = 1024;
  if (!taps.known() || taps.size < 1 || taps.size > kMostTaps)
    c.refuse("integers in volumes need a kernel whose depth is known and at most {}", kMostTaps);
  const auto first = [&](const char* name, int64_t least) {
    auto list = std::get<std::vector<int64_t>>(*attributes.find(name));
    const int64_t value = list.front();
    if (value < least || value > 1 << 24) fail(ErrorKind::invalid_model, "", "{} have {}", name, value);
    list.erase(list.begin());
    attributes.set(name, std::move(list));
    return value;
  };
  Depth depth{first("strides", 1), first("dilations", 1), taps.size, 0, 0};
  const auto padding = std::get<std::string>(*attributes.find("padding"));
  if (padding == "explicit") {
    depth.before = first("pads", 0), depth.after = first("pads", 0);
  } else if (padding != "valid") {
    if (!size.known()) c.refuse("auto_pad for integers in volumes needs a known depth");
    const int64_t missing = std::max<int64_t>(
        ((size.size + depth.stride - 1) / depth.stride - 1) * depth.stride + depth.reach() - size.size, 0);
    depth.before = padding == "same" ? missing / 2 : missing - missing / 2;
    depth.after = missing - depth.before;
  }
  return depth;
}

/// The volume with its zero point around its depth.
Value* padded(Value* x, const Depth& depth, Value* zero, Builder& b) {
  const auto layers = [&](int64_t count) {
    std::vector<Value*> sizes{dim_of(x, 0, b), b.ints({count})};
    for (size_t axis = 2; axis < 5; ++axis) sizes.push_back(dim_of(x, axis, b));
    return b.add("broadcast_to", {zero, joined(sizes, b)});
  };
  std::vector<Value*> parts{x};
  if (depth.before > 0) parts.insert(parts.begin(), layers(depth.before));
  if (depth.after > 0) parts.push_back(layers(depth.after));
  return parts.size() == 1 ? x : b.add("concat", parts, {{"axis", int64_t{1}}});
}

}  // namespace

Value* integer_volume(OpContext& c, Value* x, Value* kernel, const std::vector<Value*>& zeros, Attributes attributes) {
  Builder& b = c.b;
  const Depth depth = take_depth(c, x, kernel, attributes);
  x = padded(x, depth, zeros[0], b);
  Value *sum = nullptr, *batch = dim_of(x, 0, b);
  for (int64_t tap = 0; tap < depth.taps; ++tap) {
    const int64_t begin = tap * depth.dilation, rest = depth.reach() - 1 - begin;
    Value* layers = b.add("slice",
                          {x, b.ints({0, begin, 0, 0, 0}),
                           b.ints({kToTheEnd, rest > 0 ? -rest : kToTheEnd, kToTheEnd, kToTheEnd, kToTheEnd})},
                          {{"steps", std::vector<int64_t>{1, depth.stride, 1, 1, 1}}});
    Value* flat = joined({b.ints({-1}), dim_of(x, 2, b), dim_of(x, 3, b), dim_of(x, 4, b)}, b);
    Value* weights = folded(b.add("gather", {kernel, b.constant(Tensor::scalar_i64(tap))}), b);
    Value* y = b.add("conv2d_integer", {reshape_by(layers, flat, b), weights, zeros[0], zeros[1]}, attributes);
    sum = sum == nullptr ? y : b.add("add", {sum, y});
  }
  Value* sizes = joined({batch, b.ints({-1}), dim_of(sum, 1, b), dim_of(sum, 2, b), dim_of(sum, 3, b)}, b);
  return reshape_by(sum, sizes, b);
}

}  // namespace cairn::onnx
