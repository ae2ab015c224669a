// Where every source node went: completes Module::removed after the pipeline and proves its claims on the source graph.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// The source nodes of a module and how they depend on each other, taken before passes change it.
class SourceGraph {
 public:
  explicit SourceGraph(const Module& module);

  /// Gives every source that has no node any more a reason, and drops reasons of sources that still have one.
  void explain(Module& after) const;
  /// One sentence for every source node that is lost or whose reason for removal does not hold.
  std::vector<std::string> check(const Module& after) const;

 private:
  struct Entry {
    bool has_node = false;
    bool live = false;       // a result or an effect depends on it
    bool constant = true;    // its results depend on constants and on types alone
    bool shape_only = true;  // all its nodes look at types alone
    std::vector<SourceId> users;
    bool operand = false;  // gives dims to an op: not needed once these are known
  };
  void mark_live(const Module& module);
  void add_block(const Block& block);
  bool shape_only_users(const Entry& entry, const std::vector<bool>& carried) const;
  bool users_removed(const Entry& entry, const std::vector<bool>& carried) const;
  Removal reason(const Entry& entry, const std::vector<bool>& carried, const Module& after) const;

  std::vector<Entry> entries_;
  std::vector<SourceId> order_;  // sources as their nodes stand
};

/// Every source node of `before` is present in `after`, or removed for a reason of the closed list that holds: 'dead' is
/// proved by liveness, 'folded' by dependence on constants alone or by users that are gone.
std::vector<std::string> check_provenance(const Module& before, const Module& after);

}  // namespace cairn
