// HDF5 files as h5py writes them for Keras (HDF5 File Format Specification 3.0): groups, attributes of text, dense
// datasets of numbers. Every offset and length is checked where it is used; features that Keras never uses are refused.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/wire.h"
#include "ir/tensor.h"

namespace cairn::hdf5 {

bool looks_like_hdf5(std::string_view bytes);

class File {
 public:
  /// `bytes` is owned by `model`. Throws Error invalid_model, unsupported; so do all other functions.
  File(std::shared_ptr<ModelBytes> model, std::string_view bytes);

  /// "model_weights/dense/kernel:0"; the empty path is the root.
  bool has(const std::string& path) const { return find(path).has_value(); }
  /// Names in a group, in the file's order (by name).
  std::vector<std::string> children(const std::string& path) const;
  /// The elements of a text attribute; nothing if the object has no attribute of that name.
  std::optional<std::vector<std::string>> texts(const std::string& path, std::string_view attribute) const;
  /// The text of an attribute with one element.
  std::optional<std::string> text(const std::string& path, std::string_view attribute) const;
  Tensor dataset(const std::string& path) const;

 private:
  struct Message {
    uint32_t type;
    std::string_view data;
  };
  using Links = std::map<std::string, uint64_t, std::less<>>;

  class Cursor;
  Cursor at(uint64_t offset, const char* what) const;
  std::vector<Message> messages(uint64_t address) const;
  void read_version1(uint64_t address, std::vector<Message>& to) const;
  void read_version2(uint64_t address, std::vector<Message>& to) const;
  const Links& links(uint64_t address) const;
  void read_tree(uint64_t address, std::string_view names, Links& to, int level, size_t& nodes) const;
  std::string_view heap(uint64_t address) const;
  std::optional<uint64_t> find(const std::string& path) const;
  std::string from_global_heap(uint64_t collection, uint32_t index) const;
  std::vector<std::string> read_texts(Cursor attribute) const;
  [[noreturn]] void damaged(std::string_view what) const;

  std::shared_ptr<ModelBytes> model_;
  std::string_view bytes_;
  uint64_t root_ = 0;
  mutable std::map<uint64_t, Links> links_;  // of groups read so far, by address
};

}  // namespace cairn::hdf5
