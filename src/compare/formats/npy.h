// NumPy's .npy and .npz files: tensors in and out. Nothing in a file is believed before it is checked.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/tensor.h"

namespace cairn::compare {

/// The array in `bytes`; elements are not copied when they lie row-major, aligned and in this machine's byte order, and
/// then keep `owner` alive. Two-byte void elements count as bf16. `where` is for messages. Throws Error io, unsupported.
Tensor parse_npy(std::string_view bytes, const std::string& where, std::shared_ptr<const void> owner);
Tensor read_npy(const std::string& path);
/// Throws Error unsupported for strings and types narrower than a byte.
std::string npy_bytes(const Tensor& tensor);
void write_npy(const std::string& path, const Tensor& tensor);

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
