// .om files whose checksums are right, whatever else is wrong with them.
#pragma once

#include <cstring>
#include <string>

#include "model/om_layout.h"
#include "support/crc32c.h"

namespace cairn {

/// Computes all checksums again, so that damage gets past them.
inline void reseal(std::string& bytes) {
  if (bytes.size() < sizeof(om::Header)) return;
  om::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.file_size = bytes.size();
  std::memcpy(header.magic, om::kMagic, sizeof header.magic);
  header.version = om::kVersion;
  if (header.sections <= om::kMaxSections && bytes.size() >= sizeof header + header.sections * sizeof(om::Section)) {
    for (uint32_t i = 0; i < header.sections; ++i) {
      om::Section section;
      char* at = bytes.data() + sizeof header + i * sizeof section;
      std::memcpy(&section, at, sizeof section);
      if (section.offset <= bytes.size() && section.size <= bytes.size() - section.offset)
        section.checksum = crc32c(std::string_view(bytes).substr(section.offset, section.size));
      std::memcpy(at, &section, sizeof section);
    }
    header.table_checksum =
        crc32c(std::string_view(bytes).substr(sizeof header, header.sections * sizeof(om::Section)));
  }
  header.header_checksum = crc32c(om::bytes_of(header, offsetof(om::Header, header_checksum)));
  std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace cairn
