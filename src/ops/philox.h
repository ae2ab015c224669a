// The generator of the random ops, for reference kernels and engines: Philox 4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", 2011), and the conversion of its words to numbers, which follows TensorFlow's kernels.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "ops/kernels.h"
#include "support/sole_owner.h"

namespace cairn::random {

using Words = std::array<uint32_t, 4>;

inline constexpr int kRounds = 10;
inline constexpr uint32_t kFactors[2] = {0xD2511F53u, 0xCD9E8D57u}, kWeyl[2] = {0x9E3779B9u, 0xBB67AE85u};

struct Philox {
  uint64_t key, low, high;

  void skip(uint64_t counts) {
    low += counts;
    if (low < counts) ++high;
  }

  Words words() const {
    Words x = {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
               static_cast<uint32_t>(high >> 32)};
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < kRounds; ++round, k0 += kWeyl[0], k1 += kWeyl[1]) {
      const uint64_t a = uint64_t{kFactors[0]} * x[0], b = uint64_t{kFactors[1]} * x[2];
      x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(a)};
    }
    return x;
  }
};

/// A random state is u64[3]: key, low and high half of the counter.
inline bool is_state(const Tensor& state) {
  return state.defined() && state.dtype() == kU64 && state.rank() == 1 && state.count() == 3;
}
inline Philox read_state(const Tensor& state) {
  const auto* numbers = static_cast<const uint64_t*>(state.data());
  return {numbers[0], numbers[1], numbers[2]};
}
/// Overwrites an earlier state in place when its buffer is not shared, so that repeated runs do not allocate.
inline void write_state(const Philox& state, Tensor& to) {
  if (!is_state(to) || !is_sole_owner(to.owner())) to = Tensor::uninitialized(kU64, {3});
  auto* numbers = static_cast<uint64_t*>(to.mutable_data());
  numbers[0] = state.key, numbers[1] = state.low, numbers[2] = state.high;
}

/// By how many counts a draw of `elements` advances the counter: `each` per group, or `reserve` per element.
inline uint64_t counts_of(int64_t elements, int64_t reserve, uint64_t group, uint64_t each) {
  const auto count = static_cast<uint64_t>(elements);
  return reserve ? count * static_cast<uint64_t>(reserve) : (count + group - 1) / group * each;
}

// Yields the generator's 32-bit words one by one.
class Stream {
 public:
  explicit Stream(Philox philox) : philox_(philox) {}
  uint32_t next() {
    if (used_ == 4) {
      words_ = philox_.words();
      philox_.skip(1);
      used_ = 0;
    }
    return words_[used_++];
  }

 private:
  Philox philox_;
  Words words_ = {};
  size_t used_ = 4;
};

// A number in [0, 1) whose mantissa has the random bits that the element type can hold.
template <class T>
inline float unit(uint32_t word) {
  constexpr int kBits = std::is_same_v<T, Half> ? 10 : std::is_same_v<T, BFloat> ? 7 : 23;
  return static_cast<float>(word & ((1u << kBits) - 1)) * (1.f / static_cast<float>(1u << kBits));
}
inline double unit(uint32_t high, uint32_t low) {
  return static_cast<double>(uint64_t{high & 0xFFFFF} << 32 | low) * 0x1p-52;
}

// Box and Muller's pair, rounded where TensorFlow rounds.
template <class T>
std::array<T, 2> normal_pair(T u, T v) {
  const T angle = static_cast<T>(2 * M_PI * static_cast<double>(v));
  const T radius = std::sqrt(T(-2) * std::log(std::max(u, T(1e-7))));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

// How many elements one group, a step of the counter, gives.
template <class T>
inline constexpr size_t kGroup = std::is_same_v<T, double> ? 2 : 4;
template <class T>
using Draws = std::array<T, kGroup<T>>;

struct Uniform {
  template <class T>
  static Draws<T> of(const Philox& philox) {
    const Words w = philox.words();
    if constexpr (std::is_same_v<T, double>)
      return {unit(w[0], w[1]), unit(w[2], w[3])};
    else
      return {T(unit<T>(w[0])), T(unit<T>(w[1])), T(unit<T>(w[2])), T(unit<T>(w[3]))};
  }
};

struct Normal {
  template <class T>
  static Draws<T> of(const Philox& philox) {
    const Words w = philox.words();
    if constexpr (std::is_same_v<T, double>) {
      const auto [a, b] = normal_pair(unit(w[0], w[1]), unit(w[2], w[3]));
      return {a, b};
    } else {
      const auto [a, b] = normal_pair(unit<float>(w[0]), unit<float>(w[1]));
      const auto [c, d] = normal_pair(unit<float>(w[2]), unit<float>(w[3]));
      return {T(a), T(b), T(c), T(d)};
    }
  }
};

// Words reserved for each element, because the number of rejected pairs is not known in advance.
inline constexpr uint64_t kReserved = 256;

struct TruncatedNormal {
  template <class T>
  static Draws<T> of(const Philox& philox) {
    Stream stream(philox);
    Draws<T> draws;
    for (size_t found = 0; found < draws.size();) {
      auto keep = [&](auto value) {
        if (std::abs(value) < 2 && found < draws.size()) draws[found++] = T(static_cast<Compute<T>>(value));
      };
      const uint32_t a = stream.next(), b = stream.next();
      if constexpr (std::is_same_v<T, double>) {
        const uint32_t c = stream.next(), d = stream.next();
        for (double value : normal_pair(unit(a, b), unit(c, d))) keep(value);
      } else {
        for (float value : normal_pair(unit<float>(a), unit<float>(b))) keep(value);
      }
    }
    return draws;
  }
};

/// By how much a group advances the counter.
template <class T, class Distribution>
inline constexpr uint64_t kCounts = std::is_same_v<Distribution, TruncatedNormal> ? kGroup<T>* kReserved / 4 : 1;

}  // namespace cairn::random
