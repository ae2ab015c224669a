// Sizes for what a model leaves open, when nobody gives any.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runtime/model.h"

namespace cairn {

/// The dims of all inputs, with sizes in place of those below 0: `batch` in front, and others above 1 that differ as far
/// as the model takes them; equal symbols have equal sizes. Nothing if the model cannot be planned with what is tried,
/// or `fits`, which may throw, says no to all.
std::optional<std::vector<Dims>> likely_dims(const Model& model, const std::vector<Dims>& dims, int64_t batch,
                                             const std::function<bool(const std::vector<Dims>&)>& fits = {});

}  // namespace cairn
