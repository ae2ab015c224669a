// The processor's performance counters for one thread, if the system allows reading them.
#pragma once

#include <cstdint>
#include <string>

namespace cairn::observe {

class Counters {
 public:
  static constexpr int kCount = 4;  // cycles, instructions, references and misses of the last-level cache
  /// Counts for the calling thread.
  Counters();
  ~Counters();
  Counters(const Counters&) = delete;
  /// Returns false and zeros when they cannot be read.
  bool read(uint64_t counts[kCount]) const;
  /// Why they cannot be read; empty when they can.
  const std::string& refusal() const { return refusal_; }

 private:
  int files_[kCount] = {-1, -1, -1, -1};
  std::string refusal_;
};

}  // namespace cairn::observe
