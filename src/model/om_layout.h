// The fixed records of the .om file, shared by its writer and its reader.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cairn::om {

static_assert(std::endian::native == std::endian::little, "records are copied as they are");

inline constexpr char kMagic[8] = {'\x89', 'C', 'A', 'I', 'R', 'N', '\n', '\x1a'};
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kAlignment = 64;
inline constexpr uint32_t kMaxSections = 16;
inline constexpr uint64_t kMaxMetadata = 1 << 20;
inline constexpr uint16_t kMaxRank = 64;
inline constexpr char kPlainLayout[16] = "plain";         // row-major elements
inline constexpr char kExternalLayout[16] = "external";   // the same, in a file; here are the 64 digits of its name
inline constexpr const char* kExternalFolder = "weight";  // beside the model
inline constexpr const char* kExternalPrefix = "weight_";

enum Kind : uint32_t { kMetadata = 1, kModule = 2, kWeightTable = 3, kWeights = 4 };

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t sections;
  uint64_t file_size;
  uint32_t table_checksum;
  uint32_t header_checksum;  // of the bytes before it
  char zero[32];
};
static_assert(sizeof(Header) == 64);

struct Section {
  uint32_t kind;
  uint32_t checksum;
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(Section) == 24);

/// Followed by `rank` dims of 8 bytes. A text weight consists of the lengths (4 bytes each), then the bytes.
struct Weight {
  uint8_t kind;  // DType
  uint8_t bits;
  uint16_t rank;
  uint32_t zero;
  char layout[16];
  uint64_t offset;  // in the weights section, a multiple of 64
  uint64_t size;
};
static_assert(sizeof(Weight) == 40);

constexpr uint64_t align(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

template <class Record>
std::string_view bytes_of(const Record& record, size_t size = sizeof(Record)) {
  return {reinterpret_cast<const char*>(&record), size};
}

}  // namespace cairn::om
