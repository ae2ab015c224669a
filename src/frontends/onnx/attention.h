// What ONNX's attention and that of the contrib operators share.
#pragma once

#include "frontends/onnx/importer.h"

namespace cairn::onnx {

/// A dim of x that must be known; `what` names it where it is not.
int64_t known_dim(OpContext& c, const Value* x, size_t axis, const char* what);

/// [batch, length, heads * size] as [batch, heads, length, size], and back.
Value* in_heads(OpContext& c, Value* x, int64_t heads);
Value* out_of_heads(OpContext& c, Value* x);
/// Each of the heads, dim 1, as often as it takes to have `heads`.
Value* repeated_heads(OpContext& c, Value* x, int64_t heads);

/// The first `count` numbers of heads [batch, heads, length, size], turned by the angles of their places, whose cosines and sines
/// are [batch, length, count / 2]: pairs lie side by side (interleaved) or half the count apart.
Value* turned(Value* x, Value* cosines, Value* sines, int64_t count, bool interleaved, Builder& b);

}  // namespace cairn::onnx
