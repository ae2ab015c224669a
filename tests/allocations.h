// Counts what a test program allocates, a measure of work that is the same on every machine. Include it in one source of the
// program: it replaces operator new.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

namespace cairn {

inline std::atomic<size_t> counted_allocations = 0, counted_bytes = 0;
inline size_t allocations() { return counted_allocations; }
inline size_t allocated_bytes() { return counted_bytes; }

}  // namespace cairn

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // these are the matching ones
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++cairn::counted_allocations;
  cairn::counted_bytes += bytes;
  return std::malloc(bytes);
}
void* operator new(size_t bytes) {
  if (void* memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
