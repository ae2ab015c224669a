// Einstein summation by transposes, reshapes and matrix products; TensorFlow and ONNX share it.
#pragma once

#include <string>
#include <vector>

#include "ir/builder.h"

namespace cairn {

/// The sum given by an equation such as "ij,jk->ik"; an ellipsis stands for leading dims. Throws Error unsupported for
/// forms that are not handled, invalid_model for an equation that does not fit the operands.
Value* einsum(const std::string& equation, const std::vector<Value*>& operands, Builder& builder);

}  // namespace cairn
