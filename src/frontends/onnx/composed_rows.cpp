// ONNX operators that are composed of several of ours: blocks of pixels, activations.
#include <cmath>

#include "frontends/einsum.h"
#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "ir/expression.h"
#include "ops/gradients.h"

namespace cairn::onnx {
namespace {

constexpr int64_t kMostPixels = 1 << 30;

void einsum_row(OpContext& c) { c.out = {einsum(c.text("equation", ""), c.in, c.b)}; }

struct Pixels {
  Size channels;
  int64_t block;
};

/// A size divided by a number, which must divide it as far as the size is known.
Size divided(Builder& b, const Size& size, int64_t by, const char* what) {
  if (size.dim().known() && size.dim().size % by != 0)
    fail(ErrorKind::invalid_model, "", "{} {} do not divide into blocks of {}", size.dim().size, what, by);
  if (size.dim().known()) return Size(b, size.dim().size / by);
  return Size::element({b, b.add("floor_div", {size.vector().value, b.ints({by})})}, 0);
}

Pixels pixels(OpContext& c) {
  c.expect_inputs(1, 1);
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "images have {} dims, expected 4", c.rank(0));
  const int64_t block = c.integer("blocksize");
  if (block < 1 || block > 65536) fail(ErrorKind::invalid_model, "", "blocksize is {}", block);
  return {Size(Var(c.b, c.in[0]), 1), block};
}

/// Whether a channel's block lies together (CRD), or the channels of a place in the block do (DCR).
bool channels_lead(OpContext& c) {
  const std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(mode));
  return mode == "CRD";
}

void depth_to_space(OpContext& c) {
  const Pixels p = pixels(c);
  const bool lead = channels_lead(c);
  const Var image(c.b, c.in[0]);
  const auto number = [&](int64_t size) { return Size(c.b, size); };
  const Size batch(image, 0), height(image, 2), width(image, 3), block = number(p.block);
  const Size channels = divided(c.b, p.channels, p.block * p.block, "channels");
  const Var x = lead ? reshape(image, {batch, channels, block, block, height, width})
                     : reshape(image, {batch, block, block, channels, height, width});
  const Var y = transpose(x, lead ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2});
  c.out = {reshape(y, {batch, channels, height * block, width * block}).value};
}

void space_to_depth(OpContext& c) {
  const Pixels p = pixels(c);
  const Var image(c.b, c.in[0]);
  const auto number = [&](int64_t size) { return Size(c.b, size); };
  const auto blocks = [&](size_t axis) { return divided(c.b, Size(image, axis), p.block, "pixels"); };
  const Size batch(image, 0), rows = blocks(2), columns = blocks(3), block = number(p.block);
  const Var x = reshape(image, {batch, p.channels, rows, block, columns, block});
  const Var y =
      transpose(x, channels_lead(c) ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4});
  c.out = {reshape(y, {batch, number(p.block * p.block) * p.channels, rows, columns}).value};
}

/// Keeps the elements above (or below) a diagonal and sets the others to 0.
void trilu(OpContext& c) {
  c.expect_inputs(1, 2);
  const size_t rank = c.rank(0);
  if (rank < 2) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 2 or more", rank);
  Value* diagonal = c.given(1) ? cast_to(reshape_to(c.in[1], {}, c.b), kI64, c.b) : c.b.constant(Tensor::scalar_i64(0));
  Value* first = c.b.add("add", {expand_dims(counted(scalar_dim(c.in[0], rank - 2, c.b), c.b), {1}, c.b), diagonal});
  Value* kept = c.b.add(c.integer("upper", 1) != 0 ? "greater_equal" : "less_equal",
                        {counted(scalar_dim(c.in[0], rank - 1, c.b), c.b), first});
  c.out = {c.b.add("select", {kept, c.in[0], c.b.scalar_like(c.in[0], 0)})};
}

void celu(OpContext& c) {
  c.expect_inputs(1, 1);
  Value *alpha = c.b.scalar_like(c.in[0], c.real("alpha", 1)), *zero = c.b.scalar_like(c.in[0], 0);
  Value* bent = c.b.add("mul", {alpha, c.b.add("expm1", {c.b.add("div", {c.in[0], alpha})})});
  c.out = {c.b.add("add", {c.b.add("maximum", {c.in[0], zero}), c.b.add("minimum", {zero, bent})})};
}

void shrink(OpContext& c) {
  c.expect_inputs(1, 1);
  Value* x = c.in[0];
  auto like = [&](double value) { return c.b.scalar_like(x, value); };
  const double bias = c.real("bias", 0), edge = c.real("lambd", 0.5);
  Value* above = c.b.add("select", {c.b.add("greater", {x, like(edge)}), c.b.add("sub", {x, like(bias)}), like(0)});
  c.out = {c.b.add("select", {c.b.add("less", {x, like(-edge)}), c.b.add("add", {x, like(bias)}), above})};
}

/// Operators of the first set, which converters of Core ML and CNTK wrote: alpha * f(beta * x), or alpha * x + beta.
void scaled_function(OpContext& c) {
  c.expect_inputs(1, 1);
  const Var x(c.b, c.in[0]);
  c.out = {((x * c.real("beta", 1)).apply(c.target) * c.real("alpha", 1)).value};
}

void affine(OpContext& c) {
  c.expect_inputs(1, 1);
  const Var x(c.b, c.in[0]);
  c.out = {(x * c.real(c.target, 1) + c.real("beta", 0)).value};
}

void image_scaler(OpContext& c) {
  c.expect_inputs(1, 1);
  const std::vector<float> shifts = c.reals("bias");
  const Var x(c.b, c.in[0]), shift(c.b, c.b.constant(Tensor::of(kF32, {std::ssize(shifts), 1, 1}, shifts)));
  c.out = {(x * c.real("scale", 1) + cast(shift, x.dtype())).value};
}

/// An image without a border (left, top, right, bottom), or, with `scale`, so many rows and columns behind it.
void crop(OpContext& c) {
  c.expect_inputs(1, 1);
  const std::vector<int64_t> border = c.integers("border", 4, 0), size = c.integers("scale");
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "images have {} dims, expected 4", c.rank(0));
  for (int64_t number : border)
    if (number < 0 || number > kMostPixels) fail(ErrorKind::invalid_model, "", "border has {}", number);
  std::vector<Value*> ends(2);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t before = border[1 - i], after = border[3 - i];
    if (size.size() == 2 && (size[i] < 0 || size[i] > kMostPixels))
      fail(ErrorKind::invalid_model, "", "scale has {}", size[i]);
    ends[i] = size.size() == 2 ? c.b.ints({before + size[i]})
                               : c.b.add("sub", {dim_of(c.in[0], i + 2, c.b), c.b.ints({after})});
  }
  Value* end = joined({c.b.ints({kToTheEnd, kToTheEnd}), ends[0], ends[1]}, c.b);
  c.out = {c.b.add("slice", {c.in[0], c.b.ints({0, 0, border[1], border[0]}), folded(end, c.b)})};
}

constexpr Row kComposedRows[] = {
    {"Affine", affine, "alpha"},
    {"Crop", crop},
    {"ImageScaler", image_scaler},
    {"ParametricSoftplus", scaled_function, "softplus"},
    {"Scale", affine, "scale"},
    {"ScaledTanh", scaled_function, "tanh"},
    {"Celu", celu},
    {"DepthToSpace", depth_to_space},
    {"Einsum", einsum_row},
    {"Shrink", shrink},
    {"SpaceToDepth", space_to_depth},
    {"Trilu", trilu},
};

}  // namespace

std::span<const Row> composed_rows() { return kComposedRows; }

}  // namespace cairn::onnx
