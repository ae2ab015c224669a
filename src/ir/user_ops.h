// Operators from users: the names by which frameworks refer to them, and the message for a missing one. Their rows are
// found by find_op (op_def.h).
#pragma once

#include <string>
#include <string_view>

#include "ir/op_def.h"

namespace cairn {

/// Makes `type` a name of the row. `framework`: "onnx" or "tensorflow"; `type`: "com.acme::Gelu", "FusedGelu". Throws
/// Error invalid_argument when the name already stands for another row.
void add_foreign_name(std::string_view framework, std::string_view type, const OpDef& row);
/// The user's row for nodes of that type, or null: looked up by added names, then by the row's own name "domain.name",
/// compared without letter case and underscores: ONNX's domain::Name, TensorFlow's Domain>Name, or Name alone. Throws
/// Error unsupported when Name alone fits more than one row.
const OpDef* find_foreign_op(std::string_view framework, std::string_view type);
/// Nodes of that type are read as the framework's own type `other`.
void add_foreign_alias(std::string_view framework, std::string_view type, std::string_view other);
/// The type that `type` is an alias of, or "".
std::string_view foreign_alias(std::string_view framework, std::string_view type);
/// The message "operator acme.gelu comes from no library that is loaded; ...".
std::string unknown_op(std::string_view name);

}  // namespace cairn
