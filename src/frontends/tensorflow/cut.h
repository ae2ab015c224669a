// What stands in place of nodes that cannot be imported: the user's choice applied to a graph, and the choice that a
// refusal proposes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/tensorflow/saved_model.h"

namespace cairn::tensorflow {

/// The graph with `replace` (see ImportOptions) applied. A node of several results becomes an input for each that is
/// read, called "node:index". Where the signature names inputs, these join it, and those that nothing needs any more go.
/// Throws Error.
GraphDef replaced(GraphDef graph, const std::map<std::string, std::string>& replace, Signature& signature);

/// What a node tells of one of its results: the type, kDtInvalid where nothing tells it, and the shape.
struct ResultType {
  DataType dtype;
  ShapeProto shape;
};
ResultType result_type(const Node& node, int index, ModelBytes& model);

/// How to go on where nodes failed: tensors of numbers above all of them that can be outputs, and nodes below, as near to
/// them as numbers are, that can be inputs, so that the outputs need none of the failed places. Either may be empty.
struct Remedies {
  std::vector<std::string> ends;
  std::vector<std::string> cut;
};
Remedies remedies(const GraphDef& graph, const std::vector<uint32_t>& failed, const Signature& signature);

}  // namespace cairn::tensorflow
