// Sources that give any row by its number, and the samplers that say which rows a pass reads, in which order.
#pragma once

#include "data/node.h"

namespace cairn::data {

class Source;

struct Sampling {
  const Source* source;  // null: rows of an operation
  int64_t epoch;
  uint64_t seed;
  Random random;  // of this source in this epoch
};

/// Chooses rows of `child`'s choice, or of the source.
class Sampler {
 public:
  /// `most`: rows at most, 0: all. Throws Error invalid_argument.
  explicit Sampler(int64_t most = 0);
  virtual ~Sampler() = default;
  std::vector<int64_t> rows(int64_t count, Sampling& sampling) const;

  std::shared_ptr<const Sampler> child;

 protected:
  virtual std::vector<int64_t> order(int64_t count, Sampling& sampling) const = 0;
  const int64_t most_;
};
using SamplerPtr = std::shared_ptr<const Sampler>;

std::shared_ptr<Sampler> sequential_sampler(int64_t start, int64_t most);
std::shared_ptr<Sampler> random_sampler(bool replacement, int64_t most);
/// One of `shards` parts of equal length, disjoint but for the last rows, which begin again at the first. An `offset` of 0 or
/// more moves the first row to that shard.
std::shared_ptr<Sampler> distributed_sampler(int64_t shards, int64_t shard, bool shuffle, int64_t offset, int64_t most);
std::shared_ptr<Sampler> class_sampler(int64_t each, bool shuffle, std::string column, int64_t most);
std::shared_ptr<Sampler> subset_sampler(std::vector<int64_t> chosen, bool shuffle, int64_t most);
std::shared_ptr<Sampler> weighted_sampler(std::vector<double> weights, bool replacement, int64_t most);
/// A sampler of the caller's; called in its thread.
std::shared_ptr<Sampler> host_sampler(std::function<std::vector<int64_t>(int64_t count, int64_t epoch)> order,
                                      int64_t most);

class Source : public Node {
 public:
  Source(std::string operation, std::vector<std::string> columns, SamplerPtr sampler, std::string where)
      : Node(std::move(operation), {}, std::move(columns), std::move(where)), sampler_(std::move(sampler)) {}

  virtual int64_t count() const = 0;
  /// Called by several workers at once. Throws Error.
  virtual Row read(int64_t index) const = 0;
  virtual std::string origin(int64_t index) const { return fmt::format("row {}", index); }
  /// The same, whose faults tell the row's place.
  Row read_checked(int64_t index) const;
  /// A number that no other source has; one that chooses from another has that one's.
  virtual uint64_t identity() const { return identity_; }
  /// The labels of all rows.
  virtual std::vector<int64_t> labels(const std::string& column) const;

  std::optional<int64_t> size() const override;
  CursorPtr open(Run& run, int64_t epoch) const override;

 protected:
  std::vector<int64_t> labels_of(const std::string& column, const std::function<Array(int64_t row)>& value) const;
  /// Whether rows are made in the caller's thread.
  virtual bool in_caller() const { return false; }

 private:
  static uint64_t next_identity();

  SamplerPtr sampler_;
  const uint64_t identity_ = next_identity();
};

/// A column of a table: the bytes of files, or the images in them; or an array for each row; or slice i of `slices`.
struct TableColumn {
  std::string name;
  std::vector<std::string> files;
  bool decode = false;
  std::vector<Array> rows;
  Array slices;
};
NodePtr table(std::string operation, std::vector<TableColumn> columns, SamplerPtr sampler, std::string where);
/// Rows by a callback, in the caller's thread.
NodePtr host_numbered(int64_t count, std::function<Row(int64_t)> read, std::vector<std::string> columns,
                      SamplerPtr sampler, std::string where);
/// Another choice among the rows of a source and `padding` rows after them that are `padded`.
NodePtr chosen(std::shared_ptr<const Source> source, Row padded, int64_t padding, SamplerPtr sampler,
               std::string where);
/// A choice among the rows of a pipeline, which has an end.
NodePtr sampled(NodePtr child, SamplerPtr sampler, std::string where);

/// idx files, also .gz, of images u8 [28, 28, 1] and labels u32: pairs of paths.
NodePtr mnist(const std::vector<std::pair<std::string, std::string>>& files, SamplerPtr sampler, std::string where);
/// CIFAR files, binary (.bin) or Python's pickles (any other name): images u8 [32, 32, 3] and `labels` labels u32.
NodePtr cifar(const std::vector<std::string>& files, int labels, std::vector<std::string> columns, SamplerPtr sampler,
              std::string where);
/// The lines of text files that are not empty.
NodePtr text_files(const std::vector<std::string>& files, SamplerPtr sampler, std::string where);
/// CSV files (RFC 4180) without their first lines where they name columns; an empty cell is its column's default.
struct CsvColumn {
  std::string name;
  Kind kind = Kind::text;  // text, i32, f32 or f64
  std::string otherwise;
};
NodePtr csv_files(const std::vector<std::string>& files, char delimiter, std::vector<CsvColumn> columns, bool header,
                  SamplerPtr sampler, std::string where);
/// The cells of the first line.
std::vector<std::string> csv_header(const std::string& file, char delimiter);

/// A file's bytes, unpacked where they are gzip or zlib; at most `limit` of them. Throws Error.
std::shared_ptr<const std::string> unpacked(std::string_view packed, const std::string& path,
                                            size_t limit = size_t{8} << 30);
std::shared_ptr<const std::string> file_bytes(const std::string& path);

}  // namespace cairn::data
