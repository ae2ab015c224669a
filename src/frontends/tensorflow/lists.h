// What the rows of lists share: those of TensorList and TensorArray, and those of variables that hold lists.
#pragma once

#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {

/// The elements of a list at the given places, stacked.
Value* elements_at(OpContext& c, Value* list, Value* indices, const Type& element);
/// A new list with the parts of a tensor at the given places, which must be all in order.
Value* scattered(OpContext& c, Value* parts, Value* indices);
/// The element type that a TensorArray's node tells.
Type array_element(OpContext& c);

}  // namespace cairn::tensorflow
