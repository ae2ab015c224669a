// A part of a TensorFlow graph that runs inside TensorFlow: `_Arg` nodes are its inputs, `_Retval` nodes its results.
// Variables are passed as handles and stay in TensorFlow; a write becomes an update of @main.
#pragma once

#include <map>
#include <string>

#include "frontends/import.h"

namespace cairn {

/// An `_Arg` has attributes `index` and `T` (the element type; for a variable that of its content), and for a variable
/// `handle`: "ref" or "resource". `input_shapes` gives shapes by node name. Params and results have the names of the
/// nodes. Throws Error, and ReportError with all unsupported nodes.
Module import_cluster(const tensorflow::GraphDef& graph, const ImportOptions& options = {});

/// The reasons why nodes of the graph cannot be part of a cluster, by name; other nodes are absent. The functions that
/// a node calls are checked as well.
std::map<std::string, std::string> refused_nodes(const tensorflow::GraphDef& graph);

}  // namespace cairn
