#include "autodiff/tapes.h"

#include "autodiff/calls.h"
#include "ir/builder.h"
#include "ir/control.h"

namespace cairn {

namespace {

const OpDef kPush = {.name = "tape_push",
                     .summary = "a mark of differentiation",
                     .inputs = {{"x"}},
                     .attributes = {{"tape", AttrKind::integer}},
                     .results = {}};
const OpDef kPop = {.name = "tape_pop",
                    .summary = "a mark of differentiation",
                    .attributes = {{"tape", AttrKind::integer}},
                    .results = {"y"}};

bool is_mark(const Node& node) { return node.op == &kPush || node.op == &kPop; }
size_t tape_of(const Node& mark) { return static_cast<size_t>(mark.attr().integer("tape")); }

class TapeThreader {
 public:
  TapeThreader(const std::vector<Function*>& parts, const Tapes& tapes) : tapes_(tapes) {
    for (Function* part : parts) parts_[part->name] = {part, {}};
    for (bool changed = true; changed;) {  // fixed point: a function uses the tapes of the functions that it calls
      changed = false;
      for (auto& [name, part] : parts_) {
        const size_t before = part.second.size();
        part.second = used(part.first->body);
        changed = changed || part.second.size() != before;
      }
    }
  }

  void root(Function& function) {
    Block& body = function.body;
    Block start;
    Builder builder(start);
    Current current;
    for (const size_t tape : used(body)) {
      Value* none = builder.constant(Tensor::scalar_i64(0));
      current[tape] = builder.add("list_make", {none}, {{"element", tapes_[tape]}});
    }
    thread(body, current);
    std::move(body.nodes.begin(), body.nodes.end(), std::back_inserter(start.nodes));
    body.nodes = std::move(start.nodes);
  }

  void all_parts() {
    for (auto& [name, part] : parts_) {
      Block& body = part.first->body;
      Current current;
      for (const size_t tape : part.second) current[tape] = append_named_param(body, type(tape), "tape");
      thread(body, current);
      for (const size_t tape : part.second) {
        body.results.push_back(current[tape]);
        part.first->result_names.push_back("tape");
      }
    }
  }

 private:
  using Current = std::map<size_t, Value*>;

  Type type(size_t tape) const { return Type::list(tapes_[tape]); }

  std::set<size_t> used(const Block& block) const {
    std::set<size_t> tapes;
    for (const auto& node : block.nodes) {
      if (is_mark(*node)) tapes.insert(tape_of(*node));
      for (const auto& region : node->regions) tapes.merge(used(*region));
      if (const auto* part = called(*node)) tapes.insert(part->begin(), part->end());
    }
    return tapes;
  }

  const std::set<size_t>* called(const Node& node) const {
    const auto part = is_call(node) ? parts_.find(callee_name(node)) : parts_.end();
    return part == parts_.end() ? nullptr : &part->second.second;
  }

  void thread(Block& block, Current& current) {
    for (auto& node : block.nodes) {
      if (is_mark(*node)) {
        replace_mark(*node, current[tape_of(*node)]);
      } else if (!node->regions.empty()) {
        thread_regions(*node, current);
      } else if (const auto* tapes = called(*node)) {
        for (const size_t tape : *tapes) {
          node->inputs.push_back(current[tape]);
          current[tape] = add_result(*node, type(tape));
        }
      }
    }
  }

  void replace_mark(Node& mark, Value*& list) const {
    const size_t tape = tape_of(mark);
    mark.attributes = {};
    mark.inputs.insert(mark.inputs.begin(), list);
    const bool pops = mark.op == &kPop;
    mark.op = &op_named(pops ? "list_pop" : "list_push");
    list = add_result(mark, type(tape));
    if (pops) std::swap(mark.results[0], mark.results[1]);
    renumber(mark.results);
  }

  void thread_regions(Node& node, Current& current) {
    std::set<size_t> tapes;
    for (const auto& region : node.regions) tapes.merge(used(*region));
    if (tapes.empty()) return;
    std::vector<Value*> lists;
    for (const size_t tape : tapes) lists.push_back(current[tape]);
    const bool loop = is_loop(node);
    const auto inside = loop ? add_carried(node, lists) : add_inputs(node, node.inputs.size(), lists);
    for (size_t r = loop ? 1 : 0; r < node.regions.size(); ++r) {
      Current inner;
      size_t i = 0;
      for (const size_t tape : tapes) inner[tape] = inside[r][i++];
      thread(*node.regions[r], inner);
      for (const size_t tape : tapes) node.regions[r]->results.push_back(inner[tape]);
    }
    for (const size_t tape : tapes) current[tape] = add_result(node, type(tape));
  }

  const Tapes& tapes_;
  std::map<std::string, std::pair<Function*, std::set<size_t>>> parts_;
};

std::unique_ptr<Node> mark(const OpDef& op, size_t tape) {
  auto node = std::make_unique<Node>();
  node->op = &op;
  node->attributes.set("tape", static_cast<int64_t>(tape));
  return node;
}

}  // namespace

std::unique_ptr<Node> push_mark(size_t tape, Value* value) {
  auto node = mark(kPush, tape);
  node->inputs = {value};
  return node;
}

std::unique_ptr<Node> pop_mark(size_t tape, const Type& element) {
  auto node = mark(kPop, tape);
  add_result(*node, element);
  return node;
}

std::vector<std::vector<Value*>> add_inputs(Node& node, size_t place, const std::vector<Value*>& inputs) {
  const size_t first = first_region_input(node);
  node.inputs.insert(node.inputs.begin() + static_cast<long>(place), inputs.begin(), inputs.end());
  std::vector<std::vector<Value*>> params;
  for (auto& region : node.regions) {
    params.emplace_back();
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto param = std::make_unique<Value>();
      param->type = inputs[i]->type;
      params.back().push_back(param.get());
      region->params.insert(region->params.begin() + static_cast<long>(place - first + i), std::move(param));
    }
    renumber(region->params);
  }
  return params;
}

std::vector<std::vector<Value*>> add_carried(Node& loop, const std::vector<Value*>& starts) {
  const size_t place = carried_count(loop);
  loop.attributes.set(kCarried, static_cast<int64_t>(place + starts.size()));
  return add_inputs(loop, place, starts);
}

Value* add_result(Node& node, const Type& type) {
  auto value = std::make_unique<Value>();
  value->type = type;
  value->producer = &node;
  value->index = static_cast<uint32_t>(node.results.size());
  node.results.push_back(std::move(value));
  return node.results.back().get();
}

void thread_tapes(const std::vector<Function*>& roots, const std::vector<Function*>& parts, const Tapes& tapes) {
  TapeThreader threader(parts, tapes);
  threader.all_parts();
  for (Function* root : roots) threader.root(*root);
}

}  // namespace cairn
