// Placement of arena buffers: largest first, each into the smallest gap between buffers with overlapping live ranges.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace cairn {

struct Placement {
  size_t bytes = 0;       // size of the arena
  size_t live_bytes = 0;  // largest sum of live buffers at any step
};

/// Sets the offsets (64-byte aligned) of these arena buffers. Without `reuse` no two buffers overlap.
Placement place(std::vector<Buffer*> buffers, bool reuse);

}  // namespace cairn
