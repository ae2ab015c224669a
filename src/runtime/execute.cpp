#include "runtime/execute.h"

#include "passes/evaluate.h"
#include "plan/context.h"
#include "support/stop.h"

namespace cairn {

namespace {

class Lease {
 public:
  explicit Lease(const Plan& plan) : pool_(*plan.contexts), context_(pool_.take(plan)) {}
  ~Lease() { pool_.release(std::move(context_)); }
  Lease(const Lease&) = delete;
  Context& operator*() { return *context_; }

 private:
  ContextPool& pool_;
  std::unique_ptr<Context> context_;
};

HostValue view(const Type& type, const void* data) {
  if (is_host_object(type)) return *static_cast<const HostValue*>(data);
  return {Tensor::view(type.dtype, type.shape.sizes(), data, nullptr), nullptr};
}

void store(const Type& type, const HostValue& value, void* target) {
  if (is_host_object(type)) {
    *static_cast<HostValue*>(target) = value;
  } else {
    CHECK(value.tensor.type() == type, "{} for {}", to_string(value.tensor.type()), to_string(type));
    std::memcpy(target, value.tensor.data(), value.tensor.bytes());
  }
}

void copy_buffer(const Buffer& from, const void* source, const Buffer& to, void* target) {
  if (from.space->is_host())
    to.space->copy_in(target, source, to.bytes);
  else if (to.space->is_host())
    from.space->copy_out(target, source, to.bytes);
  else
    CHECK(false, "copy from {} to {}", from.space->name(), to.space->name());
}

std::vector<HostValue> run_while(const PlannedStep& step, std::vector<HostValue> values, const RunOptions& options) {
  const auto carried = static_cast<size_t>(step.control->attr().integer("carried"));
  while (truth(run_program(*step.programs[0], values, options)[0])) {
    stop_point();
    auto results = run_program(*step.programs[1], values, options);
    for (size_t i = 0; i < carried; ++i) values[i] = std::move(results[i]);
  }
  values.resize(carried);
  return values;
}

void run_control(const PlannedStep& step, void* const* arguments, const RunOptions& options) {
  const Node& node = *step.control;
  std::vector<HostValue> values;
  for (size_t i = 0; i < node.inputs.size(); ++i) values.push_back(view(node.inputs[i]->type, arguments[i]));
  std::vector<HostValue> results;
  if (step.programs.size() == 1) {
    results = run_program(*step.programs[0], values, options);
  } else if (node.op->find_attribute("carried")) {
    results = run_while(step, std::move(values), options);
  } else {
    bool condition = truth(values[0]);
    results = run_program(*step.programs[condition ? 0 : 1], std::span(values).subspan(1), options);
  }
  for (size_t i = 0; i < node.results.size(); ++i)
    store(node.result(i)->type, results[i], arguments[node.inputs.size() + i]);
}

void run_step(const Plan& plan, const PlannedStep& step, Context& context, Executor& executor,
              const RunOptions& options) {
  void* const* arguments = context.arguments(step);
  if (step.step) {
    void* workspace = step.workspace ? context.buffer(*step.workspace) : nullptr;
    step.step->run({arguments, arguments + step.inputs.size(), workspace, executor});
  } else if (step.control) {
    run_control(step, arguments, options);
  } else {
    copy_buffer(plan.buffers[step.inputs[0]], arguments[0], plan.buffers[step.outputs[0]], arguments[1]);
  }
}

// "resnet/conv1 (train.py:41): conv2d: ..." from an error of a step that knows its op only; what a step inside a loop or
// branch has told stays as it is.
[[noreturn]] void rethrow(const Error& fault, const Module& module, const PlannedStep& step) {
  const Node* node = step.control ? step.control : step.group.nodes.empty() ? nullptr : &step.group.last();
  std::string place = node && !node->sources.empty() ? where(module, *node) : "";
  const bool told = step.control && !fault.where().empty() && !find_op(fault.where());
  if (place.empty() || told || fault.kind() == ErrorKind::cancelled) throw fault;
  throw Error(fault.kind(), place, fault.what());
}

void run_rest(const Plan& plan, Context& context, ResultSink& sink, const Module& module, const RunOptions& options) {
  const auto& params = plan.rest->function().body.params;
  std::vector<HostValue> values;
  std::vector<Dims> dims;
  for (size_t i = 0; i < params.size(); ++i) {
    values.push_back(view(plan.function->body.results[i]->type, context.buffer(plan.outputs[i])));
    dims.push_back(params[i]->type.is_tensor() ? values.back().tensor.dims() : Dims());
  }
  auto next = plan.rest->plan(dims);
  std::vector<const void*> pointers;
  for (size_t i = 0; i < params.size(); ++i) {
    bool object = is_host_object(next->function->body.params[i]->type);
    pointers.push_back(object ? static_cast<const void*>(&values[i]) : values[i].tensor.data());
  }
  execute(*next, pointers, sink, module, options);
}

class OwningSink final : public ResultSink {
 public:
  explicit OwningSink(size_t count) : values(count) {}
  void* allocate(size_t result, DType dtype, const std::vector<int64_t>& dims) override {
    values[result].tensor = Tensor::uninitialized(dtype, dims);
    return values[result].tensor.mutable_data();
  }
  void take(size_t result, const HostValue& value) override { values[result] = {value.tensor.owned(), value.list}; }

  std::vector<HostValue> values;
};

}  // namespace

void execute(const Plan& plan, std::span<const void* const> inputs, ResultSink& sink, const Module& module,
             const RunOptions& options) {
  Lease lease(plan);
  Context& context = *lease;
  for (size_t i = 0; i < inputs.size(); ++i) context.bind_input(i, inputs[i]);
  const auto& results = plan.function->body.results;
  if (!plan.rest)
    for (size_t i = 0; i < results.size(); ++i)
      if (const Buffer& buffer = plan.buffers[plan.outputs[i]]; buffer.kind == Buffer::Kind::output)
        context.bind_output(i, sink.allocate(i, results[i]->type.dtype, plan.output_dims[i]));
  Executor& executor = options.executor ? *options.executor : serial_executor();
  Observer* observer = options.observer;
  if (observer) observer->plan_begins(plan);
  if (observer && !observer->watches_steps()) observer = nullptr;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    stop_point();
    if (observer) observer->step_begins(plan, i, context.buffers());
    try {
      run_step(plan, plan.steps[i], context, executor, options);
    } catch (const Error& fault) {
      if (observer && !plan.steps[i].control) observer->step_fails(plan, i, fault);
      rethrow(fault, module, plan.steps[i]);
    }
    if (observer) observer->step_ends(plan, i, context.buffers());
  }
  if (plan.rest) return run_rest(plan, context, sink, module, options);
  for (size_t i = 0; i < results.size(); ++i)
    if (is_host_object(results[i]->type)) sink.take(i, *static_cast<const HostValue*>(context.buffer(plan.outputs[i])));
}

std::vector<HostValue> run_program(const Program& program, std::span<const HostValue> inputs,
                                   const RunOptions& options) {
  const auto& params = program.function().body.params;
  CHECK(inputs.size() == params.size(), "{} inputs for {} params", inputs.size(), params.size());
  std::vector<Dims> dims;
  for (size_t i = 0; i < params.size(); ++i)
    dims.push_back(params[i]->type.is_tensor() ? inputs[i].tensor.dims() : Dims());
  auto plan = program.plan(dims);
  std::vector<const void*> pointers;
  for (size_t i = 0; i < params.size(); ++i) {
    bool object = is_host_object(plan->function->body.params[i]->type);
    pointers.push_back(object ? static_cast<const void*>(&inputs[i]) : inputs[i].tensor.data());
  }
  OwningSink sink(program.function().body.results.size());
  execute(*plan, pointers, sink, program.module(), options);
  return std::move(sink.values);
}

}  // namespace cairn
