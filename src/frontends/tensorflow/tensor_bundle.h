// A TensorFlow checkpoint: prefix.index gives the position of each tensor in the prefix.data-* files. Checksums are
// verified when a tensor is read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {

class TensorBundle {
 public:
  struct Extent {
    int64_t start = 0;
    int64_t length = -1;  // -1: all of the dimension
  };
  using Slice = std::vector<Extent>;
  struct Entry {
    DataType dtype = kDtInvalid;
    ShapeProto shape;
    int64_t shard = 0;
    int64_t offset = 0;
    int64_t size = 0;
    uint32_t checksum = 0;      // masked
    std::vector<Slice> slices;  // if the tensor is stored in parts, each an entry of its own
  };

  /// Throws Error.
  explicit TensorBundle(std::string prefix);

  const std::string& prefix() const { return prefix_; }
  /// By tensor name, without the entries of slices.
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;

  /// The tensor, assembled if it is stored in slices; a view of the file if its alignment allows.
  Tensor read(std::string_view name);
  /// The part that a RestoreV2 "shape_and_slice" text such as "20 10 0,5:-" selects; the whole tensor for "".
  Tensor read(std::string_view name, std::string_view shape_and_slice);

 private:
  std::string_view stored_bytes(const std::string& name, const Entry& entry);
  Tensor read_stored(const std::string& name, const Entry& entry);
  Tensor read_strings(const std::string& name, const Entry& entry, std::string_view bytes);
  Tensor assemble(const std::string& name, const Entry& entry);

  std::string prefix_;
  std::shared_ptr<ModelBytes> index_;
  std::vector<std::shared_ptr<ModelBytes>> shards_;  // opened when first read
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, Entry, std::less<>> slice_entries_;
};

}  // namespace cairn::tensorflow
