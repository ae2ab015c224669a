// Zip archives (APPNOTE 6.3), read through the directory at their end: stored and deflated members, also beyond 4 GiB. Nothing
// in a file is believed before it is checked.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

struct ZipMember {
  std::string name;
  int method = 0;  // 0: stored, 8: deflated
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, offset = 0;
};

class ZipArchive {
 public:
  /// Throws Error not_found, io for what is not a sound archive.
  static ZipArchive open(const std::string& path);
  /// Of bytes that `owner` keeps; `name` is for messages.
  static ZipArchive of(std::string_view bytes, std::shared_ptr<const void> owner, const std::string& name);
  static bool looks_like(std::string_view bytes) { return bytes.starts_with(std::string_view("PK\x03\x04", 4)); }

  const std::string& name() const { return name_; }
  const std::vector<ZipMember>& members() const { return members_; }
  /// Null when there is none of that name.
  const ZipMember* find(std::string_view name) const;
  struct Content {
    std::string_view bytes;
    std::shared_ptr<const void> owner;
  };
  /// In place where it is stored. Throws Error io (also for a checksum that does not hold), unsupported.
  Content content(const ZipMember& member) const;

 private:
  std::string name_;
  std::shared_ptr<const void> owner_;
  std::string_view bytes_;
  std::vector<ZipMember> members_;
};

/// Members are stored. write() and finish() give the bytes that come next in the file. Throws Error invalid_argument
/// beyond 4 GiB or 65534 members.
class ZipWriter {
 public:
  explicit ZipWriter(std::string path) : path_(std::move(path)) {}
  /// What stands in front of the member's bytes, which follow.
  std::string head(const std::string& name, std::string_view bytes);
  std::string finish();

 private:
  std::string path_, directory_;
  uint64_t at_ = 0;
  size_t members_ = 0;
};

}  // namespace cairn
