// The loops of the training kernels except batch normalisation, sixteen channels at a time.
#pragma once

#include <cstdint>

#include "engines/cpu/window.h"
#include "support/executor.h"

namespace cairn {

/// Loss and gradient of each row. `labels` are probabilities; null: `wide_classes` or `classes` has each row's class.
void cross_entropy(Executor& executor, int64_t rows, int64_t c, const float* logits, const float* labels,
                   const int64_t* wide_classes, const int32_t* classes, float* loss, float* gradient);

/// Whether no float is infinite or NaN.
bool all_finite(int64_t count, const float* from);

/// The elements of a window of maximum pooling that get its gradient: the first largest one, or each of several equal ones;
/// `gated`: if they are above 0.
struct Winners {
  bool all = false, gated = false;
};

/// dx of pooling, added up over all windows of dy; `spec.work` tells the kind of pooling. Only maximum pooling reads x.
void pool_gradient(Executor& executor, const SlideSpec& spec, Winners winners, const float* x, const float* dy,
                   float* dx);

void depthwise_input_gradient(Executor& executor, const SlideSpec& spec, const float* dy, const float* kernel,
                              float* dx);
void depthwise_kernel_gradient(Executor& executor, const SlideSpec& spec, const float* x, const float* dy, float* dk,
                               float* workspace);
size_t depthwise_workspace(const SlideSpec& spec);

}  // namespace cairn
