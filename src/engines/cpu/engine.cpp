#include "engines/cpu/engine.h"

#include <algorithm>

#include "engines/cpu/groups.h"
#include "engines/cpu/late_dims.h"

namespace cairn {

namespace {

/// A group that kernels are asked about. They need known dims: lists, strings and operands with late dims are left to the
/// reference engine, and results with late dims are judged by a stand-in.
class Question {
 public:
  explicit Question(const Group& group) : group_(group) {
    const auto object = [](const Value* value) {  // random states are host objects that kernels take
      return is_host_object(value->type) && value->type.kind != Type::Kind::rng;
    };
    objects_ = std::any_of(group.inputs.begin(), group.inputs.end(), object);
    for (const Value* output : group.outputs) (has_late_dims(output) ? late_ : objects_) |= object(output);
    if (late_ && !objects_) stand_in_ = SizedNode::stand_in(group);
  }

  /// `again`: the kernel takes the group at sizes of the same magnitude.
  std::optional<std::string> refusal(const CpuKernel& kernel, bool again = false) const {
    if (objects_ || (late_ && !stand_in_ && !kernel.allocates)) return "dims depend on element values";
    const auto refuses = again && kernel.refuses_again ? kernel.refuses_again : kernel.refuses;
    return refuses(late_ && !kernel.allocates ? stand_in_->group() : group_);
  }
  bool is_late() const { return late_; }

 private:
  const Group& group_;
  bool objects_ = false, late_ = false;
  std::unique_ptr<SizedNode> stand_in_;
};

class CpuEngine final : public Engine {
 public:
  const char* name() const override { return "cpu"; }

  std::vector<Group> propose(const Block& block, const Uses& uses) const override {
    std::vector<Group> groups;
    for (Group& group : propose_groups(block, uses, [&](const Group& each) { return !takes(each); }))
      if (takes(group)) groups.push_back(std::move(group));
    return groups;
  }

  std::optional<std::string> refuses(const Group& group) const override {
    const Question question(group);
    if (kernel_for(question, group)) return std::nullopt;
    std::string reasons;
    for (const CpuKernel& kernel : cpu_kernels())
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", kernel.name, *question.refusal(kernel));
    return reasons;
  }

  bool takes(const Group& group) const override { return kernel_for(Question(group), group) != nullptr; }

  bool takes_as(const Group& group, const Group& other) const override {
    const Question question(group);
    const auto* kernel = static_cast<const CpuKernel*>(other.kernel);
    if (kernel && !question.refusal(*kernel, true)) group.kernel = kernel;
    return kernel_for(question, group) != nullptr;
  }

  std::vector<Candidate> candidates(const Group& group) const override {
    const Question question(group);
    std::vector<Candidate> list;
    for (const CpuKernel& kernel : cpu_kernels())
      list.push_back({fmt::format("cpu/{}", kernel.name), question.refusal(kernel).value_or("")});
    return list;
  }

  std::unique_ptr<Step> make(const Group& group, MakeContext& context) const override {
    const Question question(group);
    const CpuKernel* kernel = kernel_for(question, group);
    CHECK(kernel, "no kernel for {}", group.last().op->name);
    return question.is_late() && !kernel->allocates ? make_late_step(group, *kernel, context)
                                                    : kernel->make(group, context);
  }

  std::unique_ptr<Step> make_strided(const Group& group, const GroupStrides& strides) const override {
    const Question question(group);
    if (question.is_late()) return nullptr;
    const CpuKernel* kernel = kernel_for(question, group);
    return kernel && kernel->make_strided ? kernel->make_strided(group, strides) : nullptr;
  }

 private:
  static const CpuKernel* kernel_for(const Question& question, const Group& group) {
    if (group.kernel) return static_cast<const CpuKernel*>(group.kernel);
    const auto kernels = cpu_kernels();
    const auto found = std::find_if(kernels.begin(), kernels.end(),
                                    [&](const CpuKernel& kernel) { return !question.refusal(kernel); });
    return found == kernels.end() ? nullptr : static_cast<const CpuKernel*>(group.kernel = &*found);
  }
};

}  // namespace

const Engine& cpu_engine() {
  static const CpuEngine engine;
  return engine;
}

}  // namespace cairn
