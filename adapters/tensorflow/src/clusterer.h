// Cuts a TensorFlow graph into what stays and what runs on the engine.
#pragma once

#include "builder.h"
#include "engine.h"
#include "tensorflow/core/graph/graph.h"

namespace cairn_tf {

namespace tf = tensorflow;

/// Puts cluster operators into the graph.
tf::Status make_clusters(tf::Graph& graph, const Library& library, const Making& making);

}  // namespace cairn_tf
