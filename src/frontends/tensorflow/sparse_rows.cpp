// TensorFlow's ops on rows addressed by indices: scatters to variables, gathers from them, segments, sparse tensors.
#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

/// Index vectors of one number.
Value* vectors(OpContext& c, Value* indices, size_t rank) {
  return expand_dims(indices, {static_cast<int64_t>(rank)}, c.b);
}

/// Updates of one number stand for all elements.
Value* spread_updates(OpContext& c, const Value* content, const Value* indices, Value* updates) {
  if (c.rank(2) != 0 || (c.rank(1) == 0 && content->type.shape.rank() == 1)) return updates;
  std::vector<int64_t> sizes;
  auto append = [&](const Shape& shape, size_t first) {
    for (size_t i = first; i < shape.rank(); ++i) {
      if (!shape.dims[i].known()) c.refuse("one update for a number of elements that is not known");
      sizes.push_back(shape.dims[i].size);
    }
  };
  append(indices->type.shape, 0);
  append(content->type.shape, 1);
  return c.b.add("broadcast_to", {updates, c.b.ints(sizes)});
}

void write(OpContext& c, Value* content) {
  c.b.add_node(op_named("assign_variable"), {c.in[0], content});
  if (!c.node().op.starts_with("Resource")) c.out = {c.in[0]};
}

Value* content_of(OpContext& c) {
  Value* content = c.b.add("read_variable", {c.in[0]});
  if (!content->type.shape.ranked || content->type.shape.rank() == 0)
    c.refuse("the variable is {}", to_string(content->type));
  return content;
}

/// ref or resource, indices of rows, updates; the row's target is how they are combined.
void scatter(OpContext& c) {
  c.expect_inputs(3);
  Value* content = content_of(c);
  Value* updates = spread_updates(c, content, c.in[1], c.in[2]);
  if (c.target == nullptr)
    write(c, c.b.add("scatter_update", {content, vectors(c, c.in[1], c.rank(1)), updates}, {{"from_start", true}}));
  else
    write(c, c.b.add("scatter_reduce", {content, c.in[1], updates}, {{"mode", std::string(c.target)}}));
}

/// Rows of a tensor, without a variable.
void inplace(OpContext& c) {
  c.expect_inputs(3);
  Value *rows = c.in[1], *updates = c.in[2];
  if (c.rank(1) == 0) rows = expand_dims(rows, {0}, c.b), updates = expand_dims(updates, {0}, c.b);
  if (c.target == nullptr)
    c.out = {c.b.add("scatter_update", {c.in[0], vectors(c, rows, 1), updates})};
  else
    c.out = {c.b.add("scatter_reduce", {c.in[0], rows, updates}, {{"mode", std::string(c.target)}})};
}

void scatter_nd(OpContext& c) {
  c.expect_inputs(3);
  Value* content = content_of(c);
  const Attributes attributes{{"from_start", true}};
  if (c.target == nullptr) return write(c, c.b.add("scatter_update", {content, c.in[1], c.in[2]}, attributes));
  Value* sums = c.b.add("scatter_nd", {c.in[1], c.in[2], folded(c.b.add("shape_of", {content}), c.b)}, attributes);
  write(c, c.b.add(c.target, {content, sums}));
}

void resource_gather(OpContext& c) {
  c.expect_inputs(2);
  Value* content = c.b.add("read_variable", {c.in[0]});
  const int64_t batch = c.integer("batch_dims", 0);
  c.out = {c.b.add("gather", {content, c.in[1]}, {{"axis", batch}, {"batch_dims", batch}, {"from_start", true}})};
}

void resource_gather_nd(OpContext& c) {
  c.expect_inputs(2);
  c.out = {c.b.add("gather_nd", {c.b.add("read_variable", {c.in[0]}), c.in[1]}, {{"from_start", true}})};
}

void variable_shape(OpContext& c) {
  c.expect_inputs(1);
  Value* content = c.b.add("read_variable", {c.in[0]});
  const DType dtype = c.dtype("out_type", kDtInt32);
  c.out = {content->type.is_static() ? cast_to(c.b.ints(content->type.shape.sizes()), dtype, c.b)
                                     : c.b.add("shape_of", {content}, {{"dtype", dtype}})};
}

/// For sorted segments: the number of segments, which is the last segment number plus one.
Value* last_and_one(OpContext& c, Value* segments) {
  Value* last = c.b.add("slice", {segments, c.b.ints({-1}), c.b.ints({kToTheEnd})});
  Value* count = c.b.add("add", {cast_to(last, kI64, c.b), c.b.ints({1})});
  return folded(c.b.add("reshape", {folded(count, c.b), c.b.ints({})}), c.b);
}

Value* reduced(OpContext& c, Value* x, Value* segments, Value* count, const char* mode, bool empty_is_zero,
               bool sorted = false) {
  return c.b.add("segment_reduce", {x, segments, count},
                 {{"mode", std::string(mode)}, {"empty_is_zero", empty_is_zero}, {"sorted", sorted}});
}

void unsorted_segments(OpContext& c) {
  c.expect_inputs(3);
  c.out = {reduced(c, c.in[0], c.in[1], c.in[2], c.target, false)};
}

void sorted_segments(OpContext& c) {
  c.expect_inputs(2);
  c.out = {
      reduced(c, c.in[0], c.in[1], last_and_one(c, c.in[1]), c.target, std::string_view(c.target) != "prod", true)};
}

/// Segments of rows that indices pick; with a number of segments or without.
void sparse_segments(OpContext& c) {
  c.expect_inputs(3, 4);
  Value* rows = c.b.add("gather", {c.in[0], c.in[1]}, {{"axis", int64_t{0}}, {"from_start", true}});
  Value* count = c.in.size() == 4 ? c.in[3] : last_and_one(c, c.in[2]);
  c.out = {reduced(c, rows, c.in[2], count, c.target, true, true)};
}

/// The gradient of each segment, divided as the forward op divides.
Value* divided_by_members(OpContext& c, Value* dy, Value* segments, std::string_view mode) {
  if (mode == "sum") return dy;
  const Dim& picks =
      segments->type.shape.ranked && segments->type.shape.rank() > 0 ? segments->type.shape.dims[0] : Dim();
  Value* size = picks.known() ? c.b.ints({picks.size}) : c.b.add("shape_of", {segments});
  Value* ones = c.b.add("broadcast_to", {c.b.scalar_like(dy, 1), size});
  Value* segment_count = scalar_dim(dy, 0, c.b);
  const Var members = by_number(Var(c.b, reduced(c, ones, segments, segment_count, "sum", true)), "maximum", 1);
  Value* divisor = (mode == "mean" ? members : members.apply("sqrt")).value;
  std::vector<int64_t> column(c.rank(0), 1);
  column[0] = -1;
  return c.b.add("div", {dy, c.b.add("reshape", {divisor, c.b.ints(column)})});
}

/// gradient, indices, segments, rows of the original: each row gets the gradient of its segment.
void sparse_segments_gradient(OpContext& c) {
  c.expect_inputs(4);
  Value* dy = divided_by_members(c, c.in[0], c.in[2], c.target);
  Value* rows = c.b.add("gather", {dy, c.in[2]}, {{"axis", int64_t{0}}});
  c.out = {reduced(c, rows, c.in[1], c.in[3], "sum", true)};
}

/// The same for the rows that occur, in rising order, and which they are.
void sparse_segments_gradient_of_rows(OpContext& c) {
  c.expect_inputs(4);
  if (c.rank(1) != 1) fail(ErrorKind::invalid_model, "", "indices have {} dims, expected 1", c.rank(1));
  Value* count = scalar_dim(c.in[1], 0, c.b);
  const auto* order = c.b.add_node(op_named("top_k"), {c.b.add("neg", {c.in[1]}), count});
  const auto* made = c.b.add_node(op_named("unique"), {c.b.add("neg", {order->result(0)})});
  Value* segments = c.b.add("gather", {c.in[2], order->result(1)}, {{"axis", int64_t{0}}});
  Value* dy = divided_by_members(c, c.in[0], c.in[2], c.target);
  Value* rows = c.b.add("gather", {dy, segments}, {{"axis", int64_t{0}}});
  Value* found = c.b.add("reshape", {dim_of(made->result(0), 0, c.b), c.b.ints({})});
  c.out = {reduced(c, rows, made->result(1), found, "sum", true), made->result(0)};
}

/// One column of the index vectors of a sparse matrix.
Value* column_of(OpContext& c, Value* indices, int64_t column) {
  Value* part = c.b.add("slice", {indices, c.b.ints({0, column}), c.b.ints({kToTheEnd, column + 1})});
  return c.b.add("reshape", {part, c.b.ints({-1})});
}

/// Each element of the sparse matrix adds its multiple of a row of the dense one to a row of the result.
void sparse_matmul(OpContext& c) {
  c.expect_inputs(4);
  if (c.rank(0) != 2 || c.rank(3) != 2) fail(ErrorKind::invalid_model, "", "must have matrices");
  const bool turned = c.boolean("adjoint_a", false);
  Value* dense = c.in[3];
  if (c.boolean("adjoint_b", false)) dense = transposed(dense, {1, 0}, c.b);
  Value* rows = column_of(c, c.in[0], turned ? 1 : 0);
  Value* picked = c.b.add("gather", {dense, column_of(c, c.in[0], turned ? 0 : 1)}, {{"axis", int64_t{0}}});
  Value* values = c.b.add("reshape", {c.in[1], c.b.ints({-1, 1})});
  Value* count = part_of(cast_to(c.in[2], kI64, c.b), turned ? 1 : 0, turned ? 2 : 1, c.b);
  Value* scalar = folded(c.b.add("reshape", {count, c.b.ints({})}), c.b);
  c.out = {reduced(c, c.b.add("mul", {picked, values}), rows, scalar, "sum", true)};
}

void sparse_to_dense(OpContext& c) {
  c.expect_inputs(4);
  Value* all = c.b.add("broadcast_to", {c.in[3], c.in[1]});
  Value *indices = c.in[0], *values = c.in[2];
  const size_t rank = c.rank(0);
  if (rank > 2) fail(ErrorKind::invalid_model, "", "the indices have {} dims, expected at most 2", rank);
  if (rank < 2) indices = c.b.add("reshape", {indices, c.b.ints({-1, 1})});
  if (c.rank(2) == 0) {
    const Dim& count = indices->type.shape.dims[0];
    if (!count.known()) c.refuse("one value for a number of elements that is not known");
    values = c.b.add("broadcast_to", {values, c.b.ints({count.size})});
  }
  c.out = {c.b.add("scatter_update", {all, indices, values})};
}

/// Stops the run unless all elements are finite.
void check_numerics(OpContext& c) {
  c.expect_inputs(1);
  std::vector<int64_t> axes(c.rank(0));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  Value* holds = c.b.add("reduce_all", {c.b.add("is_finite", c.in)}, {{"axes", axes}});
  c.b.add_node(op_named("assert"), {holds},
               {{"message", fmt::format("{} : Tensor had Inf or NaN values", c.text("message", ""))}});
  c.out = c.in;
}

constexpr Row kSparseRows[] = {
    {"CheckNumerics", check_numerics},
    {"CheckNumericsV2", check_numerics},
    {"InplaceAdd", inplace, "add"},
    {"InplaceSub", inplace, "sub"},
    {"InplaceUpdate", inplace},
    {"ResourceGather", resource_gather, reads(1)},
    {"ResourceGatherNd", resource_gather_nd, reads(1)},
    {"ResourceScatterAdd", scatter, "add", writes(1)},
    {"ResourceScatterDiv", scatter, "div", writes(1)},
    {"ResourceScatterMax", scatter, "max", writes(1)},
    {"ResourceScatterMin", scatter, "min", writes(1)},
    {"ResourceScatterMul", scatter, "mul", writes(1)},
    {"ResourceScatterNdAdd", scatter_nd, "add", writes(1)},
    {"ResourceScatterNdSub", scatter_nd, "sub", writes(1)},
    {"ResourceScatterNdUpdate", scatter_nd, writes(1)},
    {"ResourceScatterSub", scatter, "sub", writes(1)},
    {"ResourceScatterUpdate", scatter, writes(1)},
    {"ScatterAdd", scatter, "add", writes(1)},
    {"ScatterDiv", scatter, "div", writes(1)},
    {"ScatterMax", scatter, "max", writes(1)},
    {"ScatterMin", scatter, "min", writes(1)},
    {"ScatterMul", scatter, "mul", writes(1)},
    {"ScatterNdAdd", scatter_nd, "add", writes(1)},
    {"ScatterNdSub", scatter_nd, "sub", writes(1)},
    {"ScatterNdUpdate", scatter_nd, writes(1)},
    {"ScatterSub", scatter, "sub", writes(1)},
    {"ScatterUpdate", scatter, writes(1)},
    {"SegmentMax", sorted_segments, "max"},
    {"SegmentMean", sorted_segments, "mean"},
    {"SegmentMin", sorted_segments, "min"},
    {"SegmentProd", sorted_segments, "prod"},
    {"SegmentSum", sorted_segments, "sum"},
    {"SparseSegmentMean", sparse_segments, "mean"},
    {"SparseSegmentMeanGrad", sparse_segments_gradient, "mean"},
    {"SparseSegmentMeanGradV2", sparse_segments_gradient_of_rows, "mean"},
    {"SparseSegmentMeanWithNumSegments", sparse_segments, "mean"},
    {"SparseSegmentSqrtN", sparse_segments, "sqrt_n"},
    {"SparseSegmentSqrtNGrad", sparse_segments_gradient, "sqrt_n"},
    {"SparseSegmentSqrtNGradV2", sparse_segments_gradient_of_rows, "sqrt_n"},
    {"SparseSegmentSqrtNWithNumSegments", sparse_segments, "sqrt_n"},
    {"SparseSegmentSum", sparse_segments, "sum"},
    {"SparseSegmentSumGrad", sparse_segments_gradient, "sum"},
    {"SparseSegmentSumGradV2", sparse_segments_gradient_of_rows, "sum"},
    {"SparseSegmentSumWithNumSegments", sparse_segments, "sum"},
    {"SparseTensorDenseMatMul", sparse_matmul},
    {"SparseToDense", sparse_to_dense},
    {"UnsortedSegmentMax", unsorted_segments, "max"},
    {"UnsortedSegmentMin", unsorted_segments, "min"},
    {"UnsortedSegmentProd", unsorted_segments, "prod"},
    {"UnsortedSegmentSum", unsorted_segments, "sum"},
    {"VariableShape", variable_shape, reads(1) | Trait::shapes},
};

}  // namespace

std::span<const Row> sparse_rows() { return kSparseRows; }

}  // namespace cairn::tensorflow
