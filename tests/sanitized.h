// What sanitizers change for this program: they take much memory themselves and keep what was freed; the thread sanitizer ends
// forked children that start threads.
#pragma once

namespace cairn {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryCounts = false;
#else
inline constexpr bool kMemoryCounts = true;
#endif

#ifdef __SANITIZE_THREAD__
inline constexpr bool kForkedChildrenStartThreads = false;
#else
inline constexpr bool kForkedChildrenStartThreads = true;
#endif

}  // namespace cairn
