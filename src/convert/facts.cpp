#include "convert/facts.h"

#include <algorithm>
#include <unordered_set>

#include "ir/result_marks.h"

namespace cairn {

PlanTotals totals_of(const Plan& plan) {
  PlanTotals totals;
  totals.steps = plan.steps.size();
  totals.live = plan.live_bytes;
  for (const auto& [space, bytes] : plan.arena_bytes) totals.arena += bytes;
  for (const PlannedStep& step : plan.steps) {
    totals.flops += step.cost.flops;
    if (step.control) totals.complete = false;
  }
  if (plan.rest) totals.complete = false;
  return totals;
}

double parameters_of(const Module& module) {
  double total = 0;
  std::unordered_set<const void*> seen;
  for (const auto& function : module.functions)
    for_each_block(function->body, [&](Block& block) {
      for (const auto& node : block.nodes)
        for (const auto& [name, value] : node->attributes) {
          const Tensor* tensor = std::get_if<Tensor>(&value);
          if (tensor && tensor->dtype().is_float() && seen.insert(tensor->data()).second)
            total += static_cast<double>(tensor->count());
        }
    });
  return total;
}

std::vector<std::pair<std::string, size_t>> histogram(const Module& module) {
  std::map<std::string, size_t> counts;
  for (const Source& source : module.sources)
    if (!result_mark(source)) ++counts[source.op];
  if (counts.empty())
    for (const auto& function : module.functions)
      for_each_block(function->body, [&](Block& block) {
        for (const auto& node : block.nodes) ++counts[node->op->name];
      });
  std::vector<std::pair<std::string, size_t>> list(counts.begin(), counts.end());
  std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.second > b.second; });
  return list;
}

std::map<std::string, Shape> shapes_of(const std::vector<NamedDims>& inputs) {
  std::map<std::string, Shape> shapes;
  for (const NamedDims& input : inputs) {
    std::vector<Dim> dims;
    for (int64_t size : input.dims) dims.push_back(size < 0 ? Dim() : Dim(size));
    shapes[input.name] = Shape(std::move(dims));
  }
  return shapes;
}

bool is_named(const std::string& input, const std::string& name) {
  const std::string plain = name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
  const std::string own = input.ends_with(":0") ? input.substr(0, input.size() - 2) : input;
  return plain == own || plain == "serving_default_" + own;
}

}  // namespace cairn
