// Replaces a file atomically: the content is written to a part file beside it, which is renamed when it is complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cairn {

/// `path` holds the old content or the new, however the writer is interrupted. Links are followed: the file that a link
/// leads to is replaced, the link stays. A device, a pipe and an open descriptor (/dev/stdout, /dev/fd/3) are written
/// to directly.
///
/// A part file is called .NAME.PID-TIME.N.part and is locked while its writer lives. The first write of a process into a
/// folder removes the part files there whose writers are gone.
class PartFile {
 public:
  /// When not `synced`, the content may be lost if the machine itself fails. Throws Error io, not_found.
  explicit PartFile(const std::string& path, bool synced = true);
  /// Removes the part file unless it was committed.
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  void write(std::string_view bytes);
  /// The part file's path, for a library that opens it by itself; empty when `path` is written to directly.
  const std::string& part() const { return part_; }
  /// Called when the content is complete: renames the part file to `path`.
  void commit();
  /// Commits files that belong together: a list of the renames lies beside the first one until all are made, so that
  /// complete_renames(), and the next write of a process into the folder, go on where a writer ended.
  static void commit_all(const std::vector<PartFile*>& files);

 private:
  void sync();
  void rename();
  void open_part(unsigned permissions);
  void close();

  std::string path_;  // the file that is replaced
  std::string part_;  // empty: path_ is written to directly
  bool synced_;
  int descriptor_ = -1;
  size_t slot_;  // its slot in the list for remove_part_files()
};

/// Makes the renames that a commit_all() whose first file was `path` has left, if its writer is gone; whether there were any. Throws Error io.
bool complete_renames(const std::string& path);

/// From here on no thread makes another part file, but waits for the end of the process; safe in a signal handler.
void hold_part_files() noexcept;
/// Removes the part files that this process is writing and returns their number; safe in a signal handler.
size_t remove_part_files() noexcept;

}  // namespace cairn
