// Gradients of nodes with regions and of calls.
#include <algorithm>

#include "autodiff/calls.h"
#include "autodiff/sweep.h"
#include "ir/control.h"

namespace cairn {

namespace {

std::unique_ptr<Value> new_param(const Type& type, std::string name) {
  auto value = std::make_unique<Value>();
  value->type = type;
  value->name = std::move(name);
  return value;
}

void append_param(Block& block, std::unique_ptr<Value> param) {
  param->index = static_cast<uint32_t>(block.params.size());
  block.params.push_back(std::move(param));
}

// Returns the outer values that the backward regions capture, and gives every region a param for each of them.
std::vector<Value*> append_captures(std::vector<Sweep>& sweeps) {
  std::vector<Value*> outer;
  for (Sweep& sweep : sweeps)
    for (const auto& [value, param] : sweep.captures)
      if (std::find(outer.begin(), outer.end(), value) == outer.end()) outer.push_back(value);
  for (Sweep& sweep : sweeps)
    for (Value* value : outer) {
      const auto own = std::find_if(sweep.captures.begin(), sweep.captures.end(),
                                    [&](const auto& capture) { return capture.first == value && capture.second; });
      append_param(*sweep.backward,
                   own == sweep.captures.end() ? new_param(value->type, value->name) : std::move(own->second));
    }
  return outer;
}

bool any_of(const std::vector<bool>& list) { return std::find(list.begin(), list.end(), true) != list.end(); }

}  // namespace

// The backward node is an `if` on the same condition; each of its branches differentiates the matching forward branch.
Differentiator::Gradients Differentiator::of_branches(Sweep& sweep, Node& node, const Gradients& given) {
  std::vector<std::unique_ptr<Block>> regions;
  std::vector<Sweep> sweeps(node.regions.size());
  std::vector<bool> reached(node.inputs.size(), false);
  std::vector<std::vector<std::unique_ptr<Value>>> cotangents(node.regions.size());
  for (size_t r = 0; r < node.regions.size(); ++r) {
    Block& branch = *node.regions[r];
    regions.push_back(std::make_unique<Block>());
    Sweep& inner = sweeps[r];
    inner.first_capture = 0;
    inner.node = &node;
    open(inner, branch, *regions[r]);
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i]) continue;
      cotangents[r].push_back(new_param(given[i]->type, ""));
      seed(inner, branch.results[i], cotangents[r].back().get());
    }
    run(inner);
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (wants(node, i) && inner.gradient(branch.params[i - 1].get())) reached[i] = true;
  }
  if (!any_of(reached)) return Gradients(node.inputs.size(), nullptr);
  for (size_t r = 0; r < sweeps.size(); ++r) {
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (reached[i])
        regions[r]->results.push_back(gradient_or_zeros(sweeps[r], sweeps[r].forward->params[i - 1].get()));
    close(sweeps[r]);
  }
  std::vector<Value*> inputs = append_captures(sweeps);
  inputs.insert(inputs.begin(), node.inputs[0]);
  for (size_t r = 0; r < sweeps.size(); ++r)
    for (auto& cotangent : cotangents[r]) append_param(*regions[r], std::move(cotangent));
  for (Value* each : given)
    if (each) inputs.push_back(each);
  Builder builder = backward_builder(sweep, node);
  const Node* made = builder.add_node(*node.op, std::move(inputs), {}, std::move(regions));
  Gradients gradients(node.inputs.size(), nullptr);
  for (size_t i = 1, result = 0; i < node.inputs.size(); ++i)
    if (reached[i]) gradients[i] = made->result(result++);
  return gradients;
}

namespace {

// The carried values whose gradients the backward loop must carry, given which have a gradient after the loop.
std::vector<bool> carried_back(const Block& body, const std::vector<Value*>& given) {
  std::vector<bool> results;
  for (const Value* each : given) results.push_back(each != nullptr);
  while (true) {
    const std::vector<bool> params = params_reaching(body, results);
    bool changed = false;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!params[i] || results[i]) continue;
      results[i] = changed = true;
    }
    if (!changed) return results;
  }
}

// Makes the loop count its iterations; returns the count after the loop.
Value* count_turns(Block& block, Node& loop) {
  Block start;
  Builder before(start);
  Value* zero = before.constant(Tensor::scalar_i64(0));
  const auto inside = add_carried(loop, {zero});
  Block& body = *loop.regions[1];
  Builder builder(body);
  body.results.push_back(builder.add("add", {inside[1][0], builder.constant(Tensor::scalar_i64(1))}));
  auto place =
      std::find_if(block.nodes.begin(), block.nodes.end(), [&](const auto& each) { return each.get() == &loop; });
  block.nodes.insert(place, std::move(start.nodes[0]));
  return add_result(loop, Type::tensor(kI64, Shape()));
}

// Fills in the condition of a loop whose first carried value is the number of iterations left.
void continue_while_left(Block& condition, const Block& body) {
  for (const auto& param : body.params) append_param(condition, new_param(param->type, param->name));
  Builder builder(condition);
  condition.results = {builder.add("greater", {condition.params[0].get(), builder.constant(Tensor::scalar_i64(0))})};
}

}  // namespace

// The backward node is a loop over the iterations in reverse order. It carries the number of iterations left, the
// gradients of carried values, and the gradients of loop-invariant inputs, summed over the iterations.
Differentiator::Gradients Differentiator::of_loop(Sweep& sweep, Node& node, Gradients given) {
  Block& body = *node.regions[1];
  std::vector<bool> back = carried_back(body, given);
  Value* turns = count_turns(*sweep.forward, node);
  if (!sweep.in_one_block()) sweep.forward_values.insert(turns);
  const size_t carried = carried_count(node);
  for (size_t i = 0; i < back.size(); ++i) back[i] = back[i] && active_(body.params[i].get());
  given.push_back(nullptr);
  back.push_back(false);

  std::vector<std::unique_ptr<Block>> regions;
  regions.push_back(std::make_unique<Block>());
  regions.push_back(std::make_unique<Block>());
  std::vector<Sweep> sweeps(1);
  Sweep& inner = sweeps[0];
  inner.first_capture = carried;
  inner.node = &node;
  open(inner, body, *regions[1]);
  append_param(*regions[1], new_param(Type::tensor(kI64, Shape()), "left"));
  std::vector<Value*> inputs{turns};
  for (size_t i = 0; i < carried; ++i) {
    if (!back[i]) continue;
    append_param(*regions[1], new_param(body.params[i]->type, ""));
    seed(inner, body.results[i], regions[1]->params.back().get());
    inputs.push_back(given[i] ? given[i] : zeros(sweep, node.result(i)));
  }
  run(inner);

  Builder builder(*regions[1]);
  regions[1]->results.push_back(
      builder.add("sub", {regions[1]->params[0].get(), builder.constant(Tensor::scalar_i64(1))}));
  Gradients gradients(node.inputs.size(), nullptr);
  std::vector<size_t> which;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool stays = i >= carried && wants(node, i) && inner.gradient(body.params[i].get());
    if (!stays && !(i < carried && back[i])) continue;
    which.push_back(i);
    Value* gradient = gradient_or_zeros(inner, body.params[i].get());
    if (stays) {
      append_param(*regions[1], new_param(body.params[i]->type, ""));
      inputs.push_back(zeros(sweep, node.inputs[i]));
      Value* so_far = regions[1]->params.back().get();
      gradient = sum(builder, so_far, gradient);
    }
    regions[1]->results.push_back(gradient);
  }
  close(inner);
  const auto count = static_cast<int64_t>(inputs.size());
  const std::vector<Value*> captures = append_captures(sweeps);
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  continue_while_left(*regions[0], *regions[1]);
  Builder outer = backward_builder(sweep, node);
  const Node* made = outer.add_node(*node.op, std::move(inputs), {{kCarried, Attribute(count)}}, std::move(regions));
  for (size_t i = 0; i < which.size(); ++i) gradients[which[i]] = made->result(i + 1);
  return gradients;
}

Differentiator::Gradients Differentiator::of_call(Sweep& sweep, Node& node, const Gradients& given) {
  if (has_backward(node)) return of_custom_call(sweep, node, given);
  if (recomputes(node)) return of_recomputed_call(sweep, node, given);
  Key key{callee_of(module_, node)->name, {}, {}};
  for (size_t i = 0; i < node.inputs.size(); ++i) key.wanted.push_back(wants(node, i));
  std::vector<Value*> inputs;
  for (Value* each : given) {
    key.given.push_back(each != nullptr);
    if (each) inputs.push_back(each);
  }
  const Pair& pair = pair_of(key);
  node.attributes.set(kCallee, FunctionName{pair.forward->name});
  std::vector<Type> types;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (key.wanted[i]) types.push_back(pair.forward->body.params[i]->type);
  Builder builder = backward_builder(sweep, node);
  const Node* made = builder.add_node(*node.op, std::move(inputs),
                                      {{kCallee, Attribute(FunctionName{pair.backward->name})}}, {}, types);
  Gradients gradients(node.inputs.size(), nullptr);
  for (size_t i = 0, result = 0; i < node.inputs.size(); ++i)
    if (key.wanted[i]) gradients[i] = made->result(result++);
  return gradients;
}

Differentiator::Gradients Differentiator::of_custom_call(Sweep& sweep, Node& node, const Gradients& given) {
  const std::string& name = backward_of(node);
  Function* rule = module_.find(name);
  if (!rule) fail(ErrorKind::invalid_model, where(module_, node), "{}: no function @{}", node.op->name, name);
  std::vector<Value*> inputs = node.inputs;
  for (const auto& result : node.results) inputs.push_back(result.get());
  for (size_t i = 0; i < given.size(); ++i)
    if (is_differentiable(node.result(i)->type)) inputs.push_back(given[i] ? given[i] : zeros(sweep, node.result(i)));
  std::vector<size_t> which;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (is_differentiable(node.inputs[i]->type)) which.push_back(i);
  if (rule->body.params.size() != inputs.size() || rule->body.results.size() != which.size())
    fail(ErrorKind::invalid_model, where(module_, node),
         "@{} takes {} values and yields {}, expected {} (inputs, results, gradients of float results) and {}", name,
         rule->body.params.size(), rule->body.results.size(), inputs.size(), which.size());
  Builder builder = backward_builder(sweep, node);
  const std::vector<Value*> made = builder.call(*rule, std::move(inputs));
  Gradients gradients(node.inputs.size(), nullptr);
  for (size_t i = 0; i < which.size(); ++i) gradients[which[i]] = made[i];
  return gradients;
}

// The backward call recomputes the callee, then its gradients, so that no intermediate value is kept.
Differentiator::Gradients Differentiator::of_recomputed_call(Sweep& sweep, Node& node, const Gradients& given) {
  Key key{callee_of(module_, node)->name, {}, {}};
  std::vector<Type> types;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    key.wanted.push_back(wants(node, i));
    if (key.wanted[i]) types.push_back(node.inputs[i]->type);
  }
  std::vector<Value*> cotangents;
  for (Value* each : given) {
    key.given.push_back(each != nullptr);
    if (each) cotangents.push_back(each);
  }
  Builder builder = backward_builder(sweep, node);
  std::vector<Value*> inputs;
  for (Value* input : node.inputs) {
    std::vector<Value*> after{input};
    after.insert(after.end(), cotangents.begin(), cotangents.end());
    inputs.push_back(input->type.is_tensor() ? builder.add("after", std::move(after)) : input);
  }
  inputs.insert(inputs.end(), cotangents.begin(), cotangents.end());
  const Node* made =
      builder.add_node(*node.op, std::move(inputs), {{kCallee, Attribute(FunctionName{recomputing(key)})}}, {}, types);
  Gradients gradients(node.inputs.size(), nullptr);
  for (size_t i = 0, result = 0; i < node.inputs.size(); ++i)
    if (key.wanted[i]) gradients[i] = made->result(result++);
  return gradients;
}

const Differentiator::Pair& Differentiator::pair_of(const Key& key) {
  auto [entry, fresh] = pairs_.try_emplace(key);
  Pair& pair = entry->second;
  if (!fresh) return pair;
  pair.forward = &append_copy(module_, *module_.find(key.callee), key.callee + "_forward");
  Function empty;
  pair.backward = &append_copy(module_, empty, key.callee + "_backward");
  Block& forward = pair.forward->body;
  Block& backward = pair.backward->body;
  inline_plain_calls(module_, forward);
  Sweep sweep;
  for (size_t i = 0; i < key.wanted.size(); ++i)
    if (key.wanted[i]) active_.mark(forward.params[i].get());
  active_.spread(forward);
  open(sweep, forward, backward);
  for (size_t i = 0; i < key.given.size(); ++i) {
    if (!key.given[i]) continue;
    Value* cotangent = append_named_param(backward, forward.results[i]->type, "gradient");
    seed(sweep, forward.results[i], cotangent);
  }
  run(sweep);
  for (size_t i = 0; i < key.wanted.size(); ++i) {
    if (!key.wanted[i]) continue;
    backward.results.push_back(gradient_or_zeros(sweep, forward.params[i].get()));
    pair.backward->result_names.push_back(forward.params[i]->name);
  }
  close(sweep);
  return pair;
}

const std::string& Differentiator::recomputing(const Key& key) {
  auto [entry, fresh] = recomputing_.try_emplace(key);
  if (!fresh) return entry->second;
  Function& function = append_copy(module_, *module_.find(key.callee), key.callee + "_recompute");
  entry->second = function.name;
  Block& body = function.body;
  std::vector<Value*> results, cotangents, wanted;
  for (size_t i = 0; i < key.given.size(); ++i) {
    if (!key.given[i]) continue;
    results.push_back(body.results[i]);
    cotangents.push_back(append_named_param(body, results.back()->type, "gradient"));
  }
  function.result_names.clear();
  for (size_t i = 0; i < key.wanted.size(); ++i) {
    if (!key.wanted[i]) continue;
    wanted.push_back(body.params[i].get());
    function.result_names.push_back(body.params[i]->name);
  }
  body.results = differentiate(function, results, cotangents, wanted);
  return entry->second;
}

}  // namespace cairn
