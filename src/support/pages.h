// What belongs to files mapped for reading: their physical memory is released, and a file that becomes shorter while it is
// mapped, which ends the process by SIGBUS, is named.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cairn {

/// Registers a file mapped for reading at `bytes`; it must be forgotten before it is unmapped. From the first one on a handler
/// of SIGBUS says on standard error which file cannot be read any more, then does what was done before.
void remember_mapping(std::string_view bytes, const std::string& path);
void forget_mapping(std::string_view bytes);

/// Releases the whole pages in [data, data + size) when they belong to a registered file; other memory is left alone.
void release_pages(const void* data, size_t size);

}  // namespace cairn
