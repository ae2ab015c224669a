#include "engine/engine.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "support/memory.h"

namespace cairn {

Uses::Uses(const Block& block) {
  entries_.reserve(2 * block.nodes.size());
  for (const auto& node : block.nodes)
    for (const Value* input : node->inputs) {
      auto& users = entries_[input].users;
      if (users.empty() || users.back() != node.get()) users.push_back(node.get());
    }
  for (const Value* result : block.results) entries_[result].result = true;
}

const std::vector<const Node*>& Uses::users(const Value* value) const {
  static const std::vector<const Node*> kNone;
  auto found = entries_.find(value);
  return found == entries_.end() ? kNone : found->second.users;
}

bool Uses::is_result(const Value* value) const {
  auto found = entries_.find(value);
  return found != entries_.end() && found->second.result;
}

Group make_group(std::vector<const Node*> nodes, const Uses& uses) {
  Group group;
  group.nodes = std::move(nodes);
  std::unordered_set<const Node*> inside(group.nodes.begin(), group.nodes.end());
  std::unordered_set<const Value*> seen;
  for (const Node* node : group.nodes) {
    for (const Value* input : node->inputs)
      if (!inside.count(input->producer) && seen.insert(input).second) group.inputs.push_back(input);
    for (const auto& result : node->results) {
      const auto& users = uses.users(result.get());
      bool outside = uses.is_result(result.get()) ||
                     std::any_of(users.begin(), users.end(), [&](const Node* user) { return !inside.count(user); });
      if (outside) group.outputs.push_back(result.get());
    }
  }
  // A step needs an output to write to even when no node uses it.
  if (group.outputs.empty())
    for (const auto& result : group.nodes.back()->results) group.outputs.push_back(result.get());
  return group;
}

bool is_host_object(const Type& type) { return !type.is_static() || type.dtype.kind == DType::Kind::string; }

namespace {

class HostMemory final : public MemorySpace {
 public:
  const char* name() const override { return "host"; }
  void* allocate(size_t bytes) override {
    require_memory(bytes);
    void* data = std::aligned_alloc(kLineBytes, whole_lines(std::max<size_t>(bytes, 1)));
    if (!data) fail(ErrorKind::out_of_memory, "", "{} bytes cannot be allocated", bytes);
    return data;
  }
  void release(void* data, size_t) override { std::free(data); }
  void copy_in(void* to, const void* from_host, size_t bytes) override { std::memcpy(to, from_host, bytes); }
  void copy_out(void* to_host, const void* from, size_t bytes) override { std::memcpy(to_host, from, bytes); }
  bool is_host() const override { return true; }
};

}  // namespace

MemorySpace& host_memory() {
  static HostMemory memory;
  return memory;
}

Cost cost_of(const Group& group) {
  Cost cost;
  for (const Node* node : group.nodes) {
    std::vector<Type> types;
    std::vector<const Tensor*> constants;
    for (const Value* input : node->inputs) {
      types.push_back(input->type);
      constants.push_back(constant_of(input));
    }
    if (node->op->flops) {
      InferContext context(*node->op, node->attributes, std::move(types), std::move(constants), node->regions);
      cost.flops += node->op->flops(context);
    } else if (node->op->has(kElementwise) && node->result()->type.is_static()) {
      cost.flops += static_cast<double>(*element_count(node->result()->type.shape.sizes()));
    }
  }
  auto add_bytes = [&cost](const Value* value) {
    if (value->type.is_static()) cost.bytes += static_cast<double>(storage_bytes(value->type));
  };
  std::for_each(group.inputs.begin(), group.inputs.end(), add_bytes);
  std::for_each(group.outputs.begin(), group.outputs.end(), add_bytes);
  return cost;
}

}  // namespace cairn
