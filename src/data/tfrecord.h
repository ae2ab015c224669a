// TFRecord files of tf.train.Example.
#pragma once

#include <map>

#include "data/source.h"

namespace cairn::data {

/// A column that a script told: of what type and shape; text: bytes of any length, u8 from bytes: each byte an element.
struct Feature {
  std::string name;
  std::optional<Kind> kind;
  std::optional<Shape> shape;  // one size may be -1
};

/// No features: all of the first example's, by name. Files may be gzip or zlib. A checksum of 0 counts as not written.
std::shared_ptr<const Source> tfrecord(const std::vector<std::string>& files, std::vector<Feature> features,
                                       SamplerPtr sampler, std::string where);

/// Writes a file anew; it is there when commit() returns.
class TfrecordWriter {
 public:
  explicit TfrecordWriter(const std::string& path);
  ~TfrecordWriter();
  /// One example: texts as bytes, floats as float, all else as int64.
  void write(const std::vector<std::string>& columns, const Row& row);
  void write(std::string_view record);
  void commit();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace cairn::data
