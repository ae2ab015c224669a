#include "quantize/layers.h"

#include "ir/builder.h"
#include "ir/control.h"

namespace cairn::quantize {

namespace {

/// Where an operator with a constant kernel has its dims; those of a matrix product follow from its flags.
struct Form {
  std::string_view op;
  size_t inputs, outputs;  // from the last dim of the kernel
  bool gathers;
};
constexpr Form kForms[] = {{"conv2d", 2, 1, true},
                           {"conv3d", 2, 1, true},
                           {"conv2d_input_gradient", 1, 2, false},
                           {"conv3d_input_gradient", 1, 2, false}};

/// Of the source that multiplies; what was fused into the node stands beside it.
std::string base_name(const Module& module, const Node& node) {
  if (node.sources.empty()) return node.result()->name;
  for (const SourceId id : node.sources)
    for (const char* part : {"Conv", "MatMul", "Gemm", "Dense", "InnerProduct", "Deconv"})
      if (module.sources[id].op.find(part) != std::string::npos) return module.sources[id].name;
  return module.sources[node.sources.front()].name;
}

/// Why the node is no layer, or nothing; fills what the row of the operator decides.
std::string reason_against(const Node& node, Layer& layer) {
  const auto is_kernel = [&](size_t i) {
    const Tensor* constant = constant_of(node.inputs[i]);
    return constant && constant->rank() > 1 && constant->count() > 0;
  };
  if (node.result()->type.dtype != kF32) return "of other types than f32";
  if (const AttrDef* flag = node.op->find_attribute("transpose_b"); flag) {
    if (is_kernel(0) == is_kernel(1)) return "of two computed operands";
    layer.kernel = is_kernel(0) ? 0 : 1, layer.data = 1 - layer.kernel;
    const bool turned = node.attr().boolean(layer.kernel == 1 ? "transpose_b" : "transpose_a");
    const size_t rank = node.inputs[layer.kernel]->type.shape.rank();
    const bool columns = (layer.kernel == 1) != turned;  // output channels are the last dim
    layer.outputs = columns ? rank - 1 : rank - 2, layer.inputs = columns ? rank - 2 : rank - 1;
    layer.gathers = layer.kernel == 1 && rank == 2 && !node.attr().boolean("transpose_a");
    layer.integers = layer.kernel == 1;
    return "";
  }
  for (const Form& form : kForms) {
    if (!node.is(form.op)) continue;
    if (!is_kernel(1)) return "with a computed kernel";
    const size_t rank = node.inputs[1]->type.shape.rank();
    layer.data = 0, layer.kernel = 1, layer.inputs = rank - form.inputs, layer.outputs = rank - form.outputs;
    layer.groups = node.attr().integer("groups"), layer.gathers = form.gathers, layer.slides = true;
    const bool depthwise = constant_of(node.inputs[1])->dims()[layer.inputs] == 1;
    layer.integers = form.gathers && rank == 4 && (layer.groups == 1 || depthwise);
    return "";
  }
  return "of another kind";
}

}  // namespace

const Tensor& Layer::weights() const { return *constant_of(node->inputs[kernel]); }

std::vector<Layer> layers_of(const Module& module, std::map<std::string, size_t>* skipped) {
  std::vector<Layer> layers;
  std::unordered_map<const Value*, size_t> values;
  std::map<std::string, size_t> names;
  const auto skip = [&](const std::string& reason) {
    if (skipped) ++(*skipped)[reason];
  };
  const auto visit = [&](Node& node, Node* loop) {
    Layer layer{.node = &node, .loop = loop};
    if (const std::string reason = reason_against(node, layer); !reason.empty()) return skip(reason);
    layer.value = values.try_emplace(layer.data_value(), values.size()).first->second;
    layer.name = base_name(module, node.sources.empty() && loop ? *loop : node);
    if (const size_t before = names[layer.name]++; before > 0) layer.name += fmt::format("#{}", before + 1);
    layers.push_back(std::move(layer));
  };
  for (const auto& node : module.main().body.nodes) {
    if (node->op->has(kContraction)) visit(*node, nullptr);
    for (const auto& region : node->regions)
      for_each_block(*region, [&](Block& block) {
        const bool body = is_loop(*node) && &block == loop_body(*node);
        for (const auto& inner : block.nodes) {
          if (!inner->op->has(kContraction)) continue;
          body ? visit(*inner, node.get()) : skip("inside branches and loops within loops");
        }
      });
  }
  return layers;
}

Along::Along(const std::vector<int64_t>& dims, size_t dim) : stride(1), size(static_cast<size_t>(dims[dim])) {
  for (size_t i = dim + 1; i < dims.size(); ++i) stride *= static_cast<size_t>(dims[i]);
  size = std::max<size_t>(size, 1), stride = std::max<size_t>(stride, 1);
}

size_t data_channel(const Layer& layer, const std::vector<int64_t>& kernel, size_t i) {
  const Along in(kernel, layer.inputs), out(kernel, layer.outputs);
  const size_t of_group = out.size / static_cast<size_t>(layer.groups);
  return layer.groups == 1 ? in(i) : out(i) / of_group * in.size + in(i);
}

void set_operand(Module& module, Node& node, size_t operand, Tensor value) {
  Block made;
  Builder builder(made);
  builder.sources = node.inputs[operand]->producer->sources;
  node.inputs[operand] = builder.constant(std::move(value), node.inputs[operand]->name);
  auto& nodes = module.main().body.nodes;
  nodes.insert(nodes.begin(), std::move(made.nodes.front()));
}

}  // namespace cairn::quantize
