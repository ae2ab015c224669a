#include "runtime/execute.h"

#include <chrono>

#include "comm/beside.h"
#include "comm/request.h"
#include "ir/collective.h"
#include "ir/control.h"
#include "ir/evaluate.h"
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

void run_steps(const Plan& plan, Context& context, const Module& module, const RunOptions& options);

Executor& executor_of(const Plan& plan, const RunOptions& options) {
  return plan.brief || !options.executor ? serial_executor() : *options.executor;
}

StepArgs arguments_of(const PlannedStep& step, const Context& context, Executor& executor) {
  void* const* arguments = context.arguments(step);
  const auto memory = [&](const std::optional<size_t>& buffer) { return buffer ? context.buffer(*buffer) : nullptr; };
  return {arguments, arguments + step.inputs.size(), memory(step.workspace), executor, memory(step.kept)};
}

// A run of a plan by one worker or by all, as the plan's other runs advise, which learn from this one.
class Turn {
 public:
  Turn(const Plan& plan, const RunOptions& options)
      : plan_(plan), options_(options), chooses_(!plan.brief && options.executor && options.executor->width() > 1),
        alone_(chooses_ && plan.workers->next_is_alone()) {
    if (alone_) options_.executor = nullptr;
  }
  ~Turn() {
    const std::chrono::duration<double, std::nano> time = Clock::now() - begin_;
    if (chooses_) plan_.workers->took(alone_, time.count(), plan_.time);
  }
  Turn(const Turn&) = delete;
  const RunOptions& options() const { return options_; }

 private:
  using Clock = std::chrono::steady_clock;

  const Plan& plan_;
  RunOptions options_;
  const bool chooses_, alone_;
  const Clock::time_point begin_ = Clock::now();
};

// Before the steps run for the first time with these inputs.
void keep_what_stays(const Plan& plan, const Context& context, const RunOptions& options) {
  for (const PlannedStep& step : plan.steps)
    if (step.kept) step.step->keep(arguments_of(step, context, executor_of(plan, options)));
}

// Moves results that are host objects from the plan's context to the targets, after the run.
void hand_over(const Plan& plan, const Context& context, FunctionRef<void*(size_t)> target) {
  const auto& results = plan.function->body.results;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!is_host_object(results[i]->type)) continue;
    const auto& value = *static_cast<const HostValue*>(context.buffer(plan.outputs[i]));
    *static_cast<HostValue*>(target(i)) = {value.tensor.owned(), value.list};
  }
}

void run_body(const PlannedStep& step, size_t body, Context& context, const Module& module, const RunOptions& options,
              FunctionRef<void*(size_t)> target) {
  const Plan& plan = *step.bodies[body];
  Context& inner = context.inner(step, body);
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    if (plan.buffers[plan.outputs[i]].kind == Buffer::Kind::output) inner.bind_output(i, target(i));
  run_steps(plan, inner, module, options);
  hand_over(plan, inner, target);
}

// Runs a planned loop without copying carried values: iteration t reads them where iteration t - 1 wrote them (at first
// the step's inputs, then alternately its results and the spare buffers). Loop-invariant inputs are bound once.
void run_loop(const Plan& plan, const PlannedStep& step, Context& context, const Module& module,
              const RunOptions& options) {
  void* const* arguments = context.arguments(step);
  const auto& results = step.control->results;
  Context &condition = context.inner(step, 0), &body = context.inner(step, 1);
  for (size_t i = results.size(); i < step.inputs.size(); ++i) {
    condition.bind_input(i, arguments[i]);
    body.bind_input(i, arguments[i]);
  }
  keep_what_stays(*step.bodies[0], condition, options);
  keep_what_stays(*step.bodies[1], body, options);
  size_t turn = 0;
  const auto made = [&](size_t i) { return arguments[step.inputs.size() + i]; };
  const auto value = [&](size_t i, size_t t) {
    return t == 0 ? arguments[i] : t % 2 ? made(i) : context.buffer(step.spare[i]);
  };
  void* goes_on = context.buffer(step.spare.back());
  for (;; ++turn) {
    for (size_t i = 0; i < results.size(); ++i) condition.bind_input(i, value(i, turn));
    run_body(step, 0, context, module, options, [&](size_t) { return goes_on; });
    if (!*static_cast<const uint8_t*>(goes_on)) break;
    stop_point();
    for (size_t i = 0; i < results.size(); ++i) body.bind_input(i, value(i, turn));
    run_body(step, 1, context, module, options, [&](size_t i) { return value(i, turn + 1); });
  }
  if (turn % 2) return;
  for (size_t i = 0; i < results.size(); ++i) {
    if (is_host_object(results[i]->type))
      *static_cast<HostValue*>(made(i)) = *static_cast<const HostValue*>(value(i, turn));
    else
      std::memcpy(made(i), value(i, turn), plan.buffers[step.outputs[i]].bytes);
  }
}

// Turn t takes and makes rows where they are; the last turn makes the carried results. With several bodies, workers run turns at
// the same time, each with a body of its own and alone.
void run_scan(const PlannedStep& step, Context& context, const Module& module, const RunOptions& options) {
  const Scan& scan = *step.scan;
  void* const* inputs = context.arguments(step);
  void* const* results = inputs + step.inputs.size();
  const bool at_once = step.bodies.size() > 1;
  RunOptions alone = options;
  if (at_once) alone.executor = nullptr;
  for (size_t worker = 0; worker < step.bodies.size(); ++worker) {
    Context& body = context.inner(step, worker);
    for (size_t i = scan.carried + scan.scanned; i < step.inputs.size(); ++i) body.bind_input(i, inputs[i]);
    keep_what_stays(*step.bodies[worker], body, alone);
  }
  const auto carried = [&](size_t i, int64_t turn) {
    if (turn == 0) return inputs[i];
    return (scan.turns - turn) % 2 == 0 ? results[i] : context.buffer(step.spare[i]);
  };
  const auto row = [&](void* data, size_t i, int64_t turn) {
    return static_cast<void*>(static_cast<char*>(data) + scan.first[i] + scan.step[i] * turn);
  };
  const auto run_turn = [&](int64_t turn, size_t worker) {
    Context& body = context.inner(step, worker);
    for (size_t i = 0; i < scan.carried; ++i) body.bind_input(i, carried(i, turn));
    for (size_t i = 0; i < scan.scanned; ++i) body.bind_input(scan.carried + i, row(inputs[scan.carried + i], i, turn));
    run_body(step, worker, context, module, alone, [&](size_t i) {
      return i < scan.carried ? carried(i, turn + 1) : row(results[i], scan.scanned + i - scan.carried, turn);
    });
  };
  if (at_once) {
    const bool fits = options.executor && !options.observer && options.executor->width() <= std::ssize(step.bodies);
    return (fits ? *options.executor : serial_executor()).run(static_cast<int>(scan.turns), [&](int turn, int worker) {
      run_turn(turn, static_cast<size_t>(worker));
    });
  }
  for (int64_t turn = 0; turn < scan.turns; ++turn) {
    stop_point();
    run_turn(turn, 0);
  }
}

void run_branch(const PlannedStep& step, Context& context, const Module& module, const RunOptions& options) {
  void* const* arguments = context.arguments(step);
  const size_t branch = *static_cast<const uint8_t*>(arguments[0]) ? 0 : 1;
  for (size_t i = 1; i < step.inputs.size(); ++i) context.inner(step, branch).bind_input(i - 1, arguments[i]);
  run_body(step, branch, context, module, options, [&](size_t i) { return arguments[step.inputs.size() + i]; });
}

std::vector<HostValue> run_while(const PlannedStep& step, std::vector<HostValue> values, const RunOptions& options) {
  const size_t carried = carried_count(*step.control);
  while (truth(run_program(*step.programs[0], values, options)[0])) {
    stop_point();
    auto results = run_program(*step.programs[1], values, options);
    for (size_t i = 0; i < carried; ++i) values[i] = std::move(results[i]);
  }
  values.resize(carried);
  return values;
}

// Runs regions and functions whose types are known only at run time: plans them now.
void run_late(const PlannedStep& step, void* const* arguments, const RunOptions& options) {
  const Node& node = *step.control;
  std::vector<HostValue> values;
  for (size_t i = 0; i < node.inputs.size(); ++i) values.push_back(view(node.inputs[i]->type, arguments[i]));
  std::vector<HostValue> results;
  if (is_call(node)) {
    results = run_program(*step.programs[0], values, options);
  } else if (is_loop(node)) {
    results = run_while(step, std::move(values), options);
  } else {
    bool condition = truth(values[0]);
    results = run_program(*step.programs[condition ? 0 : 1], std::span(values).subspan(1), options);
  }
  for (size_t i = 0; i < node.results.size(); ++i)
    store(node.result(i)->type, results[i], arguments[node.inputs.size() + i]);
}

void run_step(const Plan& plan, const PlannedStep& step, Context& context, const Module& module,
              const RunOptions& options) {
  void* const* arguments = context.arguments(step);
  if (step.step) {
    step.step->run(arguments_of(step, context, executor_of(plan, options)));
  } else if (!step.bodies.empty()) {
    if (step.scan)
      run_scan(step, context, module, options);
    else if (is_loop(*step.control))
      run_loop(plan, step, context, module, options);
    else
      run_branch(step, context, module, options);
  } else if (step.control) {
    run_late(step, arguments, options);
  } else {
    copy_buffer(plan.buffers[step.inputs[0]], arguments[0], plan.buffers[step.outputs[0]], arguments[1]);
  }
}

// Node and script line, or nothing where the source names none.
std::string place_of(const Module& module, const PlannedStep& step) {
  const Node* node = step.control ? step.control : step.group.nodes.empty() ? nullptr : &step.group.last();
  return node && !node->sources.empty() ? where(module, *node) : "";
}

// Adds node and script line to an error of a step ("resnet/conv1 (train.py:41): conv2d: ..."); an error from a step
// inside a loop or branch has them already and stays unchanged.
[[noreturn]] void rethrow(const Error& fault, const Module& module, const PlannedStep& step) {
  std::string place = place_of(module, step);
  const bool told = step.control && !fault.where().empty() && !find_op(fault.where());
  if (place.empty() || told || fault.kind() == ErrorKind::cancelled) throw fault;
  throw Error(fault.kind(), place, fault.what());
}

// Runs the step; its errors, and what other ranks hear of its collectives, name node and script line.
void run_named(const Plan& plan, size_t i, Context& context, const Module& module, const RunOptions& options,
               Observer* observer = nullptr) {
  const PlannedStep& step = plan.steps[i];
  std::string here;
  std::optional<comm::Place> place;
  if (step.step && step.group.last().op->has(kCollective) && !(here = place_of(module, step)).empty())
    place.emplace(here);
  try {
    run_step(plan, step, context, module, options);
  } catch (const Error& fault) {
    if (observer && !step.control) observer->step_fails(plan, i, fault);
    rethrow(fault, module, step);
  }
}

void run_steps(const Plan& plan, Context& context, const Module& module, const RunOptions& options) {
  Observer* observer = options.observer;
  if (observer) observer->plan_begins(plan);
  if (observer && !observer->watches_steps()) observer = nullptr;
  const bool overlaps = comm::several() && (!observer || observer->watches_beside());
  comm::Beside beside;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    stop_point();
    beside.wait(plan.steps[i].waits);
    if (plan.steps[i].beside && overlaps) {
      beside.begin([&, i] {
        if (observer) observer->beside_begins(plan, i);
        run_named(plan, i, context, module, options);
        if (observer) observer->beside_ends(plan, i);
      });
      continue;
    }
    if (const size_t count = plan.steps[i].at_once; count > 1 && !options.observer) {
      executor_of(plan, options).run(static_cast<int>(count), [&, first = i](int scan, int) {
        run_named(plan, first + static_cast<size_t>(scan), context, module, options);
      });
      i += count - 1;
      continue;
    }
    if (observer) observer->step_begins(plan, i, context.buffers());
    run_named(plan, i, context, module, options, observer);
    if (observer) observer->step_ends(plan, i, context.buffers());
  }
  beside.wait(SIZE_MAX);
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

void check_estimate(const Plan& plan, double seconds) {
  constexpr double kFastest = 2e13;  // operations per second that no processor exceeds
  if (plan.flops > seconds * kFastest)
    fail(ErrorKind::cancelled, "", "the run takes about {:.0e} operations, more than the {:.3g} seconds left allow",
         plan.flops, seconds);
}

void execute(const Plan& plan, std::span<const void* const> inputs, ResultSink& sink, const Module& module,
             const RunOptions& given) {
  Lease lease(plan);
  const Turn turn(plan, given);
  const RunOptions& options = turn.options();
  Context& context = *lease;
  for (size_t i = 0; i < inputs.size(); ++i) context.bind_input(i, inputs[i]);
  const auto& results = plan.function->body.results;
  if (!plan.rest)
    for (size_t i = 0; i < results.size(); ++i)
      if (const Buffer& buffer = plan.buffers[plan.outputs[i]]; buffer.kind == Buffer::Kind::output)
        context.bind_output(i, sink.allocate(i, results[i]->type.dtype, plan.output_dims[i]));
  keep_what_stays(plan, context, options);
  run_steps(plan, context, module, options);
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
