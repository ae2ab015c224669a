// Turns variables into constants, in a graph and in the functions named by If, While and Case.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {

/// The value of the variable that a node (VarHandleOp, VariableV2) creates. Throws Error when there is none.
using VariableValue = std::function<Tensor(const Node& variable)>;

/// Replaces every variable of the graph by a constant with its name, and every read by an ordinary node; functions that
/// take variables are rewritten with new names. Throws Error unsupported for a node that writes a variable.
void freeze_variables(GraphDef& graph, const VariableValue& value);

bool is_variable(const Node& node);

}  // namespace cairn::tensorflow
