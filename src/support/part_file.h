// A file that is replaced as a whole: its content goes into a part file beside it, which takes its name when it is complete.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

/// `path` holds the old content or the new, whatever stops the writer. Links are followed: the file that a link leads to is
/// replaced, and the link stays. A device, a pipe, and an open descriptor (/dev/stdout, /dev/fd/3) are written to directly.
///
/// A part file is called .NAME.PID-TIME.N.part and is locked while its writer lives. The first write of a process into a
/// folder removes the part files there whose writers are gone.
class PartFile {
 public:
  /// Not synced: after a stop of the machine itself the content may be missing. Throws Error io, not_found.
  explicit PartFile(const std::string& path, bool synced = true);
  /// Removes the part file unless it was committed.
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  void write(std::string_view bytes);
  /// For a library that opens the part file itself; empty where `path` is written to directly.
  const std::string& part() const { return part_; }
  /// The content is complete: the file bears its name from here on.
  void commit();

 private:
  void open_part(unsigned permissions);
  void close();

  std::string path_;  // what is replaced
  std::string part_;  // empty: written to directly
  bool synced_;
  int descriptor_ = -1;
  size_t slot_;  // among the part files that remove_part_files() knows
};

/// Removes the part files that this process is writing; safe in a signal handler. Says how many there were.
size_t remove_part_files() noexcept;

}  // namespace cairn
