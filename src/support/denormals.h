// Cairn treats denormal numbers as zero in all computation (docs/explanation/numbers.md).
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace cairn {

/// Flushes denormals to zero on this thread while it lives (each would cost about a hundred cycles), then restores the
/// host's setting.
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

/// Keeps denormals on this thread while it lives, for results that are compared with NumPy's.
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
