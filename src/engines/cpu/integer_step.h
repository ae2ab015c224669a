// Steps for products of integers of 8 bits: convolutions of one group and matrix products, on the generated tile.
#pragma once

#include "engine/engine.h"

namespace cairn {

std::optional<std::string> refuses_integer_tile(const Group& group);
std::unique_ptr<Step> make_integer_tile(const Group& group, MakeContext& context);

}  // namespace cairn
