// NumPy's .npz files: tensors by name, in and out. Nothing in a file is believed before it is checked.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/tensor.h"

namespace cairn::compare {

/// A zip archive of .npy files, stored or deflated, also beyond 4 GiB.
class NpzFile {
 public:
  /// Throws Error not_found, io for what is not a sound archive.
  static std::shared_ptr<const NpzFile> open(const std::string& path);
  /// Names without ".npy", in the archive's order.
  std::vector<std::string> names() const;
  /// Throws Error not_found, io (a checksum that does not hold), unsupported.
  Tensor read(const std::string& name) const;

 private:
  struct Member {
    std::string name;
    int method = 0;
    uint32_t crc = 0;
    uint64_t packed = 0, size = 0, offset = 0;
  };
  std::string path_;
  std::shared_ptr<const void> owner_;
  std::string_view bytes_;
  std::vector<Member> members_;
  std::string_view content(const Member& member) const;
};
/// Members are stored, not deflated. Throws Error invalid_argument beyond 4 GiB.
void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace cairn::compare
