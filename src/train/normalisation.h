// Ops that behave differently in training: batch norms use the statistics of the batch and update the running ones;
// dropout.
#pragma once

#include <set>
#include <string>

#include "ir/module.h"

namespace cairn {

/// Converts batch norms in training form that also have running statistics to inference form.
void use_kept_statistics(Function& function);

/// The names of the constants that the body's batch norms use as mean and variance.
std::set<std::string> statistics_of(const Function& function);

/// Makes batch norms whose statistics are params use those of the batch. Returns each such param with its new content;
/// `momentum` is the weight of the old content, and the unbiased variance is used.
std::vector<std::pair<Value*, Value*>> use_batch_statistics(Function& function, double momentum);

/// Makes dropout ops active, starting from the random state `state`. Returns the random state after them.
Value* use_dropout(Function& function, Value* state);
bool has_dropout(const Function& function);

}  // namespace cairn
