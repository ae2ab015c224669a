// Assertions whose texts are part of the node, so that a cluster can hold them: the engine's values are numbers.
#pragma once

#include "tensorflow/core/graph/graph.h"

namespace cairn_tf {

/// Puts CairnAssert in place of each Assert whose texts are constants.
tensorflow::Status carry_texts(tensorflow::Graph& graph);

}  // namespace cairn_tf
