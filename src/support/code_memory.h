// Counts generated machine code, so that the memory accounting can attribute it.
#pragma once

#include <cstddef>

namespace cairn {

/// Bytes that this thread has generated so far.
inline size_t& code_made_on_this_thread() {
  thread_local size_t bytes = 0;
  return bytes;
}

}  // namespace cairn
