// MindRecord files: a header in JSON, pages of rows and of blobs, and beside each file an index in SQLite that says where
// rows lie.
#pragma once

#include "data/source.h"

namespace cairn::data {

struct MindColumn {
  std::string name;
  std::string type;  // int32, int64, float32, float64, string, bytes
  std::optional<Shape> shape;

  /// Whether it lies in blob pages.
  bool blob() const { return type == "bytes" || shape; }
};
using MindSchema = std::vector<MindColumn>;

/// Throws Error invalid_argument.
void check_schema(const MindSchema& schema);

/// The files that a header names beside `path`, itself included.
std::vector<std::string> mindrecord_shards(const std::string& path);
/// `columns` of the rows of files of one schema; none: all.
std::shared_ptr<const Source> mindrecord(const std::vector<std::string>& files, std::vector<std::string> columns,
                                         SamplerPtr sampler, std::string where);
MindSchema mindrecord_schema(const std::string& path);

inline constexpr int64_t kMindHeader = 1 << 24, kMindPage = 1 << 25;

/// Writes files of version 3.0. They and their indices are there when commit() returns; until then what lay there before is.
class MindWriter {
 public:
  /// Throws Error invalid_argument.
  MindWriter(std::vector<std::string> files, MindSchema schema, std::vector<std::string> index,
             int64_t header_size = kMindHeader, int64_t page_size = kMindPage);
  ~MindWriter();
  MindWriter(const MindWriter&) = delete;
  MindWriter& operator=(const MindWriter&) = delete;

  /// A row, in the schema's order. Throws Error.
  void write(const Row& row);
  void commit();

 private:
  struct Shard;
  std::vector<std::string> files_;
  MindSchema schema_;
  std::vector<std::string> index_;
  std::vector<std::unique_ptr<Shard>> shards_;
  size_t next_ = 0;
};

/// A schema for rows like this one: texts are strings, other kinds the next larger of the format's types.
MindSchema schema_of(const std::vector<std::string>& columns, const Row& row);

}  // namespace cairn::data
