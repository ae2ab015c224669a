// Shared by the rows of lists: TensorList, TensorArray, and variables that contain lists.
#pragma once

#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {

/// The elements of a list at the given indices, stacked.
Value* elements_at(OpContext& c, Value* list, Value* indices, const Type& element);
/// A new list with the parts of a tensor at the given indices, which must be 0, 1, 2, ...
Value* scattered(OpContext& c, Value* parts, Value* indices);
/// The element type by the attributes of a TensorArray's node.
Type array_element(OpContext& c);

}  // namespace cairn::tensorflow
