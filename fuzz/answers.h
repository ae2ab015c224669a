// What the fuzz programs share: a reader answers any bytes with a value or with an Error of one sentence; whatever else it does
// ends the program, and libFuzzer keeps the bytes.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "support/error.h"
#include "support/report.h"

namespace cairn::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

template <class Reader>
void expect_answer(const Reader& read) {
  try {
    read();
  } catch (const Error& error) {
    const auto* report = dynamic_cast<const ReportError*>(&error);
    const std::string sentence = report ? report->headline() : error.what();
    if (sentence.size() < 8 || sentence.find('\n') != std::string::npos) {
      std::fprintf(stderr, "not one sentence: \"%s\"\n", sentence.c_str());
      std::abort();
    }
  }
}

/// The bytes as a file that is in memory alone.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("fuzz", 0)) {
    if (descriptor_ < 0 || write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      abort();
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// A folder of this process, for what is told by names; in memory where the system has such a place.
inline const std::string& folder() {
  static const auto* path = new std::string([] {  // for what runs at the end of the program
    std::string base = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    std::string name = base + "/cairn-fuzz-" + std::to_string(getpid());
    std::filesystem::create_directories(name);
    std::atexit([] { std::filesystem::remove_all(folder()); });
    return name;
  }());
  return *path;
}

}  // namespace cairn::fuzz
