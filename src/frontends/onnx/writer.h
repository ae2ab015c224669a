// Writes an ONNX model again with new elements for its initialisers; everything else is kept as it is in the file.
#pragma once

#include <map>
#include <string>

#include "frontends/onnx/model.h"

namespace cairn::onnx {

/// The model's bytes with the given tensors for the initialisers of these names (the names that import uses). External
/// data is embedded; initialisers that import separates (initializers.h) are written separately. Throws Error not_found
/// for a name that is not an initialiser, invalid_argument for another type, unsupported when the file would exceed the
/// limit of a protocol buffer.
std::string with_initializers(const Model& model, const std::map<std::string, Tensor>& fresh);

}  // namespace cairn::onnx
