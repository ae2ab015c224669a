// Models at the C interface: prepared, planned, run, watched.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "capi/handles.h"
#include "capi/ports.h"
#include "capi/run_setup.h"
#include "ir/result_marks.h"
#include "observe/watch.h"
#include "support/stop.h"

using namespace cairn;
using namespace cairn::capi;
using Json = nlohmann::ordered_json;

namespace cairn::capi {

std::vector<CairnModel::Port> ports_of(const std::vector<Port>& ports) {
  std::vector<CairnModel::Port> list;
  for (const Port& port : ports) {
    CairnModel::Port entry{port.name, to_c(port.type.dtype), port.type.shape.ranked, {}};
    for (const Dim& dim : port.type.shape.dims) entry.dims.push_back(dim.size);
    list.push_back(std::move(entry));
  }
  return list;
}

void hand_port(const std::vector<CairnModel::Port>& ports, size_t index, CairnPort* port) {
  if (index >= ports.size()) fail(ErrorKind::invalid_argument, "index", "is {}, there are {}", index, ports.size());
  const auto& entry = ports[index];
  hand_out({0, entry.name.c_str(), entry.dtype, entry.ranked ? static_cast<int32_t>(entry.dims.size()) : -1,
            entry.dims.data()},
           port, "port");
}

}  // namespace cairn::capi

namespace {

CairnStatus port_at(const std::vector<CairnModel::Port>& ports, size_t index, CairnPort* port) {
  return guarded([&] { hand_port(ports, index, port); });
}

Json describe(const Module& module, const Plan& plan) {
  Json steps = Json::array();
  for (const PlannedStep& step : plan.steps) {
    Json sources = Json::array();
    auto add = [&](const Node& node) {
      for (SourceId id : node.sources)
        if (id < module.sources.size() && !result_mark(module.sources[id])) sources.push_back(module.sources[id].name);
    };
    if (step.control) add(*step.control);
    for (const Node* node : step.group.nodes) add(*node);
    steps.push_back(
        {{"kernel", step.kernel}, {"sources", sources}, {"flops", step.cost.flops}, {"bytes", step.cost.bytes}});
  }
  size_t arena = 0;
  for (const auto& [space, bytes] : plan.arena_bytes) arena += bytes;
  return {{"id", plan.id()},
          {"arena_bytes", arena},
          {"live_bytes", plan.live_bytes},
          {"complete", !plan.rest},
          {"steps", steps}};
}

}  // namespace

CairnStatus cairn_model_prepare(const CairnModule* module, const CairnModelOptions* options, CairnModel** model) {
  return guarded([&] {
    require(module, "module");
    require(model, "model");
    *model = nullptr;
    start_watch_from_environment();
    auto made = std::make_unique<CairnModel>();
    Module copy = clone(module->module);
    apply_precision(options, copy);
    made->model = Model::make(std::move(copy), model_options(options));
    made->inputs = ports_of(made->model->inputs());
    made->outputs = ports_of(made->model->outputs());
    std::vector<Port> variables;
    const auto& state = made->model->state();
    for (size_t i = 0; i < state.size(); ++i) {
      if (state[i].type.is_tensor()) variables.push_back(state[i]), made->variable_states.push_back(i);
      if (state[i].type.kind == Type::Kind::rng) made->random_states.push_back(i);
    }
    made->variables = ports_of(variables);
    *model = made.release();
  });
}

void cairn_model_free(CairnModel* model) { delete model; }
size_t cairn_model_input_count(const CairnModel* model) { return model ? model->inputs.size() : 0; }
size_t cairn_model_output_count(const CairnModel* model) { return model ? model->outputs.size() : 0; }
int32_t cairn_model_input_use(const CairnModel* model, size_t index) {
  if (!model || index >= model->inputs.size()) return 0;
  Model::InputUse use = model->model->input_use(index);
  return (use.reads ? CAIRN_INPUT_READ : 0) | (use.updates ? CAIRN_INPUT_UPDATED : 0) |
         (use.random ? CAIRN_INPUT_RANDOM : 0);
}

CairnStatus cairn_model_first_random_state(const CairnModel* model, size_t index, uint64_t state[3]) {
  return guarded([&] {
    require(model, "model");
    require(state, "state");
    if (index >= model->inputs.size()) fail(ErrorKind::invalid_argument, "index", "is {}", index);
    const auto& states = model->model->module().random_states;
    auto found = states.find(model->inputs[index].name);
    if (found == states.end()) fail(ErrorKind::not_found, model->inputs[index].name, "has no seed");
    std::copy(found->second.begin(), found->second.end(), state);
  });
}

int32_t cairn_model_threads(const CairnModel* model) { return model ? model->model->threads() : 0; }

size_t cairn_model_memory(const CairnModel* model, size_t* most) {
  if (!model) return 0;
  constexpr size_t kNode = 1024;  // approximate bytes per node
  size_t bytes = model->model->plan_bytes();
  for (const auto& function : model->model->module().functions) bytes += function->body.nodes.size() * kNode;
  if (most) *most = model->model->most_plan_bytes();
  return bytes;
}

uint64_t cairn_model_planning(const CairnModel* model) { return model ? model->model->planning_ns() : 0; }

int32_t cairn_watching(void) { return profiling() || dumping(); }

CairnStatus cairn_model_input(const CairnModel* model, size_t index, CairnPort* port) {
  return model ? port_at(model->inputs, index, port) : guarded([] { require(nullptr, "model"); });
}

CairnStatus cairn_model_variable(const CairnModel* model, size_t index, CairnPort* port) {
  return model ? port_at(model->variables, index, port) : guarded([] { require(nullptr, "model"); });
}

CairnStatus cairn_model_output(const CairnModel* model, size_t index, CairnPort* port) {
  return model ? port_at(model->outputs, index, port) : guarded([] { require(nullptr, "model"); });
}

CairnStatus cairn_model_plan(const CairnModel* model, const CairnTensor* inputs, size_t count, char** description) {
  return guarded([&] {
    require(model, "model");
    if (count) require(inputs, "inputs");
    std::vector<Dims> dims;
    for (size_t i = 0; i < count; ++i) {
      if (inputs[i].ndim < 0 || inputs[i].ndim > 64)
        fail(ErrorKind::invalid_argument, "inputs", "input {} has {} dimensions", i, inputs[i].ndim);
      if (inputs[i].ndim) require(inputs[i].shape, "shape");
      dims.emplace_back(inputs[i].shape, inputs[i].shape + inputs[i].ndim);
    }
    auto plan = model->model->plan(dims);
    if (description)
      *description =
          copy_text(describe(model->model->module(), *plan).dump(2, ' ', false, Json::error_handler_t::replace));
  });
}

CairnStatus cairn_model_run(const CairnModel* model, const CairnTensor* inputs, size_t input_count,
                            CairnAllocate allocate, void* user, const CairnRunOptions* given) {
  return guarded([&] {
    require(model, "model");
    Inputs read(inputs, input_count);
    Outputs outputs(allocate, user);
    const RunSetup setup(model->model->module(), given);
    model->model->run(read.refs(), outputs, setup.options());
    outputs.hand_over_texts();
  });
}

CairnStatus cairn_cancel_create(CairnCancel** cancel) {
  return guarded([&] {
    require(cancel, "cancel");
    *cancel = new CairnCancel;
  });
}
void cairn_cancel_set(CairnCancel* cancel, int32_t cancelled) {
  if (cancel) cancel->flag.store(cancelled != 0, std::memory_order_relaxed);
}
void cairn_cancel_free(CairnCancel* cancel) { delete cancel; }

namespace {

/// A limit that this thread has begun and not yet ended.
struct Limit {
  int32_t (*interrupted)(void* user);
  void* user;
  std::optional<StopScope> scope = std::nullopt;
};
std::vector<std::unique_ptr<Limit>>& limits() {
  thread_local std::vector<std::unique_ptr<Limit>> begun;
  return begun;
}

}  // namespace

CairnStatus cairn_limit_begin(double max_seconds, const CairnCancel* cancel, int32_t (*interrupted)(void* user),
                              void* user) {
  return guarded([&] {
    if (!(max_seconds >= 0)) fail(ErrorKind::invalid_argument, "max_seconds", "is {}, expected 0 or more", max_seconds);
    Limit& limit = *limits().emplace_back(new Limit{interrupted, user});
    StopRequest request;
    request.max_seconds = max_seconds;
    if (cancel) request.cancel = &cancel->flag;
    request.user = &limit;
    if (interrupted)
      request.interrupted = [](void* data) {
        const auto& asked = *static_cast<Limit*>(data);
        return asked.interrupted(asked.user) != 0;
      };
    limit.scope.emplace(request);
  });
}

void cairn_limit_end(void) {
  if (!limits().empty()) limits().pop_back();
}
