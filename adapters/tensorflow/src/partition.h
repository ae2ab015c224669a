// Chooses which nodes of a graph run on the engine, and how they are cut into clusters. Knows names and edges only, so
// that it is tested without TensorFlow.
#pragma once

#include <string>
#include <vector>

namespace cairn_tf {

struct Input {
  int node;
  int port = 0;
  bool control = false;
  bool reference = false;  // the node takes the variable itself, not its content
  bool list = false;       // what cannot cross between host and engine at all
};

struct Node {
  std::string name;
  std::string op;
  std::vector<Input> inputs;  // of nodes that exist, those with data in the node's order
  std::string host;           // why it stays with TensorFlow; empty: it may run on the engine
  bool constant = false;      // a constant, or a view of a variable: goes wherever its users are
  bool writes = false;        // changes a variable
  bool reads = false;         // looks at a variable
  int work = 1;               // 0: moves no data; kHeavy and more: worth a cluster alone
  std::string frame = {};     // that an Enter enters
  int unit = -1;              // nodes with the same number go into a cluster together, or not at all
};
inline constexpr int kHeavy = 100;
inline constexpr int kLeastWork = 6;  // of a cluster; smaller ones cost more than they save

struct Partition {
  std::vector<std::vector<int>> clusters;  // node numbers, ascending; each cluster needs earlier ones only
  std::vector<std::string> host;           // per node: why it stays; empty when in a cluster
};

/// level(n) = changes between host and engine on the longest path to n; all engine nodes of one level are one cluster,
/// which makes cycles impossible; nodes that depend on each other, and those of one unit, have one level. Linear in nodes
/// and edges.
Partition partition(const std::vector<Node>& nodes);

/// Makes a unit of each outermost conditional and loop of TF1 control flow: all between Switch and Merge, Enter and Exit.
/// A part of one would be no cluster: what is dead in a step would kill it.
void find_units(std::vector<Node>& nodes);

/// The same, and conditionals of one predicate get Switches of their own where a host node would keep all of them with
/// TensorFlow, whose own passes made the Switches of equal ones one. Copies come behind the other nodes; the result names
/// the original of each.
std::vector<int> part_conditionals(std::vector<Node>& nodes);

}  // namespace cairn_tf
