// Sums over decision trees: each row walks from every root to a leaf, whose weights count.
#include "ops/trees.h"
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void infer_tree_ensemble(InferContext& context) {
  const DType dtype = number_type(context, 0);
  const bool x = ranked(context, 0, 2);
  if (ranked(context, 1, 2)) same_size(context, context.shape(1).dims[1], kTreeColumns, "columns of nodes and 4");
  for (size_t i : {2, 3, 4, 5}) ranked(context, i, 1);
  for (size_t i : {2, 5})
    if (context.dtype(i) != dtype)
      context.fail("x is {}, input {} is {}", to_string(dtype), i, to_string(context.dtype(i)));
  for (size_t i : {1, 3, 4})
    if (context.dtype(i) != kI64) context.fail("input {} must be i64, found {}", i, to_string(context.dtype(i)));
  if (context.shape(1).ranked && context.shape(2).ranked)
    same_size(context, context.shape(1).dims[0], context.shape(2).dims[0], "numbers of nodes and thresholds");
  if (context.shape(4).ranked && context.shape(5).ranked)
    same_size(context, context.shape(4).dims[0], context.shape(5).dims[0], "numbers of targets and weights");
  const int64_t count = context.attr.integer("count");
  constexpr int64_t kMost = 1 << 24;
  if (count < 1 || count > kMost) context.fail("count must be 1 to {}, found {}", kMost, count);
  context.result(dtype, Shape{x ? context.shape(0).dims[0] : Dim(), count});
}

template <class T>
bool goes(int64_t mode, T x, T threshold) {
  if (x != x && (mode & kTreeMissing)) return true;
  switch (mode & ~kTreeMissing) {
    case 0: return x <= threshold;
    case 1: return x < threshold;
    case 2: return x >= threshold;
    case 3: return x > threshold;
    case 4: return x == threshold;
    default: return x != threshold;
  }
}

void tree_ensemble(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  const auto nodes = context.input(1).values<int64_t>(), roots = context.input(3).values<int64_t>(),
             targets = context.input(4).values<int64_t>();
  const int64_t count = context.attr.integer("count");
  if (auto fault = fault_of_trees(nodes, roots, targets, x.dims()[1], count)) context.fail("{}", *fault);
  const std::string& aggregate = context.attr.text("aggregate");
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const auto thresholds = context.input(2).values<T>(), weights = context.input(5).values<T>();
    std::vector<double> sums(static_cast<size_t>(count));
    std::vector<char> met(static_cast<size_t>(count));
    for (const int64_t row : turns(x.dims()[0])) {
      std::fill(sums.begin(), sums.end(), 0), std::fill(met.begin(), met.end(), 0);
      const T* values = data<T>(x) + row * x.dims()[1];
      for (int64_t node : roots) {
        const int64_t* at = &nodes[static_cast<size_t>(node * kTreeColumns)];
        for (; at[1] != kTreeLeaf; at = &nodes[static_cast<size_t>(node * kTreeColumns)]) {
          const auto threshold = static_cast<Compute<T>>(thresholds[static_cast<size_t>(node)]);
          node = goes(at[1], static_cast<Compute<T>>(values[at[0]]), threshold) ? at[2] : at[3];
        }
        for (int64_t leaf = at[2]; leaf < at[3]; ++leaf) {
          const auto target = static_cast<size_t>(targets[static_cast<size_t>(leaf)]);
          const auto weight = static_cast<double>(weights[static_cast<size_t>(leaf)]);
          double& sum = sums[target];
          if (aggregate == "sum")
            sum += weight;
          else if (!met[target])
            sum = weight;
          else
            sum = aggregate == "min" ? std::min(sum, weight) : std::max(sum, weight);
          met[target] = 1;
        }
      }
      for (const int64_t i : turns(count))
        data<T>(context.output(0))[row * count + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
    }
  });
}

std::vector<OpDef> make_tree_rows() {
  return {
      {.name = "tree_ensemble",
       .summary =
           "for each row of x the sum (or the least, or the largest) of the leaves' weights by target, 0 without one: "
           "a row of nodes is feature, mode, the node where that holds and the one where not; modes: 0 <=, 1 <, 2 "
           ">=, 3 >, 4 ==, 5 != threshold, plus 8 where it holds for NaN as well, 6 a leaf, whose two last numbers "
           "bound its targets and weights; children come behind their parent",
       .inputs = {{"x", Accepts::floats},
                  {"nodes"},
                  {"thresholds", Accepts::floats},
                  {"roots"},
                  {"targets"},
                  {"weights", Accepts::floats}},
       .attributes = {integer("count", 1), word("aggregate", "sum", {"sum", "min", "max"})},
       .precision = Precision::accumulate_f32,
       .infer = infer_tree_ensemble,
       .no_gradient = "the leaves that rows reach are piecewise constant",
       .reference = tree_ensemble,
       .oracle = {"tree_ensemble(x, nodes, thresholds, roots, targets, weights, count, aggregate)"},
       .cases = {"f32[11, 2], i64[5, 4]=[0, 0, 1, 2, 0, 6, 0, 1, 1, 11, 3, 4, 0, 6, 1, 3, 0, 6, 3, 3], f32[5]=[0.2, 0, "
                 "-0.1, 0, 0], i64[2]=[0, 2], i64[3]=[0, 1, 0], f32[3]=[0.5, 2, -3] {count = 2}",
                 "f64[7, 1], i64[3, 4]=[0, 2, 1, 2, 0, 6, 0, 1, 0, 6, 1, 2], f64[3]=[0, 0, 0], i64[1]=[0], i64[2]=[0, "
                 "0], f64[2]=[1, 2] {aggregate = min}",
                 "f32[0, 1], i64[1, 4]=[0, 6, 0, 0], f32[1]=[0], i64[0]=[], i64[0]=[], f32[0]"}},
  };
}

}  // namespace

std::optional<std::string> fault_of_trees(std::span<const int64_t> nodes, std::span<const int64_t> roots,
                                          std::span<const int64_t> targets, int64_t features, int64_t count) {
  const auto size = std::ssize(nodes) / kTreeColumns, weights = std::ssize(targets);
  for (int64_t root : roots)
    if (root < 0 || root >= size) return fmt::format("root {} is none of {} nodes", root, size);
  for (int64_t target : targets)
    if (target < 0 || target >= count) return fmt::format("target {} is none of {}", target, count);
  for (const int64_t i : turns(size)) {
    const auto node = nodes.subspan(static_cast<size_t>(i * kTreeColumns), kTreeColumns);
    if (node[1] == kTreeLeaf) {
      if (node[2] < 0 || node[3] < node[2] || node[3] > weights)
        return fmt::format("leaf {} has the weights {} to {} of {}", i, node[2], node[3], weights);
      continue;
    }
    if (node[1] < 0 || (node[1] & ~kTreeMissing) > 5) return fmt::format("node {} has mode {}", i, node[1]);
    if (node[0] < 0 || node[0] >= features)
      return fmt::format("node {} looks at feature {} of {}", i, node[0], features);
    for (size_t child : {2, 3})
      if (node[child] <= i || node[child] >= size)
        return fmt::format("a child of node {} is {}, and not one behind it of {} nodes", i, node[child], size);
  }
  return std::nullopt;
}

std::span<const OpDef> tree_ops() {
  static const std::vector<OpDef> rows = make_tree_rows();
  return rows;
}

}  // namespace cairn
