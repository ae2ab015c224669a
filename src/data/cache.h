// Rows kept from one epoch to the next.
#pragma once

#include "data/node.h"

namespace cairn::data {

/// Keeps rows in memory up to a number of bytes, and in a file without a name beyond them where it may. Used by several workers
/// at once.
class RowCache {
 public:
  /// `memory`: bytes, 0: any number. `spills`: into the folder for temporary files.
  RowCache(int64_t memory, bool spills) : memory_(memory), spills_(spills) {}
  ~RowCache();
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  /// Rows of several operations lie in regions of their own.
  struct Key {
    uint64_t region;
    RowKey row;
    auto operator<=>(const Key&) const = default;
  };
  std::optional<Row> find(const Key& key);
  void keep(const Key& key, const Row& row);

  struct Stats {
    int64_t rows_in_memory = 0, rows_in_file = 0, bytes = 0, found = 0, made = 0;
  };
  Stats stats();

 private:
  bool write(const Row& row, int64_t& offset);

  const int64_t memory_;
  bool spills_;
  std::mutex mutex_;
  struct Held {
    Row row;              // without data where it lies in the file
    int64_t offset = -1;  // in the file
  };
  std::map<Key, Held> rows_;
  Stats stats_;
  int file_ = -1;
  int64_t file_size_ = 0;
};

/// The rows of `child`, each made once as long as the cache has room. What is random stays as it was first drawn. Rows that are
/// made of several (batches, pairs) are made again.
NodePtr cached(NodePtr child, std::shared_ptr<RowCache> cache, uint64_t region, std::string where);

}  // namespace cairn::data
