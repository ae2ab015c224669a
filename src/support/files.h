// Reading files by mapping them, and replacing files atomically.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "support/error.h"

namespace cairn {

/// A regular file mapped read-only for as long as the object lives.
class MappedFile {
 public:
  /// Throws Error not_found, io.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }

 private:
  MappedFile() = default;
  std::string_view bytes_;
};

/// Receives the bytes of a file in order.
using FileSink = std::function<void(std::string_view bytes)>;

/// Replaces `path` atomically: `write` fills a temporary file beside it, which is synced and renamed over `path`; then
/// the folder is synced. However it is interrupted, `path` holds the old content or the new. Throws Error io; an
/// exception of `write` passes through and leaves the old file. A device or a pipe (/dev/stdout) is written to
/// directly.
void write_file(const std::string& path, const std::function<void(const FileSink& sink)>& write);
void write_file(const std::string& path, std::string_view bytes);
/// The whole content. Throws Error not_found, io (also when there are more than `limit` bytes).
std::string read_file(const std::string& path, size_t limit = 64 << 20);
/// A text that a person wrote: without the byte order mark of Windows, UTF-16 that has one as UTF-8.
std::string read_text(const std::string& path);

/// Makes the folder and those above it that are missing. Throws Error io, invalid_argument, not_found.
void make_folders(const std::string& path);

/// What may have been meant by a path that does not exist, behind a sentence that says so: "; did you mean FILE?", "; there is
/// no folder FOLDER", or nothing.
std::string near_file(const std::string& path);

/// Replaces "~" in "~" or "~/..." by the home folder; other text is unchanged.
std::string expand_home(const std::string& path);

}  // namespace cairn
