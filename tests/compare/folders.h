// A folder for one test, filled with dump files, and gone afterwards.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/dump_data.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "support/files.h"

namespace cairn::compare {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cairn_compare_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }
  std::string make(const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    return path(name);
  }
  void array(const std::string& name, const std::vector<float>& values, std::vector<int64_t> dims = {}) const {
    if (dims.empty()) dims = {static_cast<int64_t>(values.size())};
    write_npy(make(name), Tensor::of(kF32, dims, values));
  }
  /// Not synced to the disk, unlike write_file: tests write thousands. Nor over the old file, which some file systems
  /// answer by a sync of their own.
  void text(const std::string& name, const std::string& content) const {
    std::filesystem::remove(path(name));
    std::ofstream(make(name), std::ios::binary) << content;
  }

 private:
  std::string path_;
};

/// Values that none of the metrics calls constant.
inline std::vector<float> ramp(size_t count, float start = 1, float step = 0.5f) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = start + step * static_cast<float>(i);
  return values;
}

}  // namespace cairn::compare
