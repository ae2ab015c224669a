#include "data/operations.h"

#include <algorithm>

#include "data/placing.h"

namespace cairn::data {

namespace {

std::optional<int64_t> times(std::optional<int64_t> size, int64_t factor) {
  if (!size) return size;
  return *size != 0 && (*size == kEndless || *size > kEndless / factor) ? kEndless : *size * factor;
}

class Map : public Node {
 public:
  Map(NodePtr child, std::vector<FunctionPtr> functions, Placing placing, std::string where)
      : Node("map", {std::move(child)}, placing.columns, std::move(where)), placing_(std::move(placing)) {
    for (size_t i = 0; i < functions.size(); ++i) {
      FunctionPtr both = functions_.empty() ? nullptr : functions_.back().second->fused(*functions[i]);
      if (both)
        functions_.back().second = std::move(both);
      else
        functions_.emplace_back(i, std::move(functions[i]));
    }
  }

  std::optional<int64_t> size() const override { return children[0]->size(); }

  CursorPtr open(Run& run, int64_t epoch) const override {
    return std::make_unique<Rows>(*this, children[0]->open(run, epoch), epoch);
  }

 private:
  struct Mapped : Work {
    Mapped(const Map& map, Lazy from, int64_t epoch, int64_t row)
        : map(map), from(std::move(from)), epoch(epoch), row(row) {}
    Row make(Run& run) const override {
      Row columns = from->make(run);
      Stopwatch stopwatch(run.measure(map));
      return map.guarded(*this, [&] {
        Row values = map.placing_.chosen(columns);
        for (const auto& [number, function] : map.functions_) {
          Random random = run.random(map, epoch, row, number);
          try {
            function->apply(values, random);
          } catch (const Error& error) {
            if (!error.where().empty()) throw;
            fail(error.kind(), "", "{}: {}", function->name(), error.message());
          }
        }
        return map.placing_.placed(std::move(columns), std::move(values));
      });
    }
    std::string origin() const override { return from->origin(); }
    std::optional<RowKey> key() const override { return from->key(); }
    const Map& map;
    Lazy from;
    int64_t epoch, row;
  };
  struct Rows : Cursor {
    Rows(const Map& map, CursorPtr from, int64_t epoch) : map(map), from(std::move(from)), epoch(epoch) {}
    Lazy next() override {
      Lazy work = from->next();
      return work ? std::make_shared<Mapped>(map, std::move(work), epoch, row++) : nullptr;
    }
    int64_t skip(int64_t count) override {
      const int64_t passed = from->skip(count);
      row += passed;
      return passed;
    }
    const Map& map;
    CursorPtr from;
    int64_t epoch, row = 0;
  };

  std::vector<std::pair<size_t, FunctionPtr>> functions_;  // and their numbers in the script
  Placing placing_;
};

/// A batch, made by one worker.
class Batched : public Work {
 public:
  Batched(const Node& node, std::vector<Lazy> rows, const std::vector<Fill>& fills)
      : node_(node), rows_(std::move(rows)), fills_(fills) {}

  Row make(Run& run) const override {
    std::vector<std::vector<Array>> columns(node_.columns.size());
    std::optional<std::pair<size_t, Array>> whole;  // the one large column, and its batch
    for (const Lazy& each : rows_) {
      const size_t number = columns[0].size();
      Row row;
      {
        std::optional<Slot> slot;
        if (whole) slot.emplace(place_of(whole->second, number));
        row = each->make(run);
      }
      if (number == 0 && rows_.size() > 1) whole = large_column(row);
      for (size_t i = 0; i < columns.size(); ++i) columns[i].push_back(std::move(row[i]));
    }
    Stopwatch stopwatch(run.measure(node_));
    return node_.guarded(*this, [&] {
      Row made;
      for (size_t i = 0; i < columns.size(); ++i) {
        for (const Fill& fill : fills_)
          if (fill.column == node_.columns[i]) fill_up(columns[i], fill);
        const bool in_place = whole && whole->first == i && all_like(columns[i]);
        made.push_back(in_place ? completed(std::move(whole->second), columns[i])
                                : stacked(columns[i], node_.columns[i]));
        columns[i].clear();
      }
      return made;
    });
  }
  std::string origin() const override {
    const std::string first = rows_.front()->origin();
    return first.empty() ? "" : "batch from " + first;
  }

 private:
  std::optional<std::pair<size_t, Array>> large_column(const Row& row) const {
    std::optional<size_t> large;
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].size() < kLargeArray) continue;
      if (large || row[i].type.is_text() || !fills_.empty()) return std::nullopt;
      large = i;
    }
    if (!large) return std::nullopt;
    return std::pair(*large, for_rows(row[*large], rows_.size()));
  }
  static bool all_like(const std::vector<Array>& values) {
    return std::all_of(values.begin(), values.end(), [&](const Array& value) {
      return value.type == values[0].type && value.shape == values[0].shape;
    });
  }
  /// The batch with the rows that were not made in their places copied there.
  static Array completed(Array batch, const std::vector<Array>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      if (Array place = place_of(batch, i); values[i].data != place.data)
        std::memcpy(place.bytes(), values[i].data, values[i].size());
    return batch;
  }

  const Node& node_;
  std::vector<Lazy> rows_;
  const std::vector<Fill>& fills_;
};

class Batch : public Node {
 public:
  Batch(NodePtr child, int64_t size, bool drop, std::vector<Fill> fills, std::string where)
      : Node("batch", {child}, child->columns, std::move(where)), size_(size), drop_(drop), fills_(std::move(fills)) {}

  std::optional<int64_t> size() const override {
    std::optional<int64_t> rows = children[0]->size();
    if (!rows || *rows == kEndless) return rows;
    return drop_ ? *rows / size_ : (*rows + size_ - 1) / size_;
  }
  CursorPtr open(Run& run, int64_t epoch) const override {
    return std::make_unique<Rows>(*this, children[0]->open(run, epoch));
  }

 private:
  struct Rows : Cursor {
    Rows(const Batch& batch, CursorPtr from) : batch(batch), from(std::move(from)) {}
    Lazy next() override {
      std::vector<Lazy> rows;
      while (std::ssize(rows) < batch.size_) {
        Lazy row = from->next();
        if (!row) break;
        rows.push_back(std::move(row));
      }
      if (rows.empty() || (batch.drop_ && std::ssize(rows) < batch.size_)) return nullptr;
      return std::make_shared<Batched>(batch, std::move(rows), batch.fills_);
    }
    int64_t skip(int64_t count) override {
      const int64_t rows = from->skip(count > kEndless / batch.size_ ? kEndless : count * batch.size_);
      return batch.drop_ ? rows / batch.size_ : (rows + batch.size_ - 1) / batch.size_;
    }
    const Batch& batch;
    CursorPtr from;
  };

  int64_t size_;
  bool drop_;
  std::vector<Fill> fills_;
};

class BucketBatch : public Node {
 public:
  BucketBatch(NodePtr child, Buckets buckets, std::string where)
      : Node("bucket_batch_by_length", {child}, child->columns, std::move(where)), buckets_(std::move(buckets)),
        places_(places_of(buckets_.columns, child->columns, operation)) {
    if (buckets_.fills.empty()) buckets_.fills.resize(buckets_.sizes.size());
  }

  std::optional<int64_t> size() const override { return std::nullopt; }
  CursorPtr open(Run& run, int64_t epoch) const override { return std::make_unique<Rows>(*this, run, epoch); }

 private:
  struct Rows : Cursor {
    Rows(const BucketBatch& node, Run& run, int64_t epoch)
        : node(node), run(run), from(run, *node.children[0], epoch), pending(node.buckets_.sizes.size()) {}
    Lazy next() override {
      while (std::optional<Row> row = from.next()) {
        const size_t bucket = node.called(run, from.origin(), [&] { return bucket_of(*row); });
        pending[bucket].push_back(std::make_shared<Ready>(std::move(*row), from.origin()));
        if (std::ssize(pending[bucket]) == node.buckets_.sizes[bucket]) return batch(bucket);
      }
      if (node.buckets_.drop_remainder) return nullptr;
      for (; left < pending.size(); ++left)
        if (!pending[left].empty()) return batch(left);
      return nullptr;
    }
    Lazy batch(size_t bucket) {
      return std::make_shared<Batched>(node, std::exchange(pending[bucket], {}), node.buckets_.fills[bucket]);
    }
    size_t bucket_of(const Row& row) const {
      const std::vector<int64_t>& boundaries = node.buckets_.boundaries;
      int64_t length = 0;
      if (node.buckets_.length) {
        Row chosen;
        for (size_t place : node.places_) chosen.push_back(row[place]);
        length = node.buckets_.length(chosen);
      } else if (const Shape& shape = row[node.places_[0]].shape; !shape.empty()) {
        length = shape[0];
      }
      return std::upper_bound(boundaries.begin(), boundaries.end(), length) - boundaries.begin();
    }
    const BucketBatch& node;
    Run& run;
    Window from;
    std::vector<std::vector<Lazy>> pending;
    size_t left = 0;
  };

  Buckets buckets_;
  std::vector<size_t> places_;
};

class Shuffle : public Node {
 public:
  Shuffle(NodePtr child, int64_t buffer, bool once, std::string where)
      : Node("shuffle", {child}, child->columns, std::move(where)), buffer_(buffer), once_(once) {}

  std::optional<int64_t> size() const override { return children[0]->size(); }
  CursorPtr open(Run& run, int64_t epoch) const override {
    return std::make_unique<Rows>(buffer_, children[0]->open(run, epoch), run.random(*this, once_ ? 0 : epoch, 0));
  }

 private:
  struct Rows : Cursor {
    Rows(int64_t buffer, CursorPtr from, Random random) : buffer(buffer), from(std::move(from)), random(random) {}
    Lazy next() override {
      while (!ended && std::ssize(held) < buffer) {
        Lazy work = from->next();
        ended = !work;
        if (work) held.push_back(std::move(work));
      }
      if (held.empty()) return nullptr;
      std::swap(held[random.below(std::ssize(held))], held.back());
      Lazy chosen = std::move(held.back());
      held.pop_back();
      return chosen;
    }
    int64_t buffer;
    CursorPtr from;
    Random random;
    std::vector<Lazy> held;
    bool ended = false;
  };

  int64_t buffer_;
  bool once_;
};

class Repeat : public Node {
 public:
  Repeat(NodePtr child, int64_t count, std::string where)
      : Node("repeat", {child}, child->columns, std::move(where)), count_(count) {}

  std::optional<int64_t> size() const override {
    return count_ == kEndless && children[0]->size() ? kEndless : times(children[0]->size(), count_);
  }
  CursorPtr open(Run& run, int64_t epoch) const override { return std::make_unique<Rows>(*this, run, epoch); }

 private:
  struct Rows : Cursor {
    Rows(const Repeat& node, Run& run, int64_t epoch) : node(node), run(run), epoch(epoch) {}
    /// The pass that is gone through, or null after the last.
    Cursor* pass() {
      if (!from && turn < node.count_) {
        const int64_t number = node.count_ == kEndless ? (epoch << 40) + turn : epoch * node.count_ + turn;
        from = node.children[0]->open(run, number);
        ++turn;
        passed = 0;
      }
      return from.get();
    }
    bool end_pass() {  // whether another may follow
      from.reset();
      return passed > 0;
    }
    Lazy next() override {
      while (Cursor* rows = pass()) {
        if (Lazy work = rows->next()) {
          ++passed;
          return work;
        }
        if (!end_pass()) break;
      }
      return nullptr;
    }
    int64_t skip(int64_t count) override {
      int64_t done = 0;
      while (done < count) {
        Cursor* rows = pass();
        if (!rows) break;
        const int64_t step = rows->skip(count - done);
        passed += step;
        done += step;
        if (done < count && !end_pass()) break;
      }
      return done;
    }
    const Repeat& node;
    Run& run;
    int64_t epoch, turn = 0, passed = 0;
    CursorPtr from;
  };

  int64_t count_;
};

/// Rows from `skip` on, at most `take` of them.
class Range : public Node {
 public:
  Range(std::string name, NodePtr child, int64_t skip, int64_t take, std::string where)
      : Node(std::move(name), {child}, child->columns, std::move(where)), skip_(skip), take_(take) {}

  std::optional<int64_t> size() const override {
    std::optional<int64_t> rows = children[0]->size();
    if (!rows) return rows;
    if (*rows != kEndless) rows = std::max<int64_t>(*rows - skip_, 0);
    return std::min(*rows, take_);
  }
  CursorPtr open(Run& run, int64_t epoch) const override {
    return std::make_unique<Rows>(children[0]->open(run, epoch), skip_, take_);
  }

 private:
  struct Rows : Cursor {
    Rows(CursorPtr from, int64_t skip, int64_t take) : from(std::move(from)), before(skip), left(take) {}
    void begin() { from->skip(std::exchange(before, 0)); }
    Lazy next() override {
      if (left == 0) return nullptr;
      begin();
      --left;
      return from->next();
    }
    int64_t skip(int64_t count) override {
      begin();
      const int64_t passed = from->skip(std::min(count, left));
      left -= passed;
      return passed;
    }
    CursorPtr from;
    int64_t before, left;
  };

  int64_t skip_, take_;
};

std::vector<std::string> all_columns(const std::vector<NodePtr>& children) {
  std::vector<std::string> columns;
  for (const NodePtr& child : children) columns.insert(columns.end(), child->columns.begin(), child->columns.end());
  return columns;
}

class Zip : public Node {
 public:
  Zip(std::vector<NodePtr> children, std::string where)
      : Node("zip", children, all_columns(children), std::move(where)) {}

  std::optional<int64_t> size() const override {
    int64_t least = kEndless;
    for (const NodePtr& child : children) {
      if (!child->size()) return std::nullopt;
      least = std::min(least, *child->size());
    }
    return least;
  }
  CursorPtr open(Run& run, int64_t epoch) const override {
    auto rows = std::make_unique<Rows>();
    for (const NodePtr& child : children) rows->from.push_back(child->open(run, epoch));
    return rows;
  }

 private:
  struct Joined : Work {
    Row make(Run& run) const override {
      Row made;
      for (const Lazy& part : parts)
        for (Array& column : part->make(run)) made.push_back(std::move(column));
      return made;
    }
    std::string origin() const override { return parts[0]->origin(); }
    std::vector<Lazy> parts;
  };
  struct Rows : Cursor {
    Lazy next() override {
      auto joined = std::make_shared<Joined>();
      for (const CursorPtr& each : from) {
        Lazy work = each->next();
        if (!work) return nullptr;
        joined->parts.push_back(std::move(work));
      }
      return joined;
    }
    int64_t skip(int64_t count) override {
      int64_t least = count;
      for (const CursorPtr& each : from) least = std::min(least, each->skip(count));
      return least;
    }
    std::vector<CursorPtr> from;
  };
};

class Concat : public Node {
 public:
  Concat(std::vector<NodePtr> children, std::string where)
      : Node("concat", children, children.at(0)->columns, std::move(where)) {
    for (const NodePtr& child : this->children)
      if (child->columns != columns)
        fail(ErrorKind::invalid_argument, this->where, "concat expects the same columns, found [{}] and [{}]",
             fmt::join(columns, ", "), fmt::join(child->columns, ", "));
  }

  std::optional<int64_t> size() const override {
    int64_t sum = 0;
    for (const NodePtr& child : children) {
      if (!child->size()) return std::nullopt;
      sum = *child->size() == kEndless || sum == kEndless ? kEndless : sum + *child->size();
    }
    return sum;
  }
  CursorPtr open(Run& run, int64_t epoch) const override { return std::make_unique<Rows>(*this, run, epoch); }

 private:
  struct Rows : Cursor {
    Rows(const Concat& node, Run& run, int64_t epoch) : node(node), run(run), epoch(epoch) {}
    Cursor* part() {
      if (!from && number < node.children.size()) from = node.children[number++]->open(run, epoch);
      return from.get();
    }
    Lazy next() override {
      while (Cursor* rows = part()) {
        if (Lazy work = rows->next()) return work;
        from.reset();
      }
      return nullptr;
    }
    int64_t skip(int64_t count) override {
      int64_t passed = 0;
      while (passed < count) {
        Cursor* rows = part();
        if (!rows) break;
        passed += rows->skip(count - passed);
        if (passed < count) from.reset();
      }
      return passed;
    }
    const Concat& node;
    Run& run;
    int64_t epoch;
    size_t number = 0;
    CursorPtr from;
  };
};

/// Some columns under other names.
class Project : public Node {
 public:
  Project(std::string name, NodePtr child, std::vector<size_t> places, std::vector<std::string> columns,
          std::string where)
      : Node(std::move(name), {std::move(child)}, std::move(columns), std::move(where)), places_(std::move(places)) {}

  std::optional<int64_t> size() const override { return children[0]->size(); }
  CursorPtr open(Run& run, int64_t epoch) const override {
    return std::make_unique<Rows>(*this, children[0]->open(run, epoch));
  }

 private:
  struct Chosen : Work {
    Chosen(const Project& node, Lazy from) : node(node), from(std::move(from)) {}
    Row make(Run& run) const override {
      const Row row = from->make(run);
      Row made;
      for (size_t place : node.places_) made.push_back(row[place]);
      return made;
    }
    std::string origin() const override { return from->origin(); }
    std::optional<RowKey> key() const override { return from->key(); }
    const Project& node;
    Lazy from;
  };
  struct Rows : Cursor {
    Rows(const Project& node, CursorPtr from) : node(node), from(std::move(from)) {}
    Lazy next() override {
      Lazy work = from->next();
      return work ? std::make_shared<Chosen>(node, std::move(work)) : nullptr;
    }
    int64_t skip(int64_t count) override { return from->skip(count); }
    const Project& node;
    CursorPtr from;
  };

  std::vector<size_t> places_;
};

}  // namespace

NodePtr map(NodePtr child, std::vector<FunctionPtr> functions, const Columns& columns, std::string where) {
  Placing placing(*child, columns, "map");
  return std::make_shared<Map>(std::move(child), std::move(functions), std::move(placing), std::move(where));
}
NodePtr batch(NodePtr child, int64_t size, bool drop_remainder, std::vector<Fill> fills, std::string where) {
  if (size < 1) fail(ErrorKind::invalid_argument, where, "batch: a batch has at least 1 row, found {}", size);
  return std::make_shared<Batch>(std::move(child), size, drop_remainder, std::move(fills), std::move(where));
}
NodePtr bucket_batch(NodePtr child, Buckets buckets, std::string where) {
  if (buckets.sizes.size() != buckets.boundaries.size() + 1 || buckets.columns.empty() ||
      !std::is_sorted(buckets.boundaries.begin(), buckets.boundaries.end()) ||
      std::any_of(buckets.sizes.begin(), buckets.sizes.end(), [](int64_t size) { return size < 1; }))
    fail(ErrorKind::invalid_argument, where,
         "bucket_batch_by_length expects rising boundaries, and one size more than boundaries, each at least 1");
  return std::make_shared<BucketBatch>(std::move(child), std::move(buckets), std::move(where));
}
NodePtr shuffle(NodePtr child, int64_t buffer, bool once, std::string where) {
  if (buffer < 1) fail(ErrorKind::invalid_argument, where, "shuffle: a buffer has at least 1 row, found {}", buffer);
  return std::make_shared<Shuffle>(std::move(child), buffer, once, std::move(where));
}
NodePtr repeat(NodePtr child, int64_t count, std::string where) {
  if (count < 1) fail(ErrorKind::invalid_argument, where, "repeat: the count is at least 1, found {}", count);
  return std::make_shared<Repeat>(std::move(child), count, std::move(where));
}
NodePtr take(NodePtr child, int64_t count, std::string where) {
  if (count < 0) fail(ErrorKind::invalid_argument, where, "take: the count is at least 0, found {}", count);
  return std::make_shared<Range>("take", std::move(child), 0, count, std::move(where));
}
NodePtr skip(NodePtr child, int64_t count, std::string where) {
  if (count < 0) fail(ErrorKind::invalid_argument, where, "skip: the count is at least 0, found {}", count);
  return std::make_shared<Range>("skip", std::move(child), count, kEndless, std::move(where));
}
NodePtr zip(std::vector<NodePtr> children, std::string where) {
  if (children.empty()) fail(ErrorKind::invalid_argument, where, "zip expects at least one pipeline");
  return std::make_shared<Zip>(std::move(children), std::move(where));
}
NodePtr concat(std::vector<NodePtr> children, std::string where) {
  if (children.empty()) fail(ErrorKind::invalid_argument, where, "concat expects at least one pipeline");
  return std::make_shared<Concat>(std::move(children), std::move(where));
}
NodePtr rename(NodePtr child, const std::vector<std::string>& from, const std::vector<std::string>& to,
               std::string where) {
  if (from.size() != to.size())
    fail(ErrorKind::invalid_argument, where, "rename: {} columns get {} names", from.size(), to.size());
  std::vector<std::string> columns = child->columns;
  std::vector<size_t> all(columns.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<size_t> places = places_of(from, child->columns, "rename");
  for (size_t i = 0; i < places.size(); ++i) columns[places[i]] = to[i];
  return std::make_shared<Project>("rename", std::move(child), std::move(all), std::move(columns), std::move(where));
}
NodePtr project(NodePtr child, const std::vector<std::string>& columns, std::string where) {
  std::vector<size_t> places = places_of(columns, child->columns, "project");
  return std::make_shared<Project>("project", std::move(child), std::move(places), columns, std::move(where));
}

}  // namespace cairn::data
