// TensorFlow's images under projective transforms (image_ops.h): what Keras' layers that turn, move and zoom images are made of.
#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

/// 0, 1, .. in f32 along one axis of [batch, rows, columns].
Var places(OpContext& c, Var count, size_t axis) {
  std::vector<int64_t> others{0, 1, 2};
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(axis));
  return {c.b, expand_dims(cast_to(counted(count.value, c.b), kF32, c.b), others, c.b)};
}

Var whole(Var x) { return cast(cast(x, kI64), kF32); }  // towards 0
Var clamped(Var x, Var last) { return minimum(maximum(x, x.number(0)), last); }

/// Where a place outside of `size` pixels is read; in images of one pixel there.
Var mapped(OpContext& c, Var x, Var size) {
  const std::string mode = c.text("fill_mode", "CONSTANT");
  if (mode == "CONSTANT") return x;
  const Var last = size - 1.0, none = x.number(0);
  if (mode == "NEAREST") return clamped(x, last);
  if (mode != "REFLECT" && mode != "WRAP")
    fail(ErrorKind::invalid_model, "", "fill_mode '{}' is unknown", printable(mode));
  Var below = x, above = x;
  if (mode == "WRAP") {
    below = x + size * (whole(-x / last) + 1.0);
    above = x - size * whole(x / last);
  } else {
    const Var both = size * 2.0;
    const Var turned = select(x < both, both * whole(-x / both) + x, x);
    below = select(turned < -size, turned + both, -turned - 1.0);
    const Var rest = x - both * whole(x / both);
    above = select(rest < size, rest, both - rest - 1.0);
  }
  return clamped(select(size > 1.0, select(x < none, below, select(x > last, above, x)), none), last);
}

/// images, transforms [batch or 1, 8], size of the result, and in the third version what is outside the images.
void projective_transform(OpContext& c) {
  const bool third = c.node().op == "ImageProjectiveTransformV3";
  c.expect_inputs(third ? 4 : 3);
  if (c.rank(0) != 4 || c.rank(1) != 2)
    fail(ErrorKind::invalid_model, "", "images and transforms have {} and {} dims, expected 4 and 2", c.rank(0),
         c.rank(1));
  const std::string way = c.text("interpolation", "");
  if (way != "NEAREST" && way != "BILINEAR")
    fail(ErrorKind::invalid_model, "", "interpolation '{}' is unknown", printable(way));
  Value* images = c.in[0];
  const DType given = images->type.dtype;
  const auto size = [&](int64_t i) {
    return folded(Var(c.b, c.b.add("reshape", {part_of(cast_to(c.in[2], kI64, c.b), i, i + 1, c.b), c.b.ints({})})));
  };
  Value* all = c.b.add("broadcast_to", {c.in[1], joined({dim_of(images, 0, c.b), c.b.ints({8})}, c.b)});
  const auto number = [&](int64_t i) {
    Value* column = c.b.add("slice", {all, c.b.ints({0, i}), c.b.ints({kToTheEnd, i + 1})});
    return Var(c.b, expand_dims(column, {2}, c.b));
  };
  const Var row = places(c, size(0), 1), column = places(c, size(1), 2);
  const Var scale = number(6) * column + number(7) * row + 1.0;
  const auto place = [&](int64_t first, size_t axis) {
    const Var source = (number(first) * column + number(first + 1) * row + number(first + 2)) / scale;
    Var at = mapped(c, source, cast(Var(c.b, dim_of(images, axis, c.b)), kF32));
    if (way == "NEAREST") at = sign(at) * (abs(at) + 0.5).apply("floor");  // halves away from 0
    constexpr double kOutside = -9;
    at = select(scale.apply("equal", {scale.number(0)}), at.number(kOutside), at);
    return expand_dims(at.value, {3}, c.b);
  };
  Value* grid = c.b.add("concat", {place(0, 2), place(3, 1)}, {{"axis", int64_t{3}}});
  const bool wide = given == kI32 || given == kI64 || given == kF64;
  const Var pixels = cast(Var(c.b, images), wide ? kF64 : kF32);
  const Attributes attributes{{"mode", std::string(way == "NEAREST" ? "nearest" : "linear")},
                              {"coordinates", std::string("pixel")}};
  const auto sampled = [&](Var x) { return x.apply("grid_sample", {{c.b, grid}}, attributes); };
  const Tensor* fill = third ? constant_of(c.in[3]) : nullptr;
  if (!third || (fill && fill->as_f64() == std::vector<double>{0})) {
    c.out = {cast(sampled(pixels), given).value};
    return;
  }
  const Var outside = cast(Var(c.b, c.in[3]), pixels.dtype());  // the sampling's own is 0
  c.out = {cast(sampled(pixels - outside) + outside, given).value};
}

constexpr Row kWarpRows[] = {
    {"ImageProjectiveTransformV2", projective_transform, Trait::heavy},
    {"ImageProjectiveTransformV3", projective_transform, Trait::heavy},
};

}  // namespace

std::span<const Row> warp_rows() { return kWarpRows; }

}  // namespace cairn::tensorflow
