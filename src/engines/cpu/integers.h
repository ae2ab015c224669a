// Groups around products of integers: the product, its sums scaled to floats, bias, activation, addition, and the rounding to
// 8 bits, also one in the middle that the addition follows.
#pragma once

#include <functional>

#include "engine/engine.h"
#include "engines/cpu/tile_jit.h"

namespace cairn {

struct IntegerContraction {
  const Node* node = nullptr;
  const Value* scale = nullptr;        // f32, one or one a channel; null: the sums are the result
  const Value* bias = nullptr;         // f32, one a channel
  const Value* residual = nullptr;     // f32, u8 or i8
  const Value* later_bias = nullptr;   // f32, one a channel, after a rounding
  float factor = 1, later_factor = 1;  // of scale and bias, and of the later bias
  IntegerEpilogue epilogue;
  const Value* result = nullptr;
};

bool is_integer_contraction(const Node& node);
std::optional<IntegerContraction> as_integer_contraction(const Group& group);

/// The nodes of the groups around the product that could run as one step, shortest first. `joins`: whether a node may be taken.
std::vector<std::vector<const Node*>> integer_groups(const Node& product, const Uses& uses,
                                                     FunctionRef<bool(const Node&)> joins);

/// The number of a constant of one element, or nothing.
std::optional<float> one_number(const Value* value);

}  // namespace cairn
