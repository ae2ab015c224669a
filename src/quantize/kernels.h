// Kernels as integers of 8 or 4 bits with a scale for each output channel, or for each group of inputs of it.
#pragma once

#include "quantize/layers.h"

namespace cairn::quantize {

struct KernelOptions {
  int bits = 8;
  int64_t group = 0;               // inputs that share a scale; 0: all
  bool search = false;             // scales of the least mean square of the error, else those that hold all weights
  std::vector<float> scales = {};  // by output channel: these instead
};

struct SmallKernel {
  int bits = 8;
  Tensor integers;               // i8, with the kernel's dims
  Tensor scales;                 // f32; broadcasts to the integers under `grouped` dims
  std::vector<int64_t> grouped;  // the dims with the summed one cut into groups; empty: as they are
  Tensor near;                   // what the integers stand for
};

/// `kernel`: the layer's weights, perhaps scaled.
SmallKernel small_kernel(const Layer& layer, const Tensor& kernel, const KernelOptions& options);

/// By output channel, what small weights add to the result: the mean of (near - kernel) times data of these means by channel.
std::vector<double> mean_shift(const Layer& layer, const Tensor& kernel, const Tensor& near,
                               const std::vector<double>& data_means);

}  // namespace cairn::quantize
