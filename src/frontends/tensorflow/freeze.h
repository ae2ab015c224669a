// A SavedModel with one signature becomes one frozen GraphDef: functions inlined, variables constants, nothing but what
// the outputs need. It loads in TensorFlow and has the signature's own tensor names.
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

/// A frozen graph and the names it goes by. Without a signature inputs are the placeholders and outputs the out_nodes.
struct FrozenGraph {
  GraphDef graph;
  Signature signature;
};

/// A placeholder as an input under its own name.
TensorInfo placeholder_info(const Node& node, ModelBytes& model);

/// Throws Error.
FrozenGraph freeze(const SavedModel& model, const FreezeOptions& options = {});

}  // namespace cairn::tensorflow
