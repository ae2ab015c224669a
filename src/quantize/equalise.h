// Scales that make channels alike before they share a step, with the same results in f32.
#pragma once

#include "quantize/insert.h"

namespace cairn::quantize {

/// Cross-layer equalisation: where one layer reads another's result through operators that keep positive factors of channels
/// (relu, pooling, padding by 0), both kernels get the same largest weight in each channel (Nagel et al., 2019, section 4.1).
/// Returns the number of pairs.
size_t equalise(Module& module);

/// SmoothQuant's factors (Xiao et al., 2022) for values that matrix products read and whose channels differ much; empty
/// for others. `seen`: by value.
std::vector<std::vector<float>> smoothing(const Module& module, const std::vector<Seen>& seen, double strength = 0.5);

}  // namespace cairn::quantize
