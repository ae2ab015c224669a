// Writes quantisation into a module: each quantised value goes through integers of 8 bits and back, and kernels are
// constants of integers that are made floats again. Engines and passes may compute with the integers between.
#pragma once

#include <optional>

#include "quantize/kernels.h"
#include "quantize/ranges.h"

namespace cairn::quantize {

/// What is decided about one value that layers read.
struct ValueChoice {
  std::optional<Affine> steps;  // none: it stays f32
  std::vector<float> smooth;    // by channel: data is divided by it, kernels are multiplied; empty: 1
};

/// What is decided about one layer.
struct LayerChoice {
  SmallKernel kernel;        // of the kernel times `smooth` of its data
  std::vector<float> shift;  // added to the result, by channel; empty: 0
  bool rounds_data = true;   // else the kernel alone is small
};

struct Choices {
  std::vector<ValueChoice> values;  // by Layer::value
  std::vector<LayerChoice> layers;  // in the order of layers_of()
};

/// The layer's weights times what its data is divided by.
Tensor smoothed_kernel(const Layer& layer, const std::vector<float>& smooth);

/// A copy of `base` in which the layers that are `on` are quantised.
Module insert(const Module& base, const Choices& choices, const std::vector<bool>& on);

/// A copy of `base` whose further results are the values that layers read, by number, divided by `smooth` where that is given.
Module watched(const Module& base, const std::vector<ValueChoice>& values);

/// Bytes of all constants.
uint64_t constant_bytes(const Module& module);

}  // namespace cairn::quantize
