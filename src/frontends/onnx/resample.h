// Resize and Upsample beyond what resize2d does.
#pragma once

#include "frontends/onnx/importer.h"

namespace cairn::onnx {

/// The result of Resize or Upsample by products with matrices of weights.
Value* resampled(OpContext& context);

}  // namespace cairn::onnx
