// Convolutions and matrix products with their epilogue as steps: on the generated tile, or on the sliding window.
#pragma once

#include "engine/engine.h"

namespace cairn {

/// Convolution of one group, or (batched) matrix product. Constant weights are packed once, others in every run.
std::optional<std::string> refuses_tile(const Group& group);
std::unique_ptr<Step> make_tile(const Group& group, MakeContext& context);

/// Depthwise convolution with one filter a channel.
std::optional<std::string> refuses_depthwise(const Group& group);
std::unique_ptr<Step> make_depthwise(const Group& group, MakeContext& context);

/// Largest and mean element of windows.
std::optional<std::string> refuses_pool(const Group& group);
std::unique_ptr<Step> make_pool(const Group& group, MakeContext& context);

}  // namespace cairn
