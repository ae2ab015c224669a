// Scans carry, read and stack the 16 bits that values are widened from: half the memory, and no rounding of what is rounded already.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Changes no bit of any result. Returns whether it changed a scan.
bool narrow_scans(Block& block);

}  // namespace cairn
