#include "engines/cpu/kernels.h"

#include <algorithm>
#include <variant>

#include "engines/cpu/channels.h"
#include "engines/cpu/conv.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/program.h"
#include "ops/shapes.h"

namespace cairn {

namespace {

using Refusal = std::optional<std::string>;

size_t index_of(const Group& group, const Value* value) {
  return static_cast<size_t>(std::find(group.inputs.begin(), group.inputs.end(), value) - group.inputs.begin());
}

Activation activation_of(const Epilogue& epilogue) {
  if (!epilogue.activation) return {};
  if (epilogue.activation->is("relu")) return {Activation::Kind::relu, 0, 0};
  auto attr = epilogue.activation->attr();
  return {Activation::Kind::clip, static_cast<float>(attr.number("low")), static_cast<float>(attr.number("high"))};
}

int64_t dim(const Value* value, size_t axis) { return value->type.shape.dims[axis].size; }

// Strides, dilations and padding of a windowed node, from its input, result and window.
SlidingWindow windows_of(const Node& node, int64_t kh, int64_t kw) {
  const Value *x = node.inputs[0], *y = node.result();
  WindowSpec rows = window_spec(node.attr(), kh, 0), columns = window_spec(node.attr(), kw, 1);
  SlidingWindow windows;
  windows.n = dim(x, 0), windows.h = dim(x, 1), windows.w = dim(x, 2), windows.c = dim(x, 3);
  windows.oh = dim(y, 1), windows.ow = dim(y, 2);
  windows.kh = kh, windows.kw = kw;
  windows.stride_h = rows.stride, windows.stride_w = columns.stride;
  windows.dilation_h = rows.dilation, windows.dilation_w = columns.dilation;
  windows.pad_top = rows.padding_before(windows.h, windows.oh);
  windows.pad_left = columns.padding_before(windows.w, windows.ow);
  return windows;
}

Refusal not_f32(const Group& group) {
  for (const Value* value : group.inputs)
    if (value->type.dtype != kF32) return fmt::format("input is {}, takes f32", to_string(value->type.dtype));
  for (const Value* value : group.outputs)
    if (value->type.dtype != kF32) return fmt::format("result is {}, takes f32", to_string(value->type.dtype));
  return std::nullopt;
}

// ---- contractions on the generated tile

// A contraction with constant weights, as the tile kernel sees it.
struct TileProblem {
  Contraction contraction;
  ConvSpec spec;
  bool transposed = false;
};

Refusal read_conv(const Contraction& contraction, ConvSpec& spec) {
  const Node& node = *contraction.node;
  if (node.attr().integer("groups") != 1) return "has groups";
  const Value* kernel = node.inputs[1];
  SlidingWindow windows = windows_of(node, dim(kernel, 0), dim(kernel, 1));
  spec = {windows.n, windows.h, windows.w, windows.c, dim(kernel, 3), windows.oh, windows.ow, windows.kh, windows.kw,
          windows.stride_h, windows.stride_w, windows.dilation_h, windows.dilation_w, windows.pad_top, windows.pad_left};
  return std::nullopt;
}

Refusal read_matmul(const Contraction& contraction, ConvSpec& spec) {
  const Node& node = *contraction.node;
  if (node.attr().boolean("transpose_a")) return "first operand is transposed";
  auto a = node.inputs[0]->type.shape.sizes();
  if (node.inputs[1]->type.shape.rank() != 2) return "second operand is a batch of matrices";
  spec.ic = a.back();
  a.pop_back();
  spec.w = spec.ow = *element_count(a);
  spec.oc = dim(node.result(), node.result()->type.shape.rank() - 1);
  return std::nullopt;
}

std::variant<TileProblem, std::string> read_tile(const Group& group) {
  auto contraction = as_contraction(group);
  if (!contraction) return "is no matrix product or convolution with bias, addition and activation";
  if (auto reason = not_f32(group)) return *reason;
  const Node& node = *contraction->node;
  if (!constant_of(node.inputs[1])) return "weights are not constant";
  TileProblem problem{*contraction, {}, false};
  bool matrix = node.op->find_attribute("transpose_b") != nullptr;
  if (auto reason = matrix ? read_matmul(*contraction, problem.spec) : read_conv(*contraction, problem.spec)) return *reason;
  problem.transposed = matrix && node.attr().boolean("transpose_b");
  problem.spec.residual = contraction->epilogue.residual != nullptr;
  problem.spec.activation = activation_of(contraction->epilogue);
  if (auto reason = Conv::refuses(problem.spec, machine_isa())) return *reason;
  return problem;
}

Refusal refuses_tile(const Group& group) {
  auto problem = read_tile(group);
  if (auto* reason = std::get_if<std::string>(&problem)) return *reason;
  return std::nullopt;
}

class TileStep final : public Step {
 public:
  TileStep(const Group& group, const TileProblem& problem, MakeContext& context) : conv_(problem.spec, machine_isa(), context.threads) {
    const Node& node = *problem.contraction.node;
    const Epilogue& epilogue = problem.contraction.epilogue;
    x_ = index_of(group, node.inputs[0]);
    kernel_ = index_of(group, node.inputs[1]);
    residual_ = epilogue.residual ? index_of(group, epilogue.residual) : x_;
    bias_ = epilogue.bias ? index_of(group, epilogue.bias) : kernel_;
    has_residual_ = epilogue.residual != nullptr;
    const Tensor& weights = *constant_of(node.inputs[1]);
    packed_ = context.packer.packed(weights, conv_.layout() + (problem.transposed ? "t" : ""), conv_.packed_size() * 4, [&](void* to) {
      conv_.pack(weights.values<float>().data(), static_cast<float*>(to), problem.transposed);
    });
    const Tensor* bias = epilogue.bias ? constant_of(epilogue.bias) : nullptr;
    packed_bias_ = context.packer.packed(bias ? *bias : zero(), fmt::format("bias{}", conv_.bias_size()), conv_.bias_size() * 4, [&](void* to) {
      conv_.pack_bias(bias ? bias->values<float>().data() : nullptr, static_cast<float*>(to));
    });
    name_ = fmt::format("cpu/tile {}", conv_.describe());
  }

  void run(const StepArgs& args) const override {
    auto floats = [](const void* data) { return static_cast<const float*>(data); };
    auto* y = static_cast<float*>(args.outputs[0]);
    conv_.run(args.executor, floats(args.inputs[x_]), floats(packed_.get()), floats(packed_bias_.get()),
              has_residual_ ? floats(args.inputs[residual_]) : y, y);
  }

  std::string kernel() const override { return name_; }
  bool reads(size_t input) const override { return input == x_ || (has_residual_ && input == residual_); }
  // Not the input itself: other tiles still read it.
  std::vector<size_t> in_place() const override {
    return has_residual_ && residual_ != x_ ? std::vector<size_t>{residual_} : std::vector<size_t>{};
  }

 private:
  static const Tensor& zero() {
    static const Tensor tensor = Tensor::zeros(kF32, {1});
    return tensor;
  }

  Conv conv_;
  size_t x_, kernel_, residual_, bias_;
  bool has_residual_;
  std::shared_ptr<const void> packed_, packed_bias_;
  std::string name_;
};

std::unique_ptr<Step> make_tile(const Group& group, MakeContext& context) {
  return std::make_unique<TileStep>(group, std::get<TileProblem>(read_tile(group)), context);
}

// ---- the rest: steps that are one call

template <class Run>
class CallStep final : public Step {
 public:
  CallStep(std::string name, Run run, std::vector<size_t> in_place = {})
      : name_(std::move(name)), run_(std::move(run)), in_place_(std::move(in_place)) {}
  void run(const StepArgs& args) const override { run_(args); }
  std::string kernel() const override { return "cpu/" + name_; }
  std::vector<size_t> in_place() const override { return in_place_; }

 private:
  std::string name_;
  Run run_;
  std::vector<size_t> in_place_;
};

template <class Run>
std::unique_ptr<Step> call(std::string name, Run run, std::vector<size_t> in_place = {}) {
  return std::make_unique<CallStep<Run>>(std::move(name), std::move(run), std::move(in_place));
}

const float* input(const StepArgs& args, size_t i) { return static_cast<const float*>(args.inputs[i]); }
float* output(const StepArgs& args) { return static_cast<float*>(args.outputs[0]); }

Refusal refuses_depthwise(const Group& group) {
  auto contraction = as_contraction(group);
  if (!contraction || !contraction->node->op->find_attribute("groups")) return "is no convolution";
  if (auto reason = not_f32(group)) return reason;
  int64_t channels = dim(contraction->node->inputs[0], 3);
  if (contraction->node->attr().integer("groups") != channels || dim(contraction->node->inputs[1], 3) != channels)
    return "has not one group and one filter a channel";
  return std::nullopt;
}

std::unique_ptr<Step> make_depthwise(const Group& group, MakeContext&) {
  Contraction contraction = *as_contraction(group);
  const Node& node = *contraction.node;
  SlidingWindow windows = windows_of(node, dim(node.inputs[1], 0), dim(node.inputs[1], 1));
  size_t x = index_of(group, node.inputs[0]), kernel = index_of(group, node.inputs[1]);
  const Epilogue& epilogue = contraction.epilogue;
  size_t bias = epilogue.bias ? index_of(group, epilogue.bias) : SIZE_MAX;
  size_t residual = epilogue.residual ? index_of(group, epilogue.residual) : SIZE_MAX;
  Activation activation = activation_of(epilogue);
  return call("depthwise", [=](const StepArgs& args) {
    depthwise(args.executor, windows, input(args, x), input(args, kernel), bias == SIZE_MAX ? nullptr : input(args, bias),
              residual == SIZE_MAX ? nullptr : input(args, residual), activation, output(args));
  });
}

Refusal refuses_single(const Group& group, std::string_view attribute) {
  if (group.nodes.size() != 1 || !group.last().op->find_attribute(attribute)) return "is another operation";
  return not_f32(group);
}

Refusal refuses_pool(const Group& group) {
  if (auto reason = refuses_single(group, "window")) return reason;
  const Node& node = group.last();
  if (node.attr().boolean("ceil_mode")) return "the last window may reach beyond the input";
  return std::nullopt;
}

std::unique_ptr<Step> make_pool(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const auto& window = node.attr().integers("window");
  SlidingWindow windows = windows_of(node, window[0], window[1]);
  bool average = node.op->find_attribute("count_padding") != nullptr;
  PoolKind kind = !average ? PoolKind::max : node.attr().boolean("count_padding") ? PoolKind::average_with_padding : PoolKind::average;
  return call(average ? "average_pool" : "max_pool",
              [=](const StepArgs& args) { pool(args.executor, windows, kind, input(args, 0), output(args)); });
}

// Reductions of neighbouring axes before the last ones: x as [outer, middle, inner].
struct Middle {
  int64_t outer = 1, middle = 1, inner = 1;
  bool largest = false;
  float scale = 1;
};

std::variant<Middle, std::string> read_reduction(const Group& group) {
  if (auto reason = refuses_single(group, "keep_dims")) return *reason;
  const Node& node = group.last();
  Middle middle;
  middle.largest = node.is("reduce_max");
  if (!middle.largest && !node.is("reduce_mean") && !node.is("reduce_sum")) return "is another reduction";
  auto dims = node.inputs[0]->type.shape.sizes();
  std::vector<bool> reduced(dims.size(), false);
  for (int64_t axis : node.attr().integers("axes")) reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis)] = true;
  size_t first = 0, last = dims.size();
  while (first < dims.size() && !reduced[first]) middle.outer *= dims[first++];
  while (last > first && !reduced[last - 1]) middle.inner *= dims[--last];
  for (size_t i = first; i < last; ++i) {
    if (!reduced[i]) return "axes are not neighbours";
    middle.middle *= dims[i];
  }
  if (middle.inner < 8) return "the innermost dims are reduced or tiny";
  if (middle.middle == 0) return "nothing to reduce";
  if (node.is("reduce_mean")) middle.scale = 1.f / static_cast<float>(middle.middle);
  return middle;
}

Refusal refuses_reduction(const Group& group) {
  auto middle = read_reduction(group);
  if (auto* reason = std::get_if<std::string>(&middle)) return *reason;
  return std::nullopt;
}

std::unique_ptr<Step> make_reduction(const Group& group, MakeContext&) {
  Middle m = std::get<Middle>(read_reduction(group));
  return call("reduce", [=](const StepArgs& args) {
    reduce_middle(args.executor, m.largest, m.outer, m.middle, m.inner, m.scale, input(args, 0), output(args));
  });
}

Refusal refuses_softmax(const Group& group) {
  if (group.nodes.size() != 1 || !group.last().is("softmax")) return "is another operation";
  if (auto reason = not_f32(group)) return reason;
  int64_t axis = group.last().attr().integer("axis");
  auto rank = static_cast<int64_t>(group.last().result()->type.shape.rank());
  if (axis != -1 && axis != rank - 1) return "is not along the last axis";
  return std::nullopt;
}

std::unique_ptr<Step> make_softmax(const Group& group, MakeContext&) {
  auto dims = group.last().result()->type.shape.sizes();
  int64_t c = dims.back();
  dims.pop_back();
  int64_t rows = *element_count(dims);
  return call("softmax", [=](const StepArgs& args) { softmax(args.executor, rows, c, input(args, 0), output(args)); }, {0});
}

std::unique_ptr<Step> make_program(const Group& group, MakeContext&) {
  ElementwiseProgram program(group);
  auto in_place = program.aligned_inputs();
  return call(fmt::format("elementwise {}", program.instructions()),
              [program = std::move(program)](const StepArgs& args) { program.run(args.executor, args.inputs, args.outputs); },
              std::move(in_place));
}

// ---- moving elements of any type

Refusal refuses_concat(const Group& group) {
  if (group.nodes.size() != 1 || !group.last().is("concat")) return "is another operation";
  if (group.last().result()->type.dtype.size() == 0) return "elements are not whole bytes";
  return std::nullopt;
}

std::unique_ptr<Step> make_concat(const Group& group, MakeContext&) {
  const Node& node = group.last();
  auto dims = node.result()->type.shape.sizes();
  int64_t axis = node.attr().integer("axis");
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= dims[static_cast<size_t>(i)];
  struct Part {
    size_t input;
    int64_t bytes;  // of one outer index
  };
  std::vector<Part> parts;
  int64_t row = 0;
  for (const Value* value : node.inputs) {
    int64_t count = *element_count(value->type.shape.sizes());
    parts.push_back({index_of(group, value), outer ? count / outer * static_cast<int64_t>(value->type.dtype.size()) : 0});
    row += parts.back().bytes;
  }
  return call("concat", [=](const StepArgs& args) {
    auto body = [&](int index, int) {
      char* to = static_cast<char*>(args.outputs[0]) + index * row;
      for (const Part& part : parts) {
        std::memcpy(to, static_cast<const char*>(args.inputs[part.input]) + index * part.bytes, static_cast<size_t>(part.bytes));
        to += part.bytes;
      }
    };
    args.executor.run(static_cast<int>(outer), body);
  });
}

constexpr CpuKernel kKernels[] = {
    {"tile", refuses_tile, make_tile},
    {"depthwise", refuses_depthwise, make_depthwise},
    {"pool", refuses_pool, make_pool},
    {"reduce", refuses_reduction, make_reduction},
    {"softmax", refuses_softmax, make_softmax},
    {"elementwise", ElementwiseProgram::refuses, make_program},
    {"concat", refuses_concat, make_concat},
};

}  // namespace

std::span<const CpuKernel> cpu_kernels() { return kKernels; }

}  // namespace cairn
