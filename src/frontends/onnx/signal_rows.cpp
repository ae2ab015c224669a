// ONNX's Fourier transforms and windows, and its ops on bits.
#include <cmath>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

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
    Value* number = c.b.constant(Tensor::scalar_i64(length.value_or(2 * (size.size - 1))));
    const auto dims = static_cast<size_t>(rank);
    const std::vector<int64_t> swap = swapped_axes(dims, static_cast<size_t>(axis), dims - 2);
    const bool last = axis == rank - 2;
    Value* y = c.b.add("inverse_real_dft", {last ? x : transposed(x, swap, c.b), number});
    y = expand_dims(y, {rank - 1}, c.b);
    c.out = {last ? y : transposed(y, swap, c.b)};
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

/// A scalar that may be known only in a run.
Value* integer_input(OpContext& c, size_t input) {
  return cast_to(folded(reshape_to(c.in[input], {}, c.b), c.b), kI64, c.b);
}
Value* counted_to(OpContext& c, Value* end, DType dtype) {
  const auto number = [&](double value) { return c.b.number(value, dtype); };
  return folded(c.b.add("iota", {number(0), cast_to(end, dtype, c.b), number(1)}, {{"dtype", dtype}}), c.b);
}

/// Transforms of parts of a signal [batch, length, 1 or 2] that lie `step` apart; torch leaves the last dim of real signals out.
void stft(OpContext& c) {
  c.expect_inputs(2, 4);
  Builder& b = c.b;
  if (c.rank(0) != 2 && c.rank(0) != 3)
    fail(ErrorKind::invalid_model, "", "the signal has {} dims, expected 2 or 3", c.rank(0));
  Value* signal = c.rank(0) == 2 ? expand_dims(c.in[0], {2}, b) : c.in[0];
  const auto op = [&](const char* name, Value* x, Value* y) { return folded(b.add(name, {x, y}), b); };
  Value *step = integer_input(c, 1), *size = scalar_dim(signal, 1, b), *length = size;
  if (c.given(3))
    length = integer_input(c, 3);
  else if (c.given(2) && c.rank(2) == 1)
    length = scalar_dim(c.in[2], 0, b);
  const auto known = [](Value* x) { return constant_of(x) ? constant_of(x)->as_i64()[0] : -1; };
  if (known(step) == 0 || (known(size) >= 0 && known(length) > known(size)))
    fail(ErrorKind::invalid_model, "", "step and length of the frames do not fit the signal");
  Value* frames = op("add", op("floor_div", op("sub", size, length), step), b.constant(Tensor::scalar_i64(1)));
  if (known(frames) > 0 && known(length) > 0 && known(frames) > (1 << 22) / known(length))
    c.refuse("{} frames of {} elements are too many", known(frames), known(length));
  Value* starts = op("mul", counted_to(c, frames, kI64), step);
  Value* at = op("add", expand_dims(starts, {1}, b), counted_to(c, length, kI64));
  Value* x = b.add("gather", {signal, at}, {{"axis", int64_t{1}}});
  if (c.given(2)) x = b.add("mul", {x, b.add("reshape", {c.in[2], b.ints({-1, 1})})});
  const bool real = signal->type.shape.dims[2] == Dim(1);
  if (real && c.integer("onesided", 1) != 0) {
    c.out = {b.add("real_dft", {squeeze(x, {3}, b), length})};
    return;
  }
  if (real) {
    Tensor pads = Tensor::of<int64_t>(kI64, {4, 2}, std::vector<int64_t>{0, 0, 0, 0, 0, 0, 0, 1});
    x = b.add("pad", {x, b.constant(pads)});
  }
  c.out = {b.add("dft", {x}, {{"axis", int64_t{2}}})};
}

/// Sums of cosines: Hann's, Hamming's and Blackman's windows.
void window(OpContext& c) {
  c.expect_inputs(1, 1);
  Value* size = integer_input(c, 0);
  const Tensor* known = constant_of(size);
  if (known && (known->as_i64()[0] < 0 || known->as_i64()[0] > (1 << 22)))
    fail(ErrorKind::invalid_model, "", "the size is {}", known->as_i64()[0]);
  const std::string_view name = c.target;
  const double first = name == "hann"      ? 0.5
                       : name == "hamming" ? 25.0 / 46
                                           : 0.42,
               second = name == "blackman" ? 0.08 : 0;
  const auto dtype = dtype_of(static_cast<int32_t>(c.integer("output_datatype", 1)));
  if (!dtype || !dtype->is_float()) c.refuse("this output_datatype is not supported");
  const Var count(c.b, cast_to(size, kF32, c.b)), place(c.b, counted_to(c, size, kF32));
  const Var period = c.integer("periodic", 1) != 0 ? count : count - 1.0;
  const Var angle = place * (2 * M_PI) / maximum(period, period.number(1));
  Var y = first - angle.apply("cos") * (1 - first - second);
  if (second != 0) y = y + (angle * 2.0).apply("cos") * second;
  c.out = {cast_to(select(count.apply("equal", {count.number(1)}), y.number(1), y).value, *dtype, c.b)};
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
    {"DFT", dft, nullptr, {}, 2},
    {"Det", same, "determinant"},
    {"HammingWindow", window, "hamming"},
    {"HannWindow", window, "hann"},
    {"STFT", stft},
};

}  // namespace

std::span<const Row> signal_rows() { return kSignalRows; }

}  // namespace cairn::onnx
