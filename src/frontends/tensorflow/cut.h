// Replacement of nodes that cannot be imported: applies the user's choice to a graph, and finds the choices that a
// refusal proposes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/tensorflow/saved_model.h"

namespace cairn::tensorflow {

/// The graph with `replace` (see ImportOptions) applied. A node with several results becomes one input, called
/// "node:index", for each used result. If the signature names inputs, the new ones are added to it and unused ones
/// removed. Throws Error.
GraphDef replaced(GraphDef graph, const std::map<std::string, std::string>& replace, Signature& signature);

/// The type (kDtInvalid if unknown) and shape of a node's result, as far as its attributes tell.
struct ResultType {
  DataType dtype;
  ShapeProto shape;
};
ResultType result_type(const Node& node, int index, ModelBytes& model);

/// Possible cuts around failed nodes: numeric tensors above all of them that can be outputs, and the nearest numeric
/// nodes below them that can be inputs, so that the outputs no longer depend on failed nodes. Either may be empty.
struct Remedies {
  std::vector<std::string> ends;
  std::vector<std::string> cut;
};
Remedies remedies(const GraphDef& graph, const std::vector<uint32_t>& failed, const Signature& signature);

}  // namespace cairn::tensorflow
