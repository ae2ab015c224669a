// Sizes of memory: large allocations are refused with an Error before the system kills the process because of them.
#pragma once

#include <cstddef>

namespace cairn {

/// What buffers are aligned to: a cache line, and the widest vector.
inline constexpr size_t kLineBytes = 64;
inline constexpr size_t kHugePage = 2 << 20;
/// The bytes rounded up to whole lines.
constexpr size_t whole_lines(size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

/// Bytes that the machine or the process's control group has left; SIZE_MAX when unknown.
size_t available_memory();

/// Uninitialised memory in whole lines, in huge pages as far as it fills them, which std::free() releases; null when there is none.
void* allocate_lines(size_t bytes);

/// memset to 0 and memcpy that end early when the work of the thread has to end.
void clear_bytes(void* to, size_t bytes);
void copy_bytes(void* to, const void* from, size_t bytes);

/// Throws Error out_of_memory when so many bytes are more than is left. Small amounts are not checked.
void require_memory(size_t bytes);

}  // namespace cairn
