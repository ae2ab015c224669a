// What there is to say about a model and its plan: operators, parameters, FLOPs, memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "support/shape_options.h"

namespace cairn {

struct PlanTotals {
  double flops = 0;
  size_t arena = 0, live = 0, steps = 0;
  bool complete = true;  // false: a part is planned only when it runs
};
PlanTotals totals_of(const Plan& plan);
/// Elements of floating-point constants, each once.
double parameters_of(const Module& module);
/// How many nodes of the source model each of its operators has, most first.
std::vector<std::pair<std::string, size_t>> histogram(const Module& module);

/// -1 becomes an open size.
std::map<std::string, Shape> shapes_of(const std::vector<NamedDims>& inputs);
/// Whether people call the input so: as it is, as a tensor, or as the node of a SavedModel.
bool is_named(const std::string& input, const std::string& name);

}  // namespace cairn
