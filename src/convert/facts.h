// Facts about a model and its plan: operators, parameters, FLOPs, memory.
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
/// The number of elements of all float constants; each constant counts once.
double parameters_of(const Module& module);
/// The number of nodes of the source model for each operator, most frequent first.
std::vector<std::pair<std::string, size_t>> histogram(const Module& module);

/// The shapes by input name; -1 becomes an unknown dim.
std::map<std::string, Shape> shapes_of(const std::vector<NamedDims>& inputs);
/// Whether `name` may refer to the input: its exact name, its tensor name, or the node name of a SavedModel.
bool is_named(const std::string& input, const std::string& name);

}  // namespace cairn
