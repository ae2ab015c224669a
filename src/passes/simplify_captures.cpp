// Simplifies the captures of regions: constants move inside, values that a loop does not change are no longer carried,
// and unused captures are dropped.
#include <algorithm>

#include "ir/control.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

class CaptureRules {
 public:
  explicit CaptureRules(Node& node) : node_(node), loop_(is_loop(node)), first_(first_region_input(node)) {
    carried_ = carried_count(node);
  }

  // Stops carrying values that the loop does not change; returns each such result's index with the input that it
  // equals.
  std::vector<std::pair<size_t, Value*>> stop_carrying() {
    std::vector<std::pair<size_t, Value*>> unchanged;
    if (!loop_) return unchanged;
    Block& body = *node_.regions[1];
    std::vector<bool> moves(node_.inputs.size(), false);
    for (size_t i = 0; i < carried_; ++i) {
      if (body.results[i] != body.params[i].get()) continue;
      moves[i] = true;
      unchanged.emplace_back(i, node_.inputs[i]);
    }
    if (unchanged.empty()) return unchanged;
    reorder(node_.inputs, moves);
    for (auto& region : node_.regions) {
      reorder(region->params, moves);
      renumber(region->params);
    }
    moves.flip();
    keep(body.results, moves);
    carried_ -= unchanged.size();
    node_.attributes.set(kCarried, static_cast<int64_t>(carried_));
    return unchanged;
  }

  // Puts copies of the captured constants at the start of each region that uses them; the elements are shared.
  size_t move_constants() {
    size_t changes = 0;
    for (auto& region : node_.regions) {
      auto used = used_values(*region);
      std::unordered_map<const Value*, Value*> copies;
      std::vector<std::unique_ptr<Node>> nodes;
      for (size_t i = carried_; i + first_ < node_.inputs.size(); ++i) {
        const Value* input = node_.inputs[first_ + i];
        if (!constant_of(input) || !used.count(region->params[i].get())) continue;
        std::unordered_map<const Value*, Value*> map;
        nodes.push_back(clone(*input->producer, map));
        copies[region->params[i].get()] = nodes.back()->result();
      }
      if (nodes.empty()) continue;
      changes += nodes.size();
      auto inside = [&](Value*& value) {
        if (auto found = copies.find(value); found != copies.end()) value = found->second;
      };
      for (auto& node : region->nodes) std::for_each(node->inputs.begin(), node->inputs.end(), inside);
      std::for_each(region->results.begin(), region->results.end(), inside);
      std::move(region->nodes.begin(), region->nodes.end(), std::back_inserter(nodes));
      region->nodes = std::move(nodes);
    }
    return changes;
  }

 private:
  // Moves the marked elements behind the carried ones.
  template <class T>
  void reorder(std::vector<T>& list, const std::vector<bool>& moves) {
    std::vector<T> kept, moved;
    for (size_t i = 0; i < list.size(); ++i) (i < carried_ && moves[i] ? moved : kept).push_back(std::move(list[i]));
    kept.insert(kept.end(), std::make_move_iterator(moved.begin()), std::make_move_iterator(moved.end()));
    list = std::move(kept);
  }

  Node& node_;
  bool loop_;
  size_t first_;
  size_t carried_ = 0;
};

// Replaces the loop by one without the unchanged results.
std::optional<std::vector<Value*>> without_results(Node& node, const std::vector<std::pair<size_t, Value*>>& unchanged,
                                                   Rewriter& rewriter) {
  auto loop = std::make_unique<Node>();
  loop->op = node.op;
  loop->inputs = node.inputs;
  loop->attributes = node.attributes;
  loop->regions = std::move(node.regions);
  loop->sources = node.sources;
  std::vector<Value*> values(node.results.size(), nullptr);
  for (auto [i, input] : unchanged) {
    const Type& known = node.result(i)->type;
    bool param = !input->producer && meet(input->type, known) != input->type;  // the type of a param cannot be narrowed
    values[i] = param ? rewriter.add(op_named("identity"), {input}, {}, {known}) : input;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i]) continue;
    auto value = std::make_unique<Value>(*node.result(i));
    value->producer = loop.get();
    value->index = static_cast<uint32_t>(loop->results.size());
    values[i] = value.get();
    loop->results.push_back(std::move(value));
  }
  rewriter.adopt(*loop);
  rewriter.place().push_back(std::move(loop));
  return values;
}

}  // namespace

size_t simplify_captures(Block& block, Module& module) {
  size_t inner = 0;
  Rewriter rewriter(block, &module);
  size_t changes = rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    if (node.regions.size() != 2) return {};
    CaptureRules captures(node);
    auto unchanged = captures.stop_carrying();
    inner += captures.move_constants();
    const std::vector<Value*> dropped = drop_unused_captures(node);
    rewriter.disown(dropped);
    inner += dropped.size();
    for (auto& region : node.regions) inner += simplify_captures(*region, module);
    if (unchanged.empty()) return {};
    return without_results(node, unchanged, rewriter);
  });
  return changes + inner;
}

}  // namespace cairn
