#include "engines/cpu/kernels.h"

#include <algorithm>
#include <variant>

#include "engines/cpu/channels.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/move.h"
#include "engines/cpu/program.h"
#include "engines/cpu/tile_step.h"

namespace cairn {

namespace {

using Refusal = std::optional<std::string>;

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

Refusal refuses_single(const Group& group, std::string_view attribute) {
  if (group.nodes.size() != 1 || !group.last().op->find_attribute(attribute)) return "is another operation";
  return not_f32(group);
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
  if (middle.inner < 8 && middle.inner != 1) return "few innermost elements stay";
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
  if (m.inner == 1)
    return call("reduce_rows", [=](const StepArgs& args) {
      reduce_rows(args.executor, m.largest, m.outer, m.middle, m.scale, input(args, 0), output(args));
    });
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

Refusal refuses_layer_norm(const Group& group) {
  if (group.nodes.size() != 1 || !group.last().is("layer_norm")) return "is another operation";
  if (auto reason = not_f32(group)) return reason;
  const Node& node = group.last();
  const auto rank = static_cast<int64_t>(node.result()->type.shape.rank());
  const int64_t axis = node.attr().integer("axis");
  if (axis != -1 && axis != rank - 1) return "is not along the last axis alone";
  for (size_t i : {1, 2})
    if (node.inputs[i]->type.shape.sizes() != std::vector<int64_t>{dim(node.result(), static_cast<size_t>(rank - 1))})
      return "scale or offset is not one number an element of the axis";
  return std::nullopt;
}

std::unique_ptr<Step> make_layer_norm(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const int64_t c = node.result()->type.shape.sizes().back();
  const int64_t rows = *element_count(node.result()->type.shape.sizes()) / std::max<int64_t>(1, c);
  const auto epsilon = static_cast<float>(node.attr().number("epsilon"));
  const size_t x = index_of(group, node.inputs[0]), scale = index_of(group, node.inputs[1]), offset = index_of(group, node.inputs[2]);
  return call("layer_norm", [=](const StepArgs& args) {
    layer_norm(args.executor, rows, c, epsilon, input(args, x), input(args, scale), input(args, offset), output(args));
  }, {x});
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

Refusal refuses_transpose(const Group& group) {
  if (group.nodes.size() != 1 || !group.last().op->find_attribute("permutation")) return "is another operation";
  const size_t size = group.last().result()->type.dtype.size();
  if (size != 1 && size != 2 && size != 4 && size != 8) return "elements are not 1, 2, 4 or 8 bytes";
  if (group.last().result()->type.dtype == kString) return "elements are strings";
  return std::nullopt;
}

std::unique_ptr<Step> make_transpose(const Group& group, MakeContext&) {
  const Node& node = group.last();
  return call("transpose", [mover = Transpose(node.inputs[0]->type.shape.sizes(), node.attr().integers("permutation"),
                                              node.result()->type.dtype.size())](const StepArgs& args) {
    mover.run(args.executor, args.inputs[0], args.outputs[0]);
  });
}

constexpr CpuKernel kKernels[] = {
    {"tile", refuses_tile, make_tile},
    {"depthwise", refuses_depthwise, make_depthwise},
    {"pool", refuses_pool, make_pool},
    {"reduce", refuses_reduction, make_reduction},
    {"softmax", refuses_softmax, make_softmax},
    {"layer_norm", refuses_layer_norm, make_layer_norm},
    {"elementwise", ElementwiseProgram::refuses, make_program},
    {"concat", refuses_concat, make_concat},
    {"transpose", refuses_transpose, make_transpose},
};

}  // namespace

std::span<const CpuKernel> cpu_kernels() { return kKernels; }

}  // namespace cairn
