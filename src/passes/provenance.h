// Accounts for every source node: completes Module::removed after the pipeline and proves its claims on the source
// graph.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// The source nodes of a module and their dependences, recorded before passes change the module.
class SourceGraph {
 public:
  explicit SourceGraph(const Module& module);

  /// Gives a reason to every source that no longer has a node, and removes the reasons of sources that still have one.
  void explain(Module& after) const;
  /// A sentence for every source node that is unaccounted for or whose reason for removal does not hold.
  std::vector<std::string> check(const Module& after) const;

 private:
  struct Entry {
    bool has_node = false;
    bool live = false;       // a result or an effect depends on it
    bool constant = true;    // its results depend on constants and on types alone
    bool shape_only = true;  // its nodes use only the types of their inputs
    std::vector<SourceId> users;
    bool operand = false;  // gives an op its dims; unnecessary once these are known
  };
  void mark_live(const Module& module);
  void add_block(const Block& block);
  bool shape_only_users(const Entry& entry, const std::vector<bool>& carried) const;
  bool users_removed(const Entry& entry, const std::vector<bool>& carried) const;
  Removal reason(const Entry& entry, const std::vector<bool>& carried, const Module& after) const;

  std::vector<Entry> entries_;
  std::vector<SourceId> order_;  // sources in the order of their nodes
};

/// Checks that every source node of `before` is present in `after` or was removed for a valid reason: 'dead' is proved
/// by liveness, 'folded' by dependence on constants alone or by the removal of all users. Returns the faults.
std::vector<std::string> check_provenance(const Module& before, const Module& after);

}  // namespace cairn
