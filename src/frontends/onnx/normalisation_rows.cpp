// ONNX's normalisations: by statistics of batches, groups and rows, by lengths, and softmax.
#include <functional>

#include "frontends/fold.h"
#include "frontends/neighbours.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

/// Vectors along dim 1, as NCHW values broadcast them.
Value* per_channel(OpContext& c, Value* vector) {
  if (c.rank(0) < 2) fail(ErrorKind::invalid_model, "", "input 0 has {} dims, expected 2 or more", c.rank(0));
  std::vector<int64_t> shape(c.rank(0) - 1, 1);
  shape[0] = -1;
  return c.b.add("reshape", {vector, c.b.ints(shape)});
}

/// In training mode normalises by the statistics of x; results two and three are the updated running statistics.
void batch_normalization(OpContext& c) {
  c.expect_inputs(5, 5);
  if (c.opset < 9 && c.integer("spatial", 1) == 0) c.refuse("statistics for each element are not supported");
  Attributes attributes{{"epsilon", c.real("epsilon", 1e-5f)}, {"axis", int64_t{c.rank(0) > 1 ? 1 : 0}}};
  if (c.integer("training_mode", 0) == 0) {
    c.out = {c.b.add("batch_norm", c.in, attributes)};
    return;
  }
  const double momentum = c.real("momentum", 0.9f);
  const auto* made = c.b.add_node(op_named("batch_norm_training"), {c.in[0], c.in[1], c.in[2]}, attributes);
  c.out = {made->result(0)};
  for (size_t i : {1, 2}) {
    const Var kept(c.b, c.in[i + 2]), batch(c.b, made->result(i));
    c.out.push_back((kept * momentum + cast(batch, kept.dtype()) * (1 - momentum)).value);
  }
}

/// x divided by its root mean square along the axes.
Value* of_mean_square_one(Value* x, const std::vector<int64_t>& axes, double epsilon, Builder& b) {
  Value* mean = b.add("reduce_mean", {b.add("square", {x})}, {{"axes", axes}, {"keep_dims", true}});
  return b.add("mul", {x, b.add("rsqrt", {b.add("add", {mean, b.scalar_like(x, epsilon)})})});
}

/// x normalised to mean 0 and variance 1 along the axes.
Value* normalized(Value* x, const std::vector<int64_t>& axes, double epsilon, Builder& b) {
  Value* mean = b.add("reduce_mean", {x}, {{"axes", axes}, {"keep_dims", true}});
  return of_mean_square_one(b.add("sub", {x, mean}), axes, epsilon, b);
}

/// What torch joins to one channel, as it writes group norms of one group, before that: layouts may change there. Or null.
Value* before_joined(Value* x) {
  const cairn::Node* reshape = x->producer;
  if (!x->type.is_static() || x->type.shape.rank() != 3 || x->type.shape.dims[1] != Dim(1)) return nullptr;
  if (!reshape || !reshape->is("reshape") || !reshape->inputs[0]->type.is_static()) return nullptr;
  const Shape& whole = reshape->inputs[0]->type.shape;
  return whole.rank() > 1 && whole.dims[0] == x->type.shape.dims[0] ? reshape->inputs[0] : nullptr;
}

void instance_normalization(OpContext& c) {
  c.expect_inputs(3, 3);
  const double epsilon = c.real("epsilon", 1e-5f);
  Value* x = before_joined(c.in[0]);
  if (x) {
    x = normalized(x, axes_from(1, x->type.shape.rank()), epsilon, c.b);
    x = c.b.add("reshape", {x, c.b.ints(c.in[0]->type.shape.sizes())});
  } else {
    x = normalized(c.in[0], axes_from(2, c.rank(0)), epsilon, c.b);
  }
  c.out = {c.b.add("add", {c.b.add("mul", {x, per_channel(c, c.in[1])}), per_channel(c, c.in[2])})};
}

/// Group normalisation; the scale has one number per group up to operator set 20, one per channel from 21 on.
void group_normalization(OpContext& c) {
  c.expect_inputs(3, 3);
  const size_t rank = c.rank(0);
  const int64_t groups = c.integer("num_groups");
  const Dim channels = rank < 2 ? Dim() : c.in[0]->type.shape.dims[1];
  if (!channels.known() || groups < 1 || channels.size % groups != 0)
    c.refuse("the channels must be known, and divide into {} groups", groups);
  std::vector<NewDim> split{{-1, 0}, {groups}, {channels.size / groups}}, whole{{-1, 0}, {channels.size}};
  for (int axis = 2; axis < static_cast<int>(rank); ++axis)
    split.push_back({-1, axis}), whole.push_back({-1, axis + 1});
  Value* x = normalized(reshape_to(c.in[0], split, c.b), axes_from(2, rank + 1), c.real("epsilon", 1e-5f), c.b);
  const bool grouped = c.opset < 21;
  if (!grouped) x = reshape_to(x, whole, c.b);
  auto spread = [&](Value* each) {
    std::vector<int64_t> shape(grouped ? rank : rank - 1, 1);
    shape[0] = -1;
    return c.b.add("reshape", {each, c.b.ints(shape)});
  };
  x = c.b.add("add", {c.b.add("mul", {x, spread(c.in[1])}), spread(c.in[2])});
  c.out = {grouped ? reshape_to(x, whole, c.b) : x};
}

void rms_normalization(OpContext& c) {
  c.expect_inputs(2, 2);
  if (c.integer("stash_type", 1) != 1) c.refuse("only stash_type 1 is supported");
  const std::vector<int64_t> axes = axes_from(normal_axis(c.integer("axis", -1), c.rank(0)), c.rank(0));
  Value* x = of_mean_square_one(cast_to(c.in[0], kF32, c.b), axes, c.real("epsilon", 1e-5f), c.b);
  c.out = {c.b.add("mul", {cast_to(x, c.in[0]->type.dtype, c.b), c.in[1]})};
}

/// x / (bias + alpha / size * sum of the squares of `size` neighbouring channels) ^ beta.
void local_response(OpContext& c) {
  c.expect_inputs(1, 1);
  constexpr int64_t kMost = 1024;
  const int64_t size = c.integer("size");
  if (c.rank(0) < 2 || size < 1 || size > kMost) c.refuse("needs channels and a size of 1 to {}", kMost);
  Value* sum = sum_of_neighbours(c.b.add("square", {c.in[0]}), 1, (size - 1) / 2, size / 2, c.b);
  const double alpha = c.real("alpha", 1e-4f) / static_cast<double>(size);
  Value* level =
      c.b.add("add", {c.b.add("mul", {sum, c.b.scalar_like(sum, alpha)}), c.b.scalar_like(sum, c.real("bias", 1))});
  c.out = {c.b.add("mul", {c.in[0], c.b.add("pow", {level, c.b.scalar_like(sum, -c.real("beta", 0.75))})})};
}

/// What `made` is of the input with the dims from an axis on as one, the second of two, in the input's own dims.
Value* over_one_group(OpContext& c, int64_t axis, const std::function<Value*(Value*)>& made) {
  std::vector<Value*> outer{c.b.ints({1})};
  for (int64_t i = 0; i < axis; ++i) outer.push_back(dim_of(c.in[0], static_cast<size_t>(i), c.b));
  Value* count = folded(
      c.b.add("reduce_prod", {joined(outer, c.b)}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}}), c.b);
  Value* rows = reshape_by(c.in[0], joined({count, c.b.ints({-1})}, c.b), c.b);
  Value* sizes = c.in[0]->type.is_static() ? c.b.ints(c.in[0]->type.shape.sizes()) : c.b.add("shape_of", {c.in[0]});
  return reshape_by(made(rows), sizes, c.b);
}

/// 1 at the first largest element along an axis; up to operator set 12 the dims from the axis on are one.
void hardmax(OpContext& c) {
  c.expect_inputs(1, 1);
  const auto rank = static_cast<int64_t>(c.rank(0));
  const int64_t axis = normal_axis(c.integer("axis", c.opset >= 13 ? -1 : 1), c.rank(0));
  const auto at_largest = [&](Value* x, int64_t axis) {
    Value* first = c.b.add("arg_max", {x}, {{"axis", axis}, {"keep_dims", false}});
    Value* depth = scalar_dim(x, static_cast<size_t>(axis), c.b);
    return c.b.add("one_hot", {first, depth, c.b.scalar_like(x, 1), c.b.scalar_like(x, 0)}, {{"axis", axis}});
  };
  c.out = {c.opset < 13 && axis != rank - 1 ? over_one_group(c, axis, [&](Value* x) { return at_largest(x, 1); })
                                            : at_largest(c.in[0], axis)};
}

/// x divided by its L2 or L1 norm along an axis; 0 if that is 0.
void length_normalization(OpContext& c) {
  c.expect_inputs(1, 1);
  const int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) c.refuse("p = {} is not supported", p);
  const Attributes over{{"axes", std::vector<int64_t>{normal_axis(c.integer("axis", -1), c.rank(0))}},
                        {"keep_dims", true}};
  Value* length = c.b.add("reduce_sum", {c.b.add(p == 1 ? "abs" : "square", {c.in[0]})}, over);
  if (p == 2) length = c.b.add("sqrt", {length});
  Value* none = c.b.add("equal", {length, c.b.scalar_like(length, 0)});
  c.out = {c.b.add("div", {c.in[0], c.b.add("add", {length, cast_to(none, length->type.dtype, c.b)})})};
}

/// Up to operator set 12 all dims from `axis` on are one group, from 13 on only the axis.
void softmax(OpContext& c) {
  c.expect_inputs(1, 1);
  if (c.opset >= 13) {
    c.out = {c.b.add(c.target, c.in, {{"axis", c.integer("axis", -1)}})};
    return;
  }
  int64_t rank = static_cast<int64_t>(c.rank(0));
  int64_t axis = c.integer("axis", 1);
  if (axis != rank) axis = normal_axis(axis, c.rank(0));
  if (axis == rank - 1) {
    c.out = {c.b.add(c.target, c.in, {{"axis", int64_t{-1}}})};
    return;
  }
  c.out = {over_one_group(c, axis, [&](Value* x) { return c.b.add(c.target, {x}, {{"axis", int64_t{-1}}}); })};
}

void layer_normalization(OpContext& c) {
  c.expect_inputs(2, 3);
  int64_t axis = normal_axis(c.integer("axis", -1), c.rank(0));
  const Shape& scale = c.in[1]->type.shape;
  Value* offset = c.given(2) ? c.in[2] : nullptr;
  if (offset == nullptr) {
    if (!scale.known()) c.refuse("the scale must have a known shape");
    Value* zero = cast_to(c.b.constant(Tensor::scalar_i64(0)), c.in[1]->type.dtype, c.b);
    offset = c.b.add("broadcast_to", {zero, c.b.ints(scale.sizes())});
  }
  c.out = {c.b.add("layer_norm", {c.in[0], c.in[1], offset}, {{"epsilon", c.real("epsilon", 1e-5f)}, {"axis", axis}})};
  if (c.node().outputs.size() < 2) return;
  const Attributes over{{"axes", axes_from(axis, c.rank(0))}, {"keep_dims", true}};
  const Var x(c.b, cast_to(c.in[0], c.in[0]->type.dtype == kF64 ? kF64 : kF32, c.b)),
      mean = x.apply("reduce_mean", {}, over);
  c.out.push_back(mean.value);
  c.out.push_back(rsqrt(square(x - mean).apply("reduce_mean", {}, over) + c.real("epsilon", 1e-5f)).value);
}

constexpr Row kNormalisationRows[] = {
    {"BatchNormalization", batch_normalization},
    {"GroupNormalization", group_normalization},
    {"Hardmax", hardmax},
    {"InstanceNormalization", instance_normalization},
    {"LRN", local_response},
    {"LayerNormalization", layer_normalization},
    {"LogSoftmax", softmax, "log_softmax"},
    {"LpNormalization", length_normalization},
    {"RMSNormalization", rms_normalization},
    {"Softmax", softmax, "softmax"},
};

}  // namespace

std::span<const Row> normalisation_rows() { return kNormalisationRows; }

}  // namespace cairn::onnx
