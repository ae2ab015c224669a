// Caffe's layers that work on each element, and on elements of several bottoms together.
#include <algorithm>
#include <cmath>

#include "frontends/caffe/importer.h"

namespace cairn::caffe {
namespace {

Value* times(LayerContext& c, Value* x, double factor) {
  return factor == 1 ? x : c.b.add("mul", {x, c.b.scalar_like(x, factor)});
}

Value* plus(LayerContext& c, Value* x, double term) {
  return term == 0 ? x : c.b.add("add", {x, c.b.scalar_like(x, term)});
}

void unary(LayerContext& c) {
  c.expect(1);
  c.out = {c.b.add(c.target, {c.in[0]})};
}

void relu(LayerContext& c) {
  c.expect(1);
  const double slope = c.params("relu_param").real("negative_slope", 0);
  c.out = {slope == 0 ? c.b.add("relu", {c.in[0]}) : c.b.add("leaky_relu", {c.in[0]}, {{"alpha", slope}})};
}

void relu6(LayerContext& c) {
  c.expect(1);
  c.out = {c.b.add("clip", {c.in[0]}, {{"low", 0.0}, {"high", 6.0}})};
}

void clip(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("clip_param");
  if (!params.has("min") || !params.has("max")) c.invalid("clip_param needs min and max");
  c.out = {c.b.add("clip", {c.in[0]}, {{"low", params.real("min", 0)}, {"high", params.real("max", 0)}})};
}

/// One slope for each channel, or one for all.
void prelu(LayerContext& c) {
  c.expect(1);
  const bool shared = c.params("prelu_param").flag("channel_shared", false);
  std::vector<int64_t> dims(shared ? 0 : c.rank() - 1, 1);
  const std::vector<int64_t> stored = shared ? std::vector<int64_t>() : std::vector<int64_t>{c.size(1)};
  Value* slope = c.blob(0, stored);
  if (!shared) {
    dims[0] = -1;
    slope = c.b.add("reshape", {slope, c.b.ints(dims)});
  }
  Value* positive = c.b.add("less", {c.b.scalar_like(c.in[0], 0), c.in[0]});
  c.out = {c.b.add("select", {positive, c.in[0], c.b.add("mul", {c.in[0], slope})})};
}

void elu(LayerContext& c) {
  c.expect(1);
  c.out = {c.b.add("elu", {c.in[0]}, {{"alpha", c.params("elu_param").real("alpha", 1)}})};
}

void swish(LayerContext& c) {
  c.expect(1);
  Value* gate = c.b.add("sigmoid", {times(c, c.in[0], c.params("swish_param").real("beta", 1))});
  c.out = {c.b.add("mul", {c.in[0], gate})};
}

/// The logarithm of the base that a layer tells; -1 stands for e.
double log_base(LayerContext& c, const Message& params) {
  const double base = params.real("base", -1);
  if (base != -1 && !(base > 0)) c.invalid("base must be above 0, or -1 for e, found {}", base);
  return base == -1 ? 1 : std::log(base);
}

/// base ^ (shift + scale * x).
void exponential(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("exp_param");
  const double base = log_base(c, params);
  Value* x = plus(c, times(c, c.in[0], base * params.real("scale", 1)), base * params.real("shift", 0));
  c.out = {c.b.add("exp", {x})};
}

/// log(shift + scale * x) to the base.
void logarithm(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("log_param");
  Value* x = plus(c, times(c, c.in[0], params.real("scale", 1)), params.real("shift", 0));
  c.out = {times(c, c.b.add("log", {x}), 1 / log_base(c, params))};
}

/// (shift + scale * x) ^ power.
void power(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("power_param");
  const double exponent = params.real("power", 1);
  Value* x = plus(c, times(c, c.in[0], params.real("scale", 1)), params.real("shift", 0));
  if (exponent == 2) x = c.b.add("square", {x});
  if (exponent != 1 && exponent != 2) x = c.b.add("pow", {x, c.b.scalar_like(x, exponent)});
  c.out = {x};
}

void threshold(LayerContext& c) {
  c.expect(1);
  Value* bound = c.b.scalar_like(c.in[0], c.params("threshold_param").real("threshold", 0));
  c.out = {c.b.add("cast", {c.b.add("less", {bound, c.in[0]})}, {{"dtype", c.in[0]->type.dtype}})};
}

/// Bottoms of equal dims: their product, their sum with a coefficient each, their largest.
void eltwise(LayerContext& c) {
  c.expect(2, SIZE_MAX);
  enum { product, sum, largest };
  const Message params = c.params("eltwise_param");
  const int64_t how = params.integer("operation", sum);
  const std::vector<float> factors = params.reals("coeff");
  if (how < product || how > largest) c.invalid("operation {} is unknown", how);
  if (!factors.empty() && (how != sum || factors.size() != c.in.size()))
    c.invalid("has {} coefficients for {} bottoms of operation {}", factors.size(), c.in.size(), how);
  constexpr const char* kOps[] = {"mul", "add", "maximum"};
  Value* y = nullptr;
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (c.rank(i) != c.rank()) c.invalid("bottoms 0 and {} have {} and {} dims", i, c.rank(), c.rank(i));
    for (size_t axis = 0; axis < c.rank(); ++axis) {
      const Dim a = c.in[0]->type.shape.dims[axis], b = c.in[i]->type.shape.dims[axis];
      if (a.known() && b.known() && a != b)
        c.invalid("bottoms 0 and {} have {} and {} elements along dim {}", i, a.size, b.size, axis);
    }
    Value* term = times(c, c.in[i], factors.empty() ? 1 : factors[i]);
    y = y == nullptr ? term : c.b.add(kOps[how], {y, term});
  }
  c.out = {y};
}

/// The sizes of the axes that weights cover: `num_axes` from `axis` on, or those of the second bottom.
std::vector<int64_t> covered(const LayerContext& c, const Message& params) {
  const bool given = c.in.size() == 2;
  const size_t axis = c.axis(params, "axis", 1), rest = c.rank() - axis;
  const int64_t count = params.integer("num_axes", 1);
  if (!given && (count < -1 || count > static_cast<int64_t>(rest)))
    c.invalid("num_axes is {}, there are {} from axis {} on", count, rest, axis);
  std::vector<int64_t> sizes(given ? c.rank(1) : count < 0 ? rest : static_cast<size_t>(count));
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = given ? c.size(i, 1) : c.size(axis + i);
  return sizes;
}

/// A value over the axes from `axis` on, so that it broadcasts to the first bottom.
Value* placed(LayerContext& c, const Message& params, Value* value) {
  const size_t rest = c.rank() - c.axis(params, "axis", 1), own = value->type.shape.rank();
  if (own == 0 || own == rest) return value;
  if (own > rest) c.invalid("a factor or term has {} dims, there are {} from its axis on", own, rest);
  std::vector<NewDim> dims;
  for (size_t i = 0; i < rest; ++i) dims.push_back(i < own ? NewDim{-1, static_cast<int>(i)} : NewDim{1});
  return reshape_to(value, dims, c.b);
}

void scale(LayerContext& c) {
  c.expect(1, 2);
  const Message params = c.params("scale_param");
  const bool given = c.in.size() == 2;
  Value* factor = given ? c.in[1] : c.blob(0, covered(c, params));
  Value* y = c.b.add("mul", {c.in[0], placed(c, params, factor)});
  if (params.flag("bias_term", false))
    y = c.b.add("add", {y, placed(c, params, c.blob(given ? 0 : 1, covered(c, params)))});
  c.out = {y};
}

void bias(LayerContext& c) {
  c.expect(1, 2);
  const Message params = c.params("bias_param");
  Value* term = c.in.size() == 2 ? c.in[1] : c.blob(0, covered(c, params));
  c.out = {c.b.add("add", {c.in[0], placed(c, params, term)})};
}

void softmax(LayerContext& c) {
  c.expect(1);
  const auto axis = static_cast<int64_t>(c.axis(c.params("softmax_param"), "axis", 1));
  c.out.assign(std::max<size_t>(c.tops(), 1), c.b.add("softmax", {c.in[0]}, {{"axis", axis}}));
}

/// Over all axes from `axis` on; they disappear.
void reduction(LayerContext& c) {
  c.expect(1);
  enum { sum = 1, magnitudes, squares, mean };
  const Message params = c.params("reduction_param");
  const int64_t how = params.integer("operation", sum);
  if (how < sum || how > mean) c.invalid("operation {} is unknown", how);
  std::vector<int64_t> axes;
  for (size_t i = c.axis(params, "axis", 0); i < c.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  Value* x = how == magnitudes ? c.b.add("abs", {c.in[0]}) : how == squares ? c.b.add("square", {c.in[0]}) : c.in[0];
  x = c.b.add(how == mean ? "reduce_mean" : "reduce_sum", {x}, {{"axes", axes}, {"keep_dims", false}});
  c.out = {times(c, x, params.real("coeff", 1))};
}

/// The places of the largest elements along an axis (without one: of each image as a vector), their values, or both.
void arg_max(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("argmax_param");
  const int64_t k = params.integer("top_k", 1);
  const bool values = params.flag("out_max_val", false), along = params.has("axis");
  Value* x = c.in[0];
  const size_t rank = c.rank(), axis = along ? c.axis(params, "axis", 0) : 1;
  const std::vector<int64_t> order = along ? swapped_axes(rank, axis, rank - 1) : std::vector<int64_t>();
  if (along) {
    x = transposed(x, order, c.b);
  } else {
    x = c.reshape(x, {{-1, 0}, {}});
  }
  const Dim last = x->type.shape.dims.back();
  if (!last.known()) c.refuse("the number of elements must be known");
  if (k < 1 || k > last.size) c.invalid("top_k is {} of {} elements", k, last.size);
  // Of equal elements Caffe takes the last one first, top_k the first.
  x = c.b.add("reverse", {x}, {{"axes", std::vector<int64_t>{static_cast<int64_t>(x->type.shape.rank()) - 1}}});
  Node* node = c.b.add_node(op_named("top_k"), {x, c.b.constant(Tensor::scalar_i64(k))});
  Value* best = node->result(0);
  Value* places =
      c.b.add("sub", {c.b.scalar_like(node->result(1), static_cast<double>(last.size - 1)), node->result(1)});
  places = c.b.add("cast", {places}, {{"dtype", best->type.dtype}});
  if (along) {
    c.out = {transposed(values ? best : places, order, c.b)};
    return;
  }
  places = expand_dims(places, {1}, c.b);
  if (values) places = c.b.add("concat", {places, expand_dims(best, {1}, c.b)}, {{"axis", int64_t{1}}});
  std::vector<NewDim> dims{{-1, 0}, {-1, 1}, {-1, 2}};
  dims.resize(std::max<size_t>(rank, 3), {1});
  c.out = {reshape_to(places, dims, c.b)};
}

void batched_matmul(LayerContext& c) {
  c.expect(2);
  c.out = {c.b.add("matmul", {c.in[0], c.in[1]})};
}

/// Factor [n, c] or [n, c, 1, 1] times the second bottom, plus the third.
void axpy(LayerContext& c) {
  c.expect(3);
  std::vector<NewDim> dims{{-1, 0}, {-1, 1}};
  dims.resize(c.rank(1), {1});
  c.out = {c.b.add("add", {c.b.add("mul", {reshape_to(c.in[0], dims, c.b), c.in[1]}), c.in[2]})};
}

constexpr Row kElementRows[] = {
    {"AbsVal", unary, "abs"},
    {"ArgMax", arg_max},
    {"Axpy", axpy},
    {"BNLL", unary, "softplus"},
    {"BatchedMatMul", batched_matmul},
    {"Bias", bias},
    {"Clip", clip},
    {"ELU", elu},
    {"Eltwise", eltwise},
    {"Elu", elu},
    {"Exp", exponential},
    {"LeakyReLU", relu},
    {"Log", logarithm},
    {"MatrixInverse", unary, "matrix_inverse"},
    {"Mish", unary, "mish"},
    {"PReLU", prelu},
    {"Power", power},
    {"ReLU", relu},
    {"ReLU6", relu6},
    {"Reduction", reduction},
    {"Scale", scale},
    {"Sigmoid", unary, "sigmoid"},
    {"SigmoidCrossEntropyLoss", unary, "sigmoid", Role::compute, 1},
    {"Softmax", softmax},
    {"SoftmaxWithLoss", softmax, nullptr, Role::compute, 1},
    {"Swish", swish},
    {"TanH", unary, "tanh"},
    {"Threshold", threshold},
};

}  // namespace

std::span<const Row> element_rows() { return kElementRows; }

}  // namespace cairn::caffe
