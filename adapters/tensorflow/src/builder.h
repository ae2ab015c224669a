// One cluster: nodes of a TensorFlow graph become one operator.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace cairn_tf {

namespace tf = tensorflow;

/// Replaces the members by an operator with `name`. Constants among `copied` go into every cluster that reads them.
/// `title` is the function that the graph is the body of, or "".
tf::Status build_cluster(tf::Graph& graph, tf::FunctionLibraryDefinition* functions, const std::string& title,
                         const std::vector<tf::Node*>& members, const std::set<const tf::Node*>& copied,
                         std::string& name);

}  // namespace cairn_tf
