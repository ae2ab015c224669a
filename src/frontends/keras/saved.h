// What model.save() of Keras writes: an HDF5 file, or a .keras archive of JSON and HDF5.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontends/keras/hdf5.h"

namespace cairn::keras {

using Json = nlohmann::json;

/// The variables of one layer, asked for in the order in which the layer makes them. HDF5 files know them by name,
/// archives by number.
class Weights {
 public:
  Weights(std::shared_ptr<const hdf5::File> file, std::string group, bool numbered)
      : file_(std::move(file)), group_(std::move(group)), numbered_(numbered) {}

  /// Those of a part: the layer of that name in an HDF5 file, the member at `path` in an archive.
  Weights part(const std::string& name, const std::string& path) const;
  /// Throws Error invalid_model when there is none or its dims are others; -1 stands for any size.
  Tensor take(const std::string& name, const std::vector<int64_t>& dims);
  bool numbered() const { return numbered_; }
  /// Whether an archive has that member here.
  bool has(const std::string& path) const { return file_->has(group_ + "/" + path); }

 private:
  std::string path_of(const std::string& name);

  std::shared_ptr<const hdf5::File> file_;
  std::string group_;
  bool numbered_;
  std::vector<std::string> within_;  // parts that the variable's name must have
  int taken_ = 0;
};

/// Where an archive keeps the next of several members, of that class: "dense", "dense_1".
std::string next_place(std::string_view class_name, std::map<std::string, int>& used);

struct Saved {
  std::shared_ptr<ModelBytes> model;
  Json architecture;  // {"class_name": ..., "config": ...}
  std::shared_ptr<const hdf5::File> file;
  bool archive = false;
  bool keras3 = false;

  /// Of a layer of the outermost model: by its name, or in an archive by its place among the layers.
  Weights weights(const std::string& layer, const std::string& place) const;
};

bool looks_like_keras(std::string_view bytes);
/// Throws Error.
Saved read(const std::string& path);

}  // namespace cairn::keras
