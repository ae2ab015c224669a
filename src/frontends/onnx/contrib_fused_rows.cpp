// Operators of com.microsoft that join operators of ONNX, or are older or other forms of them.
#include <cmath>

#include "frontends/fold.h"
#include "frontends/onnx/attention.h"
#include "frontends/onnx/convolution.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

/// The operator of ONNX with the target's name, as its version `kOpset` means it.
template <int64_t kOpset>
void of_onnx(OpContext& c) {
  c.out = as_operator(c, {}, c.target, c.in.any(), kOpset);
}

/// y through the activation that an attribute names, whose numbers are alpha and beta.
Value* activated(OpContext& c, Value* y, std::vector<float> numbers) {
  const std::string name = c.text("activation", "");
  const auto number = [&](size_t i, double fallback) { return i < numbers.size() ? numbers[i] : fallback; };
  const Var x(c.b, y);
  if (name.empty()) return y;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus" || name == "Softsign")
    return as_operator(c, {}, name, {y}, 13).at(0);
  if (name == "LeakyRelu") return select(x < 0.0, x * number(0, 0.01), x).value;
  if (name == "Clip") return minimum(maximum(x, x.number(number(0, -INFINITY))), x.number(number(1, INFINITY))).value;
  if (name == "HardSigmoid") {
    const Var line = x * number(0, 0.2) + number(1, 0.5);
    return minimum(maximum(line, x.number(0)), x.number(1)).value;
  }
  if (name == "HardSwish") return as_operator(c, {}, name, {y}, 14).at(0);
  c.refuse("the activation '{}' is not supported", printable(name));
}

/// activation(convolution + z)
void fused_convolution(OpContext& c) {
  c.expect_inputs(2, 4);
  Value* y = convolved(c, c.in[0], c.in[1], c.given(2) ? c.in[2] : nullptr);
  if (c.given(3)) y = c.b.add("add", {y, c.in[3]});
  c.out = {activated(c, y, c.reals("activation_params"))};
}

void fused_gemm(OpContext& c) {
  c.expect_inputs(2, 3);
  const auto numbers = {static_cast<float>(c.real("activation_alpha", 0)),
                        static_cast<float>(c.real("activation_beta", 0))};
  const bool told = c.has("activation_alpha");
  c.out = {activated(c, as_operator(c, {}, "Gemm", c.in.any(), 13).at(0),
                     told ? std::vector<float>(numbers) : std::vector<float>())};
}

/// Images [n, .., channels] as [n, channels, ..], or back.
Value* channels_moved(Value* x, bool back, Builder& b) {
  const auto rank = static_cast<int64_t>(x->type.shape.rank());
  std::vector<int64_t> order{0};
  if (!back) order.push_back(rank - 1);
  for (int64_t i = 1; i + 1 < rank; ++i) order.push_back(back ? i + 1 : i);
  if (back) order.push_back(1);
  return transposed(x, order, b);
}

void max_pool_of_channels_last(OpContext& c) {
  c.expect_inputs(1, 1);
  c.rank(0);
  c.out = {channels_moved(as_operator(c, {}, "MaxPool", {channels_moved(c.in[0], false, c.b)}, 12).at(0), true, c.b)};
}

/// Group norm, its channels last or first, of x or of x + skip + bias, and with SiLU if `activation` is 1.
void contrib_group_norm(OpContext& c) {
  const bool skips = c.target != nullptr, last = c.integer("channels_last", 1) != 0;
  c.expect_inputs(3, 5);
  const size_t rank = c.rank(0);
  if (rank < 3) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 3 or more", rank);
  Builder& b = c.b;
  const auto each = [&](Value* x) {
    std::vector<int64_t> dims(last ? 1 : rank - 1, 1);
    dims[0] = -1;
    return x->type.shape.rank() == rank ? x : b.add("reshape", {x, b.ints(dims)});
  };
  Value* x = c.in[0];
  if (skips) {
    Value* skip = c.in[3];
    if (skip->type.shape.rank() == 2)
      skip = expand_dims(skip, last ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{2, 3}, b);
    x = b.add("add", {x, skip});
    if (c.given(4)) x = b.add("add", {x, each(c.in[4])});
  }
  const int64_t axis = last ? static_cast<int64_t>(rank) - 1 : 1, groups = c.integer("groups");
  const int64_t channels = known_dim(c, x, static_cast<size_t>(axis), "the channels");
  if (groups < 1 || channels % groups != 0)
    fail(ErrorKind::invalid_model, "", "{} channels do not divide into {} groups", channels, groups);
  std::vector<NewDim> split;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i) {
    if (i != axis) {
      if (i > 0) axes.push_back(static_cast<int64_t>(split.size()));
      split.push_back({-1, static_cast<int>(i)});
      continue;
    }
    split.push_back({groups});
    axes.push_back(static_cast<int64_t>(split.size()));
    split.push_back({channels / groups});
  }
  const Var wide = cast(Var(b, reshape_to(x, split, b)), kF32);
  const Var centred = wide - reduce_mean(wide, axes, true);
  const Var normed = centred * rsqrt(reduce_mean(square(centred), axes, true) + c.real("epsilon", 1e-5));
  Var y(b, b.add("reshape", {normed.value, b.add("shape_of", {x})}));
  y = y * cast(Var(b, each(c.in[1])), kF32) + cast(Var(b, each(c.in[2])), kF32);
  if (c.integer("activation", 0) == 1) y = y * y.apply("sigmoid");
  c.out = {cast(y, c.in[0]->type.dtype).value};
  if (skips) c.out.push_back(x);
}

/// Distances of the rows of two matrices.
void distances(OpContext& c) {
  c.expect_inputs(2, 2);
  const std::string metric = c.text("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean") c.refuse("metric '{}' is not supported", printable(metric));
  const Var a(c.b, expand_dims(c.in[0], {1}, c.b)), other(c.b, expand_dims(c.in[1], {0}, c.b));
  const Var squares = reduce_sum(square(a - other), {2});
  c.out = {metric == "euclidean" ? sqrt(squares).value : squares.value};
}

void inverse(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.b.add("matrix_inverse", {c.in[0]})};
}

/// The x of a x = b, or of a' x = b.
void solved(OpContext& c) {
  c.expect_inputs(2, 2);
  Value* a = c.in[0];
  if (c.integer("transposed", 0) != 0) {
    const size_t rank = c.rank(0);
    if (rank < 2) fail(ErrorKind::invalid_model, "", "the matrix has {} dims", rank);
    a = transposed(a, swapped_axes(rank, rank - 2, rank - 1), c.b);
  }
  const bool column = c.rank(1) + 1 == c.rank(0);
  Value* right = column ? expand_dims(c.in[1], {static_cast<int64_t>(c.rank(1))}, c.b) : c.in[1];
  Value* y = c.b.add("matrix_solve", {a, right});
  c.out = {column ? squeeze(y, {static_cast<int64_t>(c.rank(1))}, c.b) : y};
}

/// A dim of 1 at a constant axis.
void dim_inserted(OpContext& c) {
  c.expect_inputs(2, 2);
  const std::vector<int64_t> axis = c.constant_integers(1, "the axis");
  if (axis.size() != 1) fail(ErrorKind::invalid_model, "", "has {} axes, expected 1", axis.size());
  c.out = {expand_dims(c.in[0], {normal_axis(axis[0], c.rank(0) + 1)}, c.b)};
}

/// T5's biases [1, heads, queries, keys]: a row of the table for each range of distances, which grow with the distance.
void relative_position_bias(OpContext& c) {
  c.expect_inputs(3, 3);
  Builder& b = c.b;
  const auto length = [&](size_t input) { return cast_to(reshape_to(c.in[input], {}, b), kI64, b); };
  const bool both = c.integer("is_bidirectional", 0) != 0;
  const int64_t all = known_dim(c, c.in[0], 0, "the number of ranges"), most = c.integer("max_distance");
  const double ranges = static_cast<double>(both ? all / 2 : all), exact = std::floor(ranges / 2);
  if (exact < 1 || static_cast<double>(most) <= exact)
    fail(ErrorKind::invalid_model, "", "max_distance {} does not fit {} ranges", most, all);
  const Var keys(b, counted(length(2), b)), queries(b, expand_dims(counted(length(1), b), {1}, b));
  const Var ahead = cast(keys - queries, kF32);
  const Var far = both ? abs(ahead) : maximum(-ahead, ahead.number(0));
  const Var share = log(maximum(far, far.number(1)) / exact) / std::log(static_cast<double>(most) / exact);
  const Var grown = (share * (ranges - exact)).apply("floor") + exact;
  Var range = select(far < exact, far, minimum(grown, far.number(ranges - 1)));
  if (both) range = range + cast(ahead > 0.0, kF32) * ranges;
  Value* y = b.add("gather", {c.in[0], cast(range, kI64).value});
  c.out = {expand_dims(transposed(y, {2, 0, 1}, b), {0}, b)};
}

constexpr Row kContribFusedRows[] = {
    {"CDist", distances, nullptr, kMicrosoft},
    {"ExpandDims", dim_inserted, nullptr, kMicrosoft},
    {"FusedConv", fused_convolution, nullptr, kMicrosoft},
    {"FusedGemm", fused_gemm, nullptr, kMicrosoft},
    {"GridSample", of_onnx<16>, "GridSample", kMicrosoft},
    {"GroupNorm", contrib_group_norm, nullptr, kMicrosoft},
    {"Inverse", inverse, nullptr, kMicrosoft},
    {"NhwcMaxPool", max_pool_of_channels_last, nullptr, kMicrosoft},
    {"RelativePositionBias", relative_position_bias, nullptr, kMicrosoft},
    {"SkipGroupNorm", contrib_group_norm, "skip", kMicrosoft},
    {"Solve", solved, nullptr, kMicrosoft},
    {"Trilu", of_onnx<14>, "Trilu", kMicrosoft},
};

}  // namespace

std::span<const Row> contrib_fused_rows() { return kContribFusedRows; }

}  // namespace cairn::onnx
