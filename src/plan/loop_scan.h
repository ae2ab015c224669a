// The conversion of one loop to a scan: which lists its iterations fill and read row by row, and which sums can be
// computed after the loop.
#pragma once

#include <map>
#include <set>

#include "engine/engine.h"
#include "ir/builder.h"
#include "plan/loop_numbers.h"
#include "plan/scans.h"

namespace cairn {

/// The elements of a list outside of loops, as rows of a tensor.
struct Rows {
  Value* tensor = nullptr;  // the elements are its first `count` rows
  Value* same = nullptr;    // or all elements equal this value; neither: they are unset
  int64_t count = 0;
};

/// The row of a tensor for each iteration: first + step * iteration.
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

/// Works on a copy of the body, whose params keep their indices until the scan is built.
class LoopScan {
 public:
  LoopScan(const Node& loop, const ListRows& lists, const Numbers& numbers, Builder& outside);
  /// Analyses the loop; false if it cannot become a scan.
  bool run();
  std::unique_ptr<Node> scan();
  /// The replacement of the loop's result i after the scan: a value, or the rows of a list.
  Value* value(const Node& scan, size_t i);
  std::optional<Rows> rows(const Node& scan, size_t i) const;
  /// Adds the known integers among the scan's and the loop's results to `numbers`.
  void tell(const Node& scan, Numbers& numbers) const;

 private:
  struct Read {
    const Value* made;  // the body's value that equals this row
    Value* outer;
    RowOfTurn row;
    std::unique_ptr<Value> param = std::make_unique<Value>();
  };
  struct Write {
    Value* inner;
    RowOfTurn row;
    const std::vector<int64_t>* by_turn = nullptr;  // the written integers by iteration, if known
  };
  /// An operand of a sum: the rows of a tensor outside of the loop, or the rows of `write`, cast to these types.
  struct Operand {
    Value* outer = nullptr;
    size_t write = 0;
    std::vector<DType> casts;
  };
  enum class Sum : uint8_t { none, rows, product, axes };
  struct Result {
    std::optional<Rows> list;
    std::optional<size_t> write;  // the write that gives the list's rows
    Sum sum = Sum::none;
    std::vector<Operand> operands;
    std::vector<int64_t> axes;
    Type type;
  };
  /// Whether the sum of this term over all iterations can be computed after the loop; `result` then describes it.
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
  /// Replaces reads of lists by params that are rows, and infers the types again; false if these are not static.
  bool use_rows();
  void set_results();

  /// By turn, of a value of the body as it is now; empty where it is not known.
  std::vector<int64_t> numbers_now(const Value* value) const;
  void take_out_sums(TakeSum take);
  /// The read by which `inner` is one row of a tensor in each iteration, or null.
  const Read* read_whole(const Value* inner) const;
  /// The order in which rows of the value are there already.
  std::optional<RowOfTurn> order_of(const Value* inner) const;
  /// The value that casts make this of, if rows of it are there already, else what widens to it, or the value itself.
  Value* stackable(Value* inner, std::vector<DType>* casts = nullptr) const;
  Operand stacked(Value* inner, const RowOfTurn& row);
  size_t write_of(Value* inner, const RowOfTurn& row);
  /// Sums into rows of a tensor, with another row in each iteration.
  bool rows_sum(const Node& term, Result& result);
  /// Sums of matrix products of rows: one product over the rows of all iterations. Terms and sums that each iteration rounds to 16
  /// bits are summed in f32.
  bool product_sum(const Node& rounded, Result& result);
  bool axes_sum(const Node& rounded, Result& result);

  const Node& loop_;
  const ListRows& lists_;
  Builder& outside_;
  size_t carried_;
  std::unique_ptr<Node> copy_;
  Block* body_;
  std::optional<LoopNumbers> numbers_;
  std::vector<Read> reads_;
  std::vector<Write> writes_;
  std::vector<std::pair<const Value*, Value*>> same_;  // value of the body -> the outer value that it always equals
  std::vector<std::pair<Value*, std::unique_ptr<Value>>> captures_;
  std::map<size_t, Value*> elements_;  // by param: what the list of one element starts with
  std::set<size_t> gone_;              // params
  std::vector<size_t> kept_;           // carried values
  std::vector<Value*> next_;           // what each carried value becomes in a turn
  std::vector<Result> results_;
};

}  // namespace cairn
