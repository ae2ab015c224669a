// Denormal numbers count as zero in all that Cairn computes (docs/explanation/numbers.md).
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace cairn {

/// On this thread while it lives: they cost a hundred cycles each. The host's own setting comes back.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : before_(_mm_getcsr()) {
    if ((before_ & kBits) != kBits) _mm_setcsr(before_ | kBits);
  }
  ~FlushDenormals() {
    if ((before_ & kBits) != kBits) _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned kBits = 0x8040;
  unsigned before_;
#else
  FlushDenormals() {}
#endif
};

/// The other way, for what is compared with NumPy's numbers.
class KeepDenormals {
 public:
#if defined(__SSE2__)
  KeepDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ & ~0x8040u); }
  ~KeepDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#else
  KeepDenormals() {}
#endif
};

}  // namespace cairn
