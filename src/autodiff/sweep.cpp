#include "autodiff/sweep.h"

#include <algorithm>

#include "autodiff/calls.h"
#include "autodiff/prune.h"
#include "ir/control.h"
#include "ir/gradient.h"
#include "ir/result_marks.h"

namespace cairn {

std::vector<Value*> Differentiator::differentiate(Function& function, const std::vector<Value*>& results,
                                                  const std::vector<Value*>& cotangents,
                                                  const std::vector<Value*>& wanted) {
  inline_plain_calls(module_, function.body);
  roots_.push_back(&function);
  for (const Value* value : wanted) active_.mark(value);
  active_.spread(function.body);
  Sweep sweep;
  open(sweep, function.body, function.body);
  Builder builder(function.body);
  for (size_t i = 0; i < results.size(); ++i)
    seed(sweep, results[i], cotangents[i] ? cotangents[i] : ones_like({builder, results[i]}).value);
  run(sweep);
  std::vector<Value*> gradients;
  for (Value* value : wanted) {
    Value* gradient = gradient_or_zeros(sweep, value);
    if (!value->type.is_tensor()) gradient = builder.add("list_resize", {gradient, builder.add("list_size", {value})});
    gradients.push_back(gradient);
  }
  close(sweep);
  return gradients;
}

void Differentiator::finish() {
  std::vector<Function*> parts;
  for (const auto& [key, pair] : pairs_) {
    parts.push_back(pair.forward);
    parts.push_back(pair.backward);
  }
  thread_tapes(roots_, parts, tapes_);
  parts.insert(parts.end(), roots_.begin() + 1, roots_.end());  // the caller still works on the first
  for (Function* function : parts) prune(function->body, module_);
}

void Differentiator::open(Sweep& sweep, Block& forward, Block& backward) {
  sweep.forward = &forward;
  sweep.backward = &backward;
  if (sweep.in_one_block()) return;
  for (const auto& param : forward.params) sweep.forward_values.insert(param.get());
  for (const auto& node : forward.nodes)
    for (const auto& result : node->results) sweep.forward_values.insert(result.get());
}

void Differentiator::close(Sweep& sweep) {
  auto& nodes = sweep.backward->nodes;
  nodes.insert(nodes.begin(), std::make_move_iterator(sweep.prologue.begin()),
               std::make_move_iterator(sweep.prologue.end()));
  sweep.prologue.clear();
}

void Differentiator::run(Sweep& sweep) {
  std::vector<Node*> nodes;
  for (const auto& node : sweep.forward->nodes) nodes.push_back(node.get());
  for (size_t i = nodes.size(); i-- > 0;) visit(sweep, *nodes[i]);
}

void Differentiator::seed(Sweep& sweep, Value* forward, Value* gradient) {
  if (active_(forward)) accumulate(sweep, forward, gradient);
}

void Differentiator::accumulate(Sweep& sweep, const Value* forward, Value* gradient) {
  Value*& known = sweep.gradients[forward];
  Builder builder(*sweep.backward);
  known = known ? sum(builder, known, gradient) : gradient;
}

Value* Differentiator::sum(Builder& builder, Value* a, Value* b) {
  return a->type.is_tensor() ? builder.add("add", {a, b}) : builder.add("list_add", {a, b}, {{"grow", true}});
}

void Differentiator::visit(Sweep& sweep, Node& node) {
  Gradients given;
  for (const auto& result : node.results)
    given.push_back(active_(result.get()) ? sweep.gradient(result.get()) : nullptr);
  if (std::all_of(given.begin(), given.end(), [](const Value* each) { return each == nullptr; })) return;
  const size_t first = sweep.backward->nodes.size();
  Gradients made;
  if (!node.regions.empty())
    made = is_loop(node) ? of_loop(sweep, node, given) : of_branches(sweep, node, given);
  else if (is_call(node))
    made = of_call(sweep, node, given);
  else if (!node.op->gradient && by_decomposition(sweep, node, given))
    return;
  else
    made = by_rule(sweep, node, given);
  settle(sweep, first);
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (made[i] && wants(node, i)) accumulate(sweep, node.inputs[i], need(sweep, made[i]));
}

Builder Differentiator::backward_builder(Sweep& sweep, const Node& node) {
  Builder builder(*sweep.backward);
  for (SourceId id : plain_sources(module_, node.sources)) {
    const Source& source = module_.sources[id];
    constexpr std::string_view kFolder = "gradients/";
    auto [known, fresh] = backward_sources_.try_emplace(id, id);
    if (fresh && !source.name.starts_with(kFolder))
      known->second = module_.add_source(
          {source.framework, std::string(kFolder) + source.name, source.op + "Grad", source.location});
    builder.sources.push_back(known->second);
  }
  return builder;
}

Differentiator::Gradients Differentiator::by_rule(Sweep& sweep, Node& node, const Gradients& given) {
  if (!node.op->gradient)
    fail(ErrorKind::unsupported, where(module_, node), "{} has no gradient: {}", node.op->name,
         node.op->no_gradient ? node.op->no_gradient : "its row has no rule");
  std::vector<bool> wanted;
  for (size_t i = 0; i < node.inputs.size(); ++i) wanted.push_back(wants(node, i));
  Builder builder = backward_builder(sweep, node);
  GradientContext context(builder, node, node.inputs, results_of(node), given, std::move(wanted));
  try {
    node.op->gradient(context);
  } catch (const Error& fault) {
    throw Error(fault.kind(), where(module_, node), fmt::format("the gradient of {}: {}", node.op->name, fault.what()));
  }
  Gradients made;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    made.push_back(context.made(i));
    if (made[i] && wants(node, i) && !compatible(made[i]->type, node.inputs[i]->type))
      fail(ErrorKind::invalid_model, where(module_, node), "{}: the gradient of {} is {}, expected {}", node.op->name,
           node.op->input(i).name, to_string(made[i]->type), to_string(node.inputs[i]->type));
  }
  return made;
}

// Appends the node's decomposition to the forward block and differentiates that instead of the node.
bool Differentiator::by_decomposition(Sweep& sweep, Node& node, const Gradients& given) {
  if (!node.op->decompose) return false;
  const size_t first = sweep.forward->nodes.size();
  Builder builder(*sweep.forward);
  builder.sources = node.sources;
  const std::vector<Value*> results = node.op->decompose(builder, node);
  std::vector<Node*> nodes;
  for (size_t i = first; i < sweep.forward->nodes.size(); ++i) {
    nodes.push_back(sweep.forward->nodes[i].get());
    active_.spread(*nodes.back());
    if (!sweep.in_one_block())
      for (const auto& result : nodes.back()->results) sweep.forward_values.insert(result.get());
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (given[i]) seed(sweep, results[i], given[i]);
  for (size_t i = nodes.size(); i-- > 0;) visit(sweep, *nodes[i]);
  return true;
}

namespace {

Value* copy_constant(Sweep& sweep, const Value& constant) {
  std::unordered_map<const Value*, Value*> map;
  sweep.prologue.push_back(clone(*constant.producer, map));
  return sweep.prologue.back()->result();
}

// The backward region's param for an outer value that the forward region captures as `param`.
Value* capture(Sweep& sweep, const Value& param) {
  Value* outer = sweep.node->inputs[first_region_input(*sweep.node) + param.index];
  if (constant_of(outer)) return copy_constant(sweep, *outer);
  for (const auto& [value, mine] : sweep.captures)
    if (value == outer) return mine.get();
  sweep.captures.emplace_back(outer, std::make_unique<Value>(param));
  return sweep.captures.back().second.get();
}

}  // namespace

Value* Differentiator::need(Sweep& sweep, Value* forward) {
  if (!sweep.forward_values.count(forward)) return forward;
  if (auto found = sweep.known.find(forward); found != sweep.known.end()) return found->second;
  Value* seen = nullptr;
  if (constant_of(forward)) {
    seen = copy_constant(sweep, *forward);
  } else if (!forward->producer && forward->index >= sweep.first_capture) {
    seen = capture(sweep, *forward);
  } else {
    if (!forward->type.is_tensor())
      fail(ErrorKind::unsupported, forward->producer ? where(module_, *forward->producer) : forward->name,
           "the gradient needs a {} of an earlier turn or call, which cannot be kept", to_string(forward->type));
    sweep.prologue.push_back(pop_mark(tapes_.size(), forward->type));
    seen = sweep.prologue.back()->result();
    sweep.forward->nodes.push_back(push_mark(tapes_.size(), forward));
    tapes_.push_back(forward->type);
  }
  return sweep.known[forward] = seen;
}

// Whether a node of the gradient uses forward values only and is better computed in the forward block: a shape is
// smaller to keep than its tensor, and lists cannot be kept at all.
bool Differentiator::belongs_forward(const Sweep& sweep, const Node& node) const {
  if (node.inputs.empty() || !node.regions.empty() || !node.op->pure() || node.op->has(kControl)) return false;
  bool worthwhile = node.op->has(kShapeOnly);
  for (const Value* input : node.inputs) {
    if (!sweep.forward_values.count(input)) return false;
    worthwhile = worthwhile || !input->type.is_tensor();
  }
  return worthwhile;
}

void Differentiator::settle(Sweep& sweep, size_t first) {
  if (sweep.in_one_block()) return;
  auto& nodes = sweep.backward->nodes;
  std::vector<std::unique_ptr<Node>> fresh(std::make_move_iterator(nodes.begin() + static_cast<long>(first)),
                                           std::make_move_iterator(nodes.end()));
  nodes.resize(first);
  for (auto& node : fresh) {
    if (belongs_forward(sweep, *node)) {
      for (const auto& result : node->results) sweep.forward_values.insert(result.get());
      sweep.forward->nodes.push_back(std::move(node));
      continue;
    }
    for (Value*& input : node->inputs) input = need(sweep, input);
    nodes.push_back(std::move(node));
  }
}

Value* Differentiator::zeros(Sweep& sweep, Value* forward) {
  const size_t first = sweep.backward->nodes.size();
  Builder builder(*sweep.backward);
  Value* made;
  if (forward->type.is_tensor()) {
    made = zeros_like({builder, forward}).value;
  } else {
    Value* none = builder.constant(Tensor::scalar_i64(0));
    made = builder.add("list_make", {none}, {{"element", forward->type.elements[0]}});
  }
  settle(sweep, first);
  return made;
}

Value* Differentiator::gradient_or_zeros(Sweep& sweep, Value* forward) {
  Value* gradient = sweep.gradient(forward);
  return gradient ? gradient : zeros(sweep, forward);
}

}  // namespace cairn
