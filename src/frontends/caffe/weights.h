// The blobs of a caffemodel file, by the names of their layers.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontends/caffe/net.h"
#include "frontends/wire.h"
#include "ir/tensor.h"

namespace cairn::caffe {

/// Floats of a layer. `bytes` lie in the file, or in what it keeps.
struct Blob {
  std::vector<int64_t> dims;
  std::string_view bytes;
  bool wide = false;  // 64 bits each
};

class Weights {
 public:
  Weights() = default;
  /// Throws Error not_found, io, invalid_model.
  explicit Weights(const std::string& path);

  /// Gives layers that the file lacks the blobs of layers that name their parameters alike.
  void share(const std::vector<Layer>& layers);
  /// Null for a layer that the file does not have.
  const std::vector<Blob>* find(std::string_view layer) const;
  Tensor tensor(const Blob& blob, std::vector<int64_t> dims) const;
  /// Empty: there is no file.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::shared_ptr<ModelBytes> bytes_;
  std::unordered_map<std::string_view, std::vector<Blob>> layers_;
};

}  // namespace cairn::caffe
