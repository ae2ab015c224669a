// Writes a trained model.
#pragma once

#include "train/trainer.h"

namespace cairn {

/// By the path's ending: an .om file, or the ONNX file that was trained with its new weights. `source` is the model's file.
/// Throws Error invalid_argument for another ending, or .onnx where the source is none, before anything is written.
void write_trained(const Trainer& trainer, const std::string& source, const std::string& path);
void check_trained_path(const std::string& source, const std::string& path);

}  // namespace cairn
