// What the rows of training share.
#pragma once

#include <optional>
#include <vector>

#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {

/// A scalar of the element type of `like`.
Value* number_like(OpContext& c, const Value* like, double value);

/// The sizes in a vector as far as they are known while importing: those of a constant, or of the tensor whose shape it
/// is. Nothing where not even their number is known.
std::optional<std::vector<Dim>> dims_told(const Value* vector);

}  // namespace cairn::tensorflow
