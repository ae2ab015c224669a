// Inlines calls, except of recursive functions, and removes functions that are no longer called.
#include "ir/control.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

// Calls beyond this bound are kept: a chain of functions that each call the next one twice would grow exponentially.
size_t most_new_nodes(size_t nodes) { return 50'000 + 16 * nodes; }
constexpr int kMaxDepth = 1000;  // of nested calls; deeper ones are kept

size_t count_nodes(Block& block) {
  size_t count = 0;
  for_each_block(block, [&](Block& each) { count += each.nodes.size(); });
  return count;
}

class Inliner {
 public:
  explicit Inliner(Module& module) : module_(module) {
    size_t nodes = 0;
    for (const auto& function : module.functions) {
      by_name_[function->name] = function.get();
      nodes += count_nodes(function->body);
    }
    most_ = most_new_nodes(nodes);
  }

  size_t run() {
    Function* main = module_.find("main");
    if (!main) return 0;
    visit(*main, 0);
    drop_uncalled(*main);
    return changes_;
  }

 private:
  enum class State { open, recursive, done };

  // Bottom-up, so that a body is inlined itself before it is copied.
  void visit(Function& function, int depth) {
    states_[&function] = State::open;
    for_each_block(function.body, [&](Block& block) {
      for (const auto& node : block.nodes) {
        Function* callee = callee_of(*node);
        if (!callee) continue;
        if (!states_.count(callee) && depth < kMaxDepth)
          visit(*callee, depth + 1);
        else if (states_[callee] == State::open)
          states_[callee] = State::recursive;
      }
    });
    std::vector<Block*> blocks;
    for_each_block(function.body, [&](Block& block) { blocks.push_back(&block); });
    for (Block* block : blocks) inline_block(*block);
    if (states_[&function] == State::open) states_[&function] = State::done;
    sizes_[&function] = count_nodes(function.body);
  }

  void inline_block(Block& block) {
    Rewriter rewriter(block, &module_);
    changes_ += rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
      Function* callee = callee_of(node);
      if (!callee || states_[callee] != State::done || callee->body.params.size() != node.inputs.size()) return {};
      if (made_ + sizes_[callee] > most_) return {};
      made_ += sizes_[callee];
      rewriter.note(node, Removal::identity);
      return splice(rewriter, callee->body, node, node.inputs);
    });
  }

  Function* callee_of(const Node& node) {
    if (!is_call(node)) return nullptr;
    auto found = by_name_.find(callee_name(node));
    return found == by_name_.end() ? nullptr : found->second;
  }

  void drop_uncalled(Function& main) {
    std::unordered_set<Function*> called{&main};
    std::vector<Function*> open{&main};
    while (!open.empty()) {
      Function* function = open.back();
      open.pop_back();
      for_each_block(function->body, [&](Block& block) {
        for (const auto& node : block.nodes)
          if (Function* callee = callee_of(*node); callee && called.insert(callee).second) open.push_back(callee);
      });
    }
    std::erase_if(module_.functions, [&](const auto& function) { return !called.count(function.get()); });
  }

  Module& module_;
  std::unordered_map<std::string, Function*> by_name_;
  std::unordered_map<const Function*, State> states_;
  std::unordered_map<const Function*, size_t> sizes_;
  size_t made_ = 0, most_ = 0;
  size_t changes_ = 0;
};

}  // namespace

std::vector<Value*> splice(Rewriter& rewriter, const Block& body, const Node& node, std::span<Value* const> arguments) {
  std::unordered_map<const Value*, Value*> map;
  for (size_t i = 0; i < body.params.size(); ++i) map[body.params[i].get()] = arguments[i];
  for (const auto& each : body.nodes) {
    auto copy = clone(*each, map);
    rewriter.adopt(*copy);
    rewriter.place().push_back(std::move(copy));
  }
  std::vector<Value*> values;
  for (size_t i = 0; i < body.results.size(); ++i) {
    Value* value = map.at(body.results[i]);
    const Type& known = node.result(i)->type;
    bool param = !value->producer && meet(value->type, known) != value->type;  // the type of a param cannot be narrowed
    values.push_back(param ? rewriter.add(op_named("identity"), {value}, {}, {known}) : value);
  }
  return values;
}

size_t inline_calls(Module& module) { return Inliner(module).run(); }

}  // namespace cairn
