// Releases the physical memory behind files mapped for reading; the next access reads the file again.
#pragma once

#include <cstddef>
#include <string_view>

namespace cairn {

/// Registers a file mapped for reading at `bytes`; it must be forgotten before it is unmapped.
void remember_mapping(std::string_view bytes);
void forget_mapping(std::string_view bytes);

/// Releases the whole pages in [data, data + size) when they belong to a registered file; other memory is left alone.
void release_pages(const void* data, size_t size);

}  // namespace cairn
