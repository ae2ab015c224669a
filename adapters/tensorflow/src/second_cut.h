// Clusters in functions that TensorFlow's kernels call: in what a cluster that the engine refuses when it sees the shapes runs
// instead, cut around the nodes that it refused, and in the bodies of loops and branches that stay with TensorFlow.
#pragma once

#include <string>
#include <vector>

#include "clusterer.h"

namespace cairn_tf {

/// Adds to the library a function that does what the function `stock` does, by clusters and the nodes of `making.refused`;
/// `stock` is the cluster's own nodes, to be placed on `device`. The function's name, and the refused nodes that are in it; an
/// empty name when none of them is, as nothing would be different.
tf::Status cut_again(const std::string& stock, const std::string& device, const Library& library, Making making,
                     std::string& name, std::vector<std::string>& nodes);

/// Puts clusters into the functions that conditionals and loops of the graph call.
tf::Status cut_bodies(tf::Graph& graph, const Library& library, const Making& making);

/// Node -> reason, of a failure with a report.
std::map<std::string, std::string> refused_nodes(const Failure& failure);

}  // namespace cairn_tf
