// com.microsoft.nchwc: the images in blocks of channels of files that ONNX Runtime's optimiser writes at its highest level.
// Here an image stays [n, channels, ..] with its channels padded to whole blocks, so that operators of ONNX between these nodes
// see the dims that they have there; the kernels are taken out of their blocks. MLAS (nchwc.cpp, reorder.cpp) defines both layouts.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/onnx/attention.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

constexpr const char* kBlocks = "com.microsoft.nchwc";
constexpr int64_t kSmall = 8, kLarge = 16;

/// The channels of the kernel that makes `name`, perhaps through operators that keep channels; 0 where no kernel tells.
int64_t channels_behind(std::string_view name, const std::map<std::string_view, const Node*>& makers,
                        const std::map<std::string_view, Shape>& kernels) {
  for (size_t steps = 0; steps < makers.size(); ++steps) {
    const auto maker = makers.find(name);
    if (maker == makers.end() || maker->second->inputs.empty() || maker->second->op == "Concat") return 0;
    const Node& node = *maker->second;
    if (node.domain == kBlocks && node.op == "Conv" && node.inputs.size() > 1) {
      const auto kernel = kernels.find(node.inputs[1]);
      return kernel == kernels.end() ? 0 : kernel->second.dims[0].size;
    }
    name = node.inputs[0];
  }
  return 0;
}

/// The dims of the kernels in blocks, by name.
std::map<std::string_view, Shape> kernels_in_blocks(const Model& model) {
  std::map<std::string_view, Shape> kernels;
  for (const Node& node : model.graph.nodes)
    if (node.domain == kBlocks && node.op == "Conv" && node.inputs.size() > 1) kernels[node.inputs[1]];
  for (const TensorProto& tensor : model.graph.initializers)
    if (auto found = kernels.find(tensor.name); found != kernels.end())
      found->second = read_tensor(tensor, model, std::string(tensor.name)).type().shape;
  std::erase_if(kernels, [](const auto& kernel) { return kernel.second.rank() != 4; });
  return kernels;
}

/// x with zeros behind its channels, up to a whole block.
Value* filled(OpContext& c, Value* x) {
  const int64_t block = c.importer().channel_block();
  Value* channels = scalar_dim(x, 1, c.b);
  if (const Tensor* known = constant_of(channels); known && known->as_i64()[0] % block == 0) return x;
  Value* missing = (-Var(c.b, channels)).apply("mod", {Var(c.b, c.b.constant(Tensor::scalar_i64(block)))}).value;
  missing = folded(missing, c.b);
  Value* none = c.b.ints({0, 0, 0});
  return c.b.add("pad", {x, reshape_to(joined({none, missing, none, c.b.ints({0})}, c.b), {{4}, {2}}, c.b)});
}

void expect_image(OpContext& c) {
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "the image has {} dims, expected 4", c.rank(0));
}

void into_blocks(OpContext& c) {
  c.expect_inputs(1, 1);
  expect_image(c);
  c.out = {filled(c, c.integer("channels_last", 0) != 0 ? transposed(c.in[0], {0, 3, 1, 2}, c.b) : c.in[0])};
}

void out_of_blocks(OpContext& c) {
  c.expect_inputs(1, 1);
  expect_image(c);
  const int64_t channels = c.integer("channels"), held = known_dim(c, c.in[0], 1, "the channels");
  if (channels < 1 || channels > held) fail(ErrorKind::invalid_model, "", "takes {} channels of {}", channels, held);
  Value* y = c.in[0];
  if (channels != held)
    y = c.b.add("slice", {y, c.b.ints({0, 0, 0, 0}), c.b.ints({kToTheEnd, channels, kToTheEnd, kToTheEnd})});
  c.out = {c.integer("channels_last", 0) != 0 ? transposed(y, {0, 2, 3, 1}, c.b) : y};
}

/// A kernel [outputs, inputs, h, w] whose numbers lie as [outputs / block, inputs, h, w, block] or, from one block of inputs on,
/// as [outputs / block, inputs / block, h, w, block of inputs, block of outputs].
Value* kernel_out_of_blocks(OpContext& c) {
  const int64_t block = c.importer().channel_block();
  if (c.rank(1) != 4) fail(ErrorKind::invalid_model, "", "the kernel has {} dims, expected 4", c.rank(1));
  int64_t dims[4];
  for (size_t i = 0; i < 4; ++i) dims[i] = known_dim(c, c.in[1], i, "the size of the kernel");
  const auto [outputs, inputs, height, width] = dims;
  const bool both = inputs >= block;
  if (outputs % block != 0 || (both && inputs % block != 0))
    fail(ErrorKind::invalid_model, "", "a kernel of {} by {} channels has no whole blocks of {}", outputs, inputs,
         block);
  Value* w = both ? reshape_to(c.in[1], {{outputs / block}, {inputs / block}, {height}, {width}, {block}, {block}}, c.b)
                  : reshape_to(c.in[1], {{outputs / block}, {inputs}, {height}, {width}, {block}}, c.b);
  w = both ? transposed(w, {0, 5, 1, 4, 2, 3}, c.b) : transposed(w, {0, 4, 1, 2, 3}, c.b);
  return reshape_to(w, {{outputs}, {inputs}, {height}, {width}}, c.b);
}

void convolution(OpContext& c) {
  c.expect_inputs(2, 4);
  expect_image(c);
  std::vector<Value*> inputs = c.in.any();
  inputs[1] = kernel_out_of_blocks(c);
  if (!c.in[0]->type.shape.dims[1].known()) {  // the kernel knows them
    const int64_t channels = inputs[1]->type.shape.dims[1].size * c.integer("group", 1);
    inputs[0] = reshape_to(c.in[0], {{-1, 0}, {channels}, {-1, 2}, {-1, 3}}, c.b);
  }
  c.out = as_operator(c, kMicrosoft, "FusedConv", inputs, 1);
}

void pooled(OpContext& c) {
  c.expect_inputs(1, 1);
  expect_image(c);
  c.out = as_operator(c, {}, c.target, {c.in[0]}, 12);
}

void enlarged(OpContext& c) {
  c.expect_inputs(1, 1);
  expect_image(c);
  std::vector<float> scales;
  for (int64_t scale : c.integers("scales", 4, 1)) scales.push_back(static_cast<float>(scale));
  Value* by = c.b.constant(Tensor::of<float>(kF32, {4}, scales));
  const bool linear = c.text("mode", "nearest") == "linear";
  c.out = linear ? as_operator(c, {}, "Resize", {c.in[0], nullptr, by}, 13)
                 : as_operator(c, {}, "Upsample", {c.in[0], by}, 9);
}

constexpr Row kBlockedRows[] = {
    {"AveragePool", pooled, "AveragePool", kBlocks},
    {"Conv", convolution, nullptr, kBlocks},
    {"GlobalAveragePool", pooled, "GlobalAveragePool", kBlocks},
    {"GlobalMaxPool", pooled, "GlobalMaxPool", kBlocks},
    {"MaxPool", pooled, "MaxPool", kBlocks},
    {"ReorderInput", into_blocks, nullptr, kBlocks},
    {"ReorderOutput", out_of_blocks, nullptr, kBlocks},
    {"Upsample", enlarged, nullptr, kBlocks},
};

}  // namespace

int64_t channel_block(const Model& model) {  // where the file does not tell it, that of this processor
  const std::map<std::string_view, Shape> kernels = kernels_in_blocks(model);
  for (const auto& [name, kernel] : kernels) {
    const int64_t outputs = kernel.dims[0].size, inputs = kernel.dims[1].size;
    if (outputs % kLarge != 0 || (inputs >= kLarge && inputs % kLarge != 0)) return kSmall;
    if (inputs > kSmall && inputs < kLarge) return kLarge;  // fewer than a block
  }
  std::map<std::string_view, const Node*> makers;
  for (const Node& node : model.graph.nodes)
    for (std::string_view name : node.outputs) makers[name] = &node;
  for (const Node& node : model.graph.nodes) {
    const Attribute* channels = node.find("channels");
    if (node.domain != kBlocks || node.op != "ReorderOutput" || channels == nullptr || node.inputs.empty()) continue;
    if (channels_behind(node.inputs[0], makers, kernels) - channels->integer >= kSmall) return kLarge;
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return kLarge;
#endif
  return kSmall;
}

std::span<const Row> blocked_rows() { return kBlockedRows; }

}  // namespace cairn::onnx
