#include "plan/sibling.h"

#include <algorithm>
#include <unordered_map>

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
         std::equal(a.shape.dims.begin(), a.shape.dims.end(), b.shape.dims.begin(), b.shape.dims.end(),
                    alike_sizes);
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

Outline::Outline(const Plan& plan) {
  const Block& body = plan.function->body;
  std::unordered_map<const Value*, uint32_t> value;
  std::unordered_map<const Node*, uint32_t> node;
  const auto count = [](const auto& each, auto& numbers) {
    numbers.emplace(each.get(), static_cast<uint32_t>(numbers.size()));
  };
  for (const auto& param : body.params) count(param, value);
  for (const auto& each : body.nodes) {
    count(each, node);
    for (const Value* input : each->inputs) read_.push_back(value.at(input));
    for (const auto& result : each->results) count(result, value);
  }
  for (const Value* result : body.results) read_.push_back(value.at(result));
  for (const PlannedStep& step : plan.steps) {
    if (!step.engine && !step.control) continue;
    Item& item = items_.emplace_back(Item{&step, {}, {}, {}, {}});
    for (const Node* each : step.group.nodes) item.nodes.push_back(node.at(each));
    for (const Value* input : step.group.inputs) {
      item.inputs.push_back(value.at(input));
      if (constant_of(input)) item.constants.push_back(node.at(input->producer));
    }
    for (const Value* output : step.group.outputs) item.outputs.push_back(value.at(output));
  }
}

bool Sibling::match(const Function& function) {
  const Block& before = earlier_->function->body;
  const Block& now = function.body;
  if (!outline_ || before.params.size() != now.params.size() || before.nodes.size() != now.nodes.size() ||
      before.results.size() != now.results.size() || earlier_->function->updates != function.updates)
    return false;
  auto read = outline_->read_.begin();
  const auto reads = [&](const Value* value) { return values_[*read++] == value; };
  const auto pair = [&](const auto& a, const auto& b) {
    values_.push_back(b.get());
    return alike(a->type, b->type);
  };
  if (!std::equal(before.params.begin(), before.params.end(), now.params.begin(), pair)) return false;
  for (size_t i = 0; i < now.nodes.size(); ++i) {
    const Node& a = *before.nodes[i];
    const Node& b = *now.nodes[i];
    if (a.op != b.op || a.regions.size() != b.regions.size() || a.inputs.size() != b.inputs.size() ||
        !std::all_of(b.inputs.begin(), b.inputs.end(), reads) ||
        !std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(), pair))
      return false;
    nodes_.push_back(&b);
    unchanged_.push_back(a.regions.empty() && same_types(a, b) && same_attributes(a, b));
  }
  return std::all_of(now.results.begin(), now.results.end(), reads);
}

Group Sibling::renamed(const Outline::Item& item) const {
  Group now;
  for (const uint32_t node : item.nodes) now.nodes.push_back(nodes_[node]);
  for (const uint32_t value : item.inputs) now.inputs.push_back(values_[value]);
  for (const uint32_t value : item.outputs) now.outputs.push_back(values_[value]);
  return now;
}

bool Sibling::serves(size_t i) const {
  const Outline::Item& item = outline_->items_[i];
  const auto unchanged = [&](uint32_t node) { return unchanged_[node]; };
  return item.step->engine && std::all_of(item.nodes.begin(), item.nodes.end(), unchanged) &&
         std::all_of(item.constants.begin(), item.constants.end(), unchanged);
}

std::optional<Items> Sibling::items() const {
  Items items;
  for (size_t i = 0; i < outline_->items_.size(); ++i) {
    const PlannedStep& step = *outline_->items_[i].step;
    Item item{step.engine, renamed(outline_->items_[i])};
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
