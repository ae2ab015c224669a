// Three small networks with made weights, and the faults that tests plant in them. None of this is part of the product.
#pragma once

#include <random>

#include "diff/difference.h"
#include "ir/text.h"
#include "passes/precision.h"

namespace cairn::diff {

inline constexpr const char* kConvolutions = R"(module @convolutions {
  source 0 = "tf" "conv1" "Conv2D" "net.py:1"
  source 1 = "tf" "bias1" "BiasAdd" "net.py:1"
  source 2 = "tf" "relu1" "Relu" "net.py:2"
  source 3 = "tf" "pool" "MaxPool" "net.py:3"
  source 4 = "tf" "conv2" "Conv2D" "net.py:4"
  source 5 = "tf" "bn" "FusedBatchNormV3" "net.py:5"
  source 6 = "tf" "sum" "AddV2" "net.py:6"
  source 7 = "tf" "relu2" "Relu" "net.py:6"
  source 8 = "tf" "mean" "Mean" "net.py:7"
  source 9 = "tf" "norm" "LayerNorm" "net.py:8"
  source 10 = "tf" "dense" "MatMul" "net.py:9"
  source 11 = "tf" "logits" "BiasAdd" "net.py:9"
  func @main(%x: f32[4, 12, 12, 8], %k1: f32[3, 3, 8, 16], %b1: f32[16], %k2: f32[3, 3, 16, 16], %g: f32[16], %o: f32[16], %m: f32[16], %v: f32[16], %s: f32[16], %t: f32[16], %w: f32[16, 10], %b: f32[10]) -> (%y: f32[4, 10]) {
    %c1 = conv2d %x, %k1 {padding = same} #0
    %a1 = add %c1, %b1 #1
    %r1 = relu %a1 #2
    %p = max_pool2d %r1 {window = [2, 2], strides = [2, 2]} #3
    %c2 = conv2d %p, %k2 {padding = same} #4
    %n = batch_norm %c2, %g, %o, %m, %v {epsilon = 0.001} #5
    %q = add %n, %p #6
    %r2 = relu %q #7
    %f = reduce_mean %r2 {axes = [1, 2]} #8
    %l = layer_norm %f, %s, %t {epsilon = 0.001} #9
    %d = matmul %l, %w #10
    %y = add %d, %b #11
    return %y
  }
}
)";

inline constexpr const char* kPerceptron = R"(module @perceptron {
  source 0 = "tf" "dense1" "MatMul" "net.py:1"
  source 1 = "tf" "bias1" "BiasAdd" "net.py:1"
  source 2 = "tf" "act" "Relu" "net.py:2"
  source 3 = "tf" "dense2" "MatMul" "net.py:3"
  source 4 = "tf" "gelu" "Gelu" "net.py:4"
  source 5 = "tf" "sum" "AddV2" "net.py:5"
  source 6 = "tf" "norm" "LayerNorm" "net.py:6"
  source 7 = "tf" "dense3" "MatMul" "net.py:7"
  source 8 = "tf" "logits" "BiasAdd" "net.py:7"
  func @main(%x: f32[32, 32], %w1: f32[32, 32], %b1: f32[32], %w2: f32[32, 32], %s: f32[32], %t: f32[32], %w3: f32[32, 10], %b3: f32[10]) -> (%y: f32[32, 10]) {
    %d1 = matmul %x, %w1 #0
    %a1 = add %d1, %b1 #1
    %h = relu %a1 #2
    %d2 = matmul %h, %w2 #3
    %e = gelu %d2 #4
    %q = add %e, %h #5
    %n = layer_norm %q, %s, %t {epsilon = 0.001} #6
    %d3 = matmul %n, %w3 #7
    %y = add %d3, %b3 #8
    return %y
  }
}
)";

inline constexpr const char* kAttention = R"(module @attention {
  source 0 = "onnx" "query" "MatMul" "net.py:1"
  source 1 = "onnx" "key" "MatMul" "net.py:2"
  source 2 = "onnx" "value" "MatMul" "net.py:3"
  source 3 = "onnx" "scores" "MatMul" "net.py:4"
  source 4 = "onnx" "scaled" "Mul" "net.py:5"
  source 5 = "onnx" "weights" "Softmax" "net.py:6"
  source 6 = "onnx" "mixed" "MatMul" "net.py:7"
  source 7 = "onnx" "sum" "Add" "net.py:8"
  source 8 = "onnx" "norm" "LayerNormalization" "net.py:9"
  source 9 = "onnx" "wide" "MatMul" "net.py:10"
  source 10 = "onnx" "relu" "Relu" "net.py:11"
  source 11 = "onnx" "out" "MatMul" "net.py:12"
  func @main(%x: f32[2, 16, 24], %wq: f32[24, 24], %wk: f32[24, 24], %wv: f32[24, 24], %s: f32[24], %t: f32[24], %w1: f32[24, 48], %w2: f32[48, 6]) -> (%y: f32[2, 16, 6]) {
    %q = matmul %x, %wq #0
    %k = matmul %x, %wk #1
    %v = matmul %x, %wv #2
    %a = matmul %q, %k {transpose_b = true} #3
    %c = constant {value = f32[] (0.2)} #4
    %b = mul %a, %c #4
    %p = softmax %b #5
    %m = matmul %p, %v #6
    %u = add %m, %x #7
    %n = layer_norm %u, %s, %t {epsilon = 0.001} #8
    %h = matmul %n, %w1 #9
    %r = relu %h #10
    %y = matmul %r, %w2 #11
    return %y
  }
}
)";

inline Tensor made(const Type& type, uint64_t seed, float size) {
  Tensor tensor = Tensor::zeros(kF32, type.shape.sizes());
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, size);
  for (float& value : tensor.mutable_values<float>()) value = normal(random);
  return tensor;
}

/// The network; all its inputs but the first become constants of about the size that keeps values at 1.
inline Module network(const char* text) {
  Module module = parse(text);
  Function& main = module.main();
  std::vector<std::unique_ptr<Node>> constants;
  std::unordered_map<const Value*, Value*> map;
  for (size_t i = 1; i < main.body.params.size(); ++i) {
    const Value& param = *main.body.params[i];
    const auto& dims = param.type.shape.sizes();
    double fan = 1;
    for (size_t axis = 0; axis + 1 < dims.size(); ++axis) fan *= static_cast<double>(dims[axis]);
    Tensor value = made(param.type, 100 + i, dims.size() == 1 ? 0.1f : static_cast<float>(1 / std::sqrt(fan)));
    if (dims.size() == 1 && (param.name == "g" || param.name == "v" || param.name == "s"))
      for (float& each : value.mutable_values<float>()) each = 1 + std::abs(each);
    auto node = std::make_unique<Node>();
    node->op = &op_named("constant");
    node->attributes.set("value", Attribute(value));
    node->results.push_back(std::make_unique<Value>(Value{param.type, node.get(), 0, param.name}));
    map[&param] = node->result();
    constants.push_back(std::move(node));
  }
  for (const auto& node : main.body.nodes)
    for (Value*& input : node->inputs)
      if (map.contains(input)) input = map[input];
  main.body.nodes.insert(main.body.nodes.begin(), std::make_move_iterator(constants.begin()),
                         std::make_move_iterator(constants.end()));
  main.body.params.resize(1);
  return module;
}

/// A kernel that goes wrong: changes what the operator of that name made.
class KernelFault final : public Observer {
 public:
  using Change = void (*)(Tensor&);
  KernelFault(std::vector<Source> sources, std::string node, Change change)
      : sources_(std::move(sources)), node_(std::move(node)), change_(change) {}
  void step_ends(const Plan& plan, size_t index, void* const* buffers) override {
    const PlannedStep& step = plan.steps[index];
    for (size_t i = 0; i < step.group.outputs.size(); ++i) {
      const Node* producer = step.group.outputs[i]->producer;
      if (!producer || producer->sources.empty() || sources_[producer->sources.back()].name != node_) continue;
      Tensor tensor = *tensor_at(plan, step.outputs[i], buffers);
      change_(tensor);
      ++hits;
    }
  }
  size_t hits = 0;

 private:
  std::vector<Source> sources_;
  std::string node_;
  Change change_;
};

inline void scale_by_two(Tensor& t) {
  for (float& value : t.mutable_values<float>()) value *= 2;
}
inline void add_a_tenth(Tensor& t) {
  for (float& value : t.mutable_values<float>()) value += 0.1f;
}
inline void one_element(Tensor& t) { t.mutable_values<float>()[static_cast<size_t>(t.count()) / 2] += 5; }
inline void one_nan(Tensor& t) { t.mutable_values<float>()[1] = NAN; }
/// Images: rows and columns in each other's place; else each matrix as if it were stored by columns.
inline void transposed(Tensor& t) {
  const auto& dims = t.dims();
  bool image = t.rank() == 4;
  size_t rows = static_cast<size_t>(dims[t.rank() - (image ? 3 : 2)]),
         columns = static_cast<size_t>(dims[t.rank() - (image ? 2 : 1)]);
  size_t channels = image ? static_cast<size_t>(dims[3]) : 1, plane = rows * columns * channels;
  std::vector<float> old(t.values<float>().begin(), t.values<float>().end());
  auto values = t.mutable_values<float>();
  for (size_t base = 0; base < old.size(); base += plane)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c)
        for (size_t k = 0; k < channels; ++k)
          values[base + (c * rows + r) * channels + k] = old[base + (r * columns + c) * channels + k];
}

inline Node* named(Module& module, const std::string& name) {
  for (const auto& node : module.main().body.nodes)
    if (!node->sources.empty() && module.sources[node->sources.back()].name == name) return node.get();
  return nullptr;
}

}  // namespace cairn::diff
