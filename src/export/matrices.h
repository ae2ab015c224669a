// Linear algebra in operators that ONNX has: elimination and Cholesky's method column by column.
#pragma once

#include "ir/builder.h"

namespace cairn::onnx_export {

/// What the node computes, in other operators; nothing for nodes that are left as they are. A singular matrix gives infinite
/// numbers or NaN instead of an error.
std::vector<Value*> by_elimination(Builder& builder, const Node& node);

}  // namespace cairn::onnx_export
