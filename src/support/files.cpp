#include "support/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "support/pages.h"

namespace cairn {

namespace {

[[noreturn]] void fail_errno(const std::string& path, const char* what) {
  int code = errno;
  fail(code == ENOENT || code == ENOTDIR ? ErrorKind::not_found : ErrorKind::io, path, "{}: {}", what,
       std::strerror(code));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, mode_t mode = 0)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
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

/// Removes the temporary file unless it became the real one.
struct Temporary {
  std::string path;
  bool kept = false;
  ~Temporary() {
    if (!kept) ::unlink(path.c_str());
  }
};

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  std::filesystem::path target(path);
  std::string name = fmt::format(".{}.{}.{}.part", target.filename().string().substr(0, 200), ::getpid(), counter++);
  return (target.parent_path() / name).string();
}

void sync_folder(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  Descriptor directory(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY);
  if (directory) ::fsync(directory.number());  // some file systems refuse; the rename has happened all the same
}

void write_all(const Descriptor& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    ssize_t done = ::write(file.number(), bytes.data(), std::min<size_t>(bytes.size(), 1 << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_errno(path, "cannot be written");
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

/// Links are followed, so that a link to a model stays a link.
std::string real_target(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_symlink(path, none)) return path;
  auto target = std::filesystem::canonical(path, none);
  return none ? path : target.string();
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
  remember_mapping(mapped->bytes_);
  return mapped;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget_mapping(bytes_);
  ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void write_file(const std::string& given, const std::function<void(const FileSink& sink)>& write) {
  std::string path = real_target(given);
  struct stat old {};
  bool replaces = ::stat(given.c_str(), &old) == 0;
  if (replaces && S_ISDIR(old.st_mode)) fail(ErrorKind::io, path, "is a folder, cannot be written as a file");
  if (replaces && !S_ISREG(old.st_mode)) {
    Descriptor device(given, O_WRONLY);  // links as of /dev/stdout lead to what has no path of its own
    if (!device) fail_errno(path, "cannot be written");
    return write([&](std::string_view bytes) { write_all(device, bytes, path); });
  }
  Temporary temporary{temporary_name(path)};
  Descriptor file(temporary.path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (!file) {
    temporary.kept = true;  // not ours
    fail_errno(path, "cannot be written");
  }
  if (replaces) (void)::fchmod(file.number(), old.st_mode & 07777);
  write([&](std::string_view bytes) { write_all(file, bytes, path); });
  if (::fsync(file.number()) != 0) fail_errno(path, "cannot be written");
  if (::rename(temporary.path.c_str(), path.c_str()) != 0) fail_errno(path, "cannot be replaced");
  temporary.kept = true;
  sync_folder(path);
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

std::string expand_home(const std::string& path) {
  if (path.empty() || path[0] != '~' || (path.size() > 1 && path[1] != '/')) return path;
  const char* home = std::getenv("HOME");
  return home && *home ? home + path.substr(1) : path;
}

}  // namespace cairn
