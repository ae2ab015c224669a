// Whether this program counts memory as the product does: sanitizers take much themselves, and keep what was freed.
#pragma once

namespace cairn {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryCounts = false;
#else
inline constexpr bool kMemoryCounts = true;
#endif

}  // namespace cairn
