// The functions of a graph: what calls give, and replacing calls by the called function's nodes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontends/tensorflow/graph.h"

namespace cairn::tensorflow {

/// Names of the results of an op that has several, in order and separated by blanks, "name*attribute" for a list that the
/// attribute counts; empty for all other ops.
std::string_view multiple_results(std::string_view op);

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

/// Replaces every call (PartitionedCall, StatefulPartitionedCall, a library function used as op), and the calls inside,
/// by the function's nodes, under their own names, or "<call>/<node>" where another has it. A node of the call's name
/// stays and hands on the results, so that tensor names do not change. Functions that If and While name are left as they
/// are. The roots, which are places, become their new places.
void inline_calls(GraphDef& graph, std::vector<uint32_t>& roots);

/// Drops the library's functions that no node leads to.
void prune_functions(GraphDef& graph);

}  // namespace cairn::tensorflow
