// Sums over decision trees whose tables are constants: several rows walk a tree side by side, without branches.
#include "engines/cpu/trees.h"

#include <algorithm>

#include "engines/cpu/groups.h"
#include "ops/trees.h"

namespace cairn {

namespace {

constexpr int64_t kTreeRows = 8;  // that walk side by side, so that one's memory is awaited while another compares

struct TreeNode {
  int32_t feature, missing;  // missing: 1 where the comparison holds for NaN; a leaf's are 0
  int32_t child[2];          // where the comparison fails, and where it holds; a leaf's are itself
};

const Tensor* table_of(const Node& node, size_t i) { return constant_of(node.inputs[i]); }

/// The mode of every node but the leaves; nothing when they differ.
std::optional<int64_t> only_mode(std::span<const int64_t> nodes) {
  std::optional<int64_t> mode;
  for (size_t i = 1; i < nodes.size(); i += kTreeColumns) {
    const int64_t own = nodes[i] & ~kTreeMissing;
    if (nodes[i] == kTreeLeaf || own == mode) continue;
    if (mode) return std::nullopt;
    mode = own;
  }
  return mode.value_or(0);
}

template <int kMode, class T>
bool holds(T x, T threshold) {
  if constexpr (kMode == 0) return x <= threshold;
  if constexpr (kMode == 1) return x < threshold;
  if constexpr (kMode == 2) return x >= threshold;
  if constexpr (kMode == 3) return x > threshold;
  if constexpr (kMode == 4) return x == threshold;
  return x != threshold;
}

template <class T>
struct Forest {
  const TreeNode* nodes;
  const T* thresholds;
  const int64_t *roots, *targets, *table;
  const T* weights;
  int64_t trees, features, count;
};

/// Adds the leaves of `rows` rows at `x` to sums [rows, count].
template <int kMode, class T>
void walk(const Forest<T>& forest, const T* x, int64_t rows, double* sums) {
  for (int64_t tree = 0; tree < forest.trees; ++tree) {
    int32_t at[kTreeRows];
    std::fill(at, at + kTreeRows, static_cast<int32_t>(forest.roots[tree]));
    for (int32_t moved = 1; moved != 0;) {
      moved = 0;
      for (int64_t row = 0; row < rows; ++row) {
        const TreeNode& node = forest.nodes[at[row]];
        const T value = x[row * forest.features + node.feature];
        const bool way = holds<kMode>(value, forest.thresholds[at[row]]) | ((value != value) & node.missing);
        const int32_t next = node.child[way];
        moved |= next ^ at[row];
        at[row] = next;
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t* leaf = forest.table + int64_t{at[row]} * kTreeColumns;
      for (int64_t i = leaf[2]; i < leaf[3]; ++i)
        sums[row * forest.count + forest.targets[i]] += static_cast<double>(forest.weights[i]);
    }
  }
}

template <class T>
using Walk = void (*)(const Forest<T>&, const T*, int64_t, double*);
template <class T>
Walk<T> walk_of(int64_t mode) {
  constexpr Walk<T> kWalks[] = {walk<0, T>, walk<1, T>, walk<2, T>, walk<3, T>, walk<4, T>, walk<5, T>};
  return kWalks[mode];
}

void pack_nodes(std::span<const int64_t> table, TreeNode* nodes) {
  for (size_t i = 0; i < table.size(); i += kTreeColumns) {
    const auto self = static_cast<int32_t>(i / kTreeColumns);
    const bool leaf = table[i + 1] == kTreeLeaf;
    const auto part = [&](size_t column, int32_t of_leaf) {
      return leaf ? of_leaf : static_cast<int32_t>(table[i + column]);
    };
    *nodes++ = {part(0, 0), part(1, 0) & kTreeMissing ? 1 : 0, {part(3, self), part(2, self)}};
  }
}

}  // namespace

Refusal refuses_trees(const Group& group) {
  const Node* node = single_node(group, "tree_ensemble");
  if (!node) return "is another operation";
  for (size_t i : {1, 3, 4})
    if (!table_of(*node, i)) return "the trees are no constants";
  if (node->attr().text("aggregate") != "sum") return "the aggregate is no sum";
  const DType dtype = node->inputs[0]->type.dtype;
  if (dtype != kF32 && dtype != kF64) return fmt::format("x is {}, takes f32 and f64", to_string(dtype));
  const auto nodes = table_of(*node, 1)->values<int64_t>();
  if (nodes.size() / kTreeColumns >= size_t{1} << 31) return "has too many nodes";
  if (node->inputs[0]->type.shape.sizes()[1] < 1) return "has no features";
  if (!only_mode(nodes)) return "the nodes compare in several ways";
  const auto& dims = node->inputs[0]->type.shape.sizes();
  return fault_of_trees(nodes, table_of(*node, 3)->values<int64_t>(), table_of(*node, 4)->values<int64_t>(), dims[1],
                        node->attr().integer("count"));
}

std::unique_ptr<Step> make_trees(const Group& group, MakeContext& context) {
  const Node& node = group.last();
  const Tensor& table = *table_of(node, 1);
  const auto nodes = table.values<int64_t>();
  const auto packed = context.packer.packed(table, "nodes of trees", nodes.size() / kTreeColumns * sizeof(TreeNode),
                                            [&](void* to) { pack_nodes(nodes, static_cast<TreeNode*>(to)); });
  const auto dims = node.inputs[0]->type.shape.sizes();
  const int64_t rows = dims[0], features = dims[1], count = node.attr().integer("count");
  const int64_t trees = std::ssize(table_of(node, 3)->values<int64_t>()), mode = *only_mode(nodes);
  size_t at[6];
  for (size_t i = 0; i < 6; ++i) at[i] = index_of(group, node.inputs[i]);
  const int64_t blocks = (rows + kTreeRows - 1) / kTreeRows;
  const bool wide = node.inputs[0]->type.dtype == kF64;
  const auto run = [=](const StepArgs& args) {
    const auto of = [&](auto tag) {
      using T = decltype(tag);
      const Forest<T> forest{static_cast<const TreeNode*>(packed.get()),
                             input<T>(args, at[2]),
                             input<int64_t>(args, at[3]),
                             input<int64_t>(args, at[4]),
                             input<int64_t>(args, at[1]),
                             input<T>(args, at[5]),
                             trees,
                             features,
                             count};
      const Walk<T> walk = walk_of<T>(mode);
      for_each(args.executor, blocks, kTreeRows * trees * 16, [&](int64_t block) {
        const int64_t first = block * kTreeRows, here = std::min(kTreeRows, rows - first);
        double* sums = static_cast<double*>(args.workspace) + first * count;
        std::fill(sums, sums + here * count, 0);
        walk(forest, input<T>(args, at[0]) + first * features, here, sums);
        for (int64_t i = 0; i < here * count; ++i) output<T>(args)[first * count + i] = static_cast<T>(sums[i]);
      });
    };
    wide ? of(double()) : of(float());
  };
  return call("trees", run, {.workspace = static_cast<size_t>(rows * count) * sizeof(double)});
}

}  // namespace cairn
