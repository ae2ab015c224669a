#include "plan/sibling.h"

#include <algorithm>

namespace cairn {

namespace {

/// Whether the dims are of one kind: the same number, or two where neither is broadcast and which are of one magnitude.
bool alike_sizes(const Dim& a, const Dim& b) {
  if (!a.known() || !b.known() || a.size < 2 || b.size < 2) return a.size == b.size;
  return a.size <= 2 * b.size && b.size <= 2 * a.size;
}

bool alike(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a == b;
  return a.dtype == b.dtype && a.shape.ranked == b.shape.ranked &&
         std::equal(a.shape.dims.begin(), a.shape.dims.end(), b.shape.dims.begin(), b.shape.dims.end(), alike_sizes);
}

bool same_attributes(const Node& a, const Node& b) {
  return std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(), b.attributes.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); });
}

bool same_types(const Node& a, const Node& b) {
  const auto same_type = [](const auto& x, const auto& y) { return x->type == y->type; };
  return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), same_type) &&
         std::equal(a.results.begin(), a.results.end(), b.results.begin(), same_type);
}

}  // namespace

std::optional<Sibling> Sibling::find(const Plan& earlier, const Function& function) {
  Sibling found(earlier);
  if (!found.match(function)) return std::nullopt;
  return found;
}

bool Sibling::may_serve(const Plan& earlier, std::span<const std::vector<int64_t>> dims) {
  const auto& params = earlier.function->body.params;
  return std::equal(params.begin(), params.end(), dims.begin(), dims.end(), [](const auto& param, const auto& sizes) {
    if (!param->type.is_tensor()) return true;
    const auto& known = param->type.shape.dims;
    return std::equal(known.begin(), known.end(), sizes.begin(), sizes.end(), alike_sizes);
  });
}

Sibling::Sibling(const Plan& earlier) : earlier_(&earlier) {
  for (const PlannedStep& step : earlier.steps)
    if (step.engine || step.control) steps_.push_back(&step);
}

bool Sibling::match(const Function& function) {
  const Block& before = earlier_->function->body;
  const Block& now = function.body;
  if (before.params.size() != now.params.size() || before.nodes.size() != now.nodes.size() ||
      before.results.size() != now.results.size() || earlier_->function->updates != function.updates)
    return false;
  value_.reserve(2 * now.nodes.size());
  node_.reserve(now.nodes.size());
  unchanged_.reserve(now.nodes.size());
  const auto pair = [&](const auto& a, const auto& b) {
    value_.try_emplace(a.get(), b.get());
    return alike(a->type, b->type);
  };
  const auto paired = [&](const Value* a, const Value* b) { return value_.at(a) == b; };
  if (!std::equal(before.params.begin(), before.params.end(), now.params.begin(), pair)) return false;
  for (size_t i = 0; i < now.nodes.size(); ++i) {
    const Node& a = *before.nodes[i];
    const Node& b = *now.nodes[i];
    if (a.op != b.op || a.regions.size() != b.regions.size() ||
        !std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), paired) ||
        !std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(), pair))
      return false;
    node_.try_emplace(&a, &b);
    if (a.regions.empty() && same_types(a, b) && same_attributes(a, b)) unchanged_.insert(&a);
  }
  return std::equal(before.results.begin(), before.results.end(), now.results.begin(), paired);
}

Group Sibling::renamed(const Group& group) const {
  Group now;
  for (const Node* node : group.nodes) now.nodes.push_back(node_.at(node));
  for (const Value* value : group.inputs) now.inputs.push_back(value_.at(value));
  for (const Value* value : group.outputs) now.outputs.push_back(value_.at(value));
  return now;
}

bool Sibling::serves(size_t i) const {
  const Group& group = steps_[i]->group;
  return steps_[i]->engine &&
         std::all_of(group.nodes.begin(), group.nodes.end(),
                     [&](const Node* node) { return unchanged_.count(node); }) &&
         std::all_of(group.inputs.begin(), group.inputs.end(),
                     [&](const Value* input) { return !constant_of(input) || unchanged_.count(input->producer); });
}

std::optional<Items> Sibling::items() const {
  Items items;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const PlannedStep& step = *steps_[i];
    Item item{step.engine, renamed(step.group)};
    if (step.engine && !serves(i) && !step.engine->takes_as(item.group, step.group)) return std::nullopt;
    items.nodes.insert(item.group.nodes.begin(), item.group.nodes.end());
    items.list.push_back(std::move(item));
  }
  for (size_t i = 0; i < items.list.size(); ++i)
    for (const Value* input : items.list[i].group.inputs)
      if (const Value* made = items.behind_views(input); !made->producer) items.readers[made].push_back(i);
  return items;
}

}  // namespace cairn
