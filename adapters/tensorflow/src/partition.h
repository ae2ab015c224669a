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
  std::vector<Input> inputs;  // in any order; of nodes that exist
  std::string host;           // why it stays with TensorFlow; empty: it may run on the engine
  bool constant = false;      // goes wherever its users are
  bool writes = false;        // changes a variable
  bool reads = false;         // looks at a variable
  int work = 1;               // 0: moves no data; kHeavy and more: worth a cluster alone
};
inline constexpr int kHeavy = 100;
inline constexpr int kLeastWork = 6;  // of a cluster; smaller ones cost more than they save

struct Partition {
  std::vector<std::vector<int>> clusters;  // node numbers, ascending; each cluster needs earlier ones only
  std::vector<std::string> host;           // per node: why it stays; empty when in a cluster
};

/// level(n) = changes between host and engine on the longest path to n; all engine nodes of one level are one cluster,
/// which makes cycles impossible. Edges from NextIteration nodes are ignored. Linear in nodes and edges.
Partition partition(const std::vector<Node>& nodes);

/// Marks what stands between Switch and Merge or Enter and Exit of TF1 control flow: a dead input would kill a cluster.
void keep_frames_on_host(std::vector<Node>& nodes);

}  // namespace cairn_tf
