// Large allocations are refused with a sentence before the system ends the process for them.
#pragma once

#include <cstddef>

namespace cairn {

/// What the machine, or the control group of the process, has left; SIZE_MAX when nothing tells.
size_t available_memory();

/// Throws Error out_of_memory when so many bytes are more than is left. Small amounts pass without a look.
void require_memory(size_t bytes);

}  // namespace cairn
