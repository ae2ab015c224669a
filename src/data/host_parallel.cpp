// Callbacks that run elsewhere, in processes or threads of the caller's, several rows at a time.
#include "data/placing.h"

namespace cairn::data {

namespace {

class HostParallel : public Node {
 public:
  HostParallel(NodePtr child, std::function<std::shared_ptr<HostTeam>(uint64_t)> start, Placing placing,
               std::string name, std::string where)
      : Node(std::move(name), {std::move(child)}, placing.columns, std::move(where)), start_(std::move(start)),
        placing_(std::move(placing)) {}

  std::optional<int64_t> size() const override { return children[0]->size(); }
  CursorPtr open(Run& run, int64_t epoch) const override {
    std::shared_ptr<void>& kept = run.kept(*this);
    if (!kept) kept = start_(run.settings.seed);
    return std::make_unique<Rows>(*this, run, *static_cast<HostTeam*>(kept.get()), epoch);
  }

 private:
  struct Begun {
    Row row;
    std::string origin;
    std::optional<RowKey> key;
  };
  struct Rows : Cursor {
    Rows(const HostParallel& node, Run& run, HostTeam& team, int64_t epoch)
        : node(node), run(run), team(team), from(run, *node.children[0], epoch), epoch(epoch) {}
    ~Rows() override { drop(begun.size()); }
    Lazy next() override {
      while (begun.size() < team.most && begin()) {
      }
      if (begun.empty()) return nullptr;
      Stopwatch stopwatch(run.measure(node));
      Begun oldest = std::move(begun.front());
      begun.pop_front();
      Row values = node.called(run, oldest.origin, [&] { return team.end(); });
      return node.called(run, oldest.origin, [&] {
        return std::make_shared<Ready>(node.placing_.placed(std::move(oldest.row), std::move(values)), oldest.origin,
                                       oldest.key);
      });
    }
    int64_t skip(int64_t count) override {
      const int64_t dropped = std::min<int64_t>(count, std::ssize(begun));
      drop(static_cast<size_t>(dropped));
      const int64_t passed = from.skip(count - dropped);
      at += passed;
      return dropped + passed;
    }
    bool begin() {
      std::optional<Row> row = ended ? std::nullopt : from.next();
      ended = !row;
      if (ended) return false;
      node.called(run, from.origin(), [&] { team.begin(node.placing_.chosen(*row), epoch, at); });
      begun.push_back({std::move(*row), from.origin(), from.key()});
      ++at;
      return true;
    }
    void drop(size_t count) {
      for (; count > 0; --count) {
        team.drop();
        begun.pop_front();
      }
    }
    const HostParallel& node;
    Run& run;
    HostTeam& team;
    Window from;
    std::deque<Begun> begun;
    int64_t epoch, at = 0;
    bool ended = false;
  };

  std::function<std::shared_ptr<HostTeam>(uint64_t)> start_;
  Placing placing_;
};

}  // namespace

NodePtr host_parallel(NodePtr child, std::function<std::shared_ptr<HostTeam>(uint64_t)> start, const Columns& columns,
                      std::string name, std::string where) {
  Placing placing(*child, columns, name);
  return std::make_shared<HostParallel>(std::move(child), std::move(start), std::move(placing), std::move(name),
                                        std::move(where));
}

}  // namespace cairn::data
