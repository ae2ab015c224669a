#include "runtime/model.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <sstream>

#include "engines/cpu/engine.h"
#include "engines/null/engine.h"
#include "engines/reference/engine.h"
#include "model/om_file.h"
#include "ops/philox.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "runtime/execute.h"
#include "runtime/input_limits.h"
#include "support/denormals.h"
#include "support/fork.h"
#include "support/memory.h"
#include "support/options.h"
#include "support/pages.h"
#include "support/stop.h"

namespace cairn {

namespace {

/// Memory side by side in huge pages: weights that stream through the cache once in a run are read 1.4 times as fast as from small
/// pages, each of which has to be looked up (floats on a virtual machine, 11.6 and 16.5 GB/s).
class Slabs {
 public:
  std::shared_ptr<void> take(size_t bytes) {
    constexpr size_t kLeast = 256 << 10, kSlab = 32 << 20;
    bytes = whole_lines(bytes);
    if (bytes < kLeast) return allocate(bytes);
    if (!slab_ || kSlab - used_ < bytes) {
      if (bytes >= kSlab) return allocate(bytes);
      slab_ = allocate(kSlab), used_ = 0;
    }
    return {slab_, static_cast<char*>(slab_.get()) + std::exchange(used_, used_ + bytes)};
  }

 private:
  static std::shared_ptr<void> allocate(size_t bytes) {
    require_memory(bytes);
    void* data = allocate_lines(bytes);
    if (!data) fail(ErrorKind::out_of_memory, "", "{} bytes cannot be allocated", bytes);
    return {data, std::free};
  }

  std::shared_ptr<void> slab_;  // not touched from used_ on
  size_t used_ = 0;
};

class PackedConstants final : public Packer {
 public:
  std::shared_ptr<const void> packed(const Tensor& constant, const std::string& layout, size_t bytes,
                                     FunctionRef<void(void* to)> fill) override {
    const ShieldedLock lock(mutex_);
    auto& entry = entries_[{constant.data(), layout}];
    if (auto data = entry.lock()) return data;
    auto packed = std::make_shared<Packed>(constant, slabs_.take(bytes));
    fill(packed->memory.get());
    release_pages(constant.data(), constant.bytes());  // most are never read again
    std::shared_ptr<const void> data(packed, packed->memory.get());
    entry = data;
    forget_expired();
    return data;
  }

 private:
  /// A packed constant. It is owned by the plans that use it, since many constants are used by one plan only.
  struct Packed {
    Packed(Tensor constant, std::shared_ptr<void> memory) : constant(std::move(constant)), memory(std::move(memory)) {}
    Tensor constant;  // kept alive so that its address cannot be reused by another constant
    std::shared_ptr<void> memory;
  };

  void forget_expired() {
    if (entries_.size() < forget_at_) return;
    std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
    forget_at_ = 2 * entries_.size() + 64;
  }

  std::mutex mutex_;
  Slabs slabs_;
  std::map<std::pair<const void*, std::string>, std::weak_ptr<const void>> entries_;
  size_t forget_at_ = 64;
};

std::vector<const Engine*> engines_of(const ModelOptions& options) {
  std::vector<const Engine*> engines;
  for (const std::string& name : options.engines) {
    const Engine* engine = find_engine(name);
    if (!engine) fail(ErrorKind::invalid_argument, "", "no engine is called {}", name);
    engines.push_back(engine);
  }
  if (engines.empty()) engines.push_back(&cpu_engine());
  if (engines.empty() || engines.back() != &reference_engine()) engines.push_back(&reference_engine());
  return engines;
}

// The passes that the caller disables, and those that were disabled when the model was converted.
std::vector<std::string> disabled_passes(const Module& module, const ModelOptions& options) {
  std::vector<std::string> disabled = options.disabled_passes;
  disabled.insert(disabled.end(), module.disabled_passes.begin(), module.disabled_passes.end());
  return disabled;
}

// Whether the passes of this version have optimised the model already; a model from another version is optimised again.
bool is_optimised(const Module& module, const ModelOptions& options) {
  return module.optimised_by == kProducer && options.disabled_passes.empty();
}

void copy_elements(const Tensor& from, void* to) {
  if (from.dtype().kind == DType::Kind::string)
    std::copy_n(from.values<std::string>().data(), from.count(), static_cast<std::string*>(to));
  else
    std::memcpy(to, from.data(), from.bytes());
}

// The role of a result of @main: an output of the model, the new content of a state, or that of an updated input.
struct Result {
  enum class Kind : uint8_t { output, state, input };
  Kind kind = Kind::output;
  size_t index = 0;
};

// Passes results on: outputs to the caller's memory (allocated before the run if the dims are known, else when they are
// computed), new state to temporary memory, updated inputs to the inputs' memory.
class CallerSink final : public ResultSink {
 public:
  CallerSink(const std::vector<Result>& results, std::span<const TensorRef> inputs, OutputAllocator allocate,
             std::vector<HostValue>& state)
      : results_(results), inputs_(inputs), allocate_(allocate), state_(state) {}

  void* allocate(size_t result, DType dtype, const std::vector<int64_t>& dims) override {
    const Result& target = results_[result];
    if (target.kind == Result::Kind::output) return allocate_(target.index, dtype, dims);
    if (target.kind == Result::Kind::input) return input(target.index, dims);
    state_[target.index].tensor = Tensor::uninitialized(dtype, dims);
    return state_[target.index].tensor.mutable_data();
  }

  void take(size_t result, const HostValue& value) override {
    const Result& target = results_[result];
    if (target.kind == Result::Kind::state) {
      state_[target.index] = {value.tensor.owned(), value.list};
    } else if (value.list) {
      fail(ErrorKind::unsupported, "", "result {} is a list; only tensors can leave a model", result);
    } else if (target.kind == Result::Kind::input) {
      copy_elements(value.tensor, input(target.index, value.tensor.dims()));
    } else {
      copy_elements(value.tensor, allocate_(target.index, value.tensor.dtype(), value.tensor.dims()));
    }
  }

 private:
  void* input(size_t index, const std::vector<int64_t>& dims) const {
    const TensorRef& given = inputs_[index];
    if (!std::equal(dims.begin(), dims.end(), given.dims.begin(), given.dims.end()))
      fail(ErrorKind::unsupported, "", "variable {} changes its shape to {}", index, to_string(Shape::of(dims)));
    return const_cast<void*>(given.data);
  }

  const std::vector<Result>& results_;
  std::span<const TensorRef> inputs_;
  OutputAllocator allocate_;
  std::vector<HostValue>& state_;
};

// A vector reused by the calls on this thread, so that repeated calls with many inputs do not allocate.
template <class T>
class Scratch {
 public:
  explicit Scratch(size_t count) : list_(std::move(spare())) { list_.resize(std::max(list_.size(), count)); }
  ~Scratch() { spare() = std::move(list_); }
  Scratch(const Scratch&) = delete;
  T* data() { return list_.data(); }

 private:
  static std::vector<T>& spare() {
    thread_local std::vector<T> list;
    return list;
  }
  std::vector<T> list_;
};

constexpr size_t kNone = SIZE_MAX;

// Converts an input to the host object that steps expect; a random state is copied to memory that is kept between runs.
void hold(const TensorRef& input, bool is_random, HostValue& object) {
  if (!is_random || input.dims.size() != 1 || input.dims[0] != 3) {
    object = {Tensor::view(input.dtype, {input.dims.begin(), input.dims.end()}, input.data, nullptr), nullptr};
    return;
  }
  std::array<uint64_t, 3> numbers;  // copied, since the input may be unaligned
  std::memcpy(numbers.data(), input.data, sizeof numbers);
  object.list = nullptr;
  random::write_state({numbers[0], numbers[1], numbers[2]}, object.tensor);
}

}  // namespace

struct Model::Impl {
  std::shared_ptr<const Module> module;
  std::vector<Port> inputs, outputs, state;
  std::vector<size_t> input_of, state_of;  // per param of @main: its input or state number; the other: kNone
  std::vector<Result> results;             // per result of @main
  RunMutex state_mutex;
  std::vector<HostValue> values;  // current values of the state

  std::vector<InputUse> uses;  // of inputs

  /// The initial random state that the module gives for that name, else zeros.
  Tensor first_random_state(const std::string& name) const {
    std::vector<uint64_t> numbers(3, 0);
    if (auto found = module->random_states.find(name); found != module->random_states.end())
      numbers.assign(found->second.begin(), found->second.end());
    return Tensor::of(kU64, {3}, numbers);
  }

  void read_signature(bool bind_state) {
    const Function& main = module->main();
    Uses uses_of(main.body);
    results.resize(main.body.results.size());
    std::vector<size_t> updated(main.body.params.size(), kNone);
    for (auto [result, param] : main.updates) updated[param] = result;
    for (const auto& param : main.body.params) {
      bool is_updated = updated[param->index] != kNone;
      bool is_state = is_updated && !bind_state;
      input_of.push_back(is_state ? kNone : inputs.size());
      state_of.push_back(is_state ? state.size() : kNone);
      bool random = param->type.kind == Type::Kind::rng;
      if (is_state) {
        results[updated[param->index]] = {Result::Kind::state, state.size()};
        state.push_back({param->name, param->type});
      } else {
        if (is_updated) results[updated[param->index]] = {Result::Kind::input, inputs.size()};
        inputs.push_back({param->name, random ? Type::tensor(kU64, {3}) : param->type});
        bool reads = !uses_of.users(param.get()).empty() || uses_of.is_result(param.get());
        uses.push_back({reads, is_updated, random});
      }
      if (!is_state) continue;
      values.push_back({random ? first_random_state(param->name) : Tensor(), nullptr});
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].kind != Result::Kind::output) continue;
      results[i].index = outputs.size();
      outputs.push_back({main.result_names[i], main.body.results[i]->type});
    }
  }

  std::span<const int64_t> dims_of(size_t param, std::span<const TensorRef> given) const {
    if (!module->main().body.params[param]->type.is_tensor()) return {};
    if (input_of[param] != kNone) return given[input_of[param]].dims;
    return values[state_of[param]].tensor.dims();
  }

  /// Checks that the model was converted for these sizes, before a plan is made for them.
  void check_sizes(std::span<const Dims> dims) const {
    if (limits.alternatives().empty()) return;
    std::vector<std::string> names;
    for (const Port& input : inputs) names.push_back(input.name);
    if (limits.alternatives()[0].size() != names.size())
      fail(ErrorKind::invalid_model, "", "has sizes for {} inputs, but {} inputs", limits.alternatives()[0].size(),
           names.size());
    limits.check(dims, names);
  }

  InputLimits limits;
  /// The dims of all params of @main: those of the inputs as given, and those of the state.
  std::vector<Dims> with_state(std::span<const Dims> dims) const {
    if (dims.size() != inputs.size())
      fail(ErrorKind::invalid_argument, "", "the model has {} inputs, {} are given", inputs.size(), dims.size());
    check_sizes(dims);
    std::vector<Dims> all;
    for (size_t i = 0; i < input_of.size(); ++i) {
      if (!module->main().body.params[i]->type.is_tensor()) {
        all.emplace_back();
      } else if (input_of[i] != kNone) {
        all.push_back(dims[input_of[i]]);
      } else {
        auto state = dims_of(i, {});
        all.emplace_back(state.begin(), state.end());
      }
    }
    return all;
  }

  PlanOptions plan_options;
  PackedConstants packer;
  std::unique_ptr<Program> program;
  std::shared_ptr<Executor> pool;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::make(Module module, const ModelOptions& options) {
  auto impl = std::make_unique<Impl>();
  if (options.optimise && !is_optimised(module, options))
    optimise(module, {.disabled = disabled_passes(module, options), .verify = PipelineOptions::Verify::rounds});
  expand_user_ops(module);
  impl->module = std::make_shared<const Module>(std::move(module));
  impl->read_signature(options.bind_state);
  impl->limits = InputLimits::of(*impl->module);
  impl->pool = options.pool ? options.pool : make_pool(options.threads > 0 ? options.threads : available_threads());
  bool reuse_memory = options.reuse_memory && !impl->module->keep_memory;
  const size_t plan_bytes = options.plan_bytes > 0 ? options.plan_bytes : PlanBudget::default_bytes();
  impl->plan_options = {engines_of(options), impl->pool->width(), reuse_memory,
                        std::make_shared<PlanBudget>(plan_bytes)};
  impl->plan_options.winograd = !options.deterministic && !impl->module->metadata.contains("deterministic");
  impl->program =
      std::make_unique<Program>(impl->module, clone(impl->module->main()), impl->plan_options, impl->packer);
  return std::shared_ptr<const Model>(new Model(std::move(impl)));
}

const Module& Model::module() const { return *impl_->module; }
const std::vector<Port>& Model::inputs() const { return impl_->inputs; }
const std::vector<Port>& Model::outputs() const { return impl_->outputs; }
const std::vector<Port>& Model::state() const { return impl_->state; }
Model::InputUse Model::input_use(size_t i) const { return impl_->uses[i]; }

Tensor Model::state_value(size_t i) const {
  std::lock_guard lock(impl_->state_mutex);
  return impl_->values[i].tensor;
}

void Model::set_state(size_t i, const Tensor& value) const {
  const Port& port = impl_->state[i];
  Type wanted = port.type.is_tensor() ? port.type : Type::tensor(kU64, {3});
  if (!compatible(wanted, value.type()))
    fail(ErrorKind::invalid_argument, port.name, "state is {}, found {}", to_string(wanted), to_string(value.type()));
  Tensor copy = Tensor::view(value.dtype(), value.dims(), value.data(), nullptr).owned();
  std::lock_guard lock(impl_->state_mutex);
  const ForkShield shield;
  impl_->values[i].tensor = std::move(copy);
}

int Model::threads() const { return impl_->pool->width(); }

std::shared_ptr<const Plan> Model::plan(std::span<const Dims> dims) const {
  std::lock_guard lock(impl_->state_mutex);
  return impl_->program->plan(impl_->with_state(dims));
}

void Model::run(std::span<const TensorRef> inputs, OutputAllocator allocate, const RunOptions& options) const {
  const Impl& impl = *impl_;
  if (inputs.size() != impl.inputs.size())
    fail(ErrorKind::invalid_argument, "", "the model has {} inputs, {} are given", impl.inputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype != impl.inputs[i].type.dtype)
      fail(ErrorKind::invalid_argument, impl.inputs[i].name, "input is {}, the model takes {}",
           to_string(inputs[i].dtype), to_string(impl.inputs[i].type.dtype));
  std::unique_lock<RunMutex> turn(impl_->state_mutex, std::defer_lock);
  if (!impl.state.empty()) turn.lock();
  for (size_t i = 0; i < impl.state.size(); ++i)
    if (!impl.values[i].tensor.defined())
      fail(ErrorKind::invalid_argument, impl.state[i].name, "variable has no value yet");
  StopScope stop({.cancel = options.cancel});
  FlushDenormals flush;
  const size_t count = impl.input_of.size();
  const bool every_value = options.observer && options.observer->needs_values();
  const auto same = [&](const std::vector<Dims>& known) {
    for (size_t i = 0; i < count; ++i) {
      auto dims = impl.dims_of(i, inputs);
      if (!std::equal(known[i].begin(), known[i].end(), dims.begin(), dims.end())) return false;
    }
    return true;
  };
  auto plan = impl.program->find(same, every_value);
  if (!plan) {
    std::vector<Dims> dims(count);
    for (size_t i = 0; i < count; ++i) {
      auto given = impl.dims_of(i, inputs);
      dims[i].assign(given.begin(), given.end());
    }
    std::vector<Dims> sizes;
    for (const TensorRef& input : inputs) sizes.emplace_back(input.dims.begin(), input.dims.end());
    impl.check_sizes(sizes);
    plan = impl.program->plan(dims, every_value);
  }
  check_estimate(*plan, stop.seconds_left());
  Scratch<const void*> scratch(count);
  const void** pointers = scratch.data();
  const auto& params = plan->function->body.params;
  const auto is_object = [](const auto& param) { return is_host_object(param->type); };
  Scratch<HostValue> objects(static_cast<size_t>(std::count_if(params.begin(), params.end(), is_object)));
  HostValue* next_object = objects.data();
  for (size_t i = 0; i < count; ++i) {
    bool object = is_host_object(params[i]->type);
    if (impl.state_of[i] != kNone) {
      const HostValue& value = impl.values[impl.state_of[i]];
      pointers[i] = object ? static_cast<const void*>(&value) : value.tensor.data();
      continue;
    }
    const TensorRef& input = inputs[impl.input_of[i]];
    pointers[i] = input.data;
    if (!object) continue;
    hold(input, params[i]->type.kind == Type::Kind::rng, *next_object);
    pointers[i] = next_object++;
  }
  RunOptions with_pool = options;
  if (!with_pool.executor) with_pool.executor = impl.pool.get();
  std::vector<HostValue> next(impl.state.size());
  CallerSink sink(impl.results, inputs, allocate, next);
  execute(*plan, {pointers, count}, sink, *impl.module, with_pool);
  if (next.empty()) return;
  const ForkShield shield;
  impl_->values = std::move(next);
}

std::vector<Tensor> Model::run(const std::vector<Tensor>& inputs, const RunOptions& options) const {
  std::vector<TensorRef> refs;
  for (const Tensor& input : inputs) refs.push_back({input.dtype(), input.dims(), input.data()});
  std::vector<Tensor> outputs(impl_->outputs.size());
  run(
      refs,
      [&](size_t i, DType dtype, std::span<const int64_t> dims) {
        outputs[i] = Tensor::uninitialized(dtype, {dims.begin(), dims.end()});
        return outputs[i].mutable_data();
      },
      options);
  return outputs;
}

ReferenceShare Model::reference_share(const Plan& plan) const {
  return cairn::reference_share(plan, *impl_->module, impl_->plan_options);
}

ReferenceShare Model::expected_share(std::span<const Dims> dims) const {
  std::lock_guard lock(impl_->state_mutex);
  return cairn::expected_share(*impl_->module, impl_->with_state(dims), impl_->plan_options);
}

size_t Model::plan_bytes() const { return impl_->plan_options.budget->used(); }
uint64_t Model::planning_ns() const { return impl_->plan_options.budget->planning_ns(); }
size_t Model::most_plan_bytes() const { return impl_->plan_options.budget->most(); }

const Engine* find_engine(const std::string& name) {
  if (name == "cpu") return &cpu_engine();
  if (name == "reference") return &reference_engine();
  if (name == "remote") return &remote_engine();
  if (name == "null") return &null_engine();
  return nullptr;
}

}  // namespace cairn
