// Common subexpression elimination: merges nodes with equal op, attributes and inputs, also equal constants.

#include <algorithm>

#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

constexpr size_t kHashedBytes = 4096;  // of a constant; the test for equality compares all bytes

void mix(size_t& hash, size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29); }

size_t hash_bytes(const void* data, size_t size) {
  return std::hash<std::string_view>()({static_cast<const char*>(data), std::min(size, kHashedBytes)});
}

size_t hash_of(const Attribute& attribute) {
  size_t hash = attribute.index();
  auto each = [&](const auto& list) {
    for (const auto& item : list) mix(hash, std::hash<std::decay_t<decltype(item)>>()(item));
  };
  if (auto* tensor = std::get_if<Tensor>(&attribute)) {
    for (int64_t dim : tensor->dims()) mix(hash, static_cast<size_t>(dim));
    if (tensor->dtype().kind != DType::Kind::string)
      mix(hash, hash_bytes(tensor->data(), tensor->bytes()));
    else if (tensor->count() > 0)
      mix(hash, std::hash<std::string>()(tensor->values<std::string>()[0]));
  } else if (auto* integer = std::get_if<int64_t>(&attribute)) {
    mix(hash, static_cast<size_t>(*integer));
  } else if (auto* number = std::get_if<double>(&attribute)) {
    mix(hash, hash_bytes(number, sizeof *number));
  } else if (auto* text = std::get_if<std::string>(&attribute)) {
    mix(hash, std::hash<std::string>()(*text));
  } else if (auto* integers = std::get_if<std::vector<int64_t>>(&attribute)) {
    each(*integers);
  }
  return hash;
}

size_t hash_of(const Node& node) {
  size_t hash = std::hash<const OpDef*>()(node.op);
  for (const Value* input : node.inputs) mix(hash, std::hash<const Value*>()(input));
  for (const AttrDef& def : node.op->attributes)
    if (node.attr().has(def.name)) mix(hash, hash_of(node.attr().get(def.name)));
  return hash;
}

// Compares attributes with defaults filled in, so that an explicit default equals a missing attribute.
bool equal(const Node& a, const Node& b) {
  if (a.op != b.op || a.inputs != b.inputs || a.results.size() != b.results.size()) return false;
  for (const AttrDef& def : a.op->attributes) {
    if (a.attr().has(def.name) != b.attr().has(def.name)) return false;
    if (a.attr().has(def.name) && !same(a.attr().get(def.name), b.attr().get(def.name))) return false;
  }
  return true;
}

bool mergeable(const Node& node) {
  return node.op->pure() && !node.op->has(kControl) && !node.results.empty() && node.results[0]->type.is_tensor();
}

}  // namespace

size_t merge_equal_nodes(Block& block, Module& module) {
  size_t inner = 0;
  std::unordered_multimap<size_t, Node*> seen;
  std::unordered_set<Node*> grown;  // nodes that got sources, which are sorted once at the end
  Rewriter rewriter(block, &module);
  size_t changes = rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    for (auto& region : node.regions) inner += merge_equal_nodes(*region, module);
    if (!mergeable(node)) return {};
    size_t hash = hash_of(node);
    auto [first, last] = seen.equal_range(hash);
    for (; first != last; ++first) {
      Node& twin = *first->second;
      ++visits;
      if (!equal(twin, node)) continue;
      twin.sources.insert(twin.sources.end(), node.sources.begin(), node.sources.end());
      grown.insert(&twin);
      return results_of(twin);
    }
    seen.emplace(hash, &node);
    return {};
  });
  for (Node* node : grown) node->sources = merged(std::move(node->sources), {});
  return changes + inner;
}

}  // namespace cairn
