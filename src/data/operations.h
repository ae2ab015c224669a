// The operations of a pipeline. Those that take a callback run it in the caller's thread, in the order of the rows.
#pragma once

#include <functional>

#include "data/node.h"

namespace cairn::data {

/// A transform of the columns of one row, called by several workers at once.
class Function {
 public:
  virtual ~Function() = default;
  virtual std::string name() const = 0;
  /// Throws Error with an empty `where`.
  virtual void apply(Row& columns, Random& random) const = 0;
  /// One function that does this and then `next`, or null.
  virtual std::shared_ptr<const Function> fused(const Function& /*next*/) const { return nullptr; }
};
using FunctionPtr = std::shared_ptr<const Function>;

/// Which columns an operation takes and what becomes of them. No inputs: the first column; no outputs: the inputs' names; no
/// order: outputs in the place of their inputs, or before all others where their number differs.
struct Columns {
  std::vector<std::string> inputs, outputs, order;
};

NodePtr map(NodePtr child, std::vector<FunctionPtr> functions, const Columns& columns, std::string where);
NodePtr batch(NodePtr child, int64_t size, bool drop_remainder, std::vector<Fill> fills, std::string where);
/// `fills` for each bucket, or none. `length` of the named columns; none: of the first of them, along its first axis.
struct Buckets {
  std::vector<std::string> columns;
  std::vector<int64_t> boundaries, sizes;
  std::function<int64_t(const Row&)> length;
  std::vector<std::vector<Fill>> fills;
  bool drop_remainder = false;
};
NodePtr bucket_batch(NodePtr child, Buckets buckets, std::string where);
/// Drawn from a buffer; `once`: the same order in each epoch.
NodePtr shuffle(NodePtr child, int64_t buffer, bool once, std::string where);
NodePtr repeat(NodePtr child, int64_t count, std::string where);
NodePtr take(NodePtr child, int64_t count, std::string where);
NodePtr skip(NodePtr child, int64_t count, std::string where);
NodePtr zip(std::vector<NodePtr> children, std::string where);
/// Rows of equal columns, one pipeline after the other.
NodePtr concat(std::vector<NodePtr> children, std::string where);
NodePtr rename(NodePtr child, const std::vector<std::string>& from, const std::vector<std::string>& to,
               std::string where);
NodePtr project(NodePtr child, const std::vector<std::string>& columns, std::string where);

/// Callbacks get the row's number and epoch.
using HostMap = std::function<Row(Row columns, int64_t epoch, int64_t row)>;
NodePtr host_map(NodePtr child, HostMap function, const Columns& columns, std::string name, std::string where);
/// Rows made elsewhere, `most` at a time: begin() hands one over, end() waits for it and drop() lets it go, in the order begun.
struct HostTeam {
  std::function<void(Row columns, int64_t epoch, int64_t row)> begin;
  std::function<Row()> end;
  std::function<void()> drop;
  size_t most = 1;
};
/// `start` makes the team of an iterator, which keeps it for all its epochs.
NodePtr host_parallel(NodePtr child, std::function<std::shared_ptr<HostTeam>(uint64_t seed)> start,
                      const Columns& columns, std::string name, std::string where);
using HostPredicate = std::function<bool(Row columns, int64_t epoch, int64_t row)>;
NodePtr host_filter(NodePtr child, HostPredicate predicate, const std::vector<std::string>& inputs, std::string where);
/// What `open` gives takes each row, and at the end nothing; it returns the rows that come out.
using HostGather = std::function<std::vector<Row>(std::optional<Row>)>;
NodePtr host_gather(NodePtr child, std::function<HostGather(int64_t epoch)> open, std::vector<std::string> columns,
                    std::string name, std::string where);
/// What `open` gives returns rows until it has none.
using HostRows = std::function<std::optional<Row>()>;
NodePtr host_rows(std::function<HostRows(int64_t epoch)> open, std::vector<std::string> columns, std::string where);

}  // namespace cairn::data
