// What Caffe's layers that choose boxes share: suppression within each class, and the best of all classes.
#pragma once

#include "frontends/caffe/importer.h"
#include "ir/expression.h"

namespace cairn::caffe {

/// Column `at` of the last dim, which stays with size 1.
Var column(Var x, int64_t at);
/// x [images, n, ..] at places [images, k]: [images, k, ..].
Var picked(Var x, Var places);
/// The parts along an axis.
Var beside(const std::vector<Var>& parts, int64_t axis);
/// An f32 constant.
Var numbers(Builder& builder, std::vector<int64_t> dims, const std::vector<float>& values);

/// The scores [images, classes, n] of boxes [images, n, 4], or [images, classes, n, 4] where each class has its own, that stay: of the
/// `most` best of a class those above `least` that no better one overlaps by more than `iou`. The others become -inf.
Var surviving(LayerContext& c, Var boxes, Var scores, int64_t most, double iou, double least);

/// The best boxes of each image, by class and then by falling score; behind them stand others with a score of -inf.
struct Best {
  Var score, place;  // f32, i64 [images, k]; a place is class * n + box
  Var count;         // i64 [images, 1]
};
/// Of scores [images, classes, n], at most `most`.
Best best_of(LayerContext& c, Var scores, int64_t most);

/// Rows [images, k, width] that hold boxes, zeros in the others, and behind them up to `rows` rows.
Var padded_rows(LayerContext& c, Var x, const Best& best, int64_t rows);
/// Counts as the platform gives them: i32[images, 8], the first is the number.
Value* counts(const Best& best);

}  // namespace cairn::caffe
