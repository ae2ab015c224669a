#include "frontends/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "support/fault.h"

namespace cairn::onnx {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void reset(int number) {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

 private:
  int number_;
};

}  // namespace

std::shared_ptr<ModelBytes> open_external(const std::string& directory, std::string_view location,
                                          const std::string& where) {
  auto refuse = [&](const char* why) {
    fail(ErrorKind::invalid_model, where, "external data '{}' {}", printable(location), why);
  };
  if (directory.empty()) refuse("cannot be found: the model comes from memory and has no directory");
  if (location.empty() || location.find('\0') != std::string_view::npos) refuse("is no file name");
  if (location.starts_with('/') || location.find('\\') != std::string_view::npos) refuse("is not a relative path");
  Descriptor at(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) fail(ErrorKind::io, directory, "cannot be opened: {}", reason(errno));
  // Opens one component at a time relative to an open directory, so that what was checked is what is opened.
  std::string_view rest = location;
  while (true) {
    size_t slash = rest.find('/');
    std::string part(rest.substr(0, slash));
    bool last = slash == std::string_view::npos;
    if (part == "..") refuse("leaves the model's directory");
    if (part.empty() || part == ".") {
      if (last) refuse("is no file name");
      rest.remove_prefix(slash + 1);
      continue;
    }
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
    int next = ::openat(at.get(), part.c_str(), flags);
    if (next < 0 && (errno == ELOOP || (errno == ENOTDIR && !last)))
      refuse("goes through a symbolic link or no directory");
    if (next < 0)
      fail(errno == ENOENT ? ErrorKind::not_found : ErrorKind::io, where, "external data '{}' cannot be opened: {}",
           printable(location), reason(errno));
    at.reset(next);
    if (last) break;
    rest.remove_prefix(slash + 1);
  }
  struct stat status;
  if (fstat(at.get(), &status) != 0) fail(ErrorKind::io, where, "cannot be examined: {}", reason(errno));
  if (!S_ISREG(status.st_mode)) refuse("is not a regular file");
  if (status.st_nlink > 1) refuse("has several hard links; copy it first");
  return ModelBytes::from_descriptor(directory + "/" + std::string(location), at.release());
}

}  // namespace cairn::onnx
