// Complex numbers. Ops that only move elements take them as they are; arithmetic is done on their parts, which `bitcast`
// lays bare as pairs along a new last dim.
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

/// The parts of complex numbers, of one shape; or of real ones, without imaginary part.
struct Parts {
  Var re, im;
};
Parts parts_of(OpContext& c, Value* z);
/// Both parts are broadcast to each other.
Value* joined_parts(OpContext& c, const Parts& parts);
Parts product(const Parts& a, const Parts& b);
/// sqrt(re^2 + im^2) without overflow.
Var magnitude(const Parts& z);

/// The row of Cast where one of the types is complex; to a real one the imaginary part is lost.
void cast_complex(OpContext& c);

/// The row for complex operands, where arithmetic differs; or null.
const Row* find_complex_row(std::string_view op);

}  // namespace cairn::tensorflow
