#include "autodiff/calls.h"

#include <algorithm>
#include <unordered_set>

#include "ir/builder.h"
#include "ir/control.h"

namespace cairn {

namespace {

// Whether the block calls the function, directly or through other functions.
bool reaches(const Module& module, Block& from, const Function& target, std::unordered_set<const Function*>& seen) {
  bool found = false;
  for_each_block(from, [&](Block& block) {
    for (const auto& node : block.nodes) {
      Function* callee = callee_of(module, *node);
      if (!callee || found) continue;
      found = callee == &target || (seen.insert(callee).second && reaches(module, callee->body, target, seen));
    }
  });
  return found;
}

bool calls_itself(const Module& module, Function& function) {
  std::unordered_set<const Function*> seen;
  return reaches(module, function.body, function, seen);
}

}  // namespace

Function* callee_of(const Module& module, const Node& node) {
  if (!is_call(node)) return nullptr;
  const std::string& name = callee_name(node);
  Function* function = module.find(name);
  if (!function) fail(ErrorKind::invalid_model, where(module, node), "{}: no function @{}", node.op->name, name);
  return function;
}

void inline_plain_calls(const Module& module, Block& block) {
  std::vector<std::unique_ptr<Node>> old = std::move(block.nodes);
  block.nodes.clear();
  for (auto& node : old) {
    for (auto& region : node->regions) inline_plain_calls(module, *region);
    Function* callee = callee_of(module, *node);
    if (!callee || has_backward(*node) || recomputes(*node) || calls_itself(module, *callee)) {
      block.nodes.push_back(std::move(node));
      continue;
    }
    std::unordered_map<const Value*, Value*> map;
    for (size_t i = 0; i < node->inputs.size(); ++i) map[callee->body.params[i].get()] = node->inputs[i];
    Block body;
    for (const auto& each : callee->body.nodes) body.nodes.push_back(clone(*each, map));
    inline_plain_calls(module, body);
    for (auto& each : body.nodes) block.nodes.push_back(std::move(each));
    for (size_t i = 0; i < node->results.size(); ++i) {
      auto identity = std::make_unique<Node>();
      identity->op = &op_named("identity");
      identity->inputs = {map.at(callee->body.results[i])};
      identity->sources = node->sources;
      identity->results.push_back(std::move(node->results[i]));
      identity->result()->producer = identity.get();
      identity->result()->index = 0;
      block.nodes.push_back(std::move(identity));
    }
  }
}

std::string unused_name(const Module& module, const std::string& name) {
  std::string unused = name;
  for (int i = 2; module.find(unused); ++i) unused = fmt::format("{}_{}", name, i);
  return unused;
}

Value* append_named_param(Block& block, const Type& type, const std::string& name) {
  std::string unused = name;
  const auto taken = [&](const auto& param) { return param->name == unused; };
  for (int i = 2; std::any_of(block.params.begin(), block.params.end(), taken); ++i)
    unused = fmt::format("{}_{}", name, i);
  return block.add_param(type, unused);
}

Function& append_copy(Module& module, const Function& function, const std::string& name) {
  auto copy = clone(function);
  copy->name = unused_name(module, name);
  module.functions.push_back(std::move(copy));
  return *module.functions.back();
}

}  // namespace cairn
