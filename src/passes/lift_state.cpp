// Makes state explicit: variables and random states become params of @main and results that update them, also through
// regions, so that later passes see values only. Variables that are local to a run become values passed from write to
// read.
#include <algorithm>
#include <map>
#include <set>

#include "passes/passes.h"

#include "ir/control.h"

namespace cairn {

namespace {

using Index = size_t;  // number of a variable in Lifter::variables_

struct Variable {
  std::string name;
  Type type;
  bool written = false;
  bool local = false;  // lives within a run: neither input nor result
};

bool is_handle(const Value* value) { return value->type.kind == Type::Kind::resource; }

class Lifter {
 public:
  Lifter(Module& module, Function& function) : module_(module), function_(function) {}

  size_t run() {
    Block& body = function_.body;
    for (auto& param : body.params) {
      if (!is_handle(param.get())) continue;
      auto content = std::make_unique<Value>(*param);  // replaces the handle among the params
      content->type = param->type.elements.empty() ? Type::token() : param->type.elements[0];
      handles_[param.get()] = variables_.size();
      variables_.push_back({content->name, content->type});
      contents_.push_back(content.get());
      std::swap(param, content);
      gone_params_.push_back(std::move(content));
    }
    find_variables(body);
    if (variables_.empty()) return 0;
    block(body, contents_);
    if (std::any_of(body.results.begin(), body.results.end(), is_handle))
      fail(ErrorKind::unsupported, "", "a result of the model is a variable, not its value");
    for (Index i = 0; i < variables_.size(); ++i) {
      if (!variables_[i].written || variables_[i].local) continue;
      function_.updates.emplace_back(body.results.size(), contents_[i]->index);
      body.results.push_back(final_[i]);
      function_.result_names.push_back(variables_[i].name);
    }
    return changes_;
  }

 private:
  using Contents = std::vector<Value*>;  // the current content of each variable

  [[noreturn]] void refuse(const Node& node, const char* why) const {
    fail(ErrorKind::unsupported, where(module_, node), "{}: {}", node.op->name, why);
  }

  static bool is_local(const Node& node) {
    return node.op->has(kNotFoldable) && node.results.size() == 1 && is_handle(node.result()) &&
           node.inputs.size() == 1 && !is_handle(node.inputs[0]);
  }

  // Every `variable` node, also in regions, is a handle of the variable with its name.
  void find_variables(Block& body) {
    std::map<std::string, Index> by_name;
    std::set<std::string> names;
    for (const auto& param : body.params) names.insert(param->name);
    for_each_block(body, [&](Block& block) {
      for (const auto& node : block.nodes) {
        if (is_local(*node)) {
          handles_[node->result()] = variables_.size();
          variables_.push_back({node->result()->name, node->inputs[0]->type, false, true});
          contents_.push_back(nullptr);  // set when its node is reached
        }
        if (!node->op->has(kNotFoldable) || node->results.size() != 1 || !is_handle(node->result()) ||
            !node->inputs.empty())
          continue;
        const std::string& name = node->attr().text("name");
        auto [entry, fresh] = by_name.try_emplace(name, variables_.size());
        if (fresh) {
          std::string unique = name;
          while (!names.insert(unique).second) unique += "/variable";
          variables_.push_back({name, node->result()->type.elements[0]});
          contents_.push_back(body.add_param(variables_.back().type, unique));
        }
        handles_[node->result()] = entry->second;
      }
    });
  }

  struct Touched {
    std::set<Index> read, written;
    std::set<Index> made;  // local variables created in the region
  };

  // Propagates handles to the regions' params and collects which variables the regions read and write.
  void enter(Node& node, size_t first, Touched& touched) {
    for (auto& region : node.regions) {
      for (size_t i = 0; i < region->params.size(); ++i)
        if (auto found = handles_.find(node.inputs[first + i]); found != handles_.end())
          handles_[region->params[i].get()] = found->second;
      for (auto& inner : region->nodes) {
        pass_on(*inner);
        if (is_local(*inner)) touched.made.insert(handles_.at(inner->result()));
        if (inner->op->has(kReadsState | kWritesState) && !inner->inputs.empty() && handles_.count(inner->inputs[0]))
          (inner->op->has(kWritesState) ? touched.written : touched.read).insert(handles_.at(inner->inputs[0]));
        if (!inner->regions.empty()) enter(*inner, first_region_input(*inner), touched);
      }
    }
  }

  // Propagates a handle through an op that returns it.
  void pass_on(const Node& node) {
    if (node.inputs.size() == 1 && node.results.size() == 1 && is_handle(node.result()) &&
        handles_.count(node.inputs[0]))
      handles_[node.result()] = handles_.at(node.inputs[0]);
  }

  void block(Block& block, Contents contents) {
    std::vector<std::unique_ptr<Node>> nodes;
    for (auto& owned : block.nodes) {
      Node& node = *owned;
      for (Value*& input : node.inputs) input = current(input);
      bool uses_handle =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value* input) { return handles_.count(input) != 0; });
      if (!node.regions.empty()) {
        regions(node, contents);
      } else if (uses_handle || (node.results.size() == 1 && handles_.count(node.result()))) {
        lift(node, contents);
        gone_.push_back(std::move(owned));
        ++changes_;
        continue;
      }
      nodes.push_back(std::move(owned));
    }
    block.nodes = std::move(nodes);
    for (Value*& result : block.results) result = current(result);
    final_ = std::move(contents);
  }

  void lift(Node& node, Contents& contents) {
    for (SourceId id : node.sources) module_.removed.emplace(id, Removal::identity);
    pass_on(node);
    if (is_local(node)) {
      contents[handles_.at(node.result())] = node.inputs[0];
    } else if (node.op->has(kReadsState) && !node.op->has(kWritesState) && node.results.size() == 1) {
      replaced_[node.result()] = contents[handles_.at(node.inputs[0])];
    } else if (node.op->has(kWritesState) && node.inputs.size() == 2 && node.results.empty()) {
      Index variable = handles_.at(node.inputs[0]);
      contents[variable] = node.inputs[1];
      variables_[variable].written = true;
    } else if (node.results.size() != 1 || !handles_.count(node.result())) {
      refuse(node, "a variable is used in a way that cannot be lifted");
    }
  }

  // Removes handles from the inputs of a node with regions; adds the contents of the variables that the regions read or
  // write as inputs, and those of written ones as results.
  void regions(Node& node, Contents& contents) {
    const bool loop = is_loop(node);
    const size_t first = first_region_input(node), carried = carried_count(node);
    Touched touched;
    enter(node, first, touched);
    for (Index i : touched.made) {
      touched.read.erase(i);
      touched.written.erase(i);
    }
    for (Index i : touched.written) {
      touched.read.erase(i);
      variables_[i].written = true;
    }
    std::vector<Value*> inputs(node.inputs.begin(), node.inputs.begin() + static_cast<long>(first));
    std::vector<size_t> kept;  // old indices of the remaining values in their new order: carried ones first
    for (size_t i = 0; i < node.inputs.size() - first; ++i)
      if (!handles_.count(node.inputs[first + i])) kept.push_back(i);
    auto invariant = std::find_if(kept.begin(), kept.end(), [&](size_t i) { return i >= carried; });
    std::vector<size_t> before(kept.begin(), loop ? invariant : kept.end()),
        after(loop ? invariant : kept.end(), kept.end());
    for (size_t i : before) inputs.push_back(node.inputs[first + i]);
    for (Index i : touched.written) inputs.push_back(contents[i]);
    for (size_t i : after) inputs.push_back(node.inputs[first + i]);
    for (Index i : touched.read) inputs.push_back(contents[i]);
    for (size_t r = 0; r < node.regions.size(); ++r)
      region(node, *node.regions[r], before, after, touched, contents, loop && r == 0);
    std::swap(node.inputs, inputs);
    results(node, before.size(), loop ? std::span<Value* const>(inputs) : std::span<Value* const>(), touched, contents);
  }

  void region(Node& node, Block& body, const std::vector<size_t>& before, const std::vector<size_t>& after,
              const Touched& touched, const Contents& outside, bool condition) {
    Contents contents(outside.size(), nullptr);
    std::vector<std::unique_ptr<Value>> params;
    auto old = std::move(body.params);
    body.params.clear();
    auto keep = [&](size_t i) {
      old[i]->index = static_cast<uint32_t>(body.params.size());
      body.params.push_back(std::move(old[i]));
    };
    for (size_t i : before) keep(i);
    for (Index i : touched.written) contents[i] = body.add_param(variables_[i].type, "");
    for (size_t i : after) keep(i);
    for (Index i : touched.read) contents[i] = body.add_param(variables_[i].type, "");
    for (auto& param : old)
      if (param) gone_params_.push_back(std::move(param));
    block(body, contents);
    if (condition) {
      for (Index i : touched.written)
        if (final_[i] != contents[i]) refuse(node, "the condition of a loop writes a variable");
      return;
    }
    std::erase_if(body.results, [&](Value* result) { return handles_.count(result) != 0; });
    for (Index i : touched.written) body.results.push_back(final_[i]);
  }

  // Replaces the node's results. A handle carried by a loop is unchanged by it and is no longer a result.
  void results(Node& node, size_t carried, std::span<Value* const> loop_inputs, const Touched& touched,
               Contents& contents) {
    const bool loop = !loop_inputs.empty();
    std::vector<std::unique_ptr<Value>> kept;
    for (auto& result : node.results) {
      if (!is_handle(result.get())) {
        result->index = static_cast<uint32_t>(kept.size());
        kept.push_back(std::move(result));
      } else if (loop) {
        if (Value* from = loop_inputs[result->index]; handles_.count(from)) handles_[result.get()] = handles_.at(from);
        gone_params_.push_back(std::move(result));
      } else {
        refuse(node, "a branch yields a variable");
      }
    }
    for (Index i : touched.written) {
      auto value = std::make_unique<Value>();
      value->type = variables_[i].type;
      value->producer = &node;
      value->index = static_cast<uint32_t>(kept.size());
      value->name = variables_[i].name;
      contents[i] = value.get();
      kept.push_back(std::move(value));
    }
    node.results = std::move(kept);
    if (loop) node.attributes.set(kCarried, static_cast<int64_t>(carried + touched.written.size()));
    ++changes_;
  }

  Value* current(Value* value) const {
    auto found = replaced_.find(value);
    return found == replaced_.end() ? value : found->second;
  }

  Module& module_;
  Function& function_;
  std::vector<Variable> variables_;
  Contents contents_;  // at the start of @main: its params
  Contents final_;     // at the end of the block processed last
  std::unordered_map<const Value*, Index> handles_;
  std::unordered_map<const Value*, Value*> replaced_;
  std::vector<std::unique_ptr<Node>> gone_;  // kept until the end: their values are keys
  std::vector<std::unique_ptr<Value>> gone_params_;
  size_t changes_ = 0;
};

}  // namespace

size_t lift_state(Module& module) {
  Function* main = module.find("main");
  return main ? Lifter(module, *main).run() : 0;
}

}  // namespace cairn
