// Converts a SavedModel with one signature to a frozen GraphDef: functions are inlined, variables become constants, and
// only nodes on which the outputs depend are kept. It loads in TensorFlow and keeps the signature's tensor names.
#pragma once

#include <string>
#include <vector>

#include "frontends/tensorflow/saved_model.h"

namespace cairn::tensorflow {

struct FreezeOptions {
  std::vector<std::string> tags;       // default: the only meta graph, or "serve"
  std::string signature;               // default: "serving_default", or the only one that is no initialiser
  std::vector<std::string> out_nodes;  // "node" or "node:index"; given: these instead of the signature's outputs
};

/// A frozen graph with its signature. Without a signature, the inputs are the placeholders and the outputs the
/// out_nodes.
struct FrozenGraph {
  GraphDef graph;
  Signature signature;
};

/// The TensorInfo of a placeholder as an input with its own name.
TensorInfo placeholder_info(const Node& node, ModelBytes& model);

/// Throws Error.
FrozenGraph freeze(const SavedModel& model, const FreezeOptions& options = {});

}  // namespace cairn::tensorflow
