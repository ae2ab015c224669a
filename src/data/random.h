// Random numbers that follow from where they are drawn: nothing is carried over from row to row.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace cairn::data {

/// A stream of its own for each (seed, operation, epoch, row): SplitMix64 (Steele, Lea, Flood 2014) from a mixed key.
class Random {
 public:
  Random(std::initializer_list<uint64_t> place) {
    for (uint64_t part : place) state_ = mixed(state_ + kStep) ^ mixed(part + kStep);
    state_ = mixed(state_);
  }

  uint64_t bits() { return mixed(state_ += kStep); }
  /// In [0, 1), 53 bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// In [0, count), each equally likely (Lemire 2019).
  int64_t below(int64_t count) {
    const auto range = static_cast<uint64_t>(count);
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(bits()) * range;
    if (static_cast<uint64_t>(product) < range)
      for (const uint64_t least = -range % range; static_cast<uint64_t>(product) < least;)
        product = static_cast<Wide>(bits()) * range;
    return static_cast<int64_t>(product >> 64);
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (auto i = std::ssize(values) - 1; i > 0; --i) std::swap(values[i], values[below(i + 1)]);
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static uint64_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint64_t state_ = 0;
};

}  // namespace cairn::data
