// What one rank does in a training step, out of a recording of it: how long it computes, and when which gradient is there.
#pragma once

#include <string>
#include <vector>

#include "profile/recording.h"

namespace cairn::simulate {

struct Gradient {
  std::string name;  // the source node of the step that makes it
  double bytes = 0;
  double ready = 0;  // seconds of computing after the step's begin
};

struct Workload {
  std::string name;    // of the model
  double seconds = 0;  // of computing in a step: the median over the steps, without the first
  double spread = 0;   // standard deviation of that, from the median deviation
  size_t steps = 0;    // that were measured
  int threads = 1;
  std::vector<Gradient> gradients;  // in the order in which they are there

  double bytes() const;
};

/// Throws Error invalid_argument where the recording holds no training.
Workload read_workload(const profile::Recording& recording);

}  // namespace cairn::simulate
