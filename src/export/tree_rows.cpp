// Ensembles of decision trees, as ai.onnx.ml's TreeEnsemble.
#include <algorithm>

#include "export/rows.h"
#include "ir/evaluate.h"
#include "ops/trees.h"

namespace cairn::onnx_export {

namespace {

/// The tables of the node, and where ONNX numbers its inner nodes and its leaves.
struct Trees {
  std::vector<int64_t> nodes, roots, targets, place;
  int64_t inner = 0, leaves = 0, most = 1;  // weights of a leaf
  bool bare = false;                        // a leaf has no weight

  explicit Trees(const Node& node)
      : nodes(constant_of(node.inputs[1])->as_i64()), roots(constant_of(node.inputs[3])->as_i64()),
        targets(constant_of(node.inputs[4])->as_i64()) {
    for (size_t i = 0; i < nodes.size(); i += kTreeColumns) {
      const bool leaf = nodes[i + 1] == kTreeLeaf;
      place.push_back(leaf ? leaves++ : inner++);
      if (!leaf) continue;
      most = std::max(most, nodes[i + 3] - nodes[i + 2]);
      bare |= nodes[i + 3] == nodes[i + 2];
    }
  }
  const int64_t* at(int64_t node) const { return &nodes[static_cast<size_t>(node * kTreeColumns)]; }
  bool is_leaf(int64_t node) const { return at(node)[1] == kTreeLeaf; }
};

/// ONNX's lists. A leaf has one weight there: of leaves with several, a tree is written once for each of them.
class Lists {
 public:
  Lists(const Node& node, const Trees& trees, DType dtype)
      : trees_(trees), sums_(node.attr().text("aggregate") == "sum") {
    for (int64_t turn = 0; turn < trees.most; ++turn) add_copy(turn);
    for (int64_t turn = 0; turn < trees.most; ++turn)
      for (int64_t root : trees.roots) add_root(root, turn);
    const auto picked = [&](size_t input, const std::vector<int64_t>& places) {
      const Tensor from = evaluate("cast", {*constant_of(node.inputs[input])}, {{"dtype", dtype}});
      const Tensor padded = evaluate("concat", {from, Tensor::zeros(dtype, {1})}, {{"axis", int64_t{0}}});
      return evaluate("gather", {padded, Tensor::of_i64(places)});
    };
    settings = {{"nodes_splits", picked(2, splits_)},
                {"nodes_modes", Tensor::of(kU8, {std::ssize(modes_)}, modes_)},
                {"leaf_weights", picked(5, weights_)},
                {"leaf_targetids", leaf_targets_},
                {"nodes_featureids", features_},
                {"nodes_missing_value_tracks_true", missing_},
                {"nodes_truenodeids", children_[0]},
                {"nodes_trueleafs", ends_[0]},
                {"nodes_falsenodeids", children_[1]},
                {"nodes_falseleafs", ends_[1]},
                {"tree_roots", roots_}};
  }
  Settings settings;

 private:
  void add_copy(int64_t turn) {
    for (int64_t node = 0; node < std::ssize(trees_.place); ++node) {
      const int64_t* at = trees_.at(node);
      if (!trees_.is_leaf(node)) {
        add_node(node, at[0], at[1], at[2], at[3], turn);
        continue;
      }
      // Where a leaf has no such weight, 0 changes no sum, and its first weight no least or largest.
      int64_t weight = at[2] + turn;
      if (weight >= at[3]) weight = sums_ || at[2] == at[3] ? std::ssize(trees_.targets) : at[2];
      weights_.push_back(weight);
      leaf_targets_.push_back(weight < std::ssize(trees_.targets) ? trees_.targets[static_cast<size_t>(weight)] : 0);
    }
  }
  void add_node(int64_t split, int64_t feature, int64_t mode, int64_t yes, int64_t no, int64_t turn) {
    splits_.push_back(split), features_.push_back(feature);
    modes_.push_back(static_cast<uint8_t>(mode & ~kTreeMissing)), missing_.push_back((mode & kTreeMissing) != 0);
    for (const auto& [side, child] : {std::pair(0, yes), std::pair(1, no)}) {
      const bool leaf = trees_.is_leaf(child);
      ends_[side].push_back(leaf);
      children_[side].push_back(trees_.place[static_cast<size_t>(child)] +
                                turn * (leaf ? trees_.leaves : trees_.inner));
    }
  }
  /// A tree that is a leaf has a node above it both of whose sides are that leaf.
  void add_root(int64_t root, int64_t turn) {
    const bool leaf = trees_.is_leaf(root);
    roots_.push_back(leaf ? std::ssize(modes_) : trees_.place[static_cast<size_t>(root)] + turn * trees_.inner);
    if (leaf) add_node(root, 0, 0, root, root, turn);
  }

  const Trees& trees_;
  bool sums_;
  std::vector<int64_t> splits_, features_, missing_, children_[2], ends_[2], leaf_targets_, weights_, roots_;
  std::vector<uint8_t> modes_;
};

void tree_ensemble(const Context& c) {
  const DType own = c.type().dtype, dtype = own == kF64 ? kF64 : kF32;
  const std::string& aggregate = c.attr().text("aggregate");
  Settings settings = Lists(c.node, Trees(c.node), dtype).settings;
  settings.emplace_back("n_targets", c.attr().integer("count"));
  settings.emplace_back("aggregate_function", int64_t{aggregate == "sum" ? 1 : aggregate == "min" ? 2 : 3});
  const Name y = c.one("ai.onnx.ml:TreeEnsemble", {own == dtype ? c.in(0) : c.cast(c.in(0), dtype)}, settings);
  c.out(own == dtype ? y : c.cast(y, own));
}

/// Tables that are known and right. ONNX knows no least or largest of leaves without a weight.
bool has_known_trees(const Node& node) {
  for (size_t i = 1; i < 6; ++i)
    if (!constant_of(node.inputs[i])) return false;
  const Shape& x = node.inputs[0]->type.shape;
  if (!x.ranked || !x.dims[1].known()) return false;
  const Trees trees(node);
  constexpr int64_t kMost = 1 << 26;  // written nodes
  return !fault_of_trees(trees.nodes, trees.roots, trees.targets, x.dims[1].size, node.attr().integer("count")) &&
         trees.most <= kMost / std::max<int64_t>(std::ssize(trees.place), 1) && !trees.roots.empty() &&
         (!trees.bare || node.attr().text("aggregate") == "sum");
}

constexpr Row kTreeRows[] = {{"tree_ensemble", tree_ensemble, nullptr, has_known_trees}};

}  // namespace

std::span<const Row> tree_rows() { return kTreeRows; }

}  // namespace cairn::onnx_export
