// Steps for convolutions, matrix products (both with epilogue) and pooling: on the generated tile or the sliding
// window.
#pragma once

#include "engine/engine.h"
#include "engines/cpu/conv.h"

namespace cairn {

/// Convolution with one group, or (batched) matrix product. Constant weights are packed once, others in every run.
std::optional<std::string> refuses_tile(const Group& group);
std::unique_ptr<Step> make_tile(const Group& group, MakeContext& context);

/// The same of a convolution of one tap with constant weights whose pixels are computed some at a time, in the tile's terms.
std::optional<std::string> read_pixel_product(const Group& group, ConvSpec& spec);

/// Depthwise convolution with one filter a channel, or a power of two of them.
std::optional<std::string> refuses_depthwise(const Group& group);
std::optional<std::string> read_depthwise(const Group& group, SlideSpec& spec);
/// The same, whether the generated kernel takes it or not.
std::optional<std::string> read_any_depthwise(const Group& group, SlideSpec& spec);
std::unique_ptr<Step> make_depthwise(const Group& group, MakeContext& context);

/// Maximum and mean pooling.
std::optional<std::string> refuses_pool(const Group& group);
std::unique_ptr<Step> make_pool(const Group& group, MakeContext& context);

}  // namespace cairn
