#include "migrate/parser_memory.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "support/error.h"

namespace cairn::migrate {
namespace {

thread_local ParserMemory* current = nullptr;

constexpr size_t kFirstChunk = size_t{1} << 16, kLargestChunk = size_t{1} << 22;
// Sizes are multiples of 16 up to 1024, then powers of two.
constexpr size_t kStep = 16, kStepped = 64;

size_t kind_of(size_t bytes) {
  if (bytes <= kStep * kStepped) return std::max<size_t>((bytes + kStep - 1) / kStep, 1);
  return kStepped + static_cast<size_t>(std::bit_width((bytes - 1) / (kStep * kStepped)));
}

size_t size_of(size_t kind) { return kind <= kStepped ? kind * kStep : kStep * kStepped << (kind - kStepped); }

}  // namespace

ParserMemory::ParserMemory() {
  CHECK(current == nullptr, "one parse at a time");
  current = this;
}

ParserMemory::~ParserMemory() { current = nullptr; }

ParserMemory::Block* ParserMemory::take(size_t kind) {
  if (Block* block = free_[kind]) {
    free_[kind] = block->next;
    return block;
  }
  const size_t bytes = sizeof(Block) + size_of(kind);
  if (bytes > left_) {
    left_ = std::max(bytes, std::min(kFirstChunk << std::min<size_t>(chunks_.size(), 8), kLargestChunk));
    at_ = new (std::nothrow) std::byte[left_];
    if (at_ == nullptr) {
      if (without_memory != nullptr) without_memory(left_);
      std::abort();  // the parser cannot go on
    }
    chunks_.emplace_back(at_);
  }
  auto* block = new (at_) Block{kind, nullptr};
  at_ += bytes, left_ -= bytes;
  return block;
}

void* ParserMemory::allocate(size_t bytes) { return current->take(kind_of(bytes)) + 1; }

void* ParserMemory::allocate_zeros(size_t count, size_t bytes) {
  return std::memset(allocate(count * bytes), 0, count * bytes);
}

void* ParserMemory::reallocate(void* data, size_t bytes) {
  if (data == nullptr) return allocate(bytes);
  const size_t had = size_of((static_cast<Block*>(data) - 1)->kind);
  if (bytes <= had) return data;
  void* larger = std::memcpy(allocate(bytes), data, had);
  free(data);
  return larger;
}

void ParserMemory::free(void* data) {
  if (data == nullptr) return;
  Block* block = static_cast<Block*>(data) - 1;
  block->next = std::exchange(current->free_[block->kind], block);
}

}  // namespace cairn::migrate
