// Steps that quantise floats, dequantise integers of 8 bits and sums of i32, and pool integers of 8 bits.
#pragma once

#include "engine/engine.h"

namespace cairn {

std::optional<std::string> refuses_quantisation(const Group& group);
std::unique_ptr<Step> make_quantisation(const Group& group, MakeContext& context);

std::optional<std::string> refuses_integer_pool(const Group& group);
std::unique_ptr<Step> make_integer_pool(const Group& group, MakeContext& context);

}  // namespace cairn
