// A part of a TensorFlow graph that runs inside TensorFlow: `_Arg` nodes are its inputs, `_Retval` nodes its results.
// Variables come in as handles and stay where they are; writing one becomes an update of @main.
#pragma once

#include <map>
#include <string>

#include "frontends/import.h"

namespace cairn {

/// An `_Arg` has attributes `index` and `T` (the element type, of a variable its content's); a variable's also `handle`:
/// "ref" or "resource". `input_shapes` tells shapes by node name. Params and results are named as the nodes. Throws
/// Error, and ReportError with every node that cannot be taken.
Module import_cluster(const tensorflow::GraphDef& graph, const ImportOptions& options = {});

/// Why nodes of the graph cannot be part of a cluster, by name; nodes that can are absent. Functions that a node calls
/// are looked into.
std::map<std::string, std::string> refused_nodes(const tensorflow::GraphDef& graph);

}  // namespace cairn
