// Dead-code elimination that reaches into loops and branches: also removes unused results of nodes with regions and the
// carried values that only these need.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Returns the number of removed nodes and results.
size_t prune(Block& block, const Module& module);

}  // namespace cairn
