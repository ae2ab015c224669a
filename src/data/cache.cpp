#include "data/cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "support/fault.h"

namespace cairn::data {

namespace {

/// Bytes of its own: a row that is handed over may lie in its batch's memory, which is the caller's to change.
Array copy_of(const Array& array) {
  Array copy = Array::make(array.type, array.shape);
  std::memcpy(copy.bytes(), array.data, array.size());
  copy.own = false;
  return copy;
}

bool write_all(int file, const Array& array, int64_t offset) {
  size_t done = 0;
  while (done < array.size()) {
    const ssize_t wrote = pwrite(file, array.data + done, array.size() - done, offset + static_cast<int64_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

bool read_all(int file, Array& array, int64_t offset) {
  size_t done = 0;
  while (done < array.size()) {
    const ssize_t got = pread(file, array.bytes() + done, array.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

class Cached : public Node {
 public:
  Cached(NodePtr child, std::shared_ptr<RowCache> cache, uint64_t region, std::string where)
      : Node("cache", {child}, child->columns, std::move(where)), cache_(std::move(cache)), region_(region) {}

  std::optional<int64_t> size() const override { return children[0]->size(); }
  CursorPtr open(Run& run, int64_t epoch) const override {
    return std::make_unique<Rows>(*this, children[0]->open(run, epoch));
  }

 private:
  struct Kept : Work {
    Kept(const Cached& node, Lazy from, RowKey row) : node(node), from(std::move(from)), row(row) {}
    Row make(Run& run) const override {
      const RowCache::Key key{node.region_, row};
      {
        Stopwatch stopwatch(run.measure(node));
        if (std::optional<Row> found = node.cache_->find(key)) return std::move(*found);
      }
      Row made = from->make(run);
      node.cache_->keep(key, made);
      return made;
    }
    std::string origin() const override { return from->origin(); }
    std::optional<RowKey> key() const override { return row; }
    const Cached& node;
    Lazy from;
    RowKey row;
  };
  struct Rows : Cursor {
    Rows(const Cached& node, CursorPtr from) : node(node), from(std::move(from)) {}
    Lazy next() override {
      Lazy work = from->next();
      const std::optional<RowKey> key = work ? work->key() : std::nullopt;
      return key ? std::make_shared<Kept>(node, std::move(work), *key) : work;
    }
    int64_t skip(int64_t count) override { return from->skip(count); }
    const Cached& node;
    CursorPtr from;
  };

  std::shared_ptr<RowCache> cache_;
  uint64_t region_;
};

}  // namespace

RowCache::~RowCache() {
  if (file_ >= 0) ::close(file_);
}

std::optional<Row> RowCache::find(const Key& key) {
  Row row;
  int64_t offset = -1;
  {
    std::lock_guard lock(mutex_);
    auto found = rows_.find(key);
    if (found == rows_.end()) {
      ++stats_.made;
      return std::nullopt;
    }
    row = found->second.row;
    offset = found->second.offset;
    ++stats_.found;
  }
  if (offset < 0) return row;
  for (Array& array : row) {
    Array read = Array::make(array.type, array.shape);
    if (!read_all(file_, read, offset)) fail(ErrorKind::io, "", "cache: its file cannot be read: {}", reason(errno));
    offset += static_cast<int64_t>(read.size());
    array = std::move(read);
  }
  return row;
}

void RowCache::keep(const Key& key, const Row& row) {
  const auto size = static_cast<int64_t>(bytes_of(row));
  bool in_memory = false;
  int64_t offset = -1;
  {
    std::lock_guard lock(mutex_);
    if (rows_.contains(key)) return;
    in_memory = memory_ == 0 || stats_.bytes + size <= memory_;
    if (in_memory)
      stats_.bytes += size;
    else if (!write(row, offset))
      return;
  }
  Held held{{}, offset};
  for (const Array& array : row)
    held.row.push_back(in_memory ? copy_of(array) : Array{array.type, array.shape, {}, {}, false});
  std::lock_guard lock(mutex_);
  if (rows_.emplace(key, std::move(held)).second)
    ++(in_memory ? stats_.rows_in_memory : stats_.rows_in_file);
  else if (in_memory)
    stats_.bytes -= size;
}

/// Where the disk is full, rows that do not fit into memory are made again.
bool RowCache::write(const Row& row, int64_t& offset) {
  if (!spills_) return false;
  if (file_ < 0) {
    const char* folder = std::getenv("TMPDIR");
    file_ = ::open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  }
  offset = file_size_;
  for (const Array& array : row) {
    if (file_ < 0 || !write_all(file_, array, file_size_)) {
      spills_ = false;
      return false;
    }
    file_size_ += static_cast<int64_t>(array.size());
  }
  return true;
}

RowCache::Stats RowCache::stats() {
  std::lock_guard lock(mutex_);
  return stats_;
}

NodePtr cached(NodePtr child, std::shared_ptr<RowCache> cache, uint64_t region, std::string where) {
  return std::make_shared<Cached>(std::move(child), std::move(cache), region, std::move(where));
}

}  // namespace cairn::data
