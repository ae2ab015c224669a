// The order of the dims of images in the model that a module was made from.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Whether they are NCHW.
inline bool channels_first(const Module& module) {
  const auto format = module.metadata.find("format");
  return format != module.metadata.end() && (format->second == "onnx" || format->second == "caffe");
}

}  // namespace cairn
