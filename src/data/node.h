// A pipeline is a graph of nodes that only describe it. An iterator opens cursors over them, which decide the sequence of rows
// without making any: a row is a Work until a worker, or an operation that must see it, makes it. So shuffling, skipping,
// sharding and resuming cost no decoding, and the number of workers cannot change a bit.
#pragma once

#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <optional>

#include "data/array.h"
#include "data/pool.h"
#include "data/random.h"

namespace cairn::data {

class Node;
using NodePtr = std::shared_ptr<const Node>;

inline constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

/// What an operation did: written by workers; and by the caller, where its rows are handed over.
struct Measure {
  std::atomic<int64_t> rows = 0, busy_ns = 0;
  std::atomic<int64_t> waited_ns = 0;          // for its rows
  std::atomic<int64_t> taken = 0, queued = 0;  // tasks taken, and those finished at that time
};

/// Adds the time of a scope to a measure.
class Stopwatch {
 public:
  explicit Stopwatch(Measure& measure) : measure_(measure), begin_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    measure_.busy_ns.fetch_add((std::chrono::steady_clock::now() - begin_).count(), std::memory_order_relaxed);
    measure_.rows.fetch_add(1, std::memory_order_relaxed);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Measure& measure_;
  std::chrono::steady_clock::time_point begin_;
};

struct Settings {
  uint64_t seed = 0;
  int workers = 2;
  int ahead = 0;  // tasks that may wait to be taken, 0: 2 for each worker at first, more where that helps
  int64_t memory = int64_t{1} << 30;     // bytes of finished rows from which on no more are begun
  std::function<void()> poll = nullptr;  // called while the caller waits; may throw
  std::function<void(const std::string& place)> note = nullptr;  // called while an exception of a callback is handled
  std::function<bool()> interrupts = nullptr;  // whether the exception being handled ends all, as that of Ctrl-C does
};

/// What belongs to one iterator.
class Run {
 public:
  Run(NodePtr root, Settings settings);

  const Settings settings;
  Pool& pool() { return pool_; }
  Measure& measure(const Node& node) { return *operations_.at(&node).measure; }
  /// Numbers of an operation in an epoch. What comes after an operation does not change them.
  Random random(const Node& node, int64_t epoch, int64_t row, uint64_t more = 0) const {
    return {settings.seed, operations_.at(&node).place, static_cast<uint64_t>(epoch), static_cast<uint64_t>(row), more};
  }

  /// What a node keeps from one epoch to the next; null at first. It ends with the run.
  std::shared_ptr<void>& kept(const Node& node) { return operations_.at(&node).kept; }

  struct Told {
    std::string operation, where;
    int64_t rows = 0;
    double busy_s = 0, waited_s = 0;
    double queue = 0;  // its rows or batches that lay ready, on average
    int ahead = 0;     // and how many might
  };
  std::vector<Told> operations() const;  // from the sources on
  void told_ahead(const Node& node, size_t ahead) { operations_.at(&node).ahead = static_cast<int>(ahead); }

  int64_t held = 0, most_held = 0;  // bytes of finished rows

 private:
  struct Operation {
    uint64_t place;
    std::unique_ptr<Measure> measure;
    std::shared_ptr<void> kept;
    int ahead = 0;
  };
  void number(const Node& node);

  NodePtr root_;
  std::map<const Node*, Operation> operations_;
  std::vector<const Node*> order_;
  Pool pool_;  // last: its tasks use what is above
};

/// Which row of which source a row was made of.
struct RowKey {
  uint64_t source;
  int64_t row;
  auto operator<=>(const RowKey&) const = default;
};

/// A row to be made.
class Work {
 public:
  virtual ~Work() = default;
  /// Throws Error whose `where` names file, row and script line.
  virtual Row make(Run& run) const = 0;
  /// Where it comes from: "a/b.jpg, row 7".
  virtual std::string origin() const = 0;
  /// Nothing where the row is made of several, or of what came before it.
  virtual std::optional<RowKey> key() const { return std::nullopt; }
};
using Lazy = std::shared_ptr<const Work>;

/// A row that is there.
class Ready : public Work {
 public:
  Ready(Row row, std::string origin, std::optional<RowKey> key = std::nullopt)
      : row_(std::move(row)), origin_(std::move(origin)), key_(key) {}
  Row make(Run&) const override { return row_; }
  std::string origin() const override { return origin_; }
  std::optional<RowKey> key() const override { return key_; }

 private:
  Row row_;
  std::string origin_;
  std::optional<RowKey> key_;
};

/// One pass over a node, for one thread.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// The next row, or null at the end.
  virtual Lazy next() = 0;
  /// Passes over so many rows, or all that are left; how many.
  virtual int64_t skip(int64_t count);
};
using CursorPtr = std::unique_ptr<Cursor>;

class Node {
 public:
  Node(std::string operation, std::vector<NodePtr> children, std::vector<std::string> columns, std::string where);
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string operation;
  const std::vector<NodePtr> children;
  const std::vector<std::string> columns;
  const std::string where;  // the script's line, or empty

  virtual CursorPtr open(Run& run, int64_t epoch) const = 0;
  /// Rows of a pass, kEndless, or nothing where only a pass tells.
  virtual std::optional<int64_t> size() const = 0;

  /// Calls make() and says in its errors where they arose.
  template <class Make>
  auto guarded(const Work& work, Make&& make) const {
    try {
      return make();
    } catch (const Error& error) {
      if (!error.where().empty()) throw;
      throw Error(error.kind(), place(work.origin()), operation + ": " + error.message());
    }
  }
  /// The same for a call of the caller's, whose own exceptions are noted.
  template <class Make>
  auto called(const Run& run, const std::string& origin, Make&& make) const {
    try {
      return make();
    } catch (const Error& error) {
      if (!error.where().empty()) throw;
      throw Error(error.kind(), place(origin), operation + ": " + error.message());
    } catch (...) {
      if (run.settings.note) run.settings.note(operation + " of " + place(origin));
      throw;
    }
  }
  /// "a/b.jpg, row 7 (train.py:12)"
  std::string place(const std::string& origin) const;
};

/// The places of `names` among the columns of a node. Throws Error invalid_argument.
std::vector<size_t> places_of(const std::vector<std::string>& names, const std::vector<std::string>& columns,
                              const std::string& operation);

/// Rows made ahead by the workers, handed over in order.
class Window {
 public:
  Window(Run& run, const Node& node, int64_t epoch);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Nothing at the end. Throws what making the row threw; the next call goes on with the row after it.
  std::optional<Row> next();
  /// Of the row that next() gave last.
  std::string origin() const;
  std::optional<RowKey> key() const { return last_ ? last_->key() : std::nullopt; }
  int64_t skip(int64_t count);

 private:
  struct Chunk;
  void fill();
  void take(Chunk& chunk);
  Chunk* front();
  void drop();

  Run& run_;
  const Node& node_;
  CursorPtr cursor_;
  std::deque<std::shared_ptr<Chunk>> chunks_;
  size_t ahead_;
  size_t taken_ = 0;       // of the first chunk
  size_t chunk_rows_ = 1;  // rows of a chunk; grows while they take less time than handing them over
  bool ended_ = false;
  Lazy last_;
};

struct Position {
  uint64_t seed = 0;
  int64_t epoch = 0, row = 0;
};

/// Goes through a pipeline, epoch by epoch. One call at a time; the child of a fork goes on by itself where its parent was.
class Iterator {
 public:
  Iterator(NodePtr root, Settings settings, int64_t epoch = 0, int64_t row = 0);
  ~Iterator();
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  /// Nothing at the end of an epoch; the next call begins the next one.
  std::optional<Row> next();
  /// From where an iterator over the same pipeline goes on, with any number of workers.
  Position position() const;
  /// Ends all threads; next() then gives nothing.
  void stop();
  const Node& root() const { return *root_; }
  /// What its operations did; nothing after stop() or before the first row.
  const Run* run() const { return run_.get(); }

 private:
  void begin();
  void leave_parent() const;

  NodePtr root_;
  Settings settings_;
  Position at_;
  mutable int process_ = 0;
  bool stopped_ = false;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Run> run_;
  mutable std::unique_ptr<Window> window_;
};

}  // namespace cairn::data
