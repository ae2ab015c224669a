// Rematerialisation: a cheap result that is used again much later (for instance in a training step's backward pass) is
// computed again from values that are live anyway, instead of being kept.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Inserts copies of large cheap element-wise nodes before users that run much later.
void repeat_cheap(Block& block);

}  // namespace cairn
