// Refuses large allocations with an Error before the system kills the process because of them.
#pragma once

#include <cstddef>

namespace cairn {

/// Bytes that the machine or the process's control group has left; SIZE_MAX when unknown.
size_t available_memory();

/// Throws Error out_of_memory when so many bytes are more than is left. Small amounts are not checked.
void require_memory(size_t bytes);

}  // namespace cairn
