// Writes an ONNX model again with other elements for its initialisers; all else stays as it is in the file.
#pragma once

#include <map>
#include <string>

#include "frontends/onnx/model.h"

namespace cairn::onnx {

/// The model's bytes, where the initialisers of these names (as import calls them) hold these tensors; initialisers with data
/// in other files are taken in, those that import takes apart (initializers.h) stand apart. Throws Error not_found for a name that is no initialiser, invalid_argument for another type,
/// unsupported when the file would be longer than a protocol buffer can be.
std::string with_initializers(const Model& model, const std::map<std::string, Tensor>& fresh);

}  // namespace cairn::onnx
