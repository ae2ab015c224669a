// What acts otherwise in training: batch norms by the statistics of the batch, which also move the kept ones, and dropout.
#pragma once

#include <set>
#include <string>

#include "ir/module.h"

namespace cairn {

/// Batch norms that a file has in training form, with the statistics that it keeps beside them, take the form of inference.
void use_kept_statistics(Function& function);

/// The names of the constants that batch norms of the function's body use as mean and variance.
std::set<std::string> statistics_of(const Function& function);

/// Batch norms whose statistics are params take those of the batch. Returns the new content of each such param, where
/// `momentum` is the share of the old one and the variance is the unbiased one.
std::vector<std::pair<Value*, Value*>> use_batch_statistics(Function& function, double momentum);

/// Dropouts draw: `state` is the random state that they start from. Returns what it is afterwards.
Value* use_dropout(Function& function, Value* state);
bool has_dropout(const Function& function);

}  // namespace cairn
