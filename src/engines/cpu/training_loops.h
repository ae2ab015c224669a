// The loops of the training kernels, sixteen channels at a time.
#pragma once

#include <cstdint>

#include "engines/cpu/window.h"
#include "support/executor.h"

namespace cairn {

/// Rows of `c` channels normalised with mean and biased variance over all rows. `workspace`: channel_workspace() bytes.
void batch_norm_training(Executor& executor, int64_t rows, int64_t c, float epsilon, const float* x, const float* scale,
                         const float* offset, float* y, float* mean, float* variance, float* workspace);

/// Its gradient by x, scale and offset.
void batch_norm_gradient(Executor& executor, int64_t rows, int64_t c, float epsilon, const float* dy, const float* x,
                         const float* scale, const float* mean, const float* variance, float* dx, float* dscale,
                         float* doffset, float* workspace);
size_t channel_workspace(int64_t rows, int64_t c);

/// The same of x [outer, c, inner], channels before the places.
struct ChannelPlanes {
  int64_t outer, c, inner;
};
void batch_norm_training(Executor& executor, const ChannelPlanes& planes, float epsilon, const float* x,
                         const float* scale, const float* offset, float* y, float* mean, float* variance);
void batch_norm_gradient(Executor& executor, const ChannelPlanes& planes, float epsilon, const float* dy,
                         const float* x, const float* scale, const float* mean, const float* variance, float* dx,
                         float* dscale, float* doffset);

/// Loss and gradient of each row; labels are shares, or null where `classes` has the row's class.
void cross_entropy(Executor& executor, int64_t rows, int64_t c, const float* logits, const float* labels,
                   const int64_t* wide_classes, const int32_t* classes, float* loss, float* gradient);

/// dx of all windows of dy; `spec.work` says which pooling, x is read by the largest only.
void pool_gradient(Executor& executor, const SlideSpec& spec, const float* x, const float* dy, float* dx);

void depthwise_input_gradient(Executor& executor, const SlideSpec& spec, const float* dy, const float* kernel,
                              float* dx);
void depthwise_kernel_gradient(Executor& executor, const SlideSpec& spec, const float* x, const float* dy, float* dk,
                               float* workspace);
size_t depthwise_workspace(const SlideSpec& spec);

}  // namespace cairn
