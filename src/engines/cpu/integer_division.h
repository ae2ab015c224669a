// Division of whole numbers, rounded towards 0 or down. Vectors have no instruction for it: by one divisor, numbers that f64 holds
// exactly are divided as such.
#pragma once

#include "ir/module.h"

namespace cairn {

enum class Division : uint8_t { truncate_div, truncate_mod, floor_div, mod };

/// Which division the node is, or nothing.
std::optional<Division> division_of(const Node& node);

/// result[i] from x[i * x_step] and y[i * y_step], of which none is 0; the smallest number divided by -1 wraps.
template <class T>
void divide(Division division, int64_t count, const T* x, int64_t x_step, const T* y, int64_t y_step, T* result);

}  // namespace cairn
