// TensorFlow's math beyond single ops: einsum, diagonals and bands of matrices, fake quantisation, rotations, scatters.
#include <algorithm>
#include <cmath>
#include <numeric>

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
  Value* zero = scalar_like(c.in[0], 0, c.b);
  Value* second = c.in[1];
  if (c.node().op == "Xlogy") second = c.b.add("log", {second});
  if (c.node().op == "Xlog1py") second = c.b.add("log1p", {second});
  Value* product = c.b.add(c.node().op == "Xdivy" ? "div" : "mul", {c.in[0], second});
  c.out = {c.b.add("select", {c.b.add("equal", {c.in[0], zero}), zero, product})};
}

void multiply_no_nan(OpContext& c) {
  c.expect_inputs(2);
  Value* zero = scalar_like(c.in[1], 0, c.b);
  c.out = {c.b.add("select", {c.b.add("equal", {c.in[1], zero}), zero, c.b.add("mul", c.in)})};
}

void approximate_equal(OpContext& c) {
  c.expect_inputs(2);
  Value* distance = c.b.add("abs", {c.b.add("sub", c.in)});
  c.out = {c.b.add("less", {distance, scalar_like(distance, c.real("tolerance", 1e-5), c.b)})};
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

/// Columns less rows of the matrices in the last two dims of x.
Value* diagonals(OpContext& c, Value* x) {
  size_t rank = x->type.shape.rank();
  Value* rows = expand_dims(places(c, x, rank - 2), {1}, c.b);
  return c.b.add("sub", {places(c, x, rank - 1), rows});
}

void matrix_band_part(OpContext& c) {
  c.expect_inputs(3);
  if (c.rank(0) < 2) fail(ErrorKind::invalid_model, "", "takes matrices, found {} dims", c.rank(0));
  Value* distance = diagonals(c, c.in[0]);
  Value* zero = c.b.constant(Tensor::scalar_i64(0));
  Value *lower = cast_to(c.in[1], kI64, c.b), *upper = cast_to(c.in[2], kI64, c.b);
  auto within = [&](Value* bound, Value* beyond) {
    return c.b.add("or", {c.b.add("less", {bound, zero}), c.b.add("less_equal", {beyond, bound})});
  };
  Value* inside = c.b.add("and", {within(lower, c.b.add("neg", {distance})), within(upper, distance)});
  c.out = {c.b.add("select", {inside, c.in[0], scalar_like(c.in[0], 0, c.b)})};
}

/// Of 2 * half dims, where the first half names the same place as the second: dims 0, ... and `behind`, ... of x.
Value* same_places(OpContext& c, Value* x, size_t half, size_t behind) {
  Value* same = nullptr;
  for (size_t i = 0; i < half; ++i) {
    auto along = [&](size_t dim, size_t at) {  // of 2 * half dims
      std::vector<int64_t> ones(2 * half - 1 - at);
      std::iota(ones.begin(), ones.end(), 1);
      return expand_dims(places(c, x, dim), ones, c.b);
    };
    Value* equal = c.b.add("equal", {along(i, i), along(behind + i, half + i)});
    same = same ? c.b.add("and", {same, equal}) : equal;
  }
  return same;
}

/// x on the diagonal of a tensor with twice its dims.
void diag(OpContext& c) {
  c.expect_inputs(1);
  const size_t rank = c.rank(0);
  if (rank < 1) fail(ErrorKind::invalid_model, "", "takes a vector, found a scalar");
  std::vector<int64_t> behind(rank);
  std::iota(behind.begin(), behind.end(), static_cast<int64_t>(rank));
  c.out = {c.b.add(
      "select", {same_places(c, c.in[0], rank, 0), expand_dims(c.in[0], behind, c.b), scalar_like(c.in[0], 0, c.b)})};
}

void diag_part(OpContext& c) {
  c.expect_inputs(1);
  Value* x = c.in[0];
  const size_t half = c.rank(0) / 2;
  if (half == 0 || c.rank(0) % 2 != 0) fail(ErrorKind::invalid_model, "", "has {} dims, expected 2, 4, ...", c.rank(0));
  std::vector<int64_t> behind(half);
  std::iota(behind.begin(), behind.end(), static_cast<int64_t>(half));
  for (size_t i = 0; i < half; ++i) {
    const Dim &row = x->type.shape.dims[i], &column = x->type.shape.dims[half + i];
    if (row.surely_equals(column)) continue;
    const std::string message = fmt::format("dims {} and {} of the input differ", i, half + i);
    if (row.known() && column.known()) fail(ErrorKind::invalid_model, "", "{}", message);
    Value* equal = c.b.add("equal", {dim_of(x, i, c.b), dim_of(x, half + i, c.b)});
    c.b.add_node(op_named("assert"), {c.b.add("reduce_all", {equal}, {{"axes", std::vector<int64_t>{0}}})},
                 {{"message", message}});
  }
  Value* kept = c.b.add("select", {same_places(c, x, half, half), x, scalar_like(x, 0, c.b)});
  c.out = {c.b.add("reduce_sum", {kept}, {{"axes", behind}})};
}

/// Vectors as main diagonals of square matrices. The later versions may do more, and must not here.
void matrix_diag(OpContext& c) {
  bool plain = c.node().op == "MatrixDiag" || c.node().op == "BatchMatrixDiag";
  plain ? c.expect_inputs(1) : c.expect_inputs(5);
  if (!plain && (c.constant_integers(1, "the diagonal") != std::vector<int64_t>{0} ||
                 c.constant_integers(2, "the number of rows") != std::vector<int64_t>{-1} ||
                 c.constant_integers(3, "the number of columns") != std::vector<int64_t>{-1}))
    c.refuse("only whole main diagonals are supported");
  Value* x = c.in[0];
  auto rank = static_cast<int64_t>(c.rank(0));
  if (rank < 1) fail(ErrorKind::invalid_model, "", "takes vectors, found a scalar");
  Value* places_of_x = places(c, x, static_cast<size_t>(rank - 1));
  Value* main = c.b.add("equal", {places_of_x, expand_dims(places_of_x, {1}, c.b)});
  Value* other = plain ? scalar_like(x, 0, c.b) : c.in[4];
  c.out = {c.b.add("select", {main, expand_dims(x, {rank - 1}, c.b), other})};
}

void matrix_diag_part(OpContext& c) {
  bool plain = c.node().op == "MatrixDiagPart" || c.node().op == "BatchMatrixDiagPart";
  plain ? c.expect_inputs(1) : c.expect_inputs(3);
  if (!plain && c.constant_integers(1, "the diagonal") != std::vector<int64_t>{0})
    c.refuse("only main diagonals are supported");
  Value* x = c.in[0];
  size_t rank = c.rank(0);
  if (rank < 2) fail(ErrorKind::invalid_model, "", "takes matrices, found {} dims", rank);
  const Dim &rows = x->type.shape.dims[rank - 2], &columns = x->type.shape.dims[rank - 1];
  if (!rows.surely_equals(columns)) c.refuse("only the diagonals of square matrices are supported");
  Value* main = c.b.add("equal", {diagonals(c, x), c.b.constant(Tensor::scalar_i64(0))});
  Value* kept = c.b.add("select", {main, x, scalar_like(x, 0, c.b)});
  c.out = {c.b.add("reduce_sum", {kept}, {{"axes", std::vector<int64_t>{-1}}})};
}

void matrix_set_diag(OpContext& c) {
  c.node().op == "MatrixSetDiag" ? c.expect_inputs(2) : c.expect_inputs(3);
  if (c.in.size() == 3 && c.constant_integers(2, "the diagonal") != std::vector<int64_t>{0})
    c.refuse("only main diagonals are supported");
  size_t rank = c.rank(0);
  if (rank < 2 || c.rank(1) + 1 != rank) fail(ErrorKind::invalid_model, "", "takes matrices and their diagonals");
  const Dim &rows = c.in[0]->type.shape.dims[rank - 2], &columns = c.in[0]->type.shape.dims[rank - 1];
  if (!rows.surely_equals(columns)) c.refuse("only the diagonals of square matrices are supported");
  Value* main = c.b.add("equal", {diagonals(c, c.in[0]), c.b.constant(Tensor::scalar_i64(0))});
  c.out = {c.b.add("select", {main, expand_dims(c.in[1], {static_cast<int64_t>(rank) - 1}, c.b), c.in[0]})};
}

/// Rounds x to the steps between two bounds, which are first moved so that 0 is a step.
Value* quantised(OpContext& c, Value* x, Value* low, Value* high) {
  const int64_t bits = c.integer("num_bits", 8);
  if (bits < 2 || bits > 16) fail(ErrorKind::invalid_model, "", "has {} bits", bits);
  Value* least = scalar_like(x, c.boolean("narrow_range", false) ? 1 : 0, c.b);
  Value* most = scalar_like(x, std::ldexp(1.0, static_cast<int>(bits)) - 1, c.b);
  Value* scale = c.b.add("div", {c.b.add("sub", {high, low}), c.b.add("sub", {most, least})});
  Value* offset = c.b.add("sub", {least, c.b.add("div", {low, scale})});
  // Halves up, as std::round does for what is not negative.
  Value* half = scalar_like(x, 0.5, c.b);
  Value* zero =
      c.b.add("minimum", {c.b.add("maximum", {c.b.add("floor", {c.b.add("add", {offset, half})}), least}), most});
  Value* bottom = c.b.add("mul", {c.b.add("sub", {least, zero}), scale});
  Value* top = c.b.add("mul", {c.b.add("sub", {most, zero}), scale});
  Value* inside = c.b.add("sub", {c.b.add("minimum", {c.b.add("maximum", {x, bottom}), top}), bottom});
  Value* step = c.b.add("floor", {c.b.add("add", {c.b.add("mul", {inside, c.b.add("reciprocal", {scale})}), half})});
  return c.b.add("add", {c.b.add("mul", {step, scale}), bottom});
}

void fake_quant_args(OpContext& c) {
  c.expect_inputs(1);
  c.out = {
      quantised(c, c.in[0], scalar_like(c.in[0], c.real("min", -6), c.b), scalar_like(c.in[0], c.real("max", 6), c.b))};
}

void fake_quant_vars(OpContext& c) {
  c.expect_inputs(3);
  c.out = {quantised(c, c.in[0], c.in[1], c.in[2])};
}

/// x in steps of an integer of so many bits, whose range is told or that of x. One side of the range is widened, so that
/// both have steps of one size (quantize_and_dequantize_op.h).
void quantize_and_dequantize(OpContext& c) {
  const bool third = c.node().op.ends_with("V3");
  c.expect_inputs(third ? 4 : 3);
  const int64_t bits = third ? c.constant_integer(3, "the number of bits") : c.integer("num_bits", 8);
  if (bits < 2 || bits > 31) c.refuse("{} bits are not supported", bits);
  const bool is_signed = c.boolean("signed_input", true), given = c.boolean("range_given", false);
  const double least = is_signed ? -std::ldexp(1.0, int(bits) - 1) + (c.boolean("narrow_range", false) ? 1 : 0) : 0;
  const double most = std::ldexp(1.0, int(bits) - (is_signed ? 1 : 0)) - 1;
  Value *x = c.in[0], *low = c.in[1], *high = c.in[2];
  std::vector<int64_t> others;
  const int64_t axis = c.integer("axis", -1) < 0 ? -1 : normal_axis(c.integer("axis"), c.rank(0));
  for (int64_t i = 0; i < static_cast<int64_t>(c.rank(0)); ++i)
    if (i != axis) others.push_back(i);
  if (!given) {
    low = c.b.add("reduce_min", {x}, {{"axes", others}, {"keep_dims", true}});
    high = c.b.add("reduce_max", {x}, {{"axes", others}, {"keep_dims", true}});
  } else if (axis >= 0) {
    if (c.rank(1) != 1 || c.rank(2) != 1) fail(ErrorKind::invalid_model, "", "the range must be vectors");
    for (Value** bound : {&low, &high}) *bound = expand_dims(*bound, others, c.b);
  }
  auto number = [&](double value) { return scalar_like(x, value, c.b); };
  auto steps = [&](double edge, Value* bound) {
    Value* usable = c.b.add("greater", {c.b.add("mul", {number(edge), bound}), number(0)});
    return c.b.add("select",
                   {usable, c.b.add("div", {number(edge), bound}), number(std::numeric_limits<float>::max())});
  };
  auto size = [&](double edge, Value* bound) { return edge == 0 ? number(0) : c.b.add("div", {bound, number(edge)}); };
  Value *below = steps(least, low), *above = steps(most, high);
  Value* by_low = c.b.add("less", {below, above});
  Value* scale = c.b.add("select", {by_low, below, above});
  Value* step = c.b.add("select", {by_low, size(least, low), size(most, high)});
  if (given) {
    Value* top = c.b.add("select", {by_low, c.b.add("mul", {number(most), step}), high});
    Value* bottom = c.b.add("select", {by_low, low, c.b.add("mul", {number(least), step})});
    x = c.b.add("minimum", {c.b.add("maximum", {x, bottom}), top});
  }
  Value* scaled = c.b.add("mul", {x, scale});
  const bool up = c.text("round_mode", "HALF_TO_EVEN") == "HALF_UP";
  Value* rounded = up ? c.b.add("floor", {c.b.add("add", {scaled, number(0.5)})}) : c.b.add("round", {scaled});
  c.out = {c.b.add("mul", {rounded, step})};
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
  Value* x = c.b.add("transpose", {c.in[0]}, {{"permutation", there}});
  Value* lengths = expand_dims(cast_to(c.in[1], kI64, c.b), {1}, c.b);
  Value* at = places(c, x, 1);
  Value* turned = c.b.add("sub", {c.b.add("sub", {lengths, at}), c.b.constant(Tensor::scalar_i64(1))});
  // A negative length makes an index that is none.
  Value* same = c.b.add("add", {at, c.b.add("minimum", {lengths, c.b.constant(Tensor::scalar_i64(0))})});
  Value* from = c.b.add("select", {c.b.add("less", {at, lengths}), turned, same});
  x = c.b.add("gather", {x, from}, {{"axis", int64_t{1}}, {"batch_dims", int64_t{1}}, {"from_start", true}});
  c.out = {c.b.add("transpose", {x}, {{"permutation", back}})};
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
    {"BatchMatrixDiag", matrix_diag},
    {"BatchMatrixDiagPart", matrix_diag_part},
    {"BroadcastArgs", broadcast_args},
    {"Cosh", unary, "cosh"},
    {"Diag", diag},
    {"DiagPart", diag_part},
    {"Einsum", einsum_row},
    {"EuclideanNorm", euclidean_norm},
    {"FakeParam", fake_param},
    {"FakeQuantWithMinMaxArgs", fake_quant_args},
    {"FakeQuantWithMinMaxVars", fake_quant_vars},
    {"FakeQuantWithMinMaxVarsPerChannel", fake_quant_vars},
    {"LinSpace", lin_space},
    {"MatrixBandPart", matrix_band_part},
    {"MatrixDiag", matrix_diag},
    {"MatrixDiagPart", matrix_diag_part},
    {"MatrixDiagPartV2", matrix_diag_part},
    {"MatrixDiagPartV3", matrix_diag_part},
    {"MatrixDiagV2", matrix_diag},
    {"MatrixDiagV3", matrix_diag},
    {"MatrixSetDiag", matrix_set_diag},
    {"MatrixSetDiagV2", matrix_set_diag},
    {"MatrixSetDiagV3", matrix_set_diag},
    {"MulNoNan", multiply_no_nan},
    {"QuantizeAndDequantizeV2", quantize_and_dequantize},
    {"QuantizeAndDequantizeV3", quantize_and_dequantize},
    {"QuantizeAndDequantizeV4", quantize_and_dequantize},
    {"ReverseSequence", reverse_sequence},
    {"Roll", roll},
    {"ScatterNdNonAliasingAdd", scatter_add, "add"},
    {"Sinh", unary, "sinh"},
    {"Tan", unary, "tan"},
    {"TensorScatterAdd", scatter_add, "add"},
    {"TensorScatterSub", scatter_add, "sub"},
    {"UniqueV2", unique_v2},
    {"Xdivy", zero_times},
    {"Xlog1py", zero_times},
    {"Xlogy", zero_times},
};

}  // namespace

std::span<const Row> more_math_rows() { return kMoreMathRows; }

}  // namespace cairn::tensorflow
