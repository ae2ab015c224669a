// Replaces `unique` on the indices of an embedding's gradient by `unique_padded`, whose result is as long as the
// operand, or as the table whose rows it names where that has fewer, if the distinct indices are only used to add up and update
// rows. Then no dims depend on data, and one plan covers the whole training step. The surplus rows are computed but never written. First, `unique` of what is different
// already is dropped.
#include <algorithm>
#include <limits>
#include <unordered_set>

#include "passes/facts.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

/// The values computed from one `unique` node, up to the updates of rows.
class Followers {
 public:
  explicit Followers(const Node& unique) : unique_(unique), rows_{unique.result(0)} {}

  /// Whether the node works with surplus rows; false when their number or content would affect its result.
  bool take(Node& node) {
    const auto known = [&](const Value* value) { return rows_.count(value) || counts_.count(value); };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), known)) return true;
    if (!node.regions.empty() || !node.op->pure() || node.results.size() != 1) return false;
    if (node.is("scatter_reduce") || node.is("scatter_update")) return updates_rows(node);
    if (is_count(node)) {
      counts_.insert(node.result());
      return true;
    }
    if (!is_sum(node) && !is_row_by_row(node) && !names_rows(node)) return false;
    rows_.insert(node.result());
    return true;
  }
  bool reach(const Value* value) const { return rows_.count(value) || counts_.count(value); }
  const std::vector<Node*>& updates() const { return updates_; }
  /// Of the smallest table that is updated: each index is below.
  int64_t rows() const {
    int64_t rows = std::numeric_limits<int64_t>::max();
    for (const Node* update : updates_)
      if (const Shape& table = update->inputs[0]->type.shape; table.ranked && table.dims[0].known())
        rows = std::min(rows, table.dims[0].size);
    return std::max<int64_t>(1, rows);
  }

 private:
  bool is_rows(const Value* value) const { return rows_.count(value) != 0; }
  bool is_integer_rows(const Value* value) const { return is_rows(value) && value->type.dtype.is_integer(); }

  /// Whether the node gives the number of rows: the shape of a vector, or an op that only moves its one element.
  bool is_count(const Node& node) const {
    const Value* x = node.inputs[0];
    if (node.op->has(kShapeOnly)) return is_rows(x) && x->type.shape.rank() == 1;
    const bool moves = node.op->has(kView) || node.is("slice") || node.is("gather") || node.is("cast");
    const auto rest_constant = std::all_of(node.inputs.begin() + 1, node.inputs.end(), constant_of);
    return counts_.count(x) && moves && rest_constant && node.result()->type.is_static() &&
           node.result()->type.dtype.is_integer() && *element_count(node.result()->type.shape.sizes()) == 1;
  }

  /// Whether the node reduces rows of equal index; surplus rows then are neutral elements.
  bool is_sum(const Node& node) const {
    const size_t at = node.is("gather_reduce") ? 2 : 1;  // of the segments
    if ((at == 1 && !node.is("segment_reduce")) || !counts_.count(node.inputs[at + 1])) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (i != at && i != at + 1 && reach(node.inputs[i])) return false;
    const Value* index = node.inputs[at];
    while (index->producer && index->producer->is("cast")) index = index->producer->inputs[0];
    return index == unique_.result(1);
  }

  /// Whether the node is element-wise on rows and on operands that are the same for all rows.
  bool is_row_by_row(const Node& node) const {
    if (!node.op->has(kElementwise)) return false;
    const Type& result = node.result()->type;
    if (!result.shape.ranked || (!result.dtype.is_float() && result.dtype != kBool && !node.is("cast"))) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value* value) {
      const Shape& shape = value->type.shape;
      if (!value->type.is_tensor() || !shape.ranked || counts_.count(value)) return false;
      if (is_rows(value)) return shape.rank() == result.shape.rank();
      return shape.rank() < result.shape.rank() || shape.dims[0] == Dim(1);
    });
  }

  /// Whether the node turns the indices into index vectors, or gathers the rows of a variable that they address (-1
  /// reads the last row).
  bool names_rows(const Node& node) const {
    if (node.is("require_distinct")) return is_integer_rows(node.inputs[0]);
    if (node.is("reshape")) {
      const Tensor* dims = constant_of(node.inputs[1]);
      return is_integer_rows(node.inputs[0]) && dims && dims->as_i64() == std::vector<int64_t>{-1, 1};
    }
    return node.is("gather") && !reach(node.inputs[0]) && is_integer_rows(node.inputs[1]) &&
           node.inputs[1]->type.shape.rank() == 1 && node.attr().integer("axis") == 0;
  }

  bool updates_rows(Node& node) {
    const size_t rank = node.is("scatter_update") ? 2 : 1;
    if (reach(node.inputs[0]) || !is_integer_rows(node.inputs[1]) || node.inputs[1]->type.shape.rank() != rank ||
        !is_rows(node.inputs[2]))
      return false;
    updates_.push_back(&node);
    return true;
  }

  const Node& unique_;
  std::unordered_set<const Value*> rows_, counts_;
  std::vector<Node*> updates_;
};

bool pad(Block& block, Node& unique) {
  const Type& x = unique.inputs[0]->type;
  if (!x.shape.ranked || (x.dtype != kI32 && x.dtype != kI64)) return false;
  Followers followers(unique);
  for (const auto& node : block.nodes)
    if (node.get() != &unique && !followers.take(*node)) return false;
  const auto reached = [&](const Value* result) { return followers.reach(result); };
  if (followers.updates().empty() || std::any_of(block.results.begin(), block.results.end(), reached)) return false;
  unique.op = &op_named("unique_padded");
  if (x.shape.known() && followers.rows() < x.shape.dims[0].size) unique.attributes.set("below", followers.rows());
  for (Node* update : followers.updates()) update->attributes.set("padded", true);
  for (const auto& node : block.nodes)  // a model may use -1, but unique_padded takes no negative elements
    if (node->is("gather") && reached(node->inputs[1])) node->attributes.erase("from_start");
  for (const auto& node : block.nodes)
    if (node->is("require_distinct") && reached(node->inputs[0])) node->op = &op_named("identity");
  return true;
}

bool is_integer_cast(const Node* node) {
  return node && node->is("cast") && node->inputs[0]->type.dtype.is_integer() &&
         node->result()->type.dtype.is_integer();
}

const Value* behind_casts(const Value* value) {
  while (is_integer_cast(value->producer)) value = value->producer->inputs[0];
  return value;
}

/// Behind casts that keep different elements different.
const Value* behind_widening_casts(const Value* value) {
  while (is_integer_cast(value->producer) && value->producer->inputs[0]->type.dtype.size() <= value->type.dtype.size())
    value = value->producer->inputs[0];
  return value;
}

/// The different elements of a vector are different: `unique` gives them as they are, and reductions over its groups, of which
/// each has one member, their operands.
size_t drop_second_unique(Block& block, Module& module) {
  Rewriter rewriter(block, &module);
  std::unordered_map<const Value*, const Value*> groups;  // the places of dropped ones, and the elements
  const auto is_number_of = [](const Value* count, const Value* elements) {
    while (const Node* node = count->producer) {
      if (node->op->has(kShapeOnly)) return node->inputs[0] == elements;
      if (!node->op->has(kView) && !node->is("slice") && !node->is("gather") && !node->is("cast")) return false;
      count = node->inputs[0];
    }
    return false;
  };
  return rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    if (node.is("unique")) {
      Value* x = node.inputs[0];
      const Value* elements = behind_widening_casts(x);
      if (!elements->producer || !elements->producer->is("unique") || elements->index != 0 ||
          !elements->type.dtype.is_integer())
        return std::nullopt;
      rewriter.inherit(node.sources);
      Value* count = rewriter.add("size_of", {x});
      Value *zero = rewriter.constant(Tensor::scalar_i64(0)), *one = rewriter.constant(Tensor::scalar_i64(1));
      Value* places = rewriter.add("iota", {zero, count, one}, {{"dtype", kI64}});
      groups[places] = x;
      return std::vector<Value*>{x, places};
    }
    if (!node.is("segment_reduce")) return std::nullopt;
    const auto group = groups.find(behind_casts(node.inputs[1]));
    if (group == groups.end() || !is_number_of(node.inputs[2], group->second)) return std::nullopt;
    return std::vector<Value*>{node.inputs[0]};
  });
}

}  // namespace

size_t pad_unique(Block& block, Module& module) {
  size_t changes = drop_second_unique(block, module);
  for (const auto& node : block.nodes) {
    for (auto& region : node->regions) changes += pad_unique(*region, module);
    if (node->is("unique") && pad(block, *node)) ++changes;
  }
  if (changes > 0) infer_block(block, &module);
  return changes;
}

}  // namespace cairn
