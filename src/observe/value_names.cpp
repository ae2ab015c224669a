#include "observe/value_names.h"

#include <algorithm>
#include <map>

#include "ir/result_marks.h"

namespace cairn {

ValueNames::ValueNames(const Module& module) : module_(module), marked_(marked_sources(module)) {}

ValueName ValueNames::inner(const Value& value) const {
  ValueName name{origin_of(module_, *value.producer), {value.index}, true};
  if (!value.producer->sources.empty()) name.origin.name += fmt::format(":{}", value.producer->op->name);
  name.origin.op = value.producer->op->name;
  return name;
}

ValueName ValueNames::of(const Value& value) const {
  ValueName name{origin_of(module_, *value.producer), {}, false};
  if (!marked_.contains(name.origin.name)) {
    name.places = {value.index};
    return name;
  }
  for (SourceId id : value.producer->sources) {
    if (id >= module_.sources.size() || module_.sources[id].name != name.origin.name) continue;
    if (auto mark = result_mark(module_.sources[id]); mark && mark->own == value.index)
      name.places.push_back(mark->index);
  }
  return name.places.empty() ? inner(value) : name;
}

namespace {

/// The name of an input by the first node of the step's group that reads it, and the operand's number there.
ValueName operand_name(const ValueNames& names, const Module& module, const PlannedStep& step, size_t input) {
  const Value* value = step.group.inputs[input];
  for (const Node* node : step.group.nodes) {
    auto found = std::find(node->inputs.begin(), node->inputs.end(), value);
    if (found == node->inputs.end()) continue;
    const auto place = static_cast<size_t>(found - node->inputs.begin());
    // A value that another node of the same source made is not an operand of the source node.
    const bool inner =
        value->producer && !node->sources.empty() && value->producer->sources == node->sources && !constant_of(value);
    ValueName name = inner && !node->results.empty() ? names.inner(*node->result()) : ValueName{};
    if (!name.inner) name.origin = origin_of(module, *node);
    name.places = {place};
    return name;
  }
  return {origin_of(module, step), {input}, false};
}

using Views = std::unordered_map<const Value*, std::vector<const Value*>>;

/// Views: values that alias a step's output in another shape and have no step of their own.
Views views_of(const Plan& plan) {
  Views views;
  if (!plan.function) return views;
  std::unordered_set<const Value*> made;
  for (const PlannedStep& step : plan.steps) made.insert(step.group.outputs.begin(), step.group.outputs.end());
  std::unordered_map<const Value*, const Value*> root;
  for (const auto& node : plan.function->body.nodes) {
    if (!node->op->has(kView) || made.contains(node->result())) continue;
    auto from = root.find(node->inputs[0]);
    const Value* value = from == root.end() ? node->inputs[0] : from->second;
    root[node->result()] = value;
    views[value].push_back(node->result());
  }
  return views;
}

/// The name of the value, or that of a view of it if the view is the result of its source node.
ValueName result_name(const ValueNames& names, const Views& views, const Value& value) {
  ValueName name = names.of(value);
  auto found = views.find(&value);
  if (!name.inner || found == views.end()) return name;
  for (const Value* view : found->second) {
    ValueName other = names.of(*view);
    if (!other.inner && name.origin.name.starts_with(other.origin.name + ":")) return other;
  }
  return name;
}

/// Whether the step only gives numbers that another step has made a wider type.
bool only_widens(const PlannedStep& step) {
  return std::ranges::all_of(step.group.nodes, [](const Node* node) {
    if (!node->is("cast")) return false;
    const DType from = node->inputs[0]->type.dtype, to = node->result()->type.dtype;
    return from.is_float() && to.is_float() && from.bits < to.bits;
  });
}

}  // namespace

std::vector<StepNames> step_names(const Plan& plan, const Module& module) {
  const ValueNames names(module);
  const Views views = views_of(plan);
  std::vector<StepNames> steps(plan.steps.size());
  std::map<std::pair<std::string, size_t>, std::pair<size_t, size_t>> last;  // step and output of a result
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlannedStep& step = plan.steps[i];
    if (step.group.nodes.empty()) continue;
    for (size_t k = 0; k < step.group.inputs.size(); ++k)
      steps[i].inputs.push_back(operand_name(names, module, step, k));
    for (size_t k = 0; k < step.group.outputs.size(); ++k) {
      const Value* value = step.group.outputs[k];
      ValueName& name = steps[i].outputs.emplace_back();
      if (!value->producer) continue;
      name = result_name(names, views, *value);
      for (size_t place : name.places) {
        const std::pair key(name.origin.name, place);
        if (!name.inner && !(only_widens(step) && last.contains(key))) last[key] = {i, k};
      }
    }
  }
  for (size_t i = 0; i < steps.size(); ++i)
    for (size_t k = 0; k < steps[i].outputs.size(); ++k) {
      ValueName& name = steps[i].outputs[k];
      if (name.inner || name.places.empty()) continue;
      std::erase_if(name.places, [&](size_t place) { return last[{name.origin.name, place}] != std::pair(i, k); });
      if (name.places.empty()) name = names.inner(*plan.steps[i].group.outputs[k]);
    }
  return steps;
}

}  // namespace cairn
