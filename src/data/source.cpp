#include "data/source.h"

#include <algorithm>
#include <numeric>

namespace cairn::data {

std::vector<int64_t> Source::labels(const std::string& column) const {
  const size_t place = places_of({column}, columns, operation)[0];
  return labels_of(column, [&](int64_t row) { return read(row)[place]; });
}

std::vector<int64_t> Source::labels_of(const std::string& column, const std::function<Array(int64_t)>& value) const {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count(); ++i) {
    const Array label = value(i);
    const bool known = label.count() == 1 && with_number(label.type.kind, [&](auto zero) {
                         labels.push_back(static_cast<int64_t>(*label.as<decltype(zero)>()));
                       });
    if (!known) fail(ErrorKind::invalid_argument, where, "{}: column '{}' holds no labels", operation, column);
  }
  return labels;
}

uint64_t Source::next_identity() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

std::optional<int64_t> Source::size() const {
  Sampling sampling{this, 0, 0, {0}};
  return std::ssize(sampler_->rows(count(), sampling));
}

namespace {

/// A row of a source that a worker reads.
struct SourceRow : Work {
  SourceRow(const Source& source, int64_t index) : source(source), index(index) {}
  Row make(Run& run) const override {
    Stopwatch stopwatch(run.measure(source));
    return source.guarded(*this, [&] { return source.read(index); });
  }
  std::string origin() const override { return source.origin(index); }
  std::optional<RowKey> key() const override { return RowKey{source.identity(), index}; }
  const Source& source;
  int64_t index;
};

struct SourceRows : Cursor {
  SourceRows(const Source& source, Run& run, std::vector<int64_t> order, bool now)
      : source(source), run(run), order(std::move(order)), now(now) {}
  Lazy next() override {
    if (at == order.size()) return nullptr;
    auto row = std::make_shared<SourceRow>(source, order[at++]);
    if (!now) return row;
    return source.called(run, row->origin(),
                         [&] { return std::make_shared<Ready>(row->make(run), row->origin(), row->key()); });
  }
  int64_t skip(int64_t count) override {
    const int64_t passed = std::min<int64_t>(count, std::ssize(order) - static_cast<int64_t>(at));
    at += static_cast<size_t>(passed);
    return passed;
  }
  const Source& source;
  Run& run;
  std::vector<int64_t> order;
  size_t at = 0;
  bool now;
};

class HostNumbered : public Source {
 public:
  HostNumbered(int64_t count, std::function<Row(int64_t)> read, std::vector<std::string> columns, SamplerPtr sampler,
               std::string where)
      : Source("generator", std::move(columns), std::move(sampler), std::move(where)), count_(count),
        read_(std::move(read)) {}
  int64_t count() const override { return count_; }
  Row read(int64_t index) const override { return read_(index); }

 protected:
  bool in_caller() const override { return true; }

 private:
  int64_t count_;
  std::function<Row(int64_t)> read_;
};

class Chosen : public Source {
 public:
  Chosen(std::shared_ptr<const Source> source, Row padded, int64_t padding, SamplerPtr sampler, std::string where)
      : Source(source->operation, source->columns, std::move(sampler), std::move(where)), source_(std::move(source)),
        padded_(std::move(padded)), padding_(padding) {}
  int64_t count() const override { return source_->count() + padding_; }
  Row read(int64_t index) const override { return index < source_->count() ? source_->read(index) : padded_; }
  std::string origin(int64_t index) const override {
    return index < source_->count() ? source_->origin(index) : "padded row";
  }
  uint64_t identity() const override { return source_->identity(); }
  std::vector<int64_t> labels(const std::string& column) const override {
    return padding_ ? Source::labels(column) : source_->labels(column);
  }

 private:
  std::shared_ptr<const Source> source_;
  Row padded_;
  int64_t padding_;
};

/// A choice among the rows of a pipeline.
class Sampled : public Node {
 public:
  Sampled(NodePtr child, SamplerPtr sampler, std::string where)
      : Node("sampler", {child}, child->columns, std::move(where)), sampler_(std::move(sampler)) {}

  std::optional<int64_t> size() const override {
    const std::optional<int64_t> rows = children[0]->size();
    Sampling sampling{nullptr, 0, 0, {0}};
    return rows && *rows != kEndless ? std::optional(std::ssize(sampler_->rows(*rows, sampling))) : rows;
  }
  CursorPtr open(Run& run, int64_t epoch) const override {
    auto rows = std::make_unique<Rows>();
    CursorPtr from = children[0]->open(run, epoch);
    while (Lazy row = from->next()) rows->all.push_back(std::move(row));
    Sampling sampling{nullptr, epoch, run.settings.seed, run.random(*this, epoch, 0)};
    rows->order = sampler_->rows(std::ssize(rows->all), sampling);
    return rows;
  }

 private:
  struct Rows : Cursor {
    Lazy next() override { return at == order.size() ? nullptr : all[order[at++]]; }
    std::vector<Lazy> all;
    std::vector<int64_t> order;
    size_t at = 0;
  };
  SamplerPtr sampler_;
};

std::vector<int64_t> all_rows(int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

class Sequential : public Sampler {
 public:
  Sequential(int64_t start, int64_t most) : Sampler(most), start_(start) {}
  std::vector<int64_t> order(int64_t count, Sampling&) const override {
    if (start_ > std::max<int64_t>(count - 1, 0))
      fail(ErrorKind::invalid_argument, "", "start_index must be less than the number of rows {}, but got {}", count,
           start_);
    std::vector<int64_t> rows = all_rows(count - std::min(start_, count));
    for (int64_t& row : rows) row += start_;
    return rows;
  }

 private:
  int64_t start_;
};

class Anyhow : public Sampler {
 public:
  Anyhow(bool replacement, int64_t most) : Sampler(most), replacement_(replacement) {}
  std::vector<int64_t> order(int64_t count, Sampling& sampling) const override {
    if (!replacement_) {
      std::vector<int64_t> rows = all_rows(count);
      sampling.random.shuffle(rows);
      return rows;
    }
    std::vector<int64_t> rows(static_cast<size_t>(count == 0 ? 0 : most_ ? most_ : count));
    for (int64_t& row : rows) row = sampling.random.below(count);
    return rows;
  }

 private:
  bool replacement_;
};

class Distributed : public Sampler {
 public:
  Distributed(int64_t shards, int64_t shard, bool shuffle, int64_t offset, int64_t most)
      : Sampler(most), shards_(shards), shard_(shard), shuffle_(shuffle), offset_(offset) {
    if (shards < 1 || shard < 0 || shard >= shards || offset > shards)
      fail(ErrorKind::invalid_argument, "", "shard_id is invalid, shard_id={}, num_shards={}, offset={}", shard, shards,
           offset);
  }
  std::vector<int64_t> order(int64_t count, Sampling& sampling) const override {
    std::vector<int64_t> all = all_rows(count);
    // Every shard must see the same order, wherever its source stands in its pipeline.
    if (shuffle_) Random{sampling.seed, static_cast<uint64_t>(sampling.epoch)}.shuffle(all);
    if (count == 0) return all;
    std::vector<int64_t> rows;
    if (offset_ < 0) {  // all shards get the same number: the last ones begin again
      for (int64_t i = 0; i < (count + shards_ - 1) / shards_; ++i) rows.push_back(all[(shard_ + i * shards_) % count]);
    } else {
      for (int64_t place = shard_ - offset_; place < count; place += shards_)
        if (place >= 0) rows.push_back(all[place]);
    }
    return rows;
  }

 private:
  int64_t shards_, shard_;
  bool shuffle_;
  int64_t offset_;
};

class Classes : public Sampler {
 public:
  Classes(int64_t each, bool shuffle, std::string column, int64_t most)
      : Sampler(most), each_(each), shuffle_(shuffle), column_(std::move(column)) {}
  std::vector<int64_t> order(int64_t, Sampling& sampling) const override {
    std::map<int64_t, std::vector<int64_t>> classes;
    if (!sampling.source) fail(ErrorKind::invalid_argument, "", "classes can be chosen from a source only");
    const std::vector<int64_t> labels = sampling.source->labels(column_);
    for (size_t i = 0; i < labels.size(); ++i) classes[labels[i]].push_back(static_cast<int64_t>(i));
    std::vector<int64_t> rows;
    for (auto& [label, members] : classes) {
      if (shuffle_) sampling.random.shuffle(members);
      if (std::ssize(members) > each_) members.resize(static_cast<size_t>(each_));
      rows.insert(rows.end(), members.begin(), members.end());
    }
    return rows;
  }

 private:
  int64_t each_;
  bool shuffle_;
  std::string column_;
};

class Subset : public Sampler {
 public:
  Subset(std::vector<int64_t> chosen, bool shuffle, int64_t most)
      : Sampler(most), chosen_(std::move(chosen)), shuffle_(shuffle) {}
  std::vector<int64_t> order(int64_t, Sampling& sampling) const override {
    std::vector<int64_t> rows = chosen_;
    if (shuffle_) sampling.random.shuffle(rows);
    return rows;
  }

 private:
  std::vector<int64_t> chosen_;
  bool shuffle_;
};

class Weighted : public Sampler {
 public:
  Weighted(std::vector<double> weights, bool replacement, int64_t most)
      : Sampler(most), weights_(std::move(weights)), replacement_(replacement) {
    double sum = 0;
    for (double weight : weights_) {
      if (!(weight >= 0) || !std::isfinite(weight))
        fail(ErrorKind::invalid_argument, "", "weights must not contain negative numbers, found {}", weight);
      sum += weight;
    }
    if (!(sum > 0)) fail(ErrorKind::invalid_argument, "", "weights must not all be zero");
  }
  std::vector<int64_t> order(int64_t, Sampling& sampling) const override {
    const int64_t wanted = most_ ? most_ : std::ssize(weights_);
    std::vector<int64_t> rows;
    if (replacement_) {
      std::vector<double> sums(weights_.size());
      std::partial_sum(weights_.begin(), weights_.end(), sums.begin());
      while (std::ssize(rows) < wanted) {
        const double drawn = sampling.random.uniform() * sums.back();
        rows.push_back(std::upper_bound(sums.begin(), sums.end(), drawn) - sums.begin());
      }
      return rows;
    }
    // The largest of u^(1/w) come first with the right chances (Efraimidis and Spirakis 2006).
    std::vector<std::pair<double, int64_t>> keys;
    for (size_t i = 0; i < weights_.size(); ++i)
      if (weights_[i] > 0)
        keys.emplace_back(std::log(1 - sampling.random.uniform()) / weights_[i], static_cast<int64_t>(i));
    if (wanted > std::ssize(keys))
      fail(ErrorKind::invalid_argument, "", "{} rows without replacement need as many weights above zero, found {}",
           wanted, keys.size());
    std::sort(keys.rbegin(), keys.rend());
    for (int64_t i = 0; i < wanted; ++i) rows.push_back(keys[i].second);
    return rows;
  }

 private:
  std::vector<double> weights_;
  bool replacement_;
};

class HostOrder : public Sampler {
 public:
  HostOrder(std::function<std::vector<int64_t>(int64_t, int64_t)> order, int64_t most)
      : Sampler(most), order_(std::move(order)) {}
  std::vector<int64_t> order(int64_t count, Sampling& sampling) const override { return order_(count, sampling.epoch); }

 private:
  std::function<std::vector<int64_t>(int64_t, int64_t)> order_;
};

}  // namespace

Row Source::read_checked(int64_t index) const {
  struct Here : Work {
    Here(const Source& source, int64_t row) : source(source), row(row) {}
    Row make(Run&) const override { return source.read(row); }
    std::string origin() const override { return source.origin(row); }
    const Source& source;
    int64_t row;
  };
  return guarded(Here(*this, index), [&] { return read(index); });
}

CursorPtr Source::open(Run& run, int64_t epoch) const {
  Sampling sampling{this, epoch, run.settings.seed, run.random(*this, epoch, 0)};
  return std::make_unique<SourceRows>(*this, run, sampler_->rows(count(), sampling), in_caller());
}

Sampler::Sampler(int64_t most) : most_(most) {
  if (most < 0) fail(ErrorKind::invalid_argument, "", "a sampler chooses 0 rows or more, found {}", most);
}

std::vector<int64_t> Sampler::rows(int64_t count, Sampling& sampling) const {
  std::vector<int64_t> chosen;
  if (child) chosen = child->rows(count, sampling);
  const int64_t available = child ? std::ssize(chosen) : count;
  std::vector<int64_t> rows = order(available, sampling);
  if (most_ && std::ssize(rows) > most_) rows.resize(static_cast<size_t>(most_));
  for (int64_t& row : rows) {
    if (row < 0 || row >= available)
      fail(ErrorKind::invalid_argument, "", "Invalid sample ID: {} is out of bound, expected range [0, {}]", row,
           available - 1);
    if (child) row = chosen[row];
  }
  return rows;
}

std::shared_ptr<Sampler> sequential_sampler(int64_t start, int64_t most) {
  return std::make_shared<Sequential>(start, most);
}
std::shared_ptr<Sampler> random_sampler(bool replacement, int64_t most) {
  return std::make_shared<Anyhow>(replacement, most);
}
std::shared_ptr<Sampler> distributed_sampler(int64_t shards, int64_t shard, bool shuffle, int64_t offset,
                                             int64_t most) {
  return std::make_shared<Distributed>(shards, shard, shuffle, offset, most);
}
std::shared_ptr<Sampler> class_sampler(int64_t each, bool shuffle, std::string column, int64_t most) {
  return std::make_shared<Classes>(each, shuffle, std::move(column), most);
}
std::shared_ptr<Sampler> subset_sampler(std::vector<int64_t> chosen, bool shuffle, int64_t most) {
  return std::make_shared<Subset>(std::move(chosen), shuffle, most);
}
std::shared_ptr<Sampler> weighted_sampler(std::vector<double> weights, bool replacement, int64_t most) {
  return std::make_shared<Weighted>(std::move(weights), replacement, most);
}
std::shared_ptr<Sampler> host_sampler(std::function<std::vector<int64_t>(int64_t, int64_t)> order, int64_t most) {
  return std::make_shared<HostOrder>(std::move(order), most);
}

NodePtr host_numbered(int64_t count, std::function<Row(int64_t)> read, std::vector<std::string> columns,
                      SamplerPtr sampler, std::string where) {
  return std::make_shared<HostNumbered>(count, std::move(read), std::move(columns), std::move(sampler),
                                        std::move(where));
}
NodePtr chosen(std::shared_ptr<const Source> source, Row padded, int64_t padding, SamplerPtr sampler,
               std::string where) {
  if (padding && padded.size() != source->columns.size())
    fail(ErrorKind::invalid_argument, where, "a padded row has {} columns, the source {}", padded.size(),
         source->columns.size());
  return std::make_shared<Chosen>(std::move(source), std::move(padded), padding, std::move(sampler), std::move(where));
}
NodePtr sampled(NodePtr child, SamplerPtr sampler, std::string where) {
  if (child->size() == kEndless)
    fail(ErrorKind::invalid_argument, where, "a sampler chooses from rows that have an end");
  return std::make_shared<Sampled>(std::move(child), std::move(sampler), std::move(where));
}

}  // namespace cairn::data
