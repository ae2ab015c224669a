#include "engines/reference/engine.h"

#include <algorithm>
#include <cstdlib>

#include "comm/job.h"
#include "ops/collective.h"

namespace cairn {

namespace {

// Addresses of the remote memory space have one bit flipped, so that only this engine can use them.
void* shifted(const void* data) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) ^ (uintptr_t{1} << 62));
}

class RemoteMemory final : public MemorySpace {
 public:
  const char* name() const override { return "remote"; }
  void* allocate(size_t bytes) override { return shifted(host_memory().allocate(bytes)); }
  void release(void* data, size_t bytes) override { host_memory().release(shifted(data), bytes); }
  void copy_in(void* to, const void* from_host, size_t bytes) override { std::memcpy(shifted(to), from_host, bytes); }
  void copy_out(void* to_host, const void* from, size_t bytes) override { std::memcpy(to_host, shifted(from), bytes); }
};

class ReferenceStep final : public Step {
 public:
  ReferenceStep(const Group& group, const char* engine, bool remote)
      : group_(group), engine_(engine), remote_(remote) {}

  void run(const StepArgs& args) const override {
    const Node& node = group_.last();
    std::vector<HostValue> distinct, inputs, results;
    for (size_t i = 0; i < group_.inputs.size(); ++i) distinct.push_back(value(group_.inputs[i]->type, args.inputs[i]));
    for (const Value* input : node.inputs) {
      auto at = std::find(group_.inputs.begin(), group_.inputs.end(), input) - group_.inputs.begin();
      inputs.push_back(distinct[static_cast<size_t>(at)]);
    }
    results.resize(node.results.size());
    std::vector<void*> targets(node.results.size(), nullptr);
    for (size_t i = 0; i < group_.outputs.size(); ++i) targets[group_.outputs[i]->index] = args.outputs[i];
    for (size_t i = 0; i < results.size(); ++i) {
      const Type& type = node.result(i)->type;
      if (is_host_object(type) || !targets[i])
        prepare(type, results[i]);
      else
        results[i].tensor = Tensor::view(type.dtype, type.shape.sizes(), address(targets[i]), nullptr);
    }
    KernelContext context(*node.op, node.attributes, inputs, results);
    node.op->reference(context);
    for (size_t i = 0; i < results.size(); ++i) finish(node.result(i)->type, results[i], targets[i]);
  }

  std::string kernel() const override {
    const OpDef& op = *group_.last().op;
    return fmt::format("{}/{}", op.user ? "user" : engine_, op.name);
  }

 private:
  void* address(const void* data) const { return remote_ ? shifted(data) : const_cast<void*>(data); }

  HostValue value(const Type& type, const void* data) const {
    if (is_host_object(type)) return *static_cast<const HostValue*>(data);
    return {Tensor::view(type.dtype, type.shape.sizes(), address(data), nullptr), nullptr};
  }

  static void prepare(const Type& type, HostValue& result) {
    if (type.is_static()) result.tensor = Tensor::zeros(type.dtype, type.shape.sizes());
  }

  void finish(const Type& type, HostValue& result, void* target) const {
    if (!target) return;
    if (is_host_object(type)) {
      *static_cast<HostValue*>(target) = std::move(result);
    } else if (result.tensor.data() != address(target)) {  // the kernel replaced the preallocated result
      CHECK(result.tensor.type() == type, "{} made {}", kernel(), to_string(result.tensor.type()));
      std::memcpy(address(target), result.tensor.data(), result.tensor.bytes());
    }
  }

  Group group_;
  const char* engine_;
  bool remote_;
};

/// A collective of one tensor on the host. It runs often for small tensors: what can be looked up before is.
class ExchangeStep final : public Step {
 public:
  static std::unique_ptr<Step> make(const Group& group, const char* engine) {
    const Type& type = group.last().inputs.empty() ? Type() : group.last().inputs[0]->type;
    if (!type.is_tensor() || !type.is_static()) return nullptr;
    auto step = std::make_unique<ExchangeStep>(group, engine, type.shape.sizes());
    return step->request_ ? std::move(step) : nullptr;
  }
  ExchangeStep(const Group& group, const char* engine, std::vector<int64_t> dims)
      : dims_(std::move(dims)), request_(exchange_of(group.last(), dims_)), op_(*group.last().op), engine_(engine) {}

  void run(const StepArgs& args) const override {
    comm::Request request = *request_;
    request.input = args.inputs[0], request.output = args.outputs[0];
    comm::run(request);
  }
  std::vector<size_t> in_place() const override {
    return op_.has(kInPlace) ? std::vector<size_t>{0} : std::vector<size_t>();
  }
  std::string kernel() const override { return fmt::format("{}/{}", engine_, op_.name); }

 private:
  const std::vector<int64_t> dims_;
  const std::optional<comm::Request> request_;
  const OpDef& op_;
  const char* engine_;
};

class ReferenceEngine final : public Engine {
 public:
  ReferenceEngine(const char* name, bool remote) : name_(name), remote_(remote) {}
  const char* name() const override { return name_; }
  std::vector<Group> propose(const Block&, const Uses&) const override { return {}; }

  std::optional<std::string> refuses(const Group& group) const override {
    if (group.nodes.size() != 1) return "takes one node at a time";
    if (!group.last().op->reference) return fmt::format("{} has no reference kernel", group.last().op->name);
    if (remote_)
      for (const Node* node : group.nodes) {
        for (const Value* input : node->inputs)
          if (is_host_object(input->type)) return "host objects stay on the host";
        for (const auto& result : node->results)
          if (is_host_object(result->type)) return "host objects stay on the host";
      }
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Group& group) const override {
    auto why = refuses(group);
    return {{fmt::format("{}/{}", name_, group.last().op->name), why.value_or("")}};
  }

  std::unique_ptr<Step> make(const Group& group, MakeContext&) const override {
    if (!remote_)
      if (auto step = ExchangeStep::make(group, name_)) return step;
    return std::make_unique<ReferenceStep>(group, name_, remote_);
  }

  MemorySpace& memory() const override {
    static RemoteMemory remote;
    return remote_ ? static_cast<MemorySpace&>(remote) : host_memory();
  }

 private:
  const char* name_;
  bool remote_;
};

}  // namespace

const Engine& reference_engine() {
  static const ReferenceEngine engine("reference", false);
  return engine;
}

const Engine& remote_engine() {
  static const ReferenceEngine engine("remote", true);
  return engine;
}

}  // namespace cairn
