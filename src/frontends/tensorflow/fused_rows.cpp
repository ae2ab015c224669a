// Decomposes the ops that TensorFlow's graph optimiser fuses: a layer, then bias, normalisation and activation.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

/// The result of another op's row on these inputs, with the attributes of the fused node.
Value* by_row(OpContext& c, std::string_view op, std::vector<Value*> inputs) {
  Operands before = std::exchange(c.in, std::move(inputs));
  const Row& row = *find_row(op);
  const char* target = std::exchange(c.target, row.target);
  row.build(c);
  c.target = target;
  c.in = std::move(before);
  std::vector<Value*> out = std::exchange(c.out, {});
  if (out.empty()) c.refuse("is composed of {}, which has no result", printable(op));
  return out[0];
}

Value* with_activation(OpContext& c, const std::string& name, Value* x) {
  if (name == "LeakyRelu") return c.b.add("leaky_relu", {x}, {{"alpha", c.real("leakyrelu_alpha", 0.2)}});
  if (name == "GeluApproximate" || name == "GeluExact")
    return c.b.add("gelu", {x}, {{"approximate", name == "GeluApproximate"}});
  if (name == "Relu" || name == "Relu6" || name == "Elu" || name == "Tanh" || name == "Sigmoid")
    return by_row(c, name, {x});
  c.refuse("fused with {}", printable(name));
}

/// The layer's inputs come first, then those of the fused ops in their order.
void fused_layer(OpContext& c) {
  if (c.in.size() < 2) c.expect_inputs(2);
  const std::vector<Value*> in = c.in;
  Value* x = by_row(c, c.target, {in[0], in[1]});
  size_t next = 2;
  auto take = [&] {
    if (next >= in.size()) fail(ErrorKind::invalid_model, "", "has {} inputs, the fused ops take more", in.size());
    return in[next++];
  };
  for (const std::string& op : c.texts("fused_ops")) {
    if (op == "BiasAdd") {
      x = by_row(c, "BiasAdd", {x, take()});
    } else if (op == "Add" || op == "Mul") {
      x = c.b.add(op == "Add" ? "add" : "mul", {x, take()});
    } else if (op == "FusedBatchNorm") {
      const bool first = c.text("data_format", "NHWC") == "NCHW";
      std::vector<Value*> all = {x};
      for (int i = 0; i < 4; ++i) all.push_back(take());
      x = c.b.add("batch_norm", all, {{"epsilon", c.real("epsilon", 0.0001)}, {"axis", int64_t{first ? 1 : -1}}});
    } else {
      x = with_activation(c, op, x);
    }
  }
  if (next != in.size()) fail(ErrorKind::invalid_model, "", "has {} inputs, the fused ops take {}", in.size(), next);
  c.out = {x};
}

void swish(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("mul", {c.in[0], by_row(c, "Sigmoid", c.in)})};
}

void mish(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("mish", c.in)};
}

void layer_norm(OpContext& c) {
  c.expect_inputs(3);
  c.out = {c.b.add("layer_norm", c.in, {{"epsilon", c.real("epsilon", 0.001)}, {"axis", int64_t{-1}}})};
}

/// Each image and channel normalised by itself, then the activation.
void instance_norm(OpContext& c) {
  c.expect_inputs(3);
  const auto axes = c.integers("reduction_axes");
  const auto last = static_cast<int64_t>(c.rank(0)) - 1;
  if (std::find(axes.begin(), axes.end(), last) != axes.end()) c.refuse("normalises along the last dim");
  const Attributes over{{"axes", axes}, {"keep_dims", true}};
  Value* centred = c.b.add("sub", {c.in[0], c.b.add("reduce_mean", {c.in[0]}, over)});
  Value* variance = c.b.add("reduce_mean", {c.b.add("mul", {centred, centred})}, over);
  Value* epsilon = c.b.scalar_like(c.in[0], c.real("epsilon", 0.0001));
  Value* normal = c.b.add("mul", {centred, c.b.add("rsqrt", {c.b.add("add", {variance, epsilon})})});
  Value* x = c.b.add("add", {c.b.add("mul", {normal, c.in[1]}), c.in[2]});
  for (const std::string& op : c.texts("fused_ops")) x = with_activation(c, op, x);
  c.out = {x};
}

/// An input behind the five of the normalisation is added to its result.
void fused_batch_norm(OpContext& c) {
  c.expect_inputs(5, 6);
  const std::vector<Value*> in = c.in;
  c.in = std::vector<Value*>(in.begin(), in.begin() + 5);
  find_row("FusedBatchNormV3")->build(c);
  std::vector<Value*> out = std::exchange(c.out, {});
  if (in.size() == 6) out[0] = c.b.add("add", {out[0], in[5]});
  const std::string activation = c.text("activation_mode", "Identity");
  if (activation != "Identity") out[0] = with_activation(c, activation, out[0]);
  if (out.size() == 5) out.push_back(c.b.constant(Tensor::zeros(out[1]->type.dtype, {0})));
  c.in = in;
  c.out = std::move(out);
}

void unary_chain(OpContext& c) {
  c.expect_inputs(1);
  Value* x = c.in[0];
  for (const std::string& op : c.texts("op_names")) {
    const Row* row = find_row(op);
    if (row == nullptr || op.starts_with("_")) c.refuse("is composed of {}", printable(op));
    x = by_row(c, op, {x});
  }
  c.out = {x};
}

constexpr Row kFusedRows[] = {
    {"_FusedBatchNormEx", fused_batch_norm},
    {"_FusedConv2D", fused_layer, "Conv2D", Trait::heavy},
    {"_FusedConv3D", fused_layer, "Conv3D"},
    {"_FusedDepthwiseConv2dNative", fused_layer, "DepthwiseConv2dNative"},
    {"_FusedMatMul", fused_layer, "MatMul", Trait::heavy},
    {"_MklFusedBatchMatMulV2", fused_layer, "BatchMatMulV2"},
    {"_MklFusedInstanceNorm", instance_norm},
    {"_MklFusedMish", mish},
    {"_MklLayerNorm", layer_norm},
    {"_MklSwish", swish},
    {"_UnaryOpsComposition", unary_chain},
};

}  // namespace

std::span<const Row> fused_rows() { return kFusedRows; }

}  // namespace cairn::tensorflow
