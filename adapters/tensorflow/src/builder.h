// One cluster: nodes of a TensorFlow graph become one operator.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace cairn_tf {

namespace tf = tensorflow;

/// What all clusters of a graph are made with.
struct Making {
  tf::FunctionLibraryDefinition* functions = nullptr;
  std::string title = {};  // of the function that the graph is the body of, or ""
  std::string precision_mode = {}, mixed_lists = {}, custom_types = {};  // as the engine takes them
  bool deterministic = false;                       // convolutions by their definition alone, nothing by measured times
  bool may_measure = false;                         // TensorFlow may run what the engine does, whichever is faster
  bool frozen = false;                              // variables that a cluster only reads are constants for it
  std::set<const tf::Node*> copied = {};            // constants and views that go into every cluster that reads them
  std::set<std::string> known = {};                 // nodes whose value follows from shapes
  std::set<const tf::Node*> doubtful = {};          // whose work TensorFlow's kernels may do faster
  std::map<std::string, std::string> refused = {};  // nodes that the engine has refused before, and why
};

/// Replaces the members by an operator with `name`.
tf::Status build_cluster(tf::Graph& graph, const Making& making, const std::vector<tf::Node*>& members,
                         std::string& name);

/// The name of a node that a function must run although nothing of what it hands out needs it.
std::optional<std::string> has_effect(const tf::Node* node);

}  // namespace cairn_tf
