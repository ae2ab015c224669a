// SHA-256 (FIPS 180-4). A converted model records the digest of its source file, equal to the output of `sha256sum`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

class Sha256 {
 public:
  void add(std::string_view bytes);
  /// The digest as 64 hexadecimal digits; the object cannot be used afterwards.
  std::string digest();

 private:
  void block(const unsigned char* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_;
  size_t pending_size_ = 0;
  uint64_t total_ = 0;
};

}  // namespace cairn
