// Element types below a byte and floats of 8 bits, which the core does not have. A value of such a type is carried by bytes: floats
// as their bits, integers as integers of 8 bits. Casts, quantisation and what only moves elements know of it; other rows refuse it.
#pragma once

#include "frontends/onnx/model.h"
#include "ir/builder.h"

namespace cairn::onnx {

/// Whether the type is one of these.
bool is_narrow(int32_t type);
/// u8 or i8 for these types, else the type itself where there is one.
std::optional<DType> carrier_of(int32_t type);
/// Its bits, 0 for others.
int bits_of_narrow(int32_t type);

/// Carried elements as f32.
Value* widened(Value* x, int32_t type, Builder& builder);
/// Numbers as carried elements, rounded to the nearest, halves to even (integers: cut, or with `saturate` as quantisation does);
/// what is out of range becomes the largest number with `saturate`, else infinite or NaN. `rounding` is that of FLOAT8E8M0: "up",
/// "down", "nearest".
Value* narrowed(Value* x, int32_t type, bool saturate, std::string_view rounding, Builder& builder);

}  // namespace cairn::onnx
