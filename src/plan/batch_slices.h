// Slices of the batch: where a batch's values are larger than the cache, a part of the function runs slice by slice.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Replaces parts of the block that compute each row of a batch by itself, and that move much memory for their arithmetic, by
/// scans (scans.h) over slices of the batch. Each row is computed as before, by kernels for fewer rows. Types must be static.
/// Returns the number of scans.
size_t slice_batches(Block& block);

}  // namespace cairn
