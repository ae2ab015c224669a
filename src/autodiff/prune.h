// Removes what no result needs, also from inside loops and branches: results that nobody uses, and what is carried for them.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Returns how many nodes and results went.
size_t prune(Block& block, const Module& module);

}  // namespace cairn
