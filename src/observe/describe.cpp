#include "observe/describe.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/collective.h"
#include "ir/result_marks.h"
#include "observe/step_values.h"

namespace cairn::observe {
namespace {

using Json = nlohmann::ordered_json;

Json type_json(const Type& type) {
  if (!type.is_tensor()) return {{"dtype", to_string(type)}, {"dims", Json::array()}};
  Json dims = Json::array();
  for (const Dim& dim : type.shape.dims) dims.push_back(dim.size);
  return {{"dtype", to_string(type.dtype)}, {"dims", std::move(dims)}};
}

/// The class of the step: contractions (most FLOPs), other kernels, control flow, copies, or the reference engine.
const char* class_of(const PlannedStep& step) {
  if (step.control) return "control";
  if (!step.engine) return "copy";
  auto exchanges = [](const Node* node) { return node->op->has(kCollective); };
  if (std::any_of(step.group.nodes.begin(), step.group.nodes.end(), exchanges)) return "communication";
  if (std::string_view(step.engine->name()) == "reference") return "fallback";
  auto contracts = [](const Node* node) { return node->op->has(kContraction); };
  return std::any_of(step.group.nodes.begin(), step.group.nodes.end(), contracts) ? "contraction" : "vector";
}

Json sources_of(const Module& module, const std::vector<const Node*>& nodes) {
  Json list = Json::array();
  std::set<SourceId> seen;
  for (const Node* node : nodes)
    for (SourceId id : node->sources)
      if (id < module.sources.size() && !result_mark(module.sources[id]) && seen.insert(id).second) {
        const Source& source = module.sources[id];
        list.push_back({source.name, source.op, script_line(source)});
      }
  return list;
}

struct Bytes {
  size_t input = 0, weight = 0, output = 0, workspace = 0;
};

Bytes bytes_of(const Plan& plan, const PlannedStep& step) {
  Bytes bytes;
  for (size_t i : step.inputs)
    (plan.buffers[i].kind == Buffer::Kind::constant ? bytes.weight : bytes.input) += plan.buffers[i].bytes;
  for (size_t i : step.outputs) bytes.output += plan.buffers[i].bytes;
  for (const auto& buffer : {step.workspace, step.kept})
    if (buffer) bytes.workspace += plan.buffers[*buffer].bytes;
  return bytes;
}

Json types_of(const Plan& plan, const std::vector<size_t>& buffers) {
  Json list = Json::array();
  for (size_t i : buffers)
    if (plan.buffers[i].value) list.push_back(type_json(plan.buffers[i].value->type));
  return list;
}

Json step_json(const Plan& plan, const PlannedStep& step, const Module& module) {
  std::vector<const Node*> nodes = step.group.nodes;
  if (nodes.empty() && step.control) nodes.push_back(step.control);
  Json ops = Json::array();
  for (const Node* node : nodes) ops.push_back(node->op->name);
  bool dynamic = false;
  for (size_t i : step.outputs) dynamic |= plan.buffers[i].value && !plan.buffers[i].value->type.is_static();
  Bytes bytes = bytes_of(plan, step);
  return {{"kernel", step.kernel},
          {"class", class_of(step)},
          {"ops", std::move(ops)},
          {"sources", sources_of(module, nodes)},
          {"inputs", types_of(plan, step.inputs)},
          {"outputs", types_of(plan, step.outputs)},
          {"dynamic", dynamic},
          {"flops", step.cost.flops},
          {"bytes", step.cost.bytes},
          {"memory", {bytes.input, bytes.output, bytes.weight, bytes.workspace}}};
}

/// How values go from step to step, which tells when gradients are there (src/simulate).
class Flow {
 public:
  explicit Flow(const Plan& plan) : plan_(plan) {
    for (const auto& [result, param] : plan.function->updates) states_.insert(result);
  }

  /// Called for one step after the other.
  void describe(size_t number, Json& json) {
    Json needs = Json::array(), updates = Json::array();
    for (size_t i : plan_.steps[number].inputs)
      if (const auto maker = makers_.find(i); maker != makers_.end())
        needs.push_back({maker->second, plan_.buffers[i].bytes, i});
    for (size_t i : plan_.steps[number].outputs) {
      const Buffer& buffer = plan_.buffers[i];
      if (buffer.kind == Buffer::Kind::output && states_.contains(buffer.index)) updates.push_back(buffer.bytes);
      makers_[i] = number;
    }
    if (!needs.empty()) json["needs"] = std::move(needs);
    if (!updates.empty()) json["updates"] = std::move(updates);
  }

 private:
  const Plan& plan_;
  std::set<size_t> states_;
  std::map<size_t, size_t> makers_;  // of each buffer
};

}  // namespace

std::string describe_plan(const Plan& plan, const Module& module, uint32_t serial, uint32_t model) {
  Json steps = Json::array();
  Flow flow(plan);
  for (const PlannedStep& step : plan.steps) {
    steps.push_back(step_json(plan, step, module));
    flow.describe(steps.size() - 1, steps.back());
  }
  Json buffers = Json::array();
  for (const Buffer& buffer : plan.buffers)
    if (buffer.kind == Buffer::Kind::arena && buffer.bytes > 0)
      buffers.push_back({buffer.value ? buffer.value->name : "workspace", buffer.bytes, buffer.first, buffer.last});
  size_t arena = 0;
  for (const auto& [space, bytes] : plan.arena_bytes) arena += bytes;
  Json json = {{"serial", serial},
               {"plan", plan.id()},
               {"model", model},
               {"name", module.name},
               {"arena_bytes", arena},
               {"live_bytes", plan.live_bytes},
               {"steps", std::move(steps)},
               {"buffers", std::move(buffers)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cairn::observe
