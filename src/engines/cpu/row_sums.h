// Sums of f32 rows that indices name: products of sparse and dense matrices, sums of embeddings, their gradients.
#pragma once

#include <cstdint>

namespace cairn {

/// Row rows[k] of `to` += weights[k] x row sources[k] of `from`, k from 0 to below count in this order, unless rows[k] is negative.
/// Rows have `inner` floats.
struct RowSums {
  int64_t count, inner;
  const int64_t *sources, *rows;
  const float* weights;  // or null: each is 1
  const float* from;
  float* to;
  int64_t* begun;  // or null; for rows that ascend: how many rows of `to` have numbers, the others begin as 0
};

/// Equal rows side by side are added up in registers.
void add_rows(const RowSums& sums);

}  // namespace cairn
