// Complex numbers. Ops that only move elements take them directly; arithmetic works on their parts, which `bitcast`
// gives as pairs along a new last dim.
#pragma once

#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {

inline constexpr DType kC128{DType::Kind::complex_float, 128};

/// False of null.
inline bool is_complex(const Value* value) {
  return value != nullptr && value->type.is_tensor() && value->type.dtype.kind == DType::Kind::complex_float;
}

/// [..., 2] of floats.
Value* pairs_of(OpContext& c, Value* z);
Value* from_pairs(OpContext& c, Value* pairs);

/// The parts of complex numbers, of equal shape; for real numbers without imaginary part.
struct Parts {
  Var re, im;
};
Parts parts_of(OpContext& c, Value* z);
/// The complex tensor from its parts, which are broadcast to each other.
Value* joined_parts(OpContext& c, const Parts& parts);
Parts product(const Parts& a, const Parts& b);
/// sqrt(re^2 + im^2) without overflow.
Var magnitude(const Parts& z);

/// The row of Cast for complex types; a cast to a real type drops the imaginary part.
void cast_complex(OpContext& c);

/// The row for complex operands if the arithmetic differs from that of real ones, else null.
const Row* find_complex_row(std::string_view op);

}  // namespace cairn::tensorflow
