// Runs single operators: directly by the plan's step if it has only one, else through the plan.
#include <algorithm>
#include <cstdlib>

#include "ops/philox.h"
#include "runtime/execute.h"
#include "runtime/single_op_parts.h"
#include "support/denormals.h"
#include "support/memory.h"
#include "support/stop.h"

namespace cairn {

namespace {

std::string type_text(const Operand& operand) {
  if (operand.object) return "a list";
  return to_string(Type::tensor(operand.dtype, Shape::of({operand.dims.begin(), operand.dims.end()})));
}

/// The address range of the elements.
std::pair<const char*, const char*> range_of(const Operand& operand) {
  const auto* first = static_cast<const char*>(operand.data);
  const int64_t count = count_of(operand);
  if (count == 0) return {first, first - 1};
  if (!operand.strides) return {first, first + storage_bytes(operand.dtype, count) - 1};
  int64_t low = 0, high = 0;
  for (size_t axis = 0; axis < operand.dims.size(); ++axis) {
    const int64_t reach = (operand.dims[axis] - 1) * operand.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<int64_t>(std::max<size_t>(1, operand.dtype.size()));
  return {first + low * size, first + (high + 1) * size - 1};
}

bool overlap(const Operand& a, const Operand& b) {
  if (!a.data || !b.data || a.object || b.object) return false;
  const auto [a_first, a_last] = range_of(a);
  const auto [b_first, b_last] = range_of(b);
  return a_first <= b_last && b_first <= a_last;
}

bool same_strides(const Operand& a, const Operand& b) {
  for (size_t axis = 0; a.strides && b.strides && axis < a.dims.size(); ++axis)
    if (a.dims[axis] != 1 && a.strides[axis] != b.strides[axis]) return false;
  return (a.strides && b.strides) || (is_row_major(a) && is_row_major(b));
}

bool same_values(const Operand& given, const Tensor& value) {
  if (given.dtype == kString || !is_row_major(given)) return gathered(given).same_bits(value);
  return value.bytes() == 0 || std::memcmp(given.data, value.data(), value.bytes()) == 0;
}

Dims strides_in(const Operand& operand) {
  if (is_row_major(operand)) return {};
  return {operand.strides, operand.strides + operand.dims.size()};
}

void copy_elements_to(const Tensor& from, const Operand& to, Executor& executor) {
  if (from.dtype() == kString)
    std::copy_n(from.values<std::string>().data(), from.count(), static_cast<std::string*>(to.data));
  else if (is_row_major(to))
    std::memcpy(to.data, from.data(), from.bytes());
  else
    StridedCopy(from.dims(), {}, strides_in(to), from.dtype().size()).run(executor, from.data(), to.data);
}

/// Receives the results of a plan: directly in the caller's memory if that is row-major and aliases no input, else by a
/// copy after the run.
class OperandSink final : public ResultSink {
 public:
  OperandSink(const char* name, std::span<const Operand> inputs, std::span<const Operand> outputs, size_t results,
              const OutputAllocator* allocate)
      : name_(name), inputs_(inputs), outputs_(outputs), allocate_(allocate), waiting_(results) {}

  void* allocate(size_t i, DType dtype, const std::vector<int64_t>& dims) override {
    if (!given(i)) return (*allocate_)(i, dtype, dims);
    check(i, dtype, dims);
    const Operand& output = outputs_[i];
    const bool shared =
        std::any_of(inputs_.begin(), inputs_.end(), [&](const Operand& x) { return overlap(x, output); });
    if (!shared && is_row_major(output)) return output.data;
    waiting_[i] = Tensor::uninitialized(dtype, dims);
    return waiting_[i].mutable_data();
  }

  void take(size_t i, const HostValue& value) override {
    if (value.list) {
      if (i >= outputs_.size() || !outputs_[i].object)
        fail(ErrorKind::invalid_argument, name_, "result {} is a list, for which no place is given", i);
      *outputs_[i].object = value;
      return;
    }
    const Tensor& tensor = value.tensor;
    if (given(i)) {
      check(i, tensor.dtype(), tensor.dims());
      waiting_[i] = tensor.owned();
    } else {
      void* data = (*allocate_)(i, tensor.dtype(), tensor.dims());
      copy_elements_to(tensor, {tensor.dtype(), tensor.dims(), nullptr, data}, serial_executor());
    }
  }

  void finish(Executor& executor) {
    for (size_t i = 0; i < waiting_.size(); ++i)
      if (waiting_[i].defined()) copy_elements_to(waiting_[i], outputs_[i], executor);
  }

 private:
  bool given(size_t i) const {
    if (i < outputs_.size() && outputs_[i].data) return true;
    if (!allocate_) fail(ErrorKind::invalid_argument, name_, "output {} has no memory", i);
    return false;
  }

  void check(size_t i, DType dtype, const std::vector<int64_t>& dims) const {
    const Operand& output = outputs_[i];
    if (output.dtype != dtype || !std::equal(dims.begin(), dims.end(), output.dims.begin(), output.dims.end()))
      fail(ErrorKind::invalid_argument, name_, "output {} is {}, the result is {}", i, type_text(output),
           to_string(Type::tensor(dtype, Shape::of(dims))));
  }

  const char* name_;
  std::span<const Operand> inputs_, outputs_;
  const OutputAllocator* allocate_;
  std::vector<Tensor> waiting_;
};

}  // namespace

Tensor gathered(const Operand& operand) {
  Dims dims(operand.dims.begin(), operand.dims.end());
  if (is_row_major(operand)) return Tensor::view(operand.dtype, std::move(dims), operand.data, nullptr);
  if (operand.dtype.size() == 0)
    fail(ErrorKind::unsupported, "", "a view with strides of {} cannot be read", to_string(operand.dtype));
  Tensor copy = Tensor::uninitialized(operand.dtype, dims);
  StridedCopy(dims, strides_in(operand), {}, operand.dtype.size())
      .run(serial_executor(), operand.data, copy.mutable_data());
  return copy;
}

SingleOp::Memory::Memory(size_t bytes, size_t count) : data(nullptr), objects(count) {
  require_memory(bytes);
  data = static_cast<char*>(std::aligned_alloc(kLineBytes, whole_lines(std::max<size_t>(bytes, 1))));
  if (!data) fail(ErrorKind::out_of_memory, "", "{} bytes cannot be allocated", bytes);
}
SingleOp::Memory::~Memory() { std::free(data); }

void SingleOp::drop_memory() const { delete spare_.exchange(nullptr); }

/// The memory of one run, reused from the run before if possible.
class SingleOp::Lease {
 public:
  explicit Lease(const SingleOp& op) : op_(op) {
    if (op.direct_->memory == 0 && op.direct_->objects == 0) return;
    memory_ = op.spare_.exchange(nullptr);
    if (!memory_) memory_ = new Memory(op.direct_->memory, op.direct_->objects);
  }
  ~Lease() {
    if (memory_) delete op_.spare_.exchange(memory_);
  }
  Lease(const Lease&) = delete;
  char* data() const { return memory_ ? memory_->data : nullptr; }
  HostValue& object(size_t i) const { return memory_->objects[i]; }

 private:
  const SingleOp& op_;
  Memory* memory_ = nullptr;
};

// Sets up direct execution, if the plan is one step, or one copy, on the caller's tensors and random states.
void SingleOp::make_direct() {
  if (plan_->rest || plan_->steps.size() != 1 || plan_->steps[0].control) return;
  Direct direct;
  if (!make_step(direct)) return;
  place_memory(direct);
  direct_ = std::make_unique<Direct>(std::move(direct));
}

bool SingleOp::make_step(Direct& direct) {
  using Kind = Direct::Argument::Kind;
  const PlannedStep& step = plan_->steps[0];
  if (step.inputs.size() > Direct::kMostInputs || step.outputs.size() > Direct::kMostOutputs) return false;
  std::vector<size_t> operand_of(plan_->function->body.params.size());
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i].value.defined()) operand_of[inputs_[i].param] = i;
  for (size_t place : step.inputs) {
    const Buffer& buffer = plan_->buffers[place];
    auto& argument = direct.inputs.emplace_back();
    if (buffer.kind == Buffer::Kind::constant) {
      argument = {Kind::constant, 0, buffer.constant.data()};
    } else if (buffer.kind == Buffer::Kind::input) {
      argument.index = operand_of[buffer.index];
      if (!is_host_object(buffer.value->type)) continue;
      if (buffer.value->type.kind != Type::Kind::rng) return false;
      direct.states_in.push_back({argument.index, direct.objects});
      argument = {Kind::object, direct.objects++};
    } else {
      return false;
    }
  }
  for (size_t place : step.outputs) {
    const Buffer& buffer = plan_->buffers[place];
    auto& argument = direct.outputs.emplace_back();
    const auto result = std::find(plan_->outputs.begin(), plan_->outputs.end(), place) - plan_->outputs.begin();
    argument.index = static_cast<size_t>(result);
    if (argument.index >= results_.size() || std::count(plan_->outputs.begin(), plan_->outputs.end(), place) != 1)
      return false;
    if (buffer.kind == Buffer::Kind::output) continue;
    if (buffer.kind != Buffer::Kind::object || !outputs_[argument.index].is_rng) return false;
    direct.states_out.push_back({argument.index, direct.objects});
    argument = {Kind::object, direct.objects++};
  }
  const auto strided = [](const auto& tensor) { return !tensor.strides.empty(); };
  const bool any = std::any_of(outputs_.begin(), outputs_.end(), strided) ||
                   std::any_of(inputs_.begin(), inputs_.end(), [](const Input& input) {
                     return input.strides != input.layout && !input.value.defined();
                   });
  direct.step = step.step.get();
  if (!direct.step) {
    return make_copy(direct, any);
  }
  if (any) {
    GroupStrides strides{std::vector<Dims>(direct.inputs.size()), std::vector<Dims>(direct.outputs.size())};
    for (size_t i = 0; i < direct.inputs.size(); ++i)
      if (direct.inputs[i].kind == Kind::operand) strides.inputs[i] = inputs_[direct.inputs[i].index].strides;
    for (size_t i = 0; i < direct.outputs.size(); ++i)
      if (direct.outputs[i].kind == Kind::operand) strides.outputs[i] = outputs_[direct.outputs[i].index].strides;
    direct.own = step.engine->make_strided(step.group, strides);
    direct.reads_strides = direct.own != nullptr;
    if (direct.own) direct.step = direct.own.get();
  }
  for (size_t i : direct.step->in_place())
    if (direct.inputs[i].kind == Kind::operand) direct.shareable |= uint64_t{1} << direct.inputs[i].index;
  direct.several_shareable = op_->has(kElementwise);
  return true;
}

/// Sets up a direct copy for a result that has the input's elements; strided views are read in place.
bool SingleOp::make_copy(Direct& direct, bool strided) {
  using Kind = Direct::Argument::Kind;
  const Direct::Argument& from = direct.inputs[0];
  const size_t to = direct.outputs[0].index;
  if (from.kind == Kind::object || direct.outputs[0].kind == Kind::object) return false;
  direct.reads_strides = true;
  if (!strided) {
    direct.copy.emplace(StridedCopy(Dims{static_cast<int64_t>(outputs_[to].bytes)}, {}, {}, 1));
    return true;
  }
  const DType dtype = results_[to].dtype;
  const Dims& dims = *results_[to].dims;
  if (from.kind == Kind::constant) {
    direct.copy.emplace(StridedCopy(dims, {}, outputs_[to].strides, dtype.size()));
    return dtype.size() > 0;
  }
  const Input& input = inputs_[from.index];
  if (input.dtype.size() != dtype.size() || dtype.size() == 0) return false;
  if (!input.strides.empty() && !outputs_[to].strides.empty() && input.dims != dims) return false;
  const Dims& walked = outputs_[to].strides.empty() ? input.dims : dims;
  direct.copy.emplace(StridedCopy(walked, input.strides, outputs_[to].strides, dtype.size()));
  return true;
}

void SingleOp::place_memory(Direct& direct) {
  using Kind = Direct::Argument::Kind;
  const auto take = [&](size_t bytes) { return std::exchange(direct.memory, direct.memory + whole_lines(bytes)); };
  if (direct.step) direct.workspace = take(direct.step->workspace());
  if (direct.reads_strides) return;
  for (auto& argument : direct.inputs) {
    if (argument.kind != Kind::operand) continue;
    const Input& input = inputs_[argument.index];
    if (input.strides == input.layout) continue;
    const size_t offset = take(storage_bytes(input.dtype, *element_count(input.dims)));
    direct.gathers.push_back(
        {argument.index, offset, StridedCopy(input.dims, input.strides, input.layout, input.dtype.size())});
    argument = {Kind::memory, offset};
  }
  for (auto& argument : direct.outputs) {
    if (argument.kind != Kind::operand || outputs_[argument.index].strides.empty()) continue;
    const Output& output = outputs_[argument.index];
    const Result& result = results_[argument.index];
    const size_t offset = take(output.bytes);
    direct.scatters.push_back(
        {argument.index, offset, StridedCopy(*result.dims, {}, output.strides, result.dtype.size())});
    argument = {Kind::memory, offset};
  }
}

void SingleOp::check(std::span<const Operand> inputs, std::span<const Operand> outputs) const {
  if (inputs.size() != inputs_.size())
    fail(ErrorKind::invalid_argument, op_->name, "was prepared for {} inputs, {} are given", inputs_.size(),
         inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& known = inputs_[i];
    const Operand& given = inputs[i];
    const bool same = given.dtype == known.dtype && (given.object != nullptr) == known.is_list &&
                      std::equal(known.dims.begin(), known.dims.end(), given.dims.begin(), given.dims.end());
    if (!same)
      fail(ErrorKind::invalid_argument, op_->name, "input {} is {}, the operator was prepared for {}", i,
           type_text(given), known.is_list ? "a list" : to_string(Type::tensor(known.dtype, Shape::of(known.dims))));
    if (known.value.defined() && !same_values(given, known.value))
      fail(ErrorKind::invalid_argument, op_->name, "input {} has other values than the operator was prepared for", i);
  }
  if (outputs.size() > results_.size())
    fail(ErrorKind::invalid_argument, op_->name, "has {} results, {} outputs are given", results_.size(),
         outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Result& known = results_[i];
    const Operand& given = outputs[i];
    if (!given.data || !known.dims) continue;
    if (given.dtype != known.dtype ||
        !std::equal(known.dims->begin(), known.dims->end(), given.dims.begin(), given.dims.end()))
      fail(ErrorKind::invalid_argument, op_->name, "output {} is {}, the result is {}", i, type_text(given),
           to_string(Type::tensor(known.dtype, Shape::of(*known.dims))));
  }
}

bool SingleOp::lies_as_prepared(std::span<const Operand> inputs, std::span<const Operand> outputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs_[i].value.defined() && !lies(inputs[i], inputs_[i].strides)) return false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool given = i < outputs.size() && outputs[i].data;
    if (given ? !lies(outputs[i], outputs_[i].strides) : !outputs_[i].strides.empty()) return false;
  }
  return true;
}

/// Whether every output that aliases an input is written only after the input was read.
bool SingleOp::may_share(std::span<const Operand> inputs, std::span<const Operand> outputs) const {
  size_t shared = 0;
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs_[o].is_rng) continue;  // random states are written at the end
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs_[i].value.defined() || !overlap(inputs[i], outputs[o])) continue;
      const bool same = inputs[i].data == outputs[o].data && inputs[i].dims.size() == outputs[o].dims.size() &&
                        std::equal(inputs[i].dims.begin(), inputs[i].dims.end(), outputs[o].dims.begin()) &&
                        same_strides(inputs[i], outputs[o]) && i < 64 && (direct_->shareable >> i & 1);
      const bool copied = std::any_of(direct_->gathers.begin(), direct_->gathers.end(),
                                      [&](const Direct::Move& move) { return move.operand == i; });
      if (copied) continue;
      if (!same || (++shared > 1 && !direct_->several_shareable)) return false;
    }
  }
  return true;
}

bool SingleOp::run_direct(std::span<const Operand> inputs, std::span<const Operand> outputs,
                          const OutputAllocator* allocate, Executor& executor) const {
  using Kind = Direct::Argument::Kind;
  const Direct& direct = *direct_;
  if (!may_share(inputs, outputs)) return false;
  void* made[Direct::kMostOutputs];
  for (size_t i = 0; i < results_.size(); ++i) {
    made[i] = i < outputs.size() ? outputs[i].data : nullptr;
    if (made[i]) continue;
    if (!allocate) fail(ErrorKind::invalid_argument, op_->name, "output {} has no memory", i);
    made[i] = (*allocate)(i, results_[i].dtype, *results_[i].dims);
  }
  const Lease memory(*this);
  for (const Direct::Move& move : direct.gathers)
    move.copy.run(executor, inputs[move.operand].data, memory.data() + move.offset);
  for (const Direct::Object& state : direct.states_in) {
    std::array<uint64_t, 3> numbers;  // copied, since the input may be unaligned
    std::memcpy(numbers.data(), inputs[state.operand].data, sizeof numbers);
    random::write_state({numbers[0], numbers[1], numbers[2]}, memory.object(state.object).tensor);
  }
  const void* from[Direct::kMostInputs];
  void* to[Direct::kMostOutputs];
  for (size_t i = 0; i < direct.inputs.size(); ++i) {
    const Direct::Argument& argument = direct.inputs[i];
    from[i] = argument.kind == Kind::operand    ? inputs[argument.index].data
              : argument.kind == Kind::constant ? argument.constant
              : argument.kind == Kind::memory   ? memory.data() + argument.index
                                                : static_cast<const void*>(&memory.object(argument.index));
  }
  for (size_t i = 0; i < direct.outputs.size(); ++i) {
    const Direct::Argument& argument = direct.outputs[i];
    to[i] = argument.kind == Kind::operand  ? made[argument.index]
            : argument.kind == Kind::memory ? memory.data() + argument.index
                                            : static_cast<void*>(&memory.object(argument.index));
  }
  if (direct.step)
    direct.step->run({from, to, memory.data() + direct.workspace, executor});
  else if (from[0] != to[0])
    direct.copy->run(executor, from[0], to[0]);
  for (const Direct::Move& move : direct.scatters)
    move.copy.run(executor, memory.data() + move.offset, made[move.operand]);
  for (const Direct::Object& state : direct.states_out)
    std::memcpy(made[state.operand], memory.object(state.object).tensor.data(), 3 * sizeof(uint64_t));
  return true;
}

void SingleOp::run_plan(std::span<const Operand> inputs, std::span<const Operand> outputs,
                        const OutputAllocator* allocate, const RunOptions& options) const {
  std::vector<const void*> pointers(plan_->function->body.params.size());
  std::vector<HostValue> objects(pointers.size());
  std::vector<Tensor> copies;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& known = inputs_[i];
    const Operand& given = inputs[i];
    if (known.value.defined()) continue;
    const void*& pointer = pointers[known.param] = given.data;
    if (!known.is_list && !lies(given, known.layout)) {
      copies.push_back(Tensor::uninitialized(known.dtype, known.dims));
      StridedCopy(known.dims, strides_in(given), known.layout, known.dtype.size())
          .run(*options.executor, given.data, copies.back().mutable_data());
      pointer = copies.back().data();
    }
    if (!is_host_object(plan_->function->body.params[known.param]->type)) continue;
    HostValue& object = objects[known.param];
    object =
        known.is_list ? *given.object : HostValue{Tensor::view(known.dtype, known.dims, pointer, nullptr), nullptr};
    pointer = &object;
  }
  OperandSink sink(op_->name, inputs, outputs, results_.size(), allocate);
  execute(*plan_, pointers, sink, model_->module(), options);
  sink.finish(*options.executor);
}

void SingleOp::run(std::span<const Operand> inputs, std::span<const Operand> outputs, const OutputAllocator* allocate,
                   const RunOptions& options) const {
  check(inputs, outputs);
  std::optional<StopScope> stop;
  if (options.cancel) stop.emplace(StopRequest{.cancel = options.cancel});
  if (StopScope* scope = StopScope::current()) {
    scope->check();
    check_estimate(*plan_, scope->seconds_left());
  }
  FlushDenormals flush;
  Executor& executor = options.executor ? *options.executor : *pool_;
  if (direct_ && !options.observer && lies_as_prepared(inputs, outputs) &&
      run_direct(inputs, outputs, allocate, executor))
    return;
  RunOptions with_executor = options;
  with_executor.executor = &executor;
  run_plan(inputs, outputs, allocate, with_executor);
}

}  // namespace cairn
