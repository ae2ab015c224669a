// What rounding the data of layers costs and saves in a run, so that products stay in floats where bytes would not be faster.
#pragma once

#include "quantize/layers.h"

namespace cairn::quantize {

/// By layer, whether its data is to be rounded to bytes: of `on`, those that make a run on one example fastest. Layers that read
/// the same value are decided together. The estimate is of this processor. `elements`: of each value that layers read, by example.
std::vector<bool> worth_rounding(const std::vector<Layer>& layers, const std::vector<double>& elements,
                                 std::vector<bool> on);

}  // namespace cairn::quantize
