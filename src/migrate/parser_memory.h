// Memory of one parse: blocks out of large chunks, used again by size, all given back at once.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace cairn::migrate {

class ParserMemory {
 public:
  /// From here until this one's end the parser's allocations on this thread come out of it.
  ParserMemory();
  ~ParserMemory();
  ParserMemory(const ParserMemory&) = delete;
  ParserMemory& operator=(const ParserMemory&) = delete;

  static void* allocate(size_t bytes);
  static void* allocate_zeros(size_t count, size_t bytes);
  static void* reallocate(void* data, size_t bytes);
  static void free(void* data);
  /// What is called when the system has no memory; it does not return.
  static inline void (*without_memory)(size_t bytes) = nullptr;

 private:
  struct alignas(std::max_align_t) Block {
    size_t kind;  // of its size
    Block* next;  // of the free ones
  };
  Block* take(size_t kind);

  std::array<Block*, 128> free_{};  // by kind
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* at_ = nullptr;
  size_t left_ = 0;
};

}  // namespace cairn::migrate
