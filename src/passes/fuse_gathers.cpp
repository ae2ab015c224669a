// A reduction of gathered rows, weighted or not, becomes one node, so that the rows need no memory: products of sparse and
// dense matrices, sums of embeddings, messages along the edges of a graph.
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

/// The gather of f32 rows, which has a fast kernel, that computes the value for this one user; or null.
const Node* gather_of_rows(const Rewriter& rewriter, const Value* value) {
  const Node* node = value->producer;
  if (!node || !node->is("gather") || rewriter.uses(value) != 1) return nullptr;
  const Shape &x = node->inputs[0]->type.shape, &indices = node->inputs[1]->type.shape;
  const bool rows = x.ranked && x.rank() > 0 && indices.ranked && indices.rank() == 1 &&
                    node->attr().integer("axis") == 0 && node->attr().integer("batch_dims") == 0;
  return rows && value->type.dtype == kF32 ? node : nullptr;
}

/// Whether the value holds one number for each row.
bool is_weight_of(const Value* value, const Type& rows) {
  const Shape& shape = value->type.shape;
  if (!shape.ranked || shape.rank() != rows.shape.rank() || !shape.dims[0].surely_equals(rows.shape.dims[0]))
    return false;
  return std::all_of(shape.dims.begin() + 1, shape.dims.end(), [](const Dim& dim) { return dim == Dim(1); });
}

}  // namespace

size_t fuse_gathers(Block& block, Module& module) {
  Rewriter rewriter(block, &module);
  return rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    if (!node.is("segment_reduce")) return std::nullopt;
    const std::string& mode = node.attr().text("mode");
    const Shape& segments = node.inputs[1]->type.shape;
    if ((mode != "sum" && mode != "mean" && mode != "sqrt_n") || !segments.ranked || segments.rank() != 1)
      return std::nullopt;
    const Node* gather = gather_of_rows(rewriter, node.inputs[0]);
    Value* weights = nullptr;
    if (const Node* product = node.inputs[0]->producer;
        !gather && product && product->is("mul") && rewriter.uses(node.inputs[0]) == 1)
      for (size_t i : {0, 1}) {
        const Value* rows = product->inputs[i];
        const Node* found = gather_of_rows(rewriter, rows);
        if (!found || gather || !is_weight_of(product->inputs[1 - i], rows->type)) continue;
        gather = found;
        weights = product->inputs[1 - i];
      }
    if (!gather) return std::nullopt;
    std::vector<Value*> inputs{gather->inputs[0], gather->inputs[1], node.inputs[1], node.inputs[2]};
    if (weights) inputs.push_back(rewriter.add("reshape", {weights, rewriter.constant(Tensor::of_i64({-1}))}));
    return std::vector<Value*>{rewriter.add("gather_reduce", inputs,
                                            {{"mode", mode},
                                             {"from_start", gather->attr().boolean("from_start")},
                                             {"sorted", node.attr().boolean("sorted")}})};
  });
}

}  // namespace cairn
