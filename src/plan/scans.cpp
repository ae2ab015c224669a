#include "plan/scans.h"

#include <algorithm>

#include "ir/control.h"
#include "passes/pipeline.h"
#include "plan/loop_scan.h"

namespace cairn {

namespace {

class ScanMaker {
 public:
  explicit ScanMaker(Block& block) : block_(block), builder_(made_) {}

  size_t run() {
    std::vector<std::unique_ptr<Node>> nodes = std::move(block_.nodes);
    for (auto& node : nodes) visit(std::move(node));
    for (Value*& result : block_.results) result = as_list(current(result));
    block_.nodes = std::move(made_.nodes);
    if (scans_ > 0) trim();
    return scans_;
  }

 private:
  void visit(std::unique_ptr<Node> node) {
    for (Value*& input : node->inputs) input = current(input);
    if (scans_ > 0) {
      infer_again(node);
      fold_node(*node, made_.nodes, size_t{64} << 20);
    }
    const bool late = std::any_of(node->inputs.begin(), node->inputs.end(),
                                  [&](const Value* input) { return late_.contains(input); });
    for (const auto& result : node->results)
      if (late || (result->type.is_tensor() && !result->type.shape.known())) late_.insert(result.get());
    if (!late && (is_loop(*node) ? convert(*node) : follow_list(*node))) {
      gone_.push_back(std::move(node));
      return;
    }
    builder_.sources = node->sources;
    for (Value*& input : node->inputs) input = as_list(input);
    made_.nodes.push_back(std::move(node));
  }

  // Infers the node's types again: scans give dims that are unknown for lists.
  static void infer_again(std::unique_ptr<Node>& node) {
    Block alone;
    alone.nodes.push_back(std::move(node));
    infer_block(alone);
    node = std::move(alone.nodes[0]);
  }

  Value* current(Value* value) const {
    const auto found = replaced_.find(value);
    return found == replaced_.end() ? value : found->second;
  }

  const Rows* rows_of(const Value* list) const {
    const auto found = lists_.find(list);
    return found == lists_.end() ? nullptr : &found->second;
  }

  Value* tensor_of(const Rows& rows) {
    if (rows.same) {
      const Type type = stacked_type(rows.count, rows.same->type);
      if (rows.count == 1) return builder_.add("reshape", {rows.same, builder_.ints(type.shape.sizes())});
      return builder_.add("broadcast_to", {rows.same, builder_.ints(type.shape.sizes())});
    }
    if (rows.tensor->type.shape.dims[0] == Dim(rows.count)) return rows.tensor;
    std::vector<int64_t> begin(rows.tensor->type.shape.rank(), 0), end = rows.tensor->type.shape.sizes();
    end[0] = rows.count;
    return builder_.add("slice", {rows.tensor, builder_.ints(begin), builder_.ints(end)});
  }

  // The value itself; a list that a scan has filled as rows is built as a list if another node uses it.
  Value* as_list(Value* value) {
    if (!unmade_.contains(value)) return value;
    Value*& list = lists_made_[value];
    if (list) return list;
    const Rows& rows = lists_.at(value);
    if (rows.tensor || rows.same) return list = builder_.add("list_unstack", {tensor_of(rows)});
    Value* size = builder_.constant(Tensor::scalar_i64(rows.count));
    return list = builder_.add("list_make", {size}, {{"element", value->type.elements[0]}});
  }

  /// Tracks lists through the node; true if the node is no longer needed.
  bool follow_list(Node& node) {
    const auto number = [&](size_t i) -> std::optional<int64_t> {
      const Tensor* constant = constant_of(node.inputs[i]);
      return constant && constant->count() == 1 ? std::optional(constant->as_i64()[0]) : std::nullopt;
    };
    if (node.is("list_make")) {
      if (const auto size = number(0); size && *size >= 0) lists_[node.result()] = {nullptr, nullptr, *size};
    } else if (node.is("list_unstack")) {
      Value* x = node.inputs[0];
      if (has_rows(x->type)) lists_[node.result()] = {x, nullptr, x->type.shape.dims[0].size};
    }
    const Rows* rows = node.inputs.empty() ? nullptr : rows_of(node.inputs[0]);
    if (rows && node.is("list_set") && rows->count == 1 && number(1) == 0 && !node.attr().boolean("add")) {
      lists_[node.result()] = {nullptr, node.inputs[2], 1};
      unmade_.insert(node.result());
      return true;
    }
    if (!rows || !(rows->tensor || rows->same)) return false;
    builder_.sources = node.sources;
    if (node.is("list_stack")) {
      replaced_[node.result()] = tensor_of(*rows);
      return true;
    }
    if (node.is("list_get") && number(1) && *number(1) >= 0 && *number(1) < rows->count) {
      replaced_[node.result()] =
          rows->same ? rows->same
                     : builder_.add("gather", {rows->tensor, builder_.constant(Tensor::scalar_i64(*number(1)))});
      return true;
    }
    if (node.is("list_resize") && number(1) && *number(1) >= 0 && *number(1) <= rows->count) {
      lists_[node.result()] = {rows->tensor, rows->same, *number(1)};
      unmade_.insert(node.result());
      return true;
    }
    return false;
  }

  bool convert(Node& loop) {
    builder_.sources = loop.sources;
    const size_t before = made_.nodes.size();
    LoopScan work(loop, lists_, numbers_, builder_);
    if (!work.run()) {
      made_.nodes.resize(before);
      return false;
    }
    auto owned = work.scan();
    Node& scan = *owned;
    for (Value*& input : scan.inputs) input = as_list(input);
    made_.nodes.push_back(std::move(owned));
    for (size_t i = 0; i < loop.results.size(); ++i) {
      if (const auto rows = work.rows(scan, i)) {
        lists_[loop.result(i)] = *rows;
        unmade_.insert(loop.result(i));
      } else {
        replaced_[loop.result(i)] = work.value(scan, i);
      }
    }
    work.tell(scan, numbers_);
    ++scans_;
    return true;
  }

  // Dead-code elimination, also inside scans.
  void trim() {
    std::unordered_set<const Value*> used(block_.results.begin(), block_.results.end());
    std::vector<bool> live(block_.nodes.size());
    Effects effects(nullptr);
    for (size_t i = block_.nodes.size(); i-- > 0;) {
      Node& node = *block_.nodes[i];
      live[i] = effects.of(node) || std::any_of(node.results.begin(), node.results.end(),
                                                [&](const auto& result) { return used.contains(result.get()); });
      if (!live[i]) continue;
      if (scan_of(node)) trim_scan(node, used);
      used.insert(node.inputs.begin(), node.inputs.end());
    }
    keep(block_.nodes, live);
  }

  static void trim_scan(Node& node, const std::unordered_set<const Value*>& used) {
    const Scan scan = *scan_of(node);
    Block& body = *node.regions[0];
    std::vector<bool> needed;
    for (const auto& result : node.results) needed.push_back(used.contains(result.get()));
    for (bool changed = true; changed;) {
      changed = false;
      const auto inside = reached_by(body, needed);
      for (size_t i = 0; i < scan.carried; ++i)
        if (!needed[i] && inside.contains(body.params[i].get())) needed[i] = changed = true;
    }
    keep(node.results, needed);
    renumber(node.results);
    keep(body.results, needed);
    remove_dead(body, nullptr);
    const auto inside = used_values(body);
    std::vector<bool> taken;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      taken.push_back(i < scan.carried ? bool{needed[i]} : inside.contains(body.params[i].get()));
    keep(node.inputs, taken);
    keep(body.params, taken);
    renumber(body.params);
    std::vector<bool> rows(taken.begin() + static_cast<int64_t>(scan.carried),
                           taken.begin() + static_cast<int64_t>(scan.carried + scan.scanned));
    const auto scanned = std::count(rows.begin(), rows.end(), true);
    rows.insert(rows.end(), needed.begin() + static_cast<int64_t>(scan.carried), needed.end());
    Scan left{0, static_cast<size_t>(scanned), scan.turns, scan.first, scan.step};
    left.carried =
        static_cast<size_t>(std::count(needed.begin(), needed.begin() + static_cast<int64_t>(scan.carried), true));
    keep(left.first, rows);
    keep(left.step, rows);
    set_scan(node, left);
  }

  /// The values on which side effects and those results depend within an iteration.
  static std::unordered_set<const Value*> reached_by(const Block& body, const std::vector<bool>& results) {
    std::unordered_set<const Value*> reached;
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i]) reached.insert(body.results[i]);
    Effects effects(nullptr);
    for (size_t i = body.nodes.size(); i-- > 0;) {
      const Node& node = *body.nodes[i];
      if (effects.of(node) || std::any_of(node.results.begin(), node.results.end(),
                                          [&](const auto& result) { return reached.contains(result.get()); }))
        reached.insert(node.inputs.begin(), node.inputs.end());
    }
    return reached;
  }

  Block& block_;
  Block made_;
  Builder builder_;
  std::unordered_map<const Value*, Value*> replaced_, lists_made_;
  ListRows lists_;
  std::unordered_set<const Value*> unmade_;  // lists that no node makes
  Numbers numbers_;
  std::unordered_set<const Value*> late_;    // values with dynamic dims, and values computed from such
  std::vector<std::unique_ptr<Node>> gone_;  // their results are keys
  size_t scans_ = 0;
};

}  // namespace

size_t make_scans(Block& block) { return ScanMaker(block).run(); }

}  // namespace cairn
