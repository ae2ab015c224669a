// Convolutions and poolings of the IR as windows that slide over images or volumes.
#pragma once

#include "engine/engine.h"
#include "engines/cpu/window.h"

namespace cairn {

inline bool is_pooling(const Node& node) {
  return node.is("max_pool2d") || node.is("avg_pool2d") || node.is("max_pool3d") || node.is("avg_pool3d");
}

/// Convolutions and their gradients, over images or volumes.
enum class ConvRole : uint8_t { forward, input_gradient, kernel_gradient };
bool is_convolution(const Node& node, ConvRole role);

/// The images or volumes and the windows of a convolution or pooling, with fewer dims where that is the same in memory:
/// slices that no window joins are images, and along one dim windows slide over a row.
SlideSpec slide_of(const Node& node, const Value* x, const Value* y, const std::vector<int64_t>& window);
inline SlideSpec slide_of(const Node& node, const std::vector<int64_t>& window) {
  return slide_of(node, node.inputs[0], node.result(), window);
}
/// The same of a pooling, with its work.
SlideSpec pooling_of(const Node& node);
/// The same of a convolution. With one group, windows that cover whole rows (and slices, and volumes) are windows of one
/// column over as many more channels.
SlideSpec convolution_of(const Node& node, const Value* x, const Value* y, const Value* kernel);

}  // namespace cairn
