#include "engines/cpu/late_dims.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "engines/cpu/groups.h"
#include "engines/reference/engine.h"
#include "ir/builder.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

constexpr auto kWithOnes = [](const Node& node) {
  std::vector<Type> types;
  for (const auto& result : node.results) {
    types.push_back(result->type);
    for (Dim& dim : types.back().shape.dims)
      if (!dim.known()) dim = 1;
  }
  return types;
};

constexpr auto kInferred = [](const Node& node) { return infer_types(*node.op, node.inputs, node.attributes); };

/// A kernel made for one content of the shape operands.
struct SizedStep {
  std::vector<Tensor> operands;
  std::unique_ptr<SizedNode> node;
  std::unique_ptr<Step> step;  // the reference kernel's where no other takes the node at these dims
};

class LateStep final : public Step {
 public:
  LateStep(const Group& group, const CpuKernel& kernel, const MakeContext& context)
      : group_(group), name_(kernel.name), packer_(context.packer), threads_(context.threads) {}

  void run(const StepArgs& args) const override {
    const std::shared_ptr<const SizedStep> sized = sized_step(args);
    const Group& group = sized->node->group();
    std::vector<const void*> inputs;
    for (size_t i : sized->node->inputs()) inputs.push_back(args.inputs[i]);
    std::vector<Tensor> late(group.outputs.size());
    std::vector<void*> outputs(args.outputs, args.outputs + group.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!has_late_dims(group_.outputs[i])) continue;
      const Type& type = group.outputs[i]->type;
      late[i] = Tensor::uninitialized(type.dtype, type.shape.sizes());
      outputs[i] = late[i].mutable_data();
    }
    Tensor workspace = Tensor::uninitialized(kU8, {static_cast<int64_t>(sized->step->workspace())});
    sized->step->run({inputs.data(), outputs.data(), workspace.mutable_data(), args.executor});
    for (size_t i = 0; i < outputs.size(); ++i)
      if (late[i].defined()) *static_cast<HostValue*>(args.outputs[i]) = {std::move(late[i]), nullptr};
  }

  std::string kernel() const override { return fmt::format("cpu/{} of late dims", name_); }

 private:
  static constexpr size_t kMostSteps = 32;  // a loop of so many turns finds those of its run before

  std::shared_ptr<const SizedStep> sized_step(const StepArgs& args) const {
    std::vector<Tensor> operands;  // views: a run with known operands allocates none
    const Node& node = group_.last();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.op->role(i) != Role::shape) continue;
      const Type& type = node.inputs[i]->type;
      operands.push_back(
          Tensor::view(type.dtype, type.shape.sizes(), args.inputs[index_of(group_, node.inputs[i])], nullptr));
    }
    const auto same = [&](const auto& step) {
      return std::equal(operands.begin(), operands.end(), step->operands.begin(),
                        [](const Tensor& a, const Tensor& b) { return a.same_bits(b); });
    };
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(steps_.begin(), steps_.end(), same);
      if (found != steps_.end()) {
        steps_.splice(steps_.begin(), steps_, found);
        return steps_.front();
      }
    }
    auto made = std::make_shared<SizedStep>();
    for (const Tensor& operand : operands) made->operands.push_back(operand.owned());
    made->node = std::make_unique<SizedNode>(group_, made->operands);
    MakeContext context{packer_, threads_};
    for (const CpuKernel& kernel : cpu_kernels())
      if (!kernel.refuses(made->node->group())) {
        made->step = kernel.make(made->node->group(), context);
        break;
      }
    if (!made->step) made->step = reference_engine().make(made->node->group(), context);
    const std::lock_guard lock(mutex_);
    steps_.push_front(made);
    if (steps_.size() > kMostSteps) steps_.pop_back();
    return made;
  }

  const Group group_;
  const char* name_;
  Packer& packer_;
  const int threads_;
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<const SizedStep>> steps_;  // used last first
};

}  // namespace

std::unique_ptr<SizedNode> SizedNode::stand_in(const Group& group) {
  if (group.nodes.size() != 1) return nullptr;
  const Node& node = group.last();
  const auto is_tensor = [](const Value* value) { return value->type.is_static() && value->type.dtype != kString; };
  if (!node.op->has_role(Role::shape) || node.op->has(kDynamicResult) ||
      !std::all_of(node.inputs.begin(), node.inputs.end(), is_tensor))
    return nullptr;
  for (const auto& result : node.results)
    if (!result->type.is_tensor() || !result->type.shape.ranked) return nullptr;
  std::vector<Tensor> ones;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.op->role(i) != Role::shape) continue;
    const Type& type = node.inputs[i]->type;
    ones.push_back(Tensor::zeros(type.dtype, type.shape.sizes()));
    if (!type.dtype.is_integer()) continue;
    with_integers(type.dtype, [&](auto tag) {
      for (auto& each : ones.back().mutable_values<decltype(tag)>()) each = 1;
    });
  }
  return std::unique_ptr<SizedNode>(new SizedNode(group, ones, kWithOnes));
}

SizedNode::SizedNode(const Group& group, std::span<const Tensor> operands) : SizedNode(group, operands, kInferred) {}

SizedNode::SizedNode(const Group& group, std::span<const Tensor> operands,
                     FunctionRef<std::vector<Type>(const Node&)> types) {
  const Node& from = group.last();
  auto copy = std::make_unique<Node>();
  copy->op = from.op, copy->attributes = from.attributes, copy->sources = from.sources;
  std::vector<std::pair<const Value*, size_t>> sources;  // of the copy's inputs
  Builder builder(block_);
  for (size_t i = 0; i < from.inputs.size(); ++i) {
    const Tensor* constant = constant_of(from.inputs[i]);
    if (from.op->role(i) == Role::shape) {
      constant = &operands.front();
      operands = operands.subspan(1);
    }
    copy->inputs.push_back(constant ? builder.constant(*constant) : block_.add_param(from.inputs[i]->type, ""));
    sources.emplace_back(copy->inputs.back(), index_of(group, from.inputs[i]));
  }
  for (const auto& result : from.results)
    copy->results.push_back(std::make_unique<Value>(Value{result->type, copy.get(), result->index, ""}));
  const std::vector<Type> known = types(*copy);
  for (size_t i = 0; i < known.size(); ++i) {
    CHECK(known[i].is_static(), "{} has a result of type {}", from.op->name, to_string(known[i]));
    copy->results[i]->type = known[i];
  }
  for (const Value* output : group.outputs) block_.results.push_back(copy->result(output->index));
  const Node* node = copy.get();
  block_.nodes.push_back(std::move(copy));
  group_ = make_group({node}, Uses(block_));
  for (const Value* input : group_.inputs)
    inputs_.push_back(
        std::find_if(sources.begin(), sources.end(), [&](const auto& each) { return each.first == input; })->second);
}

std::unique_ptr<Step> make_late_step(const Group& group, const CpuKernel& kernel, MakeContext& context) {
  return std::make_unique<LateStep>(group, kernel, context);
}

}  // namespace cairn
