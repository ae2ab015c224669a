// The functions of a graph: names of results, and inlining of calls.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontends/tensorflow/graph.h"

namespace cairn::tensorflow {

/// The result names of an op with several results, in order and separated by blanks; "name*attribute" for a list whose
/// length the attribute gives. Empty for all other ops.
std::string_view multiple_results(std::string_view op);

class Library;
/// A name for each result of a node, in flat order: from the op's definition, or "" if the op has one result. Throws
/// Error invalid_model when an attribute that gives the length of a list is missing.
std::vector<std::string_view> result_names(const Node& node, const Library& library);

/// The functions of a graph by name. The graph must outlive it, and its functions must not change.
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
/// by the function's nodes, with their own names, or "<call>/<node>" if the name is used already. A node with the
/// call's name remains and forwards the results, so that tensor names do not change. Functions named by If and While
/// are kept. The roots, which are node indices, are updated.
void inline_calls(GraphDef& graph, std::vector<uint32_t>& roots);

/// Removes library functions that are not reachable from any node.
void prune_functions(GraphDef& graph);

}  // namespace cairn::tensorflow
