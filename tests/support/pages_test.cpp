// release_pages lets go of mapped files only, and what it lets go of is read again.
#include "support/pages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "support/files.h"

namespace cairn {
namespace {

constexpr size_t kSize = 1 << 20;

std::string pattern() {
  std::string bytes(kSize, 0);
  std::iota(bytes.begin(), bytes.end(), 0);
  return bytes;
}

/// Bytes of physical memory behind the mapping that starts at `data`.
size_t resident(const void* data) {
  std::ostringstream start;
  start << std::hex << reinterpret_cast<uintptr_t>(data) << '-';
  std::ifstream maps("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with(start.str())) found = true;
    if (found && line.starts_with("Rss:")) return std::stoul(line.substr(4)) * 1024;
  }
  ADD_FAILURE() << "no such mapping";
  return 0;
}

TEST(Pages, OfAMappedFileAreLetGoAndReadAgain) {
  auto path = std::filesystem::temp_directory_path() / ("cairn_pages_" + std::to_string(getpid()));
  write_file(path, pattern());
  auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  ASSERT_EQ(file->bytes(), pattern());
  EXPECT_EQ(resident(file->bytes().data()), kSize);
  release_pages(file->bytes().data() + 1, kSize - 1);
  EXPECT_EQ(resident(file->bytes().data()), static_cast<size_t>(sysconf(_SC_PAGESIZE)));  // the first is not whole
  EXPECT_EQ(file->bytes(), pattern());
}

TEST(Pages, AFileThatBecomesShorterIsNamedBeforeTheProcessEnds) {
  const auto path = std::filesystem::temp_directory_path() / ("cairn_pages_" + std::to_string(getpid()));
  write_file(path, pattern());
  const auto file = MappedFile::open(path);
  EXPECT_EXIT(
      {
        std::filesystem::resize_file(path, 0);
        volatile char last = file->bytes().back();
        (void)last;
      },
      testing::KilledBySignal(SIGBUS), "cairn_pages_[0-9]+: became shorter while it was in use");
  std::filesystem::remove(path);
}

TEST(Pages, OfOtherMemoryKeepTheirContent) {
  std::string bytes = pattern();
  release_pages(bytes.data(), bytes.size());
  EXPECT_EQ(bytes, pattern());
}

}  // namespace
}  // namespace cairn
