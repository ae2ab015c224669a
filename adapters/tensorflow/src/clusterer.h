// Cuts a TensorFlow graph into what stays and what runs on the engine.
#pragma once

#include <string>

#include "engine.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace cairn_tf {

namespace tf = tensorflow;

/// Puts cluster operators into the graph. `title` is the function that the graph is the body of, or "".
tf::Status make_clusters(tf::Graph& graph, const Library& library, tf::FunctionLibraryDefinition* functions,
                         const std::string& title);

}  // namespace cairn_tf
