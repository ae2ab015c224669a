// Memory that the system refuses: the exception says how much was asked for, and some memory is kept to say it with.
#include <cstdlib>
#include <new>

#include "support/fault.h"

namespace {

constexpr size_t kReserve = 256 << 10;
void* reserve = std::malloc(kReserve);

[[noreturn]] void refuse(size_t bytes) {
  std::free(__atomic_exchange_n(&reserve, nullptr, __ATOMIC_ACQ_REL));
  throw cairn::NoMemory(bytes);
}

}  // namespace

void* operator new(size_t bytes) {
  if (void* data = std::malloc(bytes ? bytes : 1)) return data;
  refuse(bytes);
}

void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<size_t>(alignment);
  if (void* data = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return data;
  refuse(bytes);
}

void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes ? bytes : 1); }

// Inlined beside a call of operator new, the compiler would take these for mismatched with it.
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t, std::align_val_t) noexcept { std::free(data); }
