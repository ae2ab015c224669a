// Shared by the rows of training ops.
#pragma once

#include <optional>
#include <vector>

#include "frontends/fold.h"
#include "frontends/tensorflow/importer.h"
#include "ir/expression.h"

namespace cairn::tensorflow {

/// The sizes in a vector as far as they are known while importing: those of a constant, or of the tensor whose shape it
/// is. Nothing where not even their number is known.
std::optional<std::vector<Dim>> dims_told(const Value* vector);

/// Applies an op to x and a number of x's element type.
inline Var by_number(Var x, std::string_view op, double number) { return x.apply(op, {x.number(number)}); }

/// Folds a small result of constants at once.
inline Var folded(Var x) { return {*x.builder, cairn::folded(x.value, *x.builder)}; }

}  // namespace cairn::tensorflow
