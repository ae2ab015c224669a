// Convolutions to few channels (the last ones of generators, segmentation, flow): vectors of output channels would be nearly empty.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_few_channels(const Group& group);
std::unique_ptr<Step> make_few_channels(const Group& group, MakeContext& context);

}  // namespace cairn
