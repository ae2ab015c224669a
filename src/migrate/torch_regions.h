// The statements of a function of PyTorch that compute a loss: which of them become a function of their own, what it reads, and what other
// code takes from it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "migrate/torch_events.h"

namespace cairn::migrate {

/// One function, or the top of a script, with the events in it.
class Regions {
 public:
  Regions(TorchFile& torch, NodeId scope, std::vector<Event> events)
      : torch_(torch), syntax_(torch.syntax), scope_(scope), events_(std::move(events)) {}

  // The statements that compute a loss: those to be moved into the function, and earlier ones that are computed in it again.
  struct Region {
    NodeId before = kNoNode;       // the statement in front of which the function ends
    std::vector<NodeId> moved;     // neighbours
    std::vector<NodeId> repeated;  // in the order of the text
    Names set;
    Names through;                   // names from outside through which gradients go
    std::vector<std::string> calls;  // methods that compute some of these, to be called again
  };

  NodeId block_of(NodeId statement) const;
  NodeId loop_of(NodeId node) const;
  /// Whether code may call a network.
  bool runs_module(NodeId within) const;
  /// The region in front of a statement that computes these names.
  Region region_of(NodeId before, const Names& wanted) const;
  bool is_cut_off(const Region& region, NodeId subject) const;
  Names carried(const Region& region) const;
  std::vector<std::string> results(const Region& region, NodeId backward, const Names& given) const;
  Names leaves(NodeId backward) const;
  bool is_network(NodeId node) const;
  bool is_network_text(const std::string& name) const;

 protected:
  TorchFile& torch_;
  const Syntax& syntax_;
  NodeId scope_;
  std::vector<Event> events_;

 private:
  // What a walk over a region knows of its names: those that are set on each path so far, and those set on some.
  struct Walk {
    const Region& region;
    Names sure, perhaps, carried;
  };

  bool holds_event(NodeId statement) const;
  void add_providers(Region& region) const;
  bool sets_itself(const std::string& name, NodeId method) const;
  bool may_run_network(NodeId call) const;
  bool is_leaf(NodeId node) const;
  void walk_block(NodeId block, Walk& walk) const;
  void note_reads(const Names& used, Walk& walk) const;
  bool is_set_before(const std::string& name, const Region& region) const;
  void walk_branches(NodeId statement, Walk& walk) const;
  void note_carried(NodeId statement, Walk& walk) const;
};

}  // namespace cairn::migrate
