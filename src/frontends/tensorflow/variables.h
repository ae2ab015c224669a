// Turns variables into constants: in a graph, and in the functions that If, While and Case name.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {

/// Value of the variable made by a node (VarHandleOp, VariableV2). Throws Error when there is none.
using VariableValue = std::function<Tensor(const Node& variable)>;

/// Every variable of the graph becomes a constant of its name, every read of it a plain node; functions that take
/// variables are rewritten under new names. A node that writes a variable throws Error unsupported.
void freeze_variables(GraphDef& graph, const VariableValue& value);

bool is_variable(const Node& node);

}  // namespace cairn::tensorflow
