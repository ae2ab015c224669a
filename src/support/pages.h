// The physical memory behind files mapped for reading, which can be let go: the next access reads the file again.
#pragma once

#include <cstddef>
#include <string_view>

namespace cairn {

/// A file mapped for reading lies at `bytes`, until it is forgotten (before it is unmapped).
void remember_mapping(std::string_view bytes);
void forget_mapping(std::string_view bytes);

/// Lets go of the whole pages in [data, data + size) when they belong to a mapped file; nothing happens to other memory.
void release_pages(const void* data, size_t size);

}  // namespace cairn
