// Inputs that a command makes itself: sizes where the model leaves them open, and values that its first operators can use.
#pragma once

#include "session.h"

namespace cairn::cli {

/// Values for every input, the same for the same seed: floats normal or in the range that the model first expects, images as
/// bytes, indices within the tables that they look up, masks of both values.
std::vector<Tensor> make_inputs(const Model& model, const std::vector<Dims>& dims, uint64_t seed);

/// choose_dims, but open sizes that nobody gave are above 1 and differ, as far as the model runs with them.
std::vector<Dims> make_dims(const Model& model, const ModelArguments& arguments);

}  // namespace cairn::cli
