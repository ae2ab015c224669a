#include "support/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "support/error.h"
#include "support/stop.h"

namespace cairn {
namespace {

constexpr size_t kBytesBetweenStops = size_t{4} << 20;

/// Reads a number from a file: the first word when `key` is empty, else the word behind `key`.
size_t number_in(const char* path, const std::string& key, size_t fallback) {
  std::ifstream file(path);
  std::string word;
  size_t number = 0;
  if (key.empty()) return file >> number ? number : fallback;
  while (file >> word)
    if (word == key) return file >> number ? number : fallback;
  return fallback;
}

size_t left(size_t limit, size_t used, size_t reclaimable) {
  used -= std::min(used, reclaimable);
  return limit > used ? limit - used : 0;
}

size_t left_in_group() {
  const size_t most = number_in("/sys/fs/cgroup/memory.max", "", SIZE_MAX);
  if (most != SIZE_MAX)
    return left(most, number_in("/sys/fs/cgroup/memory.current", "", 0),
                number_in("/sys/fs/cgroup/memory.stat", "inactive_file", 0));
  const size_t first = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", "", SIZE_MAX);
  if (first == SIZE_MAX) return SIZE_MAX;
  return left(first, number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes", "", 0),
              number_in("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file", 0));
}

std::string size_text(size_t bytes) {
  const double gib = static_cast<double>(bytes) / (1 << 30);
  return gib < 1 ? fmt::format("{:.0f} MiB", gib * 1024) : fmt::format("{:.1f} GiB", gib);
}

}  // namespace

size_t available_memory() {
  const size_t kib = number_in("/proc/meminfo", "MemAvailable:", SIZE_MAX / 1024);
  return std::min(kib * 1024, left_in_group());
}

void* allocate_lines(size_t bytes) {
  const size_t size = whole_lines(std::max<size_t>(bytes, 1));
  void* data = nullptr;
  if (posix_memalign(&data, size >= kHugePage ? kHugePage : kLineBytes, size) != 0) return nullptr;
  if (size >= kHugePage) madvise(data, size / kHugePage * kHugePage, MADV_HUGEPAGE);
  return data;
}

void clear_bytes(void* to, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kBytesBetweenStops) {
    std::memset(static_cast<char*>(to) + at, 0, std::min(kBytesBetweenStops, bytes - at));
    stop_point();
  }
}

void copy_bytes(void* to, const void* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kBytesBetweenStops) {
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                std::min(kBytesBetweenStops, bytes - at));
    stop_point();
  }
}

void require_memory(size_t bytes) {
  constexpr size_t kSmall = size_t{64} << 20;
  if (bytes < kSmall) return;
  const size_t available = available_memory();
  if (bytes > available)
    fail(ErrorKind::out_of_memory, "", "{} of memory are needed at once, {} are available", size_text(bytes),
         size_text(available));
}

}  // namespace cairn
