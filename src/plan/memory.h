// Placement of arena buffers: largest first, each into the smallest gap among buffers needed at the same time.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace cairn {

struct Placement {
  size_t bytes = 0;       // size of the arena
  size_t live_bytes = 0;  // largest sum of buffers needed at one step
};

/// Sets the offsets (64-byte aligned) of these arena buffers. Without reuse every buffer has its own place.
Placement place(std::vector<Buffer*> buffers, bool reuse);

}  // namespace cairn
