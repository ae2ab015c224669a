// One loop on its way to a scan: which lists its turns fill and read row by row, and which sums can wait until it is over.
#pragma once

#include <map>
#include <set>

#include "engine/engine.h"
#include "ir/builder.h"
#include "plan/loop_numbers.h"
#include "plan/scans.h"

namespace cairn {

/// The elements of a list outside of loops.
struct Rows {
  Value* tensor = nullptr;  // whose first `count` rows they are
  Value* same = nullptr;    // or what each of them is; neither: they are unset
  int64_t count = 0;
};

/// Which row of a tensor each turn has.
struct RowOfTurn {
  int64_t first = 0, step = 1;
  friend bool operator==(const RowOfTurn&, const RowOfTurn&) = default;
};

using ListRows = std::unordered_map<const Value*, Rows>;
using Numbers = std::unordered_map<const Value*, Tensor>;

/// Whether elements of the type can be rows of a tensor.
bool has_rows(const Type& type);
Type stacked_type(int64_t rows, const Type& row);
void set_scan(Node& node, const Scan& scan);

/// The body is a copy, whose params keep their places until the scan is put together.
class LoopScan {
 public:
  LoopScan(const Node& loop, const ListRows& lists, const Numbers& numbers, Builder& outside);
  /// False where the loop has to stay.
  bool run();
  std::unique_ptr<Node> scan();
  /// What stands for the loop's result i, behind the scan: a value, or the rows of a list.
  Value* value(const Node& scan, size_t i);
  std::optional<Rows> rows(const Node& scan, size_t i) const;
  /// The integers that are known of the scan's results, and of the loop's.
  void tell(const Node& scan, Numbers& numbers) const;

 private:
  struct Read {
    const Value* made;  // by the body, of this row
    Value* outer;
    RowOfTurn row;
    std::unique_ptr<Value> param = std::make_unique<Value>();
  };
  struct Write {
    Value* inner;
    RowOfTurn row;
    const std::vector<int64_t>* by_turn = nullptr;  // the integers, where they are known
  };
  /// Of a sum: the rows of a tensor around the loop, or what `write` has written.
  struct Operand {
    Value* outer = nullptr;
    size_t write = 0;
  };
  enum class Sum : uint8_t { none, rows, product, axes };
  struct Result {
    std::optional<Rows> list;
    std::optional<size_t> write;  // whose rows the list's are
    Sum sum = Sum::none;
    std::vector<Operand> operands;
    std::vector<int64_t> axes;
    Type type;
  };
  /// Whether the sum of this term over all turns can wait; then the result tells how.
  using TakeSum = bool (LoopScan::*)(const Node& term, Result& result);

  int64_t turns() const { return numbers_->turns(); }
  Value* param(size_t i) const { return body_->params[i].get(); }
  Value* start(size_t i) const { return elements_.contains(i) ? elements_.at(i) : loop_.inputs[i]; }
  size_t position(size_t i) const;
  Value* as(const Shape& shape, Value* x) const;

  void find_lists();
  size_t yields(const Value* value) const;
  void read_numbers(const Value* made);
  bool reads_list(size_t i, const Rows& rows, const Uses& uses);
  bool reads_by(const Node& user, const Rows& rows);
  bool writes_list(size_t i, const Rows& start, const Uses& uses);
  /// A list of one element, which the turns read and set: carried as that element.
  bool is_element(size_t i, const Rows& start, const Uses& uses);
  void find_gathers();
  /// Params of rows in place of what read them, and the types that follow; false where these are not static.
  bool use_rows();
  void set_results();

  /// By turn, of a value of the body as it is now; empty where it is not known.
  std::vector<int64_t> numbers_now(const Value* value) const;
  void take_out_sums(TakeSum take);
  /// The tensor of which each turn has one row that is `inner`, or null.
  const Read* read_whole(const Value* inner) const;
  std::optional<RowOfTurn> order_of(const Value* inner) const;
  Operand stacked(Value* inner, const RowOfTurn& row);
  size_t write_of(Value* inner, const RowOfTurn& row);
  /// Sums into the rows of a tensor, each in a turn of its own.
  bool rows_sum(const Node& term, Result& result);
  /// Of products over the rows that the turns multiply: one product over all of them.
  bool product_sum(const Node& term, Result& result);
  bool axes_sum(const Node& term, Result& result);

  const Node& loop_;
  const ListRows& lists_;
  Builder& outside_;
  size_t carried_;
  std::unique_ptr<Node> copy_;
  Block* body_;
  std::optional<LoopNumbers> numbers_;
  std::vector<Read> reads_;
  std::vector<Write> writes_;
  std::vector<std::pair<const Value*, Value*>> same_;  // made by the body, what it always is
  std::vector<std::pair<Value*, std::unique_ptr<Value>>> captures_;
  std::map<size_t, Value*> elements_;  // by param: what the list of one element starts with
  std::set<size_t> gone_;              // params
  std::vector<size_t> kept_;           // carried values
  std::vector<Value*> next_;           // what each carried value becomes in a turn
  std::vector<Result> results_;
};

}  // namespace cairn
