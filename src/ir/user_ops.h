// Operators from users: the names that frameworks have for them, and what is said where one is missing. Their rows are
// found by find_op (op_def.h).
#pragma once

#include <string>
#include <string_view>

#include "ir/op_def.h"

namespace cairn {

/// `framework`: "onnx" or "tensorflow"; `type`: "com.acme::Gelu", "FusedGelu". Throws Error invalid_argument where the name
/// stands for another row.
void add_foreign_name(std::string_view framework, std::string_view type, const OpDef& row);
/// The row of a user that a node of that type stands for, or null: by a name that was added, else by the row's own name
/// "domain.name", of which letter case and underscores do not count: ONNX's domain::Name, TensorFlow's Domain>Name, or
/// Name alone where no other row has it. Throws Error unsupported where two have it.
const OpDef* find_foreign_op(std::string_view framework, std::string_view type);
/// Nodes of that type are read as the framework's own type `other`.
void add_foreign_alias(std::string_view framework, std::string_view type, std::string_view other);
/// That type, or "".
std::string_view foreign_alias(std::string_view framework, std::string_view type);
/// "operator acme.gelu comes from no library that is loaded; ...".
std::string unknown_op(std::string_view name);

}  // namespace cairn
