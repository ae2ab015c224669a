// Recordings whose checksums are right, whatever else is wrong with them.
#pragma once

#include <cstring>
#include <string>

#include "observe/event_file.h"
#include "support/crc32c.h"

namespace cairn::profile {

/// Computes the checksums of all whole chunks again, so that damage gets past them.
inline void reseal(std::string& bytes) {
  for (size_t at = sizeof(EventHeader); at + sizeof(ChunkHeader) <= bytes.size();) {
    ChunkHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    at += sizeof header;
    if (bytes.size() - at < header.bytes) return;
    header.crc = crc32c({bytes.data() + at, header.bytes});
    std::memcpy(bytes.data() + at - sizeof header, &header, sizeof header);
    at += header.bytes;
  }
}

}  // namespace cairn::profile
