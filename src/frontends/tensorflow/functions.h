// Graphs as names and edges: reachability, references inside functions, and replacing calls by the called function's
// nodes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {

/// Names of the results of an op that has several, in order and separated by blanks, "name*attribute" for a list that the
/// attribute counts; empty for all other ops.
std::string_view multiple_results(std::string_view op);

/// Where nodes are by name. Throws Error invalid_model on a name used twice.
using NodeIndex = std::unordered_map<std::string_view, size_t>;
NodeIndex index_nodes(const std::vector<Node>& nodes, const std::string& where);

class Library;
/// A name for each result of a node, in their flat order: of the op's definition, or "" where it has one result. Throws Error
/// invalid_model where an attribute that counts them is missing.
std::vector<std::string_view> result_names(const Node& node, const Library& library);

/// The functions of a graph by name. The graph must outlive it unchanged in its functions.
class Library {
 public:
  explicit Library(const GraphDef& graph);
  const FunctionDef* find(std::string_view name) const {
    auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  }
  ModelBytes& model() const { return *model_; }

 private:
  std::unordered_map<std::string_view, const FunctionDef*> functions_;
  ModelBytes* model_;
};

/// A body input "node:result:index" in the graph's terms: the node's name and the flat number of the result; an argument
/// "name" is result 0 of that name; "^node" has index kControl. Throws Error invalid_model.
TensorName resolve_body_input(std::string_view input, const std::vector<Node>& nodes, const NodeIndex& index,
                              const Library& library);

/// The node of a graph that an input comes from, behind identities, and which of its results. Throws Error.
std::pair<const Node*, int> origin(std::string_view input, const std::vector<Node>& nodes, const NodeIndex& index,
                                   const std::string& where);
/// Data input `number` of a node. Throws Error invalid_model.
std::string_view data_input(const Node& node, size_t number);

/// Keeps the nodes that the named ones depend on, in their order. A name that does not exist throws Error not_found.
void prune(GraphDef& graph, const std::vector<std::string>& roots);

/// Replaces every call (PartitionedCall, StatefulPartitionedCall, a library function used as op), and the calls inside,
/// by the function's nodes, under their own names, or "<call>/<node>" where another has it. A node of the call's name
/// stays and hands on the results, so that tensor names do not change. Functions that If and While name are left as they
/// are.
void inline_calls(GraphDef& graph);

/// Drops the library's functions that no node leads to.
void prune_functions(GraphDef& graph);

}  // namespace cairn::tensorflow
