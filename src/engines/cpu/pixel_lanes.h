// Convolutions of few channels to few: with channels in a vector's lanes most would idle, so pixels of a row lie there. A
// maximum of two by two pixels that alone reads the result is taken before it is stored.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_pixel_lanes(const Group& group);
std::unique_ptr<Step> make_pixel_lanes(const Group& group, MakeContext& context);

}  // namespace cairn
