// ai.onnx.ml's ensembles of decision trees: the tables of their attributes as those of `tree_ensemble`.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "frontends/fold.h"
#include "frontends/onnx/learning.h"
#include "ops/trees.h"

namespace cairn::onnx {
namespace {

struct TreeNode {
  int64_t feature = 0, mode = kTreeLeaf, yes = 0, no = 0;  // children by their number among the nodes
  double threshold = 0;
  std::vector<std::pair<int64_t, double>> weights;  // a leaf's, by target
};

class Trees {
 public:
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;

  bool positive() const {
    for (const TreeNode& node : nodes)
      for (const auto& [target, weight] : node.weights)
        if (weight < 0) return false;
    return true;
  }

  /// [n, count] of x [n, features]; AVERAGE is a sum whose base comes behind the division.
  Value* run(OpContext& c, Value* x, int64_t count, const std::string& aggregate) const {
    static const std::map<std::string_view, const char*> kKinds{
        {"SUM", "sum"}, {"AVERAGE", "sum"}, {"MIN", "min"}, {"MAX", "max"}};
    const auto kind = kKinds.find(aggregate);
    if (kind == kKinds.end())
      fail(ErrorKind::invalid_model, "", "aggregate_function '{}' is unknown", printable(aggregate));
    const std::vector<int64_t> order = children_behind_parents();
    std::vector<int64_t> place(nodes.size()), table, targets, starts;
    for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    std::vector<double> thresholds, weights;
    for (int64_t i : order) {
      const TreeNode& node = nodes[static_cast<size_t>(i)];
      const auto at = [&](int64_t child) { return place[static_cast<size_t>(child)]; };
      const bool leaf = node.mode == kTreeLeaf;
      const int64_t first = std::ssize(weights), last = first + std::ssize(node.weights);
      table.insert(table.end(), {node.feature, node.mode, leaf ? first : at(node.yes), leaf ? last : at(node.no)});
      thresholds.push_back(node.threshold);
      for (const auto& [target, weight] : node.weights) targets.push_back(target), weights.push_back(weight);
    }
    for (int64_t root : roots) starts.push_back(place[static_cast<size_t>(root)]);
    const Dim features = x->type.shape.ranked && x->type.shape.rank() == 2 ? x->type.shape.dims[1] : Dim();
    if (features.known())
      if (auto fault = fault_of_trees(table, starts, targets, features.size, count))
        fail(ErrorKind::invalid_model, "", "{}", *fault);
    const DType dtype = x->type.dtype;
    Value* y = c.b.add("tree_ensemble",
                       {x, c.b.constant(Tensor::of(kI64, {std::ssize(order), kTreeColumns}, table)),
                        floats_of(c.b, dtype, {std::ssize(order)}, thresholds), c.b.ints(starts), c.b.ints(targets),
                        floats_of(c.b, dtype, {std::ssize(weights)}, weights)},
                       {{"count", count}, {"aggregate", std::string(kind->second)}});
    if (aggregate != "AVERAGE" || roots.empty()) return y;
    return c.b.add("div", {y, c.b.scalar_like(y, static_cast<double>(roots.size()))});
  }

 private:
  /// Every node that a root reaches. Throws Error invalid_model for a node that is its own ancestor.
  std::vector<int64_t> children_behind_parents() const {
    enum : uint8_t { fresh, open, done };
    std::vector<uint8_t> state(nodes.size(), fresh);
    std::vector<int64_t> order, stack;
    for (auto root = roots.rbegin(); root != roots.rend(); ++root) {
      stack.push_back(*root);
      while (!stack.empty()) {
        const auto at = static_cast<size_t>(stack.back());
        const TreeNode& node = nodes[at];
        if (state[at] != fresh || node.mode == kTreeLeaf) {
          if (state[at] != done) order.push_back(stack.back());
          state[at] = done;
          stack.pop_back();
          continue;
        }
        state[at] = open;
        for (int64_t child : {node.yes, node.no}) {
          if (state[static_cast<size_t>(child)] == open) fail(ErrorKind::invalid_model, "", "the trees have a cycle");
          if (state[static_cast<size_t>(child)] == fresh) stack.push_back(child);
        }
      }
    }
    std::reverse(order.begin(), order.end());
    return order;
  }
};

constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                       "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};

/// The lists of TreeEnsembleRegressor and TreeEnsembleClassifier; `prefix` is that of the leaves' attributes.
Trees listed_trees(OpContext& c, const std::string& prefix) {
  const std::vector<int64_t> trees = c.integers("nodes_treeids"), ids = c.integers("nodes_nodeids"),
                             features = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
                             no = c.integers("nodes_falsenodeids"),
                             missing = c.integers("nodes_missing_value_tracks_true");
  const std::vector<double> thresholds = doubles_or_tensor(c, "nodes_values");
  const std::vector<std::string> modes = c.texts("nodes_modes");
  const size_t count = trees.size();
  for (size_t size : {ids.size(), features.size(), yes.size(), no.size(), thresholds.size(), modes.size()})
    if (size != count) fail(ErrorKind::invalid_model, "", "the lists of {} nodes are of different lengths", count);
  Trees made;
  made.nodes.resize(count);
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  std::set<int64_t> begun;
  for (size_t i = 0; i < count; ++i) {
    if (!places.emplace(std::pair(trees[i], ids[i]), static_cast<int64_t>(i)).second)
      fail(ErrorKind::invalid_model, "", "tree {} has node {} twice", trees[i], ids[i]);
    if (begun.insert(trees[i]).second) made.roots.push_back(static_cast<int64_t>(i));
  }
  const auto place_of = [&](int64_t tree, int64_t id) {
    const auto found = places.find({tree, id});
    if (found == places.end()) fail(ErrorKind::invalid_model, "", "tree {} has no node {}", tree, id);
    return found->second;
  };
  for (size_t i = 0; i < count; ++i) {
    const auto mode = std::find(std::begin(kModes), std::end(kModes), modes[i]);
    if (mode == std::end(kModes)) fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(modes[i]));
    TreeNode& node = made.nodes[i];
    node.mode = mode - std::begin(kModes);
    if (node.mode == kTreeLeaf) continue;
    node = {features[i], node.mode, place_of(trees[i], yes[i]), place_of(trees[i], no[i]), thresholds[i], {}};
    if (i < missing.size() && missing[i] != 0) node.mode |= kTreeMissing;
  }
  const std::vector<int64_t> of_trees = c.integers(prefix + "_treeids"), of_nodes = c.integers(prefix + "_nodeids"),
                             targets = c.integers(prefix + "_ids");
  const std::vector<double> weights = doubles_or_tensor(c, prefix + "_weights");
  for (size_t size : {of_nodes.size(), targets.size(), weights.size()})
    if (size != of_trees.size())
      fail(ErrorKind::invalid_model, "", "the lists of {} weights are of different lengths", of_trees.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    TreeNode& leaf = made.nodes[static_cast<size_t>(place_of(of_trees[i], of_nodes[i]))];
    if (leaf.mode == kTreeLeaf) leaf.weights.emplace_back(targets[i], weights[i]);
  }
  return made;
}

/// y plus the base values: one for all, or one for each column.
Value* based(OpContext& c, Value* y, const std::vector<double>& base, int64_t count) {
  if (base.empty()) return y;
  if (base.size() != 1 && std::ssize(base) != count)
    fail(ErrorKind::invalid_model, "", "has {} base values for {} columns", base.size(), count);
  return c.b.add("add", {y, floats_of(c.b, y->type.dtype, {std::ssize(base)}, base)});
}

void tree_ensemble_regressor(OpContext& c) {
  c.expect_inputs(1, 1);
  const int64_t count = c.integer("n_targets", 1);
  const Trees trees = listed_trees(c, "target");
  Value* y = trees.run(c, as_floats(c, 0), count, c.text("aggregate_function", "SUM"));
  y = cast_to(based(c, y, doubles_or_tensor(c, "base_values"), count), kF32, c.b);
  c.out = {transformed(c, y, c.text("post_transform", "NONE"))};
}

void tree_ensemble_classifier(OpContext& c) {
  c.expect_inputs(1, 1);
  const Labels labels(c, "classlabels_int64s", "classlabels_strings");
  const std::string how = c.text("post_transform", "NONE");
  const auto count = static_cast<int64_t>(labels.size());
  if (count < 2) c.refuse("with {} labels", count);
  Trees trees = listed_trees(c, "class");
  const std::vector<int64_t> ids = c.integers("class_ids");
  std::vector<double> base = doubles_or_tensor(c, "base_values");
  Builder& b = c.b;
  const bool one = count == 2 && !ids.empty() && std::set<int64_t>(ids.begin(), ids.end()).size() == 1;
  if (!one) {
    Value* scores = based(c, trees.run(c, as_floats(c, 0), count, "SUM"), base, count);
    c.out = {labels.at(b, largest(b, scores)), transformed(c, cast_to(scores, kF32, b), how)};
    return;
  }
  // The score of the second class alone; what it is beyond decides, and whether it is a share of 1, by the weights' signs.
  for (TreeNode& node : trees.nodes)
    for (auto& weight : node.weights) weight.first = 0;
  if (base.size() > 1) base = {base[1]};
  Value* score = based(c, trees.run(c, as_floats(c, 0), 1, "SUM"), base, 1);
  const bool share = trees.positive();
  Value* second = b.add("greater", {score, b.scalar_like(score, share ? 0.5 : 0)});
  Value* label = labels.at(b, b.add("reshape", {cast_to(second, kI64, b), b.ints({-1})}));
  const bool untouched = share && how != "PROBIT" && how != "LOGISTIC";  // as ONNX Runtime does
  Value* scores = both_columns(b, cast_to(score, kF32, b), share && how != "LOGISTIC");
  c.out = {label, untouched ? scores : transformed(c, scores, how)};
}

/// Of operator set 5: nodes and leaves in lists of their own, members of sets among the modes.
void tree_ensemble(OpContext& c) {
  c.expect_inputs(1, 1);
  constexpr int64_t kMember = 6;
  const auto numbers = [&](const char* name) {
    const auto tensor = c.tensor(name);
    return tensor ? tensor->as_f64() : std::vector<double>();
  };
  const std::vector<double> splits = numbers("nodes_splits"), weights = numbers("leaf_weights"),
                            members = numbers("membership_values"), modes = numbers("nodes_modes");
  const std::vector<int64_t> features = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
                             no = c.integers("nodes_falsenodeids"), yes_leaf = c.integers("nodes_trueleafs"),
                             no_leaf = c.integers("nodes_falseleafs"), targets = c.integers("leaf_targetids"),
                             missing = c.integers("nodes_missing_value_tracks_true");
  const size_t count = features.size();
  for (size_t size : {splits.size(), modes.size(), yes.size(), no.size(), yes_leaf.size(), no_leaf.size()})
    if (size != count) fail(ErrorKind::invalid_model, "", "the lists of {} nodes are of different lengths", count);
  if (targets.size() != weights.size())
    fail(ErrorKind::invalid_model, "", "has {} weights for {} leaves", weights.size(), targets.size());
  Trees trees;
  trees.roots = c.integers("tree_roots");
  for (int64_t root : trees.roots)
    if (root < 0 || root >= static_cast<int64_t>(count))
      fail(ErrorKind::invalid_model, "", "root {} is none of {} nodes", root, count);
  trees.nodes.resize(count + weights.size());
  for (size_t i = 0; i < weights.size(); ++i) trees.nodes[count + i].weights.emplace_back(targets[i], weights[i]);
  const auto child = [&](int64_t at, int64_t leaf) {
    const size_t most = leaf != 0 ? weights.size() : count;
    if (at < 0 || at >= static_cast<int64_t>(most))
      fail(ErrorKind::invalid_model, "", "child {} is none of {}", at, most);
    return at + (leaf != 0 ? static_cast<int64_t>(count) : 0);
  };
  size_t member = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t nan = i < missing.size() && missing[i] != 0 ? kTreeMissing : 0;
    TreeNode node{features[i], nan, child(yes[i], yes_leaf[i]), child(no[i], no_leaf[i]), splits[i], {}};
    if (modes[i] != kMember) {
      if (!(modes[i] >= 0 && modes[i] < kMember))
        fail(ErrorKind::invalid_model, "", "node {} has mode {}", i, modes[i]);
      node.mode |= static_cast<int64_t>(modes[i]);
      trees.nodes[i] = std::move(node);
      continue;
    }
    // One node for each member, which asks the next where it does not hold.
    auto last = static_cast<int64_t>(i);
    node.mode |= 4;
    node.threshold = std::nan("");
    for (bool first = true; member < members.size() && !std::isnan(members[member]); ++member, first = false) {
      if (!first) {
        trees.nodes[static_cast<size_t>(last)].no = std::ssize(trees.nodes);
        last = std::ssize(trees.nodes);
        trees.nodes.emplace_back();
      }
      node.threshold = members[member];
      trees.nodes[static_cast<size_t>(last)] = node;
    }
    if (std::isnan(node.threshold)) trees.nodes[i] = node;
    ++member;
  }
  static constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t aggregate = c.integer("aggregate_function", 1), how = c.integer("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || how < 0 || how > 4)
    fail(ErrorKind::invalid_model, "", "aggregate_function {} or post_transform {} is unknown", aggregate, how);
  Value* y = trees.run(c, as_floats(c, 0), c.integer("n_targets"), kAggregates[aggregate]);
  c.out = {transformed(c, cast_to(y, c.in[0]->type.dtype, c.b), kTransforms[how])};
}

constexpr Row kTreeRows[] = {
    {"TreeEnsemble", tree_ensemble, nullptr, kLearning},
    {"TreeEnsembleClassifier", tree_ensemble_classifier, nullptr, kLearning},
    {"TreeEnsembleRegressor", tree_ensemble_regressor, nullptr, kLearning},
};

}  // namespace

std::span<const Row> tree_rows() { return kTreeRows; }

}  // namespace cairn::onnx
