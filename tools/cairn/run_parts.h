// `cairn run` as one of several ranks: each runs its part of the batch, and rank 0 puts the results together.
#pragma once

#include <vector>

#include "ir/tensor.h"
#include "runtime/model.h"

namespace cairn::cli {

class RunParts {
 public:
  /// Joins the job when `cairn launch` has started this process as one of several ranks. Throws Error.
  RunParts();
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Rows of this rank of every input that begins with the batch; the others whole. Throws Error unsupported when the model
  /// has no batch, or an output that does not begin with it.
  std::vector<Tensor> part(const Model& model, const std::vector<Tensor>& inputs);
  /// Whether this rank has rows to run; rank 0 always has.
  bool has_rows() const { return rank_ == 0 || rows_of(rank_) > 0; }
  /// The outputs of all ranks on rank 0, on others nothing; every rank leaves the job.
  std::vector<Tensor> put_together(const Model& model, const std::vector<Tensor>& outputs);

 private:
  int64_t rows_of(int rank) const { return rows_ / size_ + (rank < rows_ % size_ ? 1 : 0); }

  int rank_ = 0, size_ = 1;
  int64_t rows_ = 0;  // of the batch
};

}  // namespace cairn::cli
