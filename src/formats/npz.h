// NumPy's .npz files: tensors by name, in and out.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/zip.h"
#include "ir/tensor.h"

namespace cairn {

/// A zip archive of .npy files.
class NpzFile {
 public:
  /// Throws Error not_found, io for what is not a sound archive.
  static std::shared_ptr<const NpzFile> open(const std::string& path);
  /// Names without ".npy", in the archive's order.
  std::vector<std::string> names() const;
  /// Throws Error not_found, io (a checksum that does not hold), unsupported.
  Tensor read(const std::string& name) const;

 private:
  explicit NpzFile(ZipArchive archive) : archive_(std::move(archive)) {}
  ZipArchive archive_;
};
/// Members are stored, not deflated. Throws Error invalid_argument beyond 4 GiB.
void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace cairn
