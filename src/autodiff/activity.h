// Which values of a function depend on given ones through float data: only these have gradients.
#pragma once

#include <unordered_set>

#include "ir/module.h"

namespace cairn {

/// True for floats, complex numbers and lists of them.
bool is_differentiable(const Type& type);
/// Whether a gradient can flow from the node's results to its input i.
bool carries_gradient(const Node& node, size_t i);

class Activity {
 public:
  void mark(const Value* value) { active_.insert(value); }
  bool operator()(const Value* value) const { return active_.count(value) != 0; }
  /// Marks the results of the block's nodes, also in its regions, that depend on marked values.
  void spread(const Block& block);
  void spread(const Node& node);

 private:
  bool spread_loop(const Node& node);
  std::unordered_set<const Value*> active_;
};

/// The params of a block that its marked results may depend on through float data.
std::vector<bool> params_reaching(const Block& block, const std::vector<bool>& results);

}  // namespace cairn
