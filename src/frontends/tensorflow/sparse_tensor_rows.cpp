// TensorFlow's ops on sparse tensors, which are three tensors: index vectors, values and shape; and on ragged ones.
#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

/// The op of ours of the row's target, with the same operands in the same order.
void same_operands(OpContext& c) { c.out = results_of(*c.b.add_node(op_named(c.target), c.in)); }

void sparse_reduce(OpContext& c) {
  c.expect_inputs(4);
  c.out = {c.b.add("sparse_reduce", {c.in[0], c.in[1], c.in[2]},
                   {{"mode", std::string(c.target)},
                    {"axes", c.constant_integers(3, "the axes")},
                    {"keep_dims", c.boolean("keep_dims", false)}})};
}

/// Indices move by the sizes before, then all elements are put in order.
void sparse_concat(OpContext& c) {
  const int64_t count = c.integer("N");
  if (count < 1 || static_cast<int64_t>(c.in.size()) != 3 * count)
    fail(ErrorKind::invalid_model, "", "has {} inputs for {} sparse tensors", c.in.size(), count);
  const auto n = static_cast<size_t>(count);
  const Shape& shape = c.in[2 * n]->type.shape;
  if (!shape.ranked || shape.rank() != 1 || !shape.dims[0].known()) c.refuse("the number of dims is not known");
  const auto rank = static_cast<size_t>(shape.dims[0].size);
  const auto axis = static_cast<size_t>(normal_axis(c.integer("concat_dim"), rank));
  std::vector<int64_t> at_axis(rank, 0);
  at_axis[axis] = 1;
  Value *only_axis = c.b.ints(at_axis), *before = nullptr;
  std::vector<Value*> indices, values;
  for (size_t i = 0; i < n; ++i) {
    indices.push_back(before ? c.b.add("add", {c.in[i], before}) : c.in[i]);
    values.push_back(c.in[n + i]);
    Value* size = c.b.add("mul", {c.in[2 * n + i], only_axis});
    before = before ? c.b.add("add", {before, size}) : size;
  }
  at_axis.assign(rank, 1);
  at_axis[axis] = 0;
  Value* whole = folded(c.b.add("add", {before, c.b.add("mul", {c.in[2 * n], c.b.ints(at_axis)})}), c.b);
  const Attributes rows{{"axis", int64_t{0}}};
  auto* made = c.b.add_node(op_named("sparse_reorder"),
                            {c.b.add("concat", indices, rows), c.b.add("concat", values, rows), whole});
  c.out = {made->result(0), made->result(1), whole};
}

/// Values with the elements of a dense tensor, which is broadcast, at their places.
void with_dense(OpContext& c) {
  c.expect_inputs(4);
  Value* dense = c.b.add("broadcast_to", {c.in[3], c.in[2]});
  c.out = {c.b.add(c.target, {c.in[1], c.b.add("gather_nd", {dense, c.in[0]}, {{"from_start", true}})})};
}

Value* as_features(OpContext& c, Value* x) { return x->type.dtype == kString ? x : cast_to(x, kI64, c.b); }

void sparse_cross(OpContext& c) {
  const int64_t count = c.integer("N");
  const bool joined_texts = c.node().op == "SparseCrossV2";
  if (count < 0 || static_cast<int64_t>(c.in.size()) < 3 * count + joined_texts)
    fail(ErrorKind::invalid_model, "", "has {} inputs for {} sparse tensors", c.in.size(), count);
  std::vector<Value*> operands(c.in.begin(), c.in.end());
  Attributes attributes{{"sparse", count}};
  if (joined_texts) {
    const Tensor separator = c.constant(c.in.size() - 1, "the separator");
    if (separator.dtype() != kString || separator.count() != 1)
      fail(ErrorKind::invalid_model, "", "the separator must be one string");
    attributes.set("separator", separator.values<std::string>()[0]);
    operands.pop_back();
  } else {
    attributes.set("hashed", c.boolean("hashed_output", false));
    attributes.set("buckets", c.integer("num_buckets"));
    attributes.set("key", c.integer("hash_key"));
  }
  for (Value*& operand : operands) operand = as_features(c, operand);
  c.out = results_of(*c.b.add_node(op_named("sparse_cross"), operands, attributes));
}

/// shape, values, default, rows of each dim.
void ragged_to_tensor(OpContext& c) {
  c.out = results_of(*c.b.add_node(op_named("ragged_to_dense"), c.in, {{"kinds", c.texts("row_partition_types")}}));
}

void ragged_range(OpContext& c) {
  c.expect_inputs(3);
  auto* made = c.b.add_node(op_named("ragged_range"), c.in);
  c.out = {cast_to(made->result(0), c.dtype("Tsplits", kDtInt64), c.b), made->result(1)};
}

/// Row splits, values, indices.
void ragged_gather(OpContext& c) {
  c.expect_inputs(3, c.in.size());
  if (c.rank(c.in.size() - 1) != 1) c.refuse("indices of {} dims are not supported", c.rank(c.in.size() - 1));
  std::vector<Value*> operands{c.in.back(), c.in[c.in.size() - 2]};
  operands.insert(operands.end(), c.in.begin(), c.in.end() - 2);
  c.out = results_of(*c.b.add_node(op_named("ragged_gather"), operands));
}

void ragged_to_sparse(OpContext& c) {
  c.expect_inputs(2, c.in.size());
  std::vector<Value*> operands{c.in.back()};
  operands.insert(operands.end(), c.in.begin(), c.in.end() - 1);
  c.out = results_of(*c.b.add_node(op_named("ragged_to_sparse"), operands));
}

constexpr Row kSparseTensorRows[] = {
    {"RaggedGather", ragged_gather},
    {"RaggedRange", ragged_range},
    {"RaggedTensorToSparse", ragged_to_sparse},
    {"RaggedTensorToTensor", ragged_to_tensor},
    {"SparseAdd", same_operands, "sparse_add"},
    {"SparseConcat", sparse_concat},
    {"SparseCross", sparse_cross},
    {"SparseCrossV2", sparse_cross},
    {"SparseDenseCwiseAdd", with_dense, "add"},
    {"SparseDenseCwiseDiv", with_dense, "div"},
    {"SparseDenseCwiseMul", with_dense, "mul"},
    {"SparseFillEmptyRows", same_operands, "sparse_fill_empty_rows"},
    {"SparseReduceMax", sparse_reduce, "max"},
    {"SparseReduceSum", sparse_reduce, "sum"},
    {"SparseReorder", same_operands, "sparse_reorder"},
    {"SparseReshape", same_operands, "sparse_reshape"},
    {"SparseSlice", same_operands, "sparse_slice"},
    {"SparseSoftmax", same_operands, "sparse_softmax"},
};

}  // namespace

std::span<const Row> sparse_tensor_rows() { return kSparseTensorRows; }

}  // namespace cairn::tensorflow
