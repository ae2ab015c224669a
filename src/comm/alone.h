// Collectives of a group of one rank.
#pragma once

#include "comm/request.h"

namespace cairn::comm {

/// Throws Error invalid_argument for a message, which has nobody to go to.
void run_alone(const Request& request);

}  // namespace cairn::comm
