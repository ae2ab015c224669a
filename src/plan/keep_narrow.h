// Values of 16 bits stay small in memory: what widens them stands before each of its users, where a kernel reads them as they are.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Changes no bit of any result.
bool keep_narrow(Block& block);

}  // namespace cairn
