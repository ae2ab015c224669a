// Resize and Upsample beyond what resize2d does.
#pragma once

#include "frontends/onnx/importer.h"

namespace cairn::onnx {

/// The result of Resize or Upsample by products with matrices of weights.
Value* resampled(OpContext& context);
/// Interpolated integers as ONNX Runtime leaves them: without their fractions, or rounded to the nearest; within the bounds of a type
/// of 8 or 16 bits. Still of f32.
Value* whole_numbers(Value* x, DType dtype, bool nearest, Builder& builder);

}  // namespace cairn::onnx
