#include "plan/loop_numbers.h"

#include <algorithm>

#include "ir/control.h"
#include "ir/evaluate.h"
#include "support/stop.h"

namespace cairn {

namespace {

constexpr int64_t kMostTurns = 1 << 12;

bool is_number(const Type& type) {
  return type.is_static() && (type.dtype.is_integer() || type.dtype == kBool) && type.dtype.bits >= 8 &&
         element_count(type.shape.sizes()) == 1;
}
bool is_list(const Type& type) { return type.kind == Type::Kind::list; }

/// The length of a list after the node.
std::optional<int64_t> length_after(const Node& node, int64_t length, std::optional<int64_t> number) {
  if (node.is("list_push")) return length + 1;
  if (node.is("list_pop") && length > 0) return length - 1;
  if (node.is("list_resize") && number && *number >= 0) return *number;
  if (node.is("list_set") && number && *number >= 0 && (*number < length || node.attr().boolean("grow")))
    return std::max(length, *number + 1);
  return {};
}

bool changes_length(const Node& node) {
  return node.is("list_push") || node.is("list_pop") || node.is("list_resize") || node.is("list_set");
}
bool has_index(const Node& node) { return node.is("list_resize") || node.is("list_set"); }

}  // namespace

LoopNumbers::LoopNumbers(const Node& loop, const Known& known)
    : loop_(loop), condition_(*loop.regions[0]), body_(*loop.regions[1]), elements_(body_.params.size()),
      last_(carried_count(loop)) {
  find_origins();
  find_known(known);
  if (now_.contains(condition_.results[0])) follow();
}

const std::vector<int64_t>* LoopNumbers::of(const Value* value) const {
  const auto found = by_turn_.find(value);
  return found == by_turn_.end() ? nullptr : &found->second;
}

std::optional<size_t> LoopNumbers::origin(const Value* list) const {
  const auto found = origins_.find(list);
  return found == origins_.end() ? std::nullopt : std::optional(found->second);
}

void LoopNumbers::find_origins() {
  for (size_t i = 0; i < body_.params.size(); ++i)
    if (is_list(body_.params[i]->type)) origins_[body_.params[i].get()] = i;
  for (const auto& node : body_.nodes)
    if (node->is("list_pop") || node->is("list_resize"))
      if (const auto from = origin(node->inputs[0])) origins_[node->result()] = *from;
  for (size_t i = 0; i < carried_count(loop_); ++i) {
    if (origin(body_.results[i]) == i) continue;
    std::erase_if(origins_, [&](const auto& entry) { return entry.second == i; });
  }
}

bool LoopNumbers::can_know(const Node& node) const {
  const auto known = [&](const Value* value) { return now_.contains(value); };
  if (changes_length(node)) return known(node.inputs[0]) && (!has_index(node) || known(node.inputs[1]));
  if (node.is("list_size")) return known(node.inputs[0]);
  return node.results.size() == 1 && is_number(node.result()->type) && node.regions.empty() && node.op->pure() &&
         !node.op->has(kHostValue | kControl) && node.op->reference &&
         std::all_of(node.inputs.begin(), node.inputs.end(), known);
}

// Creates entries of now_ for the values that are known in every iteration (fixed point: carried values that are
// unknown in some iteration lose their entry).
void LoopNumbers::find_known(const Known& known) {
  const size_t carried = carried_count(loop_);
  std::vector<std::optional<Tensor>> start(loop_.inputs.size());
  for (size_t i = 0; i < start.size(); ++i) {
    const Type& type = body_.params[i]->type;
    if (!is_number(type) && !is_list(type)) continue;
    start[i] = known.value(loop_.inputs[i]);
    if (start[i] && start[i]->count() != 1) start[i].reset();
    if (!is_list(type) || origin(body_.params[i].get()) != i) continue;
    const std::optional<Tensor> all = known.elements(loop_.inputs[i]);
    if (all && is_number(Type::tensor(all->dtype(), Shape::of({all->count() / std::max<int64_t>(all->dims()[0], 1)}))))
      elements_[i] = *all;
  }
  for (bool changed = true; changed;) {
    changed = false;
    now_.clear();
    for (const Block* region : {&condition_, &body_})
      for (size_t i = 0; i < start.size(); ++i)
        if (start[i]) now_[region->params[i].get()] = *start[i];
    for (const Block* region : {&condition_, &body_})
      for (const auto& node : region->nodes) {
        if (node->results.size() == 1 && constant_of(node->result())) {
          now_[node->result()] = *constant_of(node->result());
        } else if (can_know(*node)) {
          now_[node->result()];
          if (node->is("list_pop") && origin(node->inputs[0]) && elements_[*origin(node->inputs[0])].defined())
            now_[node->result(1)];
        }
      }
    for (size_t i = 0; i < carried; ++i) {
      if (!start[i] || now_.contains(body_.results[i])) continue;
      start[i].reset();
      changed = true;
    }
  }
}

Tensor LoopNumbers::element_popped(const Node& pop) const {
  const Tensor& all = elements_[*origin(pop.inputs[0])];
  const int64_t length = now_.at(pop.inputs[0]).as_i64()[0];
  CHECK(length > 0 && length <= all.count(), "{} of {}", length, all.count());
  const auto size = storage_bytes(all.dtype(), 1);
  const Tensor one =
      Tensor::view(all.dtype(), std::vector<int64_t>(all.rank() - 1, 1),
                   static_cast<const char*>(all.data()) + (length - 1) * static_cast<int64_t>(size), nullptr);
  return one.owned();
}

// The value of a result; an undefined tensor if the node would fail at run time.
Tensor LoopNumbers::computed(const Node& node, size_t result) const {
  if (node.is("list_size")) return now_.at(node.inputs[0]);
  if (changes_length(node)) {
    const int64_t length = now_.at(node.inputs[0]).as_i64()[0];
    if (result == 1) return length > 0 ? element_popped(node) : Tensor();
    std::optional<int64_t> number;
    if (has_index(node)) number = now_.at(node.inputs[1]).as_i64()[0];
    const auto after = length_after(node, length, number);
    return after ? Tensor::scalar_i64(*after) : Tensor();
  }
  std::vector<HostValue> inputs;
  for (const Value* input : node.inputs) inputs.push_back({now_.at(input), nullptr});
  try {
    return evaluate(node, inputs)[0].tensor;
  } catch (const Error& fault) {
    if (fault.kind() == ErrorKind::cancelled) throw;
    return {};
  }
}

void LoopNumbers::follow() {
  const auto fill = [&](const Block& region) {
    for (const auto& node : region.nodes)
      for (size_t r = node->results.size(); r-- > 0;) {
        const auto known = now_.find(node->result(r));
        if (known == now_.end() || constant_of(node->result(r))) continue;
        known->second = computed(*node, r);
        if (!known->second.defined()) return false;
      }
    return true;
  };
  std::unordered_map<const Value*, std::vector<int64_t>> by_turn;
  int64_t turns = 0;
  while (true) {
    stop_point();
    if (!fill(condition_)) return;
    if (!truth({now_.at(condition_.results[0]), nullptr})) break;
    if (turns == kMostTurns || !fill(body_)) return;
    for (const auto& param : body_.params)
      if (const auto known = now_.find(param.get()); known != now_.end())
        by_turn[param.get()].push_back(known->second.as_i64()[0]);
    for (const auto& node : body_.nodes)
      for (const auto& result : node->results)
        if (const auto known = now_.find(result.get());
            known != now_.end() && known->second.count() == 1 && known->second.dtype().is_integer())
          by_turn[result.get()].push_back(known->second.as_i64()[0]);
    ++turns;
    std::vector<std::optional<Tensor>> next(carried_count(loop_));
    for (size_t i = 0; i < next.size(); ++i)
      if (now_.contains(body_.params[i].get())) next[i] = now_.at(body_.results[i]);
    for (size_t i = 0; i < next.size(); ++i)
      if (next[i]) now_[body_.params[i].get()] = now_[condition_.params[i].get()] = *next[i];
  }
  by_turn_ = std::move(by_turn);
  for (size_t i = 0; i < last_.size(); ++i)
    if (const auto known = now_.find(body_.params[i].get()); known != now_.end()) last_[i] = known->second;
  turns_ = turns;
}

}  // namespace cairn
