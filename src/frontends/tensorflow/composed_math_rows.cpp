// TensorFlow's math ops that are composed of several of ours: einsum, norms, roll, scatters.
#include <algorithm>
#include <cmath>
#include <limits>

#include "frontends/einsum.h"
#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

void einsum_row(OpContext& c) { c.out = {einsum(c.text("equation", ""), c.in, c.b)}; }

/// 0 where the first is 0, even if the second is not finite.
void zero_times(OpContext& c) {
  c.expect_inputs(2);
  Value* zero = c.b.scalar_like(c.in[0], 0);
  Value* second = c.in[1];
  if (c.node().op == "Xlogy") second = c.b.add("log", {second});
  if (c.node().op == "Xlog1py") second = c.b.add("log1p", {second});
  Value* product = c.b.add(c.node().op == "Xdivy" ? "div" : "mul", {c.in[0], second});
  c.out = {c.b.add("select", {c.b.add("equal", {c.in[0], zero}), zero, product})};
}

void multiply_no_nan(OpContext& c) {
  c.expect_inputs(2);
  Value* zero = c.b.scalar_like(c.in[1], 0);
  c.out = {c.b.add("select", {c.b.add("equal", {c.in[1], zero}), zero, c.b.add("mul", c.in)})};
}

void approximate_equal(OpContext& c) {
  c.expect_inputs(2);
  Value* distance = c.b.add("abs", {c.b.add("sub", c.in)});
  c.out = {c.b.add("less", {distance, c.b.scalar_like(distance, c.real("tolerance", 1e-5))})};
}

void euclidean_norm(OpContext& c) {
  c.expect_inputs(2);
  Value* sum =
      c.b.add("reduce_sum", {c.b.add("square", {c.in[0]})},
              {{"axes", c.constant_integers(1, "the reduction axes")}, {"keep_dims", c.boolean("keep_dims", false)}});
  c.out = {c.b.add("sqrt", {sum})};
}

void lin_space(OpContext& c) {
  c.expect_inputs(3);
  int64_t count = c.constant_integer(2, "the number of values");
  if (count < 1 || count > (1 << 24)) fail(ErrorKind::invalid_model, "", "makes {} values", count);
  std::vector<double> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(count == 1 ? 0 : static_cast<double>(i) / static_cast<double>(count - 1));
  Value* steps = cast_to(c.b.constant(Tensor::of<double>(kF64, {count}, parts)), c.in[0]->type.dtype, c.b);
  c.out = {c.b.add("add", {c.in[0], c.b.add("mul", {steps, c.b.add("sub", {c.in[1], c.in[0]})})})};
}

/// 0, 1, ... along dim `axis` of x, as i64.
Value* places(OpContext& c, Value* x, size_t axis) {
  const Dim& dim = x->type.shape.dims[axis];
  Value* limit = dim.known() ? c.b.constant(Tensor::scalar_i64(dim.size))
                             : c.b.add("reshape", {dim_of(x, axis, c.b), c.b.ints({})});
  std::vector<Type> type{Type::tensor(kI64, Shape{dim})};
  Value* zero = c.b.constant(Tensor::scalar_i64(0));
  Value* one = c.b.constant(Tensor::scalar_i64(1));
  return folded(c.b.add_node(op_named("iota"), {zero, limit, one}, {{"dtype", kI64}}, {}, type)->result(), c.b);
}

/// The elements from `middle` on, then those before.
Value* turned(Value* x, int64_t axis, int64_t middle, Builder& b) {
  std::vector<int64_t> begin(x->type.shape.rank()), end(begin.size(), kToTheEnd);
  end[static_cast<size_t>(axis)] = middle;
  Value* first = b.add("slice", {x, b.ints(begin), b.ints(end)});
  begin[static_cast<size_t>(axis)] = middle;
  end[static_cast<size_t>(axis)] = kToTheEnd;
  return b.add("concat", {b.add("slice", {x, b.ints(begin), b.ints(end)}), first}, {{"axis", axis}});
}

/// x[i - shift], going round at the ends.
void roll(OpContext& c) {
  c.expect_inputs(3);
  std::vector<int64_t> axes = c.constant_integers(2, "the axes");
  Value* x = c.in[0];
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = normal_axis(axes[i], c.rank(0));
    Value* shift = cast_to(c.in[1], kI64, c.b);
    if (shift->type.shape.ranked && shift->type.shape.rank() == 1)
      shift = part_of(shift, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1, c.b);
    const Dim& size = x->type.shape.dims[static_cast<size_t>(axis)];
    const Tensor* known = constant_of(folded(shift, c.b));
    if (known && size.known() && size.size > 0) {
      x = turned(x, axis, size.size - ((known->as_i64()[0] % size.size + size.size) % size.size), c.b);
      continue;
    }
    Value* from = c.b.add("sub", {places(c, x, static_cast<size_t>(axis)), shift});
    from = c.b.add("mod", {from, cast_to(dim_of(x, static_cast<size_t>(axis), c.b), kI64, c.b)});
    x = c.b.add("gather", {x, from}, {{"axis", axis}});
  }
  c.out = {x};
}

/// The first elements of each sequence in reverse order.
void reverse_sequence(OpContext& c) {
  c.expect_inputs(2);
  size_t rank = c.rank(0);
  int64_t time = normal_axis(c.integer("seq_dim"), rank), batch = normal_axis(c.integer("batch_dim", 0), rank);
  if (time == batch) fail(ErrorKind::invalid_model, "", "dim {} is both sequence and batch", time);
  std::vector<int64_t> there{batch, time}, back(rank);
  for (size_t i = 0; i < rank; ++i)
    if (static_cast<int64_t>(i) != batch && static_cast<int64_t>(i) != time) there.push_back(static_cast<int64_t>(i));
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(there[i])] = static_cast<int64_t>(i);
  Value* x = transposed(c.in[0], there, c.b);
  Value* lengths = expand_dims(cast_to(c.in[1], kI64, c.b), {1}, c.b);
  Value* at = places(c, x, 1);
  Value* turned = c.b.add("sub", {c.b.add("sub", {lengths, at}), c.b.constant(Tensor::scalar_i64(1))});
  // A negative length gives an invalid index, which is an error at run time.
  Value* same = c.b.add("add", {at, c.b.add("minimum", {lengths, c.b.constant(Tensor::scalar_i64(0))})});
  Value* from = c.b.add("select", {c.b.add("less", {at, lengths}), turned, same});
  x = c.b.add("gather", {x, from}, {{"axis", int64_t{1}}, {"batch_dims", int64_t{1}}, {"from_start", true}});
  c.out = {transposed(x, back, c.b)};
}

/// x with updates added to (or taken from) what is at the index vectors.
void scatter_add(OpContext& c) {
  c.expect_inputs(3);
  Value* shape = c.in[0]->type.is_static() ? c.b.ints(c.in[0]->type.shape.sizes()) : c.b.add("shape_of", {c.in[0]});
  Value* sums = c.b.add("scatter_nd", {c.in[1], c.in[2], shape}, {{"from_start", true}});
  c.out = {c.b.add(c.target, {c.in[0], sums})};
}

void broadcast_args(OpContext& c) {
  c.expect_inputs(2);
  std::vector<Value*> shapes{cast_to(c.in[0], kI64, c.b), cast_to(c.in[1], kI64, c.b)};
  size_t longest = 0;
  for (Value* shape : shapes) {
    auto sizes = sizes_in(shape);
    if (!sizes) c.refuse("the number of dims is not known");
    longest = std::max(longest, sizes->size());
  }
  for (Value*& shape : shapes) {
    std::vector<int64_t> ones(longest - sizes_in(shape)->size(), 1);
    if (!ones.empty()) shape = folded(c.b.add("concat", {c.b.ints(ones), shape}, {{"axis", int64_t{0}}}), c.b);
  }
  Value* one = c.b.add("equal", {shapes[0], c.b.ints(std::vector<int64_t>(longest, 1))});
  c.out = {cast_to(c.b.add("select", {one, shapes[1], shapes[0]}), c.in[0]->type.dtype, c.b)};
}

void fake_param(OpContext& c) {
  auto shape = c.shape("shape");
  if (!shape || shape->unknown_rank) c.refuse("its shape is not known");
  std::vector<int64_t> dims;
  for (int64_t size : shape->dims) dims.push_back(std::max<int64_t>(size, 0));
  if (!element_count(dims) || *element_count(dims) > (1 << 26))
    fail(ErrorKind::invalid_model, "", "its shape is too large");
  c.out = {c.b.constant(Tensor::zeros(c.dtype("dtype"), dims))};
}

void unique_v2(OpContext& c) {
  c.expect_inputs(2);
  if (c.rank(0) != 1) c.refuse("only vectors are supported, found {} dims", c.rank(0));
  auto* made = c.b.add_node(op_named("unique"), {c.in[0]});
  c.out = {made->result(0), cast_to(made->result(1), c.dtype("out_idx", kDtInt32), c.b)};
}

constexpr Row kMoreMathRows[] = {
    {"Acos", unary, "acos"},
    {"Acosh", unary, "acosh"},
    {"ApproximateEqual", approximate_equal},
    {"Asin", unary, "asin"},
    {"Asinh", unary, "asinh"},
    {"Atan", unary, "atan"},
    {"Atan2", binary, "atan2"},
    {"Atanh", unary, "atanh"},
    {"BroadcastArgs", broadcast_args},
    {"Cosh", unary, "cosh"},
    {"Einsum", einsum_row, Trait::heavy},
    {"EuclideanNorm", euclidean_norm, known(1)},
    {"FakeParam", fake_param},
    {"LinSpace", lin_space},
    {"MulNoNan", multiply_no_nan},
    {"ReverseSequence", reverse_sequence},
    {"Roll", roll},
    {"ScatterNdNonAliasingAdd", scatter_add, "add"},
    {"Sinh", unary, "sinh"},
    {"Tan", unary, "tan"},
    {"TensorScatterAdd", scatter_add, "add"},
    {"TensorScatterSub", scatter_add, "sub"},
    {"UniqueV2", unique_v2, Trait::distinct},
    {"Xdivy", zero_times},
    {"Xlog1py", zero_times},
    {"Xlogy", zero_times},
};

}  // namespace

std::span<const Row> composed_math_rows() { return kMoreMathRows; }

}  // namespace cairn::tensorflow
