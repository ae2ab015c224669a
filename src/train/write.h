// Writes a trained model.
#pragma once

#include "train/trainer.h"

namespace cairn {

/// Writes, depending on the path's extension, an .om file or the trained ONNX file `source` with its new weights.
/// Throws Error invalid_argument for other extensions, and for .onnx if `source` is not an ONNX file, before anything
/// is written.
void write_trained(const Trainer& trainer, const std::string& source, const std::string& path);
void check_trained_path(const std::string& source, const std::string& path);

}  // namespace cairn
