// Sequences and optionals as inputs and outputs of a model, where only tensors go in and out. They are packed:
//   NAME        the values of all elements, one after the other
//   NAME:dims   the dims of all elements, one after the other
//   NAME:ranks  of a sequence: how many dims each element has
//   NAME:given  of an optional: whether it is there
// An optional inside a module is its value, and a bool[] that says whether it is there (Importer::presence).
#pragma once

#include "frontends/inputs.h"
#include "frontends/onnx/importer.h"

namespace cairn::onnx {

/// Adds the params of an input that is no tensor; its value, made of them. Throws Error unsupported for maps and sparse tensors.
Value* unpacked(Importer& importer, cairn::Function& main, const ValueInfo& input, InputTypes& types);

/// Adds a result, or those into which a sequence or an optional is packed, to the names and results of `main`.
void add_result(const Importer& importer, cairn::Function& main, Value* value, std::string_view name,
                const ValueInfo* declared);

/// A list without elements.
Value* empty_list(Type element, Builder& builder);

}  // namespace cairn::onnx
