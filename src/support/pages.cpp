#include "support/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "support/fork.h"

namespace cairn {

namespace {

struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> ends;  // end of a mapping by its start
};

Mappings& mappings() {
  static auto* all = new Mappings;  // never destroyed: files may be unmapped after main has returned
  return *all;
}

uintptr_t address(const void* data) { return reinterpret_cast<uintptr_t>(data); }

}  // namespace

void remember_mapping(std::string_view bytes) {
  const ShieldedLock lock(mappings().mutex);
  mappings().ends[address(bytes.data())] = address(bytes.data()) + bytes.size();
}

void forget_mapping(std::string_view bytes) {
  const ShieldedLock lock(mappings().mutex);
  mappings().ends.erase(address(bytes.data()));
}

void release_pages(const void* data, size_t size) {
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (address(data) + page - 1) / page * page, end = (address(data) + size) / page * page;
  if (begin >= end) return;
  const ShieldedLock lock(mappings().mutex);  // held to the end, so that the mapping cannot be unmapped meanwhile
  auto next = mappings().ends.upper_bound(begin);
  if (next == mappings().ends.begin() || std::prev(next)->second < end) return;
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace cairn
