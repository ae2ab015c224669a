// Tensor data of an ONNX model in other files. Only regular files below the model's own directory are read, and no
// links are followed, so that a model cannot make us read other files.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "frontends/wire.h"

namespace cairn::onnx {

/// Opens `location` below `directory`. Throws Error invalid_model for a location that is absolute, has "..", or goes
/// through a symbolic link, and for a file that is not regular or has several hard links; io when it cannot be read.
std::shared_ptr<ModelBytes> open_external(const std::string& directory, std::string_view location,
                                          const std::string& where);

}  // namespace cairn::onnx
