#include "support/part_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include "support/fault.h"
#include "support/files.h"
#include "support/fork.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const char* what, int code = errno) {
  fail(code == ENOENT || code == ENOTDIR ? ErrorKind::not_found : ErrorKind::io, path, "{}: {}", what, reason(code));
}

// The part files that a signal handler removes. Whoever exchanges a path out of its slot owns it.
constexpr size_t kSlots = 64;
std::atomic<char*> parts_in_work[kSlots];
std::atomic<pid_t> writer{0};  // the process that writes them
std::atomic<int> opening{0};   // threads that are making one
std::atomic<bool> held{false};

/// While it lives, this thread may make a part file: hold_part_files() waits for it, and is not called on this thread.
class Opening {
 public:
  Opening() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
    ++opening;
    if (!held) return;
    --opening;
    while (true) ::pause();  // the process ends
  }
  ~Opening() {
    --opening;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Opening(const Opening&) = delete;

 private:
  sigset_t before_;
};

size_t enter_part(const std::string& path) {
  writer.store(::getpid());
  char* text = ::strdup(path.c_str());
  for (size_t i = 0; text && i < kSlots; ++i) {
    char* none = nullptr;
    if (parts_in_work[i].compare_exchange_strong(none, text)) return i;
  }
  std::free(text);
  return kSlots;
}

void leave_part(size_t slot) {
  if (slot < kSlots) std::free(parts_in_work[slot].exchange(nullptr));
}

fs::path folder_of(const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

std::string part_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const fs::path target(path);
  std::string name = target.filename().string().substr(0, 200);
  return (target.parent_path() / fmt::format(".{}.{}-{:x}.{}.part", name, ::getpid(), now, counter++)).string();
}

/// Whether the name has the form that part_name() gives.
bool is_part_name(std::string_view name) {
  const auto take = [&](auto belongs) {
    const size_t before = name.size();
    while (!name.empty() && belongs(static_cast<unsigned char>(name.back()))) name.remove_suffix(1);
    return name.size() < before;
  };
  const auto take_sign = [&](char sign) {
    if (!name.ends_with(sign)) return false;
    name.remove_suffix(1);
    return true;
  };
  constexpr std::string_view kEnd = ".part";
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return false;
  name.remove_suffix(kEnd.size());
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto hex = [](unsigned char c) { return std::isxdigit(c) != 0; };
  return take(digit) && take_sign('.') && take(hex) && take_sign('-') && take(digit) && take_sign('.');
}

/// A writer holds the lock of its part file; a part file whose lock is free was abandoned and is removed.
void remove_if_left(int folder, const char* name) {
  const int file = ::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlinkat(folder, name, 0);
  ::close(file);
}

constexpr std::string_view kRenames = ".renames";

std::string list_of_renames(const std::string& path) {
  return (folder_of(path) / fmt::format(".{}{}", fs::path(path).filename().string().substr(0, 200), kRenames)).string();
}

// The list holds pairs of a part file's name and the name that it gets. Only part files are renamed, and only within the folder.
bool complete_listed(const std::string& path) {
  const std::string list = fs::exists(path) ? read_file(path) : "";
  std::vector<std::string> names;
  for (size_t begin = 0, end; (end = list.find('/', begin)) != std::string::npos; begin = end + 1)
    names.push_back(list.substr(begin, end - begin));
  for (size_t i = 0; i + 1 < names.size(); i += 2) {
    const fs::path part = folder_of(path) / names[i], target = folder_of(path) / names[i + 1];
    const int file = is_part_name(names[i]) ? ::open(part.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (file < 0) continue;  // renamed already
    const bool alive = ::flock(file, LOCK_EX | LOCK_NB) != 0;
    const bool failed = !alive && ::rename(part.c_str(), target.c_str()) != 0;
    const int code = errno;
    ::close(file);
    if (alive) return false;
    if (failed) refuse(target.string(), "was not replaced when its writer was ended, and cannot be now", code);
  }
  if (!names.empty()) ::unlink(path.c_str());
  return !names.empty();
}

void remove_left_parts(const fs::path& path) {
  static std::mutex* mutex = new std::mutex;
  static auto* seen = new std::set<std::string>;
  static uint32_t generation = fork_generation();
  constexpr size_t kMostFolders = 4096;
  {
    std::error_code none;
    const ShieldedLock lock(*mutex);
    if (seen->size() >= kMostFolders || generation != fork_generation()) seen->clear();
    generation = fork_generation();
    if (!seen->insert(fs::absolute(path, none).string()).second) return;
  }
  DIR* folder = ::opendir(path.c_str());
  if (!folder) return;
  std::vector<std::string> parts;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (is_part_name(name)) parts.emplace_back(name);
    if (name.starts_with('.') && name.ends_with(kRenames)) complete_listed(path / name);
  }
  for (const std::string& part : parts) remove_if_left(::dirfd(folder), part.c_str());
  ::closedir(folder);
}

/// The descriptor number when `link` names an open descriptor of this process: /dev/stdout, /dev/fd/3, /proc/self/fd/3.
std::optional<int> descriptor_of(const std::string& link) {
  std::error_code error;
  const std::string folder = fs::canonical(folder_of(link), error).string();
  if (error || folder != fmt::format("/proc/{}/fd", ::getpid())) return std::nullopt;
  const std::string name = fs::path(link).filename().string();
  int number = -1;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (fault != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

struct Target {
  std::string path;               // with all links followed
  std::optional<int> descriptor;  // the open descriptor of this process that the links lead to
};

Target target_of(const std::string& given) {
  constexpr int kMostLinks = 40;
  Target target{given, {}};
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target.path, error)); ++links) {
    if (links == kMostLinks) refuse(given, "cannot be written", ELOOP);
    if ((target.descriptor = descriptor_of(target.path))) return target;
    const fs::path next = fs::read_symlink(target.path, error);
    if (error) refuse(given, "cannot be written", error.value());
    target.path = next.is_absolute() ? next.string() : (folder_of(target.path) / next).string();
  }
  return target;
}

void write_all(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file, bytes.data(), std::min<size_t>(bytes.size(), 1 << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) refuse(path, "cannot be written");
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void sync_folder(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);  // some file systems do not support it; the rename has succeeded anyway
  ::close(folder);
}

}  // namespace

PartFile::PartFile(const std::string& given, bool synced) : synced_(synced), slot_(kSlots) {
  const Target target = target_of(given);
  path_ = target.path;
  struct stat old {};
  if (target.descriptor) {
    if (*target.descriptor == STDOUT_FILENO) std::fflush(stdout);
    descriptor_ = ::fcntl(*target.descriptor, F_DUPFD_CLOEXEC, 0);
    if (descriptor_ < 0) refuse(given, "cannot be written");
    return;
  }
  const bool replaces = ::stat(path_.c_str(), &old) == 0;
  if (!replaces && errno != ENOENT) refuse(given, "cannot be written");
  if (replaces && S_ISDIR(old.st_mode)) fail(ErrorKind::io, path_, "is a folder, cannot be written as a file");
  if (replaces && !S_ISREG(old.st_mode)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) refuse(given, "cannot be written");
    return;
  }
  if (replaces && ::access(path_.c_str(), W_OK) != 0) refuse(path_, "cannot be written");
  const fs::path folder = folder_of(path_);
  std::error_code none;
  if (!fs::is_directory(folder, none))
    fail(ErrorKind::not_found, path_, "cannot be written: {} is no folder", folder.string());
  remove_left_parts(folder);
  open_part(0666);
  if (replaces) (void)::fchmod(descriptor_, old.st_mode & 07777);
}

void PartFile::open_part(unsigned permissions) {
  while (true) {
    part_ = part_name(path_);
    {
      const Opening now;
      slot_ = enter_part(part_);
      descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
    }
    if (descriptor_ < 0) {
      const int code = errno;
      leave_part(slot_);
      part_.clear();
      refuse(path_, "cannot be written", code);
    }
    // Between open() and flock(), another process may have taken the file for an abandoned one and removed it.
    struct stat made {};
    const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && ::fstat(descriptor_, &made) == 0 && made.st_nlink > 0) return;
    ::unlink(part_.c_str());
    leave_part(slot_);
    close();
  }
}

PartFile::~PartFile() {
  if (!part_.empty()) ::unlink(part_.c_str());
  leave_part(slot_);
  close();
}

void PartFile::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void PartFile::write(std::string_view bytes) { write_all(descriptor_, bytes, path_); }

void PartFile::commit() {
  if (part_.empty()) return close();
  sync();
  rename();
}

void PartFile::sync() {
  if (synced_ && ::fsync(descriptor_) != 0) refuse(path_, "cannot be written");
}

void PartFile::rename() {
  if (::rename(part_.c_str(), path_.c_str()) != 0) refuse(path_, "cannot be replaced");
  part_.clear();
  leave_part(std::exchange(slot_, kSlots));
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) refuse(path_, "cannot be written");
  if (synced_) sync_folder(path_);
}

void PartFile::commit_all(const std::vector<PartFile*>& files) {
  const fs::path folder = folder_of(files.at(0)->path_);
  std::string list;
  for (PartFile* file : files) {
    if (file->part_.empty() || folder_of(file->path_) != folder) {  // nothing is renamed, or not in one folder
      for (PartFile* each : files) each->commit();
      return;
    }
    file->sync();
    list += fs::path(file->part_).filename().string() + '/' + fs::path(file->path_).filename().string() + '/';
  }
  PartFile renames(list_of_renames(files[0]->path_));
  renames.write(list);
  for (PartFile* file : files) leave_part(std::exchange(file->slot_, kSlots));  // from here on they are complete
  renames.commit();
  for (PartFile* file : files) file->rename();
  ::unlink(renames.path_.c_str());
}

bool complete_renames(const std::string& path) { return complete_listed(list_of_renames(target_of(path).path)); }

void hold_part_files() noexcept {
  if (writer.load() != ::getpid()) return;
  held = true;
  constexpr timespec kWait{0, 1'000'000};
  constexpr int kMostWaits = 2000;  // of a file system that does not answer
  for (int waits = 0; opening > 0 && waits < kMostWaits; ++waits) ::nanosleep(&kWait, nullptr);
}

size_t remove_part_files() noexcept {
  if (writer.load() != ::getpid()) return 0;
  size_t removed = 0;
  for (auto& slot : parts_in_work)
    if (const char* path = slot.exchange(nullptr)) removed += ::unlink(path) == 0;
  return removed;
}

}  // namespace cairn
