// What a plan takes over from an earlier plan of the same function at other dims: its groups, their kernels, their order,
// and the steps that the dims do not concern. Choosing these anew is most of the time that planning takes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "plan/items.h"

namespace cairn {

/// A plan's function and groups by numbers: nodes by their position, values in the order of params and nodes.
class Outline {
 public:
  explicit Outline(const Plan& plan);

 private:
  friend class Sibling;
  struct Item {
    const PlannedStep* step;
    std::vector<uint32_t> nodes, inputs, outputs;
    std::vector<uint32_t> constants;  // nodes of constants among the inputs
  };

  std::vector<uint32_t> read_;  // the inputs of all nodes, then the function's results
  std::vector<Item> items_;     // without copies
};

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
  const PlannedStep& step(size_t i) const { return *outline_->items_[i].step; }
  /// Whether the earlier step of item `i` computes it as it is.
  bool serves(size_t i) const;

 private:
  explicit Sibling(const Plan& earlier) : earlier_(&earlier), outline_(earlier.outline.get()) {}
  bool match(const Function& function);
  Group renamed(const Outline::Item& item) const;

  const Plan* earlier_;
  const Outline* outline_;
  std::vector<const Value*> values_;  // now
  std::vector<const Node*> nodes_;
  std::vector<bool> unchanged_;  // by node
};

}  // namespace cairn
