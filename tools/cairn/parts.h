// A batch that the ranks of a job run together: each takes its part of the rows, rank 0 has the results of all.
#pragma once

#include <vector>

#include "runtime/model.h"

namespace cairn::cli {

class Parts {
 public:
  /// Joins the job that `cairn launch` or mpirun started this process for; one rank where there is none.
  Parts();
  ~Parts();
  Parts(const Parts&) = delete;

  bool first() const { return rank_ == 0; }
  /// This rank's rows of the inputs whose first size the model leaves open. Throws Error invalid_argument where they cannot be cut.
  std::vector<Tensor> mine(const Model& model, std::vector<Tensor> inputs) const;
  /// The rows of all ranks on rank 0, in the order of ranks.
  std::vector<Tensor> together(const Model& model, std::vector<Tensor> outputs) const;

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace cairn::cli
