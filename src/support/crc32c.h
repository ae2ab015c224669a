// CRC-32C (Castagnoli), the checksum of TensorFlow's tables and records.
#pragma once

#include <cstdint>
#include <string_view>

namespace cairn {

/// Continues the checksum `crc` with `bytes`; start with 0.
uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);
/// The stored (masked) form of a checksum, rotated so that the checksum of data that contains checksums stays
/// meaningful.
constexpr uint32_t unmask_crc32c(uint32_t masked) {
  uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace cairn
