// The original platform's .om files, for inspection only: header and partition table. They hold machine code for a chip
// and cannot be run here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

struct ForeignOm {
  uint32_t version = 0;
  bool encrypted = false;
  std::string kind;  // "IR", "standard", "tiny", "flow", "lite"
  std::string name;
  std::string platform;
  uint32_t models = 0;
  struct Partition {
    uint32_t type = 0;
    std::string name;  // "WEIGHTS_DATA"
    uint64_t size = 0;
  };
  std::vector<Partition> partitions;  // of the first model
};

/// Whether the bytes start with "IMOD".
bool is_foreign_om(std::string_view bytes);
/// Throws Error invalid_model naming `file`.
ForeignOm read_foreign_om(std::string_view bytes, const std::string& file);

}  // namespace cairn
