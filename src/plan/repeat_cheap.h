// A result that is used again much later, in a training step's way back say, need not be kept where it costs little to
// compute it again from what is kept anyway.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Large sums and products used both near the node and behind others that need them get copies before these users.
void repeat_cheap(Block& block);

}  // namespace cairn
