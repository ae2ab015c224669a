// ONNX's Fourier transforms and windows, and its ops on bits.
#include <cmath>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"

namespace cairn::onnx {
namespace {

int64_t one_integer(OpContext& c, size_t input, const char* what) {
  const std::vector<int64_t> values = c.constant_integers(input, what);
  if (values.size() != 1) fail(ErrorKind::invalid_model, "", "{} must be one integer, found {}", what, values.size());
  return values[0];
}

/// Real numbers (a last dim of 1) get an imaginary part of 0.
Value* as_pairs(OpContext& c, Value* x) {
  const size_t rank = c.rank(0);
  const Dim last = rank == 0 ? Dim() : x->type.shape.dims[rank - 1];
  if (last == Dim(2)) return x;
  if (last != Dim(1)) c.refuse("the last dim must be 1 or 2, found {}", to_string(last));
  std::vector<int64_t> pads(2 * rank, 0);
  pads.back() = 1;
  return c.b.add("pad", {x, c.b.constant(Tensor::of<int64_t>(kI64, {static_cast<int64_t>(rank), 2}, pads))});
}

/// x cut, or filled with zeros, to a constant length along the axis.
Value* fitted(OpContext& c, Value* x, int64_t axis, int64_t length) {
  const size_t rank = x->type.shape.rank(), at = static_cast<size_t>(axis);
  const Dim size = x->type.shape.dims[at];
  if (!size.known()) c.refuse("the size of the transformed dim is not known");
  std::vector<int64_t> begins(rank, 0), ends(rank, kToTheEnd), pads(2 * rank, 0);
  ends[at] = length, pads[2 * at + 1] = std::max<int64_t>(length - size.size, 0);
  if (size.size > length) x = c.b.add("slice", {x, c.b.ints(begins), c.b.ints(ends)});
  if (size.size >= length) return x;
  return c.b.add("pad", {x, c.b.constant(Tensor::of<int64_t>(kI64, {static_cast<int64_t>(rank), 2}, pads))});
}

/// Version 17 has the axis as an attribute, 20 as an input.
void dft(OpContext& c) {
  c.expect_inputs(1, 3);
  const auto rank = static_cast<int64_t>(c.rank(0));
  int64_t axis = c.opset < 20 ? c.integer("axis", 1) : -2;
  if (c.given(2)) axis = one_integer(c, 2, "the axis");
  axis = normal_axis(axis, static_cast<size_t>(rank));
  if (axis == rank - 1) fail(ErrorKind::invalid_model, "", "axis {} is that of the complex parts", axis);
  const bool inverse = c.integer("inverse", 0) != 0, onesided = c.integer("onesided", 0) != 0;
  std::optional<int64_t> length;
  if (c.given(1)) length = one_integer(c, 1, "the length");
  if (length && (*length < 1 || *length > (int64_t{1} << 40)))
    fail(ErrorKind::invalid_model, "", "the length is {}", *length);
  Value* x = as_pairs(c, c.in[0]);
  const Dim size = x->type.shape.dims[static_cast<size_t>(axis)];
  if (onesided && inverse) {
    if (!length && !size.known()) c.refuse("the length is not known");
    if (axis != rank - 2) c.refuse("one-sided inverse transforms of other axes than the last are not supported");
    Value* number = c.b.constant(Tensor::scalar_i64(length.value_or(2 * (size.size - 1))));
    c.out = {expand_dims(c.b.add("inverse_real_dft", {x, number}), {rank - 1}, c.b)};
    return;
  }
  if (length) x = fitted(c, x, axis, *length);
  Value* y = c.b.add("dft", {x}, {{"axis", axis}, {"inverse", inverse}});
  if (onesided) {
    if (!length && !size.known()) c.refuse("the length is not known");
    y = fitted(c, y, axis, length.value_or(size.size) / 2 + 1);
  }
  c.out = {y};
}

/// Transforms of parts of a signal [batch, length, 1 or 2] that lie `step` apart.
void stft(OpContext& c) {
  c.expect_inputs(2, 4);
  if (c.rank(0) != 3) fail(ErrorKind::invalid_model, "", "the signal has {} dims, expected 3", c.rank(0));
  const Dim size = c.in[0]->type.shape.dims[1];
  const int64_t step = one_integer(c, 1, "the step");
  int64_t length = 0;
  if (c.given(3)) length = one_integer(c, 3, "the length of a frame");
  if (!c.given(3) && c.given(2) && c.rank(2) == 1) length = c.in[2]->type.shape.dims[0].size;
  if (!size.known() || length < 1 || step < 1 || length > size.size)
    c.refuse("the sizes of signal and frames are not known, or do not fit");
  const int64_t frames = 1 + (size.size - length) / step;
  const auto count = element_count({frames, length});
  if (!count || *count > (1 << 22)) c.refuse("{} frames of {} elements are too many", frames, length);
  std::vector<int64_t> at;
  for (int64_t frame = 0; frame < frames; ++frame)
    for (int64_t i = 0; i < length; ++i) at.push_back(frame * step + i);
  Value* x = c.b.add("gather", {c.in[0], c.b.constant(Tensor::of<int64_t>(kI64, {frames, length}, at))},
                     {{"axis", int64_t{1}}});
  if (c.given(2)) x = c.b.add("mul", {x, c.b.add("reshape", {c.in[2], c.b.ints({-1, 1})})});
  const bool real = x->type.shape.dims[3] == Dim(1);
  if (real && c.integer("onesided", 1) != 0) {
    c.out = {c.b.add("real_dft", {squeeze(x, {3}, c.b), c.b.constant(Tensor::scalar_i64(length))})};
    return;
  }
  if (real) {
    Tensor pads = Tensor::of<int64_t>(kI64, {4, 2}, std::vector<int64_t>{0, 0, 0, 0, 0, 0, 0, 1});
    x = c.b.add("pad", {x, c.b.constant(pads)});
  }
  c.out = {c.b.add("dft", {x}, {{"axis", int64_t{2}}})};
}

/// Sums of cosines: Hann's, Hamming's and Blackman's windows.
void window(OpContext& c) {
  c.expect_inputs(1, 1);
  const int64_t size = one_integer(c, 0, "the size");
  if (size < 0 || size > (1 << 22)) fail(ErrorKind::invalid_model, "", "the size is {}", size);
  const std::string_view name = c.target;
  const double first = name == "hann"      ? 0.5
                       : name == "hamming" ? 25.0 / 46
                                           : 0.42,
               second = name == "blackman" ? 0.08 : 0;
  const auto period = static_cast<double>(c.integer("periodic", 1) != 0 ? size : size - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double angle = 2 * M_PI * static_cast<double>(i) / period;
    values.push_back(size == 1 ? 1 : first - (1 - first - second) * std::cos(angle) + second * std::cos(2 * angle));
  }
  const auto dtype = dtype_of(static_cast<int32_t>(c.integer("output_datatype", 1)));
  if (!dtype || !dtype->is_float()) c.refuse("this output_datatype is not supported");
  c.out = {cast_to(c.b.constant(Tensor::of<double>(kF64, {size}, values)), *dtype, c.b)};
}

void same(OpContext& c) {
  const size_t count = op_named(c.target).inputs.size();
  c.expect_inputs(count, count);
  c.out = {c.b.add(c.target, c.in)};
}

/// Distances below 0 or beyond the width leave nothing but, on the way down, the sign.
void bit_shift(OpContext& c) {
  c.expect_inputs(2, 2);
  const std::string direction = c.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    fail(ErrorKind::invalid_model, "", "direction '{}' is unknown", printable(direction));
  const DType dtype = c.in[0]->type.dtype;
  Value* zero = c.b.scalar_like(c.in[0], 0);
  Value* inside = c.b.add("and", {c.b.add("greater_equal", {c.in[1], zero}),
                                  c.b.add("less", {c.in[1], c.b.scalar_like(c.in[1], dtype.bits)})});
  Value* rest = zero;
  if (direction == "RIGHT" && dtype.kind == DType::Kind::signed_int)
    rest = c.b.add("shift_right", {c.in[0], c.b.scalar_like(c.in[0], dtype.bits - 1)});
  c.out = {c.b.add("select", {inside, c.b.add(direction == "LEFT" ? "shift_left" : "shift_right", c.in), rest})};
}

constexpr Row kSignalRows[] = {
    {"BitShift", bit_shift},
    {"BitwiseAnd", same, "bit_and"},
    {"BitwiseNot", same, "bit_not"},
    {"BitwiseOr", same, "bit_or"},
    {"BitwiseXor", same, "bit_xor"},
    {"BlackmanWindow", window, "blackman"},
    {"DFT", dft},
    {"Det", same, "determinant"},
    {"HammingWindow", window, "hamming"},
    {"HannWindow", window, "hann"},
    {"STFT", stft},
};

}  // namespace

std::span<const Row> signal_rows() { return kSignalRows; }

}  // namespace cairn::onnx
