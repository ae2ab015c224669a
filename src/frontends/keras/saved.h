// Reads the files of Keras' model.save(): an HDF5 file, or a .keras archive of JSON and HDF5.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontends/keras/hdf5.h"

namespace cairn::keras {

using Json = nlohmann::json;

/// The variables of one layer, read in the order in which the layer creates them. HDF5 files identify them by name,
/// archives by number.
class Weights {
 public:
  Weights(std::shared_ptr<const hdf5::File> file, std::string group, bool numbered)
      : file_(std::move(file)), group_(std::move(group)), numbered_(numbered) {}

  /// The variables of an inner layer: by name in an HDF5 file, by the member `path` in an archive.
  Weights part(const std::string& name, const std::string& path) const;
  /// The next variable. Throws Error invalid_model when there is none or its dims differ; -1 stands for any size.
  Tensor take(const std::string& name, const std::vector<int64_t>& dims);
  bool numbered() const { return numbered_; }
  /// Whether the archive has that member.
  bool has(const std::string& path) const { return file_->has(group_ + "/" + path); }

 private:
  std::string path_of(const std::string& name);

  std::shared_ptr<const hdf5::File> file_;
  std::string group_;
  bool numbered_;
  std::vector<std::string> within_;  // components that the variable's name must contain
  int taken_ = 0;
};

/// The archive member of the next layer of that class: "dense", "dense_1", ...
std::string next_place(std::string_view class_name, std::map<std::string, int>& used);

struct Saved {
  std::shared_ptr<ModelBytes> model;
  Json architecture;  // {"class_name": ..., "config": ...}
  std::shared_ptr<const hdf5::File> file;
  bool archive = false;
  bool keras3 = false;

  /// The weights of a layer of the outermost model: by name, in an archive by position among the layers.
  Weights weights(const std::string& layer, const std::string& place) const;
};

bool looks_like_keras(std::string_view bytes);
/// Throws Error.
Saved read(const std::string& path);

}  // namespace cairn::keras
