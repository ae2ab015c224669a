// The hashes by which TensorFlow assigns texts to buckets: farmhash's Fingerprint64, SipHash-2-4 and a variant of
// MurmurHash2; and MurmurHash3.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace cairn {

namespace text_hash {

inline uint64_t word(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, 8);
  return value;
}
inline uint64_t half_word(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, 4);
  return value;
}
inline uint64_t mixed(uint64_t x) { return x ^ (x >> 47); }

// Fingerprint64 is Hash64 of farmhash's namespace farmhashna (MIT licence), with the names of that source.
inline constexpr uint64_t kFarm0 = 0xc3a5c85c97cb3127, kFarm1 = 0xb492b66fbe98f273, kFarm2 = 0x9ae16a3b2f90404f;

inline uint64_t of_two(uint64_t u, uint64_t v, uint64_t mul) {
  const uint64_t a = mixed((u ^ v) * mul);
  return mixed((v ^ a) * mul) * mul;
}

inline uint64_t of_short(const char* s, size_t length) {
  const uint64_t mul = kFarm2 + length * 2;
  if (length >= 8) {
    const uint64_t a = word(s) + kFarm2, b = word(s + length - 8);
    return of_two(std::rotr(b, 37) * mul + a, (std::rotr(a, 25) + b) * mul, mul);
  }
  if (length >= 4) return of_two(length + (half_word(s) << 3), half_word(s + length - 4), mul);
  if (length == 0) return kFarm2;
  auto byte = [&](size_t at) { return static_cast<uint32_t>(static_cast<uint8_t>(s[at])); };
  const uint32_t y = byte(0) + (byte(length >> 1) << 8), z = static_cast<uint32_t>(length) + (byte(length - 1) << 2);
  return mixed(y * kFarm2 ^ z * kFarm0) * kFarm2;
}

inline uint64_t of_medium(const char* s, size_t length) {
  const uint64_t mul = kFarm2 + length * 2;
  const bool wide = length > 32;
  const uint64_t a = word(s) * (wide ? kFarm2 : kFarm1), b = word(s + 8);
  const uint64_t c = word(s + length - 8) * mul, d = word(s + length - 16) * kFarm2;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = of_two(y, a + std::rotr(b + kFarm2, 18) + c, mul);
  if (!wide) return z;
  const uint64_t e = word(s + 16) * mul, f = word(s + 24);
  const uint64_t g = (y + word(s + length - 32)) * mul, h = (z + word(s + length - 24)) * mul;
  return of_two(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, mul);
}

using Pair = std::pair<uint64_t, uint64_t>;

inline Pair weak(const char* s, uint64_t a, uint64_t b) {
  a += word(s);
  b = std::rotr(b + a + word(s + 24), 21);
  const uint64_t c = a;
  a += word(s + 8) + word(s + 16);
  b += std::rotr(a, 44);
  return {a + word(s + 24), b + c};
}

}  // namespace text_hash

inline uint64_t fingerprint64(std::string_view text) {
  using namespace text_hash;
  const char* s = text.data();
  const size_t length = text.size();
  if (length <= 16) return of_short(s, length);
  if (length <= 64) return of_medium(s, length);
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed, y = kSeed * kFarm1 + 113, z = mixed(y * kFarm2 + 113) * kFarm2;
  Pair v{0, 0}, w{0, 0};
  x = x * kFarm2 + word(s);
  const char* end = s + (length - 1) / 64 * 64;
  const char* last = end + ((length - 1) & 63) - 63;
  auto turn = [&](uint64_t mul, uint64_t times) {
    x = std::rotr(x + y + v.first + word(s + 8), 37) * mul;
    y = std::rotr(y + v.second + word(s + 48), 42) * mul;
    x ^= w.second * times;
    y += v.first * times + word(s + 40);
    z = std::rotr(z + w.first, 33) * mul;
    v = weak(s, v.second * mul, x + w.first);
    w = weak(s + 32, z + w.second, y + word(s + 16));
    std::swap(z, x);
  };
  for (; s != end; s += 64) turn(kFarm1, 1);
  const uint64_t mul = kFarm1 + ((z & 0xff) << 1);
  s = last;
  w.first += (length - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  turn(mul, 9);
  return of_two(of_two(v.first, w.first, mul) + mixed(y) * kFarm0 + z, of_two(v.second, w.second, mul) + x, mul);
}

/// Combines two fingerprints; TensorFlow's FingerprintCat64.
inline uint64_t fingerprint_of_two(uint64_t first, uint64_t second) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  uint64_t result = (first ^ kMul ^ (text_hash::mixed(second * kMul) * kMul)) * kMul;
  return text_hash::mixed(text_hash::mixed(result) * kMul);
}

/// SipHash-2-4 (Aumasson, Bernstein 2012).
inline uint64_t siphash(uint64_t key0, uint64_t key1, std::string_view text) {
  uint64_t v0 = key0 ^ 0x736f6d6570736575, v1 = key1 ^ 0x646f72616e646f6d, v2 = key0 ^ 0x6c7967656e657261,
           v3 = key1 ^ 0x7465646279746573;
  auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  auto take = [&](uint64_t block) {
    v3 ^= block;
    rounds(2);
    v0 ^= block;
  };
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) take(text_hash::word(text.data() + at));
  uint64_t last = static_cast<uint64_t>(text.size()) << 56;
  if (at < text.size()) std::memcpy(&last, text.data() + at, text.size() - at);
  take(last);
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

/// TensorFlow's Hash64, a variant of MurmurHash2 (64 bits), with the seed that its ops use.
inline uint64_t murmur64(std::string_view text) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995, kSeed = 0xDECAFCAFFE;
  uint64_t h = kSeed ^ (text.size() * kMul);
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8)
    h = (h ^ (text_hash::mixed(text_hash::word(text.data() + at) * kMul) * kMul)) * kMul;
  if (at < text.size()) {
    uint64_t rest = 0;
    std::memcpy(&rest, text.data() + at, text.size() - at);
    h = (h ^ rest) * kMul;
  }
  return text_hash::mixed(text_hash::mixed(h) * kMul);
}

/// MurmurHash3_x86_32.
inline uint32_t murmur3(uint32_t seed, std::string_view text) {
  uint32_t h = seed;
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t word = 0;
    const size_t count = std::min<size_t>(4, text.size() - at);
    std::memcpy(&word, text.data() + at, count);
    h ^= std::rotl(word * 0xcc9e2d51, 15) * 0x1b873593;
    if (count == 4) h = std::rotl(h, 13) * 5 + 0xe6546b64;
  }
  h ^= static_cast<uint32_t>(text.size());
  h = (h ^ (h >> 16)) * 0x85ebca6b;
  h = (h ^ (h >> 13)) * 0xc2b2ae35;
  return h ^ (h >> 16);
}

}  // namespace cairn
