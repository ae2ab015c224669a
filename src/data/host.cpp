// Operations and sources that call back: Python's, in the thread that takes the rows.
#include "data/placing.h"

namespace cairn::data {

namespace {

/// A node whose rows are made by a callback in the caller's thread, one for one.
class HostMapped : public Node {
 public:
  HostMapped(NodePtr child, HostMap function, Placing placing, std::string name, std::string where)
      : Node(std::move(name), {std::move(child)}, placing.columns, std::move(where)), function_(std::move(function)),
        placing_(std::move(placing)) {}

  std::optional<int64_t> size() const override { return children[0]->size(); }
  CursorPtr open(Run& run, int64_t epoch) const override { return std::make_unique<Rows>(*this, run, epoch); }

 private:
  struct Rows : Cursor {
    Rows(const HostMapped& node, Run& run, int64_t epoch)
        : node(node), run(run), from(run, *node.children[0], epoch), epoch(epoch) {}
    Lazy next() override {
      std::optional<Row> row = from.next();
      if (!row) return nullptr;
      Stopwatch stopwatch(run.measure(node));
      const std::string origin = from.origin();
      const int64_t number = at++;
      return node.called(run, origin, [&] {
        Row values = node.function_(node.placing_.chosen(*row), epoch, number);
        return std::make_shared<Ready>(node.placing_.placed(std::move(*row), std::move(values)), origin, from.key());
      });
    }
    int64_t skip(int64_t count) override {
      const int64_t passed = from.skip(count);
      at += passed;
      return passed;
    }
    const HostMapped& node;
    Run& run;
    Window from;
    int64_t epoch, at = 0;
  };

  HostMap function_;
  Placing placing_;
};

class HostFiltered : public Node {
 public:
  HostFiltered(NodePtr child, HostPredicate predicate, const std::vector<std::string>& inputs, std::string where)
      : Node("filter", {child}, child->columns, std::move(where)), predicate_(std::move(predicate)),
        places_(places_of(inputs.empty() ? child->columns : inputs, child->columns, "filter")) {}

  std::optional<int64_t> size() const override { return std::nullopt; }
  CursorPtr open(Run& run, int64_t epoch) const override { return std::make_unique<Rows>(*this, run, epoch); }

 private:
  struct Rows : Cursor {
    Rows(const HostFiltered& node, Run& run, int64_t epoch)
        : node(node), run(run), from(run, *node.children[0], epoch), epoch(epoch) {}
    Lazy next() override {
      while (std::optional<Row> row = from.next()) {
        Stopwatch stopwatch(run.measure(node));
        Row chosen;
        for (size_t place : node.places_) chosen.push_back((*row)[place]);
        const int64_t number = at++;
        if (node.called(run, from.origin(), [&] { return node.predicate_(std::move(chosen), epoch, number); }))
          return std::make_shared<Ready>(std::move(*row), from.origin(), from.key());
      }
      return nullptr;
    }
    const HostFiltered& node;
    Run& run;
    Window from;
    int64_t epoch, at = 0;
  };

  HostPredicate predicate_;
  std::vector<size_t> places_;
};

class HostGathered : public Node {
 public:
  HostGathered(NodePtr child, std::function<HostGather(int64_t)> open, std::vector<std::string> columns,
               std::string name, std::string where)
      : Node(std::move(name), {std::move(child)}, std::move(columns), std::move(where)), open_(std::move(open)) {}

  std::optional<int64_t> size() const override { return std::nullopt; }
  CursorPtr open(Run& run, int64_t epoch) const override {
    return std::make_unique<Rows>(*this, run, epoch, open_(epoch));
  }

 private:
  struct Rows : Cursor {
    Rows(const HostGathered& node, Run& run, int64_t epoch, HostGather gather)
        : node(node), run(run), from(run, *node.children[0], epoch), gather(std::move(gather)) {}
    Lazy next() override {
      while (ready.empty() && !ended) {
        std::optional<Row> row = from.next();
        ended = !row;
        Stopwatch stopwatch(run.measure(node));
        auto gathered = [&] { return gather(std::move(row)); };
        for (Row& each : node.called(run, from.origin(), gathered)) ready.push_back(std::move(each));
      }
      if (ready.empty()) return nullptr;
      Row row = std::move(ready.front());
      ready.pop_front();
      return std::make_shared<Ready>(std::move(row), "");
    }
    const HostGathered& node;
    Run& run;
    Window from;
    HostGather gather;
    std::deque<Row> ready;
    bool ended = false;
  };

  std::function<HostGather(int64_t)> open_;
};

class HostSource : public Node {
 public:
  HostSource(std::function<HostRows(int64_t)> open, std::vector<std::string> columns, std::string where)
      : Node("generator", {}, std::move(columns), std::move(where)), open_(std::move(open)) {}

  std::optional<int64_t> size() const override { return std::nullopt; }
  CursorPtr open(Run& run, int64_t epoch) const override { return std::make_unique<Rows>(*this, run, open_(epoch)); }

 private:
  struct Rows : Cursor {
    Rows(const HostSource& node, Run& run, HostRows rows) : node(node), run(run), rows(std::move(rows)) {}
    Lazy next() override {
      Stopwatch stopwatch(run.measure(node));
      const std::string origin = fmt::format("row {}", at++);
      std::optional<Row> row = node.called(run, origin, rows);
      return row ? std::make_shared<Ready>(std::move(*row), origin) : nullptr;
    }
    const HostSource& node;
    Run& run;
    HostRows rows;
    int64_t at = 0;
  };

  std::function<HostRows(int64_t)> open_;
};

}  // namespace

NodePtr host_map(NodePtr child, HostMap function, const Columns& columns, std::string name, std::string where) {
  Placing placing(*child, columns, name);
  return std::make_shared<HostMapped>(std::move(child), std::move(function), std::move(placing), std::move(name),
                                      std::move(where));
}
NodePtr host_filter(NodePtr child, HostPredicate predicate, const std::vector<std::string>& inputs, std::string where) {
  return std::make_shared<HostFiltered>(std::move(child), std::move(predicate), inputs, std::move(where));
}
NodePtr host_gather(NodePtr child, std::function<HostGather(int64_t)> open, std::vector<std::string> columns,
                    std::string name, std::string where) {
  return std::make_shared<HostGathered>(std::move(child), std::move(open), std::move(columns), std::move(name),
                                        std::move(where));
}
NodePtr host_rows(std::function<HostRows(int64_t)> open, std::vector<std::string> columns, std::string where) {
  return std::make_shared<HostSource>(std::move(open), std::move(columns), std::move(where));
}

}  // namespace cairn::data
