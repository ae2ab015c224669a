#include "train/normalisation.h"

#include <algorithm>
#include <numeric>

#include "ir/expression.h"
#include "passes/rewriter.h"

namespace cairn {
namespace {

constexpr size_t kMean = 3, kVariance = 4;  // operands of batch_norm

bool is_param(const Value* value) { return value->producer == nullptr; }

/// The running statistic that the batch statistic updates: c in c * share + batch * rest. Null when there is none.
Value* kept_beside(const Function& function, const Value* batch) {
  auto factor = [](const Value* product, const auto& wanted) -> Value* {
    if (!product->producer || !product->producer->is("mul")) return nullptr;
    Value* x = product->producer->inputs[0];
    return wanted(x) ? x : nullptr;
  };
  auto is_batch = [&](const Value* x) { return x == batch; };
  auto is_statistic = [](const Value* x) { return constant_of(x) && x->type.shape.rank() == 1; };
  for (const auto& node : function.body.nodes) {
    if (!node->is("add") || !factor(node->inputs[1], is_batch)) continue;
    if (Value* kept = factor(node->inputs[0], is_statistic)) return kept;
  }
  return nullptr;
}

}  // namespace

void use_kept_statistics(Function& function) {
  std::map<const Node*, std::pair<Value*, Value*>> kept;
  for (const auto& node : function.body.nodes) {
    if (!node->is("batch_norm_training")) continue;
    Value *mean = kept_beside(function, node->result(1)), *variance = kept_beside(function, node->result(2));
    if (mean && variance) kept[node.get()] = {mean, variance};
  }
  Rewriter rewriter(function.body, nullptr);
  rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    auto found = kept.find(&node);
    if (found == kept.end()) return std::nullopt;
    auto [mean, variance] = found->second;
    Value* y =
        rewriter.add("batch_norm", {node.inputs[0], node.inputs[1], node.inputs[2], mean, variance}, node.attributes);
    return std::vector<Value*>{y, mean, variance};  // the nodes that update the statistics are dead from here on
  });
}

std::set<std::string> statistics_of(const Function& function) {
  std::set<std::string> names;
  for (const auto& node : function.body.nodes)
    for (size_t i : {kMean, kVariance})
      if (node->is("batch_norm") && constant_of(node->inputs[i])) names.insert(node->inputs[i]->name);
  return names;
}

std::vector<std::pair<Value*, Value*>> use_batch_statistics(Function& function, double momentum) {
  struct Norm {
    Value *x, *mean, *variance;  // operands
    Value *batch_mean, *batch_variance;
  };
  std::vector<Norm> norms;
  Rewriter rewriter(function.body, nullptr);
  rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    if (!node.is("batch_norm") || !is_param(node.inputs[kMean]) || !is_param(node.inputs[kVariance]))
      return std::nullopt;
    Value* y = rewriter.add("batch_norm_training", {node.inputs[0], node.inputs[1], node.inputs[2]}, node.attributes);
    const Node& made = *y->producer;
    norms.push_back({node.inputs[0], node.inputs[kMean], node.inputs[kVariance], made.result(1), made.result(2)});
    return std::vector<Value*>{y};
  });
  Builder b(function.body);
  std::vector<std::pair<Value*, Value*>> latest;  // several batch norms may share their statistics
  auto blend = [&](Value* kept, Var batch) {
    auto entry = std::find_if(latest.begin(), latest.end(), [&](const auto& each) { return each.first == kept; });
    if (entry == latest.end()) entry = latest.insert(latest.end(), {kept, kept});
    const Var old(b, entry->second);
    entry->second = (old + (cast(batch, old.dtype()) - old) * (1 - momentum)).value;
  };
  for (const Norm& norm : norms) {
    const Var variance(b, norm.batch_variance);
    auto elements = [&](Value* x) { return cast({b, b.add("size_of", {x})}, variance.dtype()); };
    const Var count = elements(norm.x) / elements(norm.batch_mean);
    blend(norm.mean, {b, norm.batch_mean});
    blend(norm.variance, variance * (count / maximum(count - 1, count.number(1))));
  }
  return latest;
}

bool has_dropout(const Function& function) {
  return std::any_of(function.body.nodes.begin(), function.body.nodes.end(),
                     [](const auto& node) { return node->is("dropout") && node->attr().number("rate") > 0; });
}

Value* use_dropout(Function& function, Value* state) {
  std::vector<std::unique_ptr<Node>> nodes = std::exchange(function.body.nodes, {});
  std::unordered_map<const Value*, Value*> replaced;
  auto current = [&](Value*& value) {
    if (auto found = replaced.find(value); found != replaced.end()) value = found->second;
  };
  Builder b(function.body);
  std::vector<std::unique_ptr<Node>> gone;
  for (auto& node : nodes) {
    std::for_each(node->inputs.begin(), node->inputs.end(), current);
    if (!node->is("dropout") || node->attr().number("rate") <= 0) {
      function.body.nodes.push_back(std::move(node));
      continue;
    }
    b.sources = node->sources;
    const Var x(b, node->inputs[0]);
    const double rate = node->attr().number("rate");
    Value* dims = dims_of(x).value;
    for (int64_t axis : node->attr().integers("broadcast")) {
      std::vector<int64_t> places(x.shape().rank());
      std::iota(places.begin(), places.end(), 0);
      dims = b.add("select", {b.add("equal", {b.ints(places), b.ints({axis})}), b.ints({1}), dims});
    }
    const Node* drawn = b.add_node(op_named("random_uniform"), {state, dims}, {{"dtype", kF32}});
    state = drawn->result(0);
    const Var number(b, drawn->result(1)), kept = number.apply("greater_equal", {number.number(rate)});
    replaced[node->result()] = select(kept, x / (1 - rate), x.number(0)).value;
    gone.push_back(std::move(node));
  }
  std::for_each(function.body.results.begin(), function.body.results.end(), current);
  return state;
}

}  // namespace cairn
