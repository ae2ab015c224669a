#include "engines/cpu/engine.h"

#include <algorithm>

#include "engines/cpu/groups.h"
#include "engines/cpu/kernels.h"

namespace cairn {

namespace {

// Kernels need static dims; lists, strings and tensors with dynamic dims are left to the reference engine. Random
// states are host objects as well.
std::optional<std::string> refusal(const CpuKernel& kernel, const Group& group) {
  const auto object = [](const Value* value) {
    return is_host_object(value->type) && value->type.kind != Type::Kind::rng;
  };
  if (std::any_of(group.inputs.begin(), group.inputs.end(), object) ||
      std::any_of(group.outputs.begin(), group.outputs.end(), object))
    return "dims depend on element values";
  return kernel.refuses(group);
}

class CpuEngine final : public Engine {
 public:
  const char* name() const override { return "cpu"; }

  std::vector<Group> propose(const Block& block, const Uses& uses) const override {
    std::vector<Group> groups;
    for (Group& group : propose_groups(block, uses, [&](const Group& each) { return refuses(each).has_value(); }))
      if (!refuses(group)) groups.push_back(std::move(group));
    return groups;
  }

  std::optional<std::string> refuses(const Group& group) const override {
    std::string reasons;
    for (const CpuKernel& kernel : cpu_kernels()) {
      auto reason = refusal(kernel, group);
      if (!reason) return std::nullopt;
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", kernel.name, *reason);
    }
    return reasons;
  }

  std::vector<Candidate> candidates(const Group& group) const override {
    std::vector<Candidate> list;
    for (const CpuKernel& kernel : cpu_kernels())
      list.push_back({fmt::format("cpu/{}", kernel.name), refusal(kernel, group).value_or("")});
    return list;
  }

  std::unique_ptr<Step> make(const Group& group, MakeContext& context) const override {
    for (const CpuKernel& kernel : cpu_kernels())
      if (!refusal(kernel, group)) return kernel.make(group, context);
    CHECK(false, "no kernel for {}", group.last().op->name);
  }

  std::unique_ptr<Step> make_strided(const Group& group, const GroupStrides& strides) const override {
    for (const CpuKernel& kernel : cpu_kernels())
      if (!refusal(kernel, group)) return kernel.make_strided ? kernel.make_strided(group, strides) : nullptr;
    return nullptr;
  }
};

}  // namespace

const Engine& cpu_engine() {
  static const CpuEngine engine;
  return engine;
}

}  // namespace cairn
