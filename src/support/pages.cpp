#include "support/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "support/fork.h"

namespace cairn {

namespace {

struct Mapping {
  uintptr_t end;
  std::string path;
};

struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, Mapping> by_start;

  /// The mapping that holds the byte, or null.
  const Mapping* find(uintptr_t at) const {
    auto next = by_start.upper_bound(at);
    return next != by_start.begin() && std::prev(next)->second.end > at ? &std::prev(next)->second : nullptr;
  }
};

Mappings& mappings() {
  static auto* all = new Mappings;  // never destroyed: files may be unmapped after main has returned
  return *all;
}

uintptr_t address(const void* data) { return reinterpret_cast<uintptr_t>(data); }

struct sigaction before_ours;

/// The handler of SIGBUS. Whoever holds the mutex does not read mapped files.
void tell_lost_page(int number, siginfo_t* info, void* context) {
  if (info->si_code == BUS_ADRERR && mappings().mutex.try_lock()) {
    if (const Mapping* mapping = mappings().find(address(info->si_addr)))
      for (const char* text : {"error: ", mapping->path.c_str(),
                               ": became shorter while it was in use, or its disk fails; "
                               "put a new version in its place by renaming it\n"})
        (void)!::write(STDERR_FILENO, text, std::strlen(text));
    mappings().mutex.unlock();
  }
  if (before_ours.sa_flags & SA_SIGINFO) return before_ours.sa_sigaction(number, info, context);
  if (before_ours.sa_handler != SIG_DFL && before_ours.sa_handler != SIG_IGN) return before_ours.sa_handler(number);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void watch_lost_pages() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours {};
    ours.sa_sigaction = tell_lost_page;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &ours, &before_ours);
  });
}

}  // namespace

void remember_mapping(std::string_view bytes, const std::string& path) {
  watch_lost_pages();
  const ShieldedLock lock(mappings().mutex);
  mappings().by_start[address(bytes.data())] = {address(bytes.data()) + bytes.size(), path};
}

void forget_mapping(std::string_view bytes) {
  const ShieldedLock lock(mappings().mutex);
  mappings().by_start.erase(address(bytes.data()));
}

void release_pages(const void* data, size_t size) {
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (address(data) + page - 1) / page * page, end = (address(data) + size) / page * page;
  if (begin >= end) return;
  const ShieldedLock lock(mappings().mutex);  // held to the end, so that the mapping cannot be unmapped meanwhile
  const Mapping* mapping = mappings().find(begin);
  if (!mapping || mapping->end < end) return;
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace cairn
