#include "observe/step_values.h"

#include <mutex>
#include <shared_mutex>

#include "ir/result_marks.h"
#include "support/fork.h"

namespace cairn {

namespace {

struct Lines {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::string> of;
};

Lines& lines() {
  static Lines* table = new Lines;  // never destroyed: threads may still run models at exit
  return *table;
}

}  // namespace

void set_script_line(std::string node, std::string location) {
  const Shielded<std::unique_lock<std::shared_mutex>> lock(lines().mutex);
  lines().of[std::move(node)] = std::move(location);
}

std::string script_line(const Source& source) {
  if (!source.location.empty()) return source.location;
  const Shielded<std::shared_lock<std::shared_mutex>> lock(lines().mutex);
  auto found = lines().of.find(source.name);
  return found == lines().of.end() ? "" : found->second;
}

Origin origin_of(const Module& module, const Node& node) {
  for (auto id = node.sources.rbegin(); id != node.sources.rend(); ++id) {
    if (*id >= module.sources.size() || result_mark(module.sources[*id])) continue;
    const Source& source = module.sources[*id];
    return {source.framework, source.name, source.op.empty() ? node.op->name : source.op, script_line(source)};
  }
  return {"", node.results.empty() ? "" : node.results[0]->name, node.op->name, ""};
}

Origin origin_of(const Module& module, const PlannedStep& step) {
  if (step.control) return origin_of(module, *step.control);
  return step.group.nodes.empty() ? Origin{"", "", step.kernel, ""} : origin_of(module, step.group.last());
}

std::optional<Tensor> tensor_at(const Plan& plan, size_t i, void* const* buffers) {
  const Buffer& buffer = plan.buffers[i];
  if (!buffer.value || !buffer.value->type.is_tensor()) return std::nullopt;
  const Type& type = buffer.value->type;
  if (type.dtype.kind == DType::Kind::string || type.dtype.bits < 8) return std::nullopt;
  if (buffer.kind == Buffer::Kind::constant) {
    if (buffer.constant.defined()) return buffer.constant;
    const Tensor* packed = constant_of(buffer.value);  // the kernel uses its packed form
    return packed && packed->defined() ? std::optional(*packed) : std::nullopt;
  }
  if (is_host_object(type)) {
    const auto* value = static_cast<const HostValue*>(buffers[i]);
    if (!value || value->list || !value->tensor.defined()) return std::nullopt;
    return value->tensor;
  }
  if (!buffer.space->is_host() || !buffers[i]) return std::nullopt;
  return Tensor::view(type.dtype, type.shape.sizes(), buffers[i], nullptr);
}

}  // namespace cairn
