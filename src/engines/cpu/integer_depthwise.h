// Steps for convolutions of integers with one filter a channel.
#pragma once

#include "engine/engine.h"

namespace cairn {

std::optional<std::string> refuses_integer_depthwise(const Group& group);
std::unique_ptr<Step> make_integer_depthwise(const Group& group, MakeContext& context);

}  // namespace cairn
