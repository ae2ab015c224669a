// The loops of batch normalisation over a batch.
#pragma once

#include <cstdint>

#include "engines/cpu/tile_jit.h"
#include "support/executor.h"

namespace cairn {

/// The dims of x seen as [outer, channels, inner].
struct ChannelPlanes {
  int64_t outer, c, inner;
};

/// How x, the results and the other operands lie in memory: 16 bits with channels last only, and so many of these at most.
constexpr int64_t kMostNarrowChannels = 2048;

/// y = normalised x [+ residual], then relu. `residual` may be null; y may be x or residual where these have its form.
struct BatchNorm {
  float epsilon = 0;
  bool relu = false;
  Form x_form = Form::floats;
  NarrowEpilogue narrow;                       // of y
  const float *x, *scale, *offset, *residual;  // x and the residual by their forms
  const float *mean = nullptr, *variance = nullptr;
  float* y = nullptr;
};
/// Writes the batch's mean and variance. `workspace`: batch_norm_workspace() bytes.
void batch_norm_training(Executor& executor, const ChannelPlanes& planes, BatchNorm b, float* mean, float* variance,
                         float* workspace);
/// Uses the mean and variance of `b`. `workspace`: a float for each channel.
void batch_norm_inference(Executor& executor, const ChannelPlanes& planes, const BatchNorm& b, float* workspace);

/// Gradients by x, scale and offset; dy counts only where `gate` (may be null) is above 0. dx may be dy, gate or x.
struct BatchNormGradient {
  float epsilon = 0;
  Form x_form = Form::floats, dy_form = Form::floats, gate_form = Form::floats, dx_form = Form::floats;
  const float *dy, *gate, *x, *scale, *mean, *variance;
  float *dx, *dscale, *doffset;
};
void batch_norm_gradient(Executor& executor, const ChannelPlanes& planes, const BatchNormGradient& b, float* workspace);

size_t batch_norm_workspace(const ChannelPlanes& planes);

}  // namespace cairn
