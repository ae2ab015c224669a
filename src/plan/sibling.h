// What a plan takes over from an earlier plan of the same function at other dims: its groups, their kernels, their order,
// and the steps that the dims do not concern. Choosing these anew is most of the time that planning takes.
#pragma once

#include <optional>
#include <span>

#include "plan/items.h"

namespace cairn {

class Sibling {
 public:
  /// Nothing unless the functions have equal nodes, and sizes that differ by no more than a factor of two. Engines are asked
  /// again about what they take; 0 and 1, which say more than a size, stay the same.
  static std::optional<Sibling> find(const Plan& earlier, const Function& function);
  /// Whether that may be found for these dims of the params.
  static bool may_serve(const Plan& earlier, std::span<const std::vector<int64_t>> dims);

  /// The items in the order of the earlier plan; nothing when an engine refuses one of them at these dims.
  std::optional<Items> items() const;
  /// The earlier step of item `i`.
  const PlannedStep& step(size_t i) const { return *steps_[i]; }
  /// Whether the earlier step of item `i` computes it as it is.
  bool serves(size_t i) const;

 private:
  explicit Sibling(const Plan& earlier);
  bool match(const Function& function);
  Group renamed(const Group& group) const;

  const Plan* earlier_;
  std::vector<const PlannedStep*> steps_;  // without copies
  PointerMap<const Value*, const Value*> value_;
  PointerMap<const Node*, const Node*> node_;  // earlier -> now
  PointerSet<const Node*> unchanged_;          // earlier nodes
};

}  // namespace cairn
