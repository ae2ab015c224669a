#include "support/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "support/fault.h"
#include "support/nearest.h"
#include "support/pages.h"
#include "support/part_file.h"
#include "support/utf8.h"

namespace cairn {

namespace {

[[noreturn]] void fail_errno(const std::string& path, const char* what) {
  int code = errno;
  fail(code == ENOENT || code == ENOTDIR ? ErrorKind::not_found : ErrorKind::io, path, "{}: {}{}", what, reason(code),
       code == ENOENT ? near_file(path) : "");
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

/// Opens a regular file and tells its size.
size_t checked_size(const Descriptor& file, const std::string& path) {
  struct stat info {};
  if (::fstat(file.number(), &info) != 0) fail_errno(path, "cannot be read");
  if (S_ISDIR(info.st_mode)) fail(ErrorKind::io, path, "is a folder, expected a file");
  if (!S_ISREG(info.st_mode)) fail(ErrorKind::io, path, "is not a regular file");
  return static_cast<size_t>(info.st_size);
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  Descriptor file(path, O_RDONLY | O_NONBLOCK);  // a pipe without a writer must not hang the open
  if (!file) fail_errno(path, "cannot be opened");
  size_t size = checked_size(file, path);
  std::shared_ptr<MappedFile> mapped(new MappedFile);
  if (size == 0) return mapped;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED) fail_errno(path, "cannot be mapped");
  mapped->bytes_ = {static_cast<const char*>(data), size};
  remember_mapping(mapped->bytes_, path);
  return mapped;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget_mapping(bytes_);
  ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void write_file(const std::string& path, const std::function<void(const FileSink& sink)>& write) {
  PartFile file(path);
  write([&](std::string_view bytes) { file.write(bytes); });
  file.commit();
}

void write_file(const std::string& path, std::string_view bytes) {
  write_file(path, [&](const FileSink& sink) { sink(bytes); });
}

std::string read_file(const std::string& path, size_t limit) {
  Descriptor file(path, O_RDONLY | O_NONBLOCK);
  if (!file) fail_errno(path, "cannot be opened");
  size_t size = checked_size(file, path);
  if (size > limit) fail(ErrorKind::io, path, "has {} bytes, expected at most {}", size, limit);
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    ssize_t got = ::read(file.number(), bytes.data() + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(path, "cannot be read");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

std::string read_text(const std::string& path) {
  std::string bytes = read_file(path);
  if (bytes.starts_with("\xef\xbb\xbf")) return bytes.substr(3);
  const bool little = bytes.starts_with("\xff\xfe");
  if (!little && !bytes.starts_with("\xfe\xff")) return bytes;
  std::string text;
  uint32_t high = 0;  // first half of a character above U+FFFF
  for (size_t i = 2; i + 1 < bytes.size(); i += 2) {
    const uint32_t low = static_cast<uint8_t>(bytes[i + (little ? 0 : 1)]);
    const uint32_t unit = low | uint32_t{static_cast<uint8_t>(bytes[i + (little ? 1 : 0)])} << 8;
    if (unit >> 10 == 0x36) {
      high = unit;
      continue;
    }
    append_utf8(text, unit >> 10 == 0x37 ? 0x10000 + ((high & 0x3ff) << 10) + (unit & 0x3ff) : unit);
  }
  return text;
}

void make_folders(const std::string& path) {
  try {
    std::filesystem::create_directories(path);
  } catch (const std::filesystem::filesystem_error&) {
    throw current_fault();
  }
}

std::string near_file(const std::string& path) {
  constexpr size_t kMostNames = 10'000;
  if (path.find('\\') != std::string::npos) return "; parts of a path are separated by '/'";
  const std::filesystem::path wanted(path);
  const std::filesystem::path folder = wanted.has_parent_path() ? wanted.parent_path() : ".";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return "; there is no folder " + printable(folder.string());
  const std::string stem = wanted.stem().string();
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const std::filesystem::path& name = each->path().filename();
    const std::string other = name.stem().string();
    const std::string_view stems[] = {other};
    if (names.size() < kMostNames && (other == stem || nearest(stem, stems))) names.push_back(name.string());
  }
  std::sort(names.begin(), names.end());
  // A name without its ending is nearer to "net.pb" than to "new": they are compared as they would be complete.
  std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string name = wanted.filename().string();
  if (!wanted.has_extension())
    for (const std::string& each : names)
      if (std::filesystem::path(each).stem() == stem) name = each;
  const auto found = nearest(name, candidates);
  if (!found) return "";
  return fmt::format("; did you mean {}?", printable((wanted.parent_path() / *found).string()));
}

std::string expand_home(const std::string& path) {
  if (path.empty() || path[0] != '~' || (path.size() > 1 && path[1] != '/')) return path;
  const char* home = std::getenv("HOME");
  return home && *home ? home + path.substr(1) : path;
}

}  // namespace cairn
