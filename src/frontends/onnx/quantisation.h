// Operands and results as integers by scales and zero points, for rows of several files.
#pragma once

#include "frontends/onnx/importer.h"

namespace cairn::onnx {

/// The operand at `x` as floats, by a scale and a zero point that broadcast with it.
Value* dequantized(OpContext& context, size_t x, Value* scale, Value* zero);
/// y by the scale at `scale` and the zero point that follows it; without one the result has the type of the first input.
Value* quantized(OpContext& context, Value* y, size_t scale);
/// The zero point at `zero`, or 0 of the type of the operand at `x`.
Value* zero_or(OpContext& context, size_t x, size_t zero);
/// A scale or zero point of a matrix: one for all, or for each row (of a left operand) or column.
Value* of_matrix(Value* each, bool columns, Builder& builder);
/// One number for each output channel as it stands at `axis` of so many dims; or one for all.
Value* of_channels(Value* x, size_t rank, size_t axis, Builder& builder);
/// x as u8, with the scale and zero point that hold all its elements and 0.
std::vector<Value*> dynamically_quantized(Value* x, Builder& builder);

}  // namespace cairn::onnx
