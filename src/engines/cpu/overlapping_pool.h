// The gradient of maximum pooling over images whose windows overlap.
#pragma once

#include <cstddef>

#include "engines/cpu/window.h"
#include "support/executor.h"

namespace cairn {

/// Whether its windows overlap in images, without gaps between taps.
bool has_overlapping_windows(const SlideSpec& spec);

/// Bytes for so many workers.
size_t overlapping_pool_workspace(const SlideSpec& spec, int threads);
/// dx [n, h, w, channels]: each window's dy goes to its first largest element of x; `gated`: if that is above 0.
void overlapping_pool_gradient(Executor& executor, const SlideSpec& spec, bool gated, const float* x, const float* dy,
                               float* dx, void* workspace);

}  // namespace cairn
