#include "runtime/model.h"

#include <algorithm>
#include <mutex>

#include "engines/null/engine.h"
#include "engines/reference/engine.h"
#include "passes/pipeline.h"
#include "runtime/execute.h"
#if __has_include("engines/cpu/engine.h")
#include "engines/cpu/engine.h"
#endif

namespace cairn {

namespace {

class PackedConstants final : public Packer {
 public:
  std::shared_ptr<const void> packed(const Tensor& constant, const std::string& layout, size_t bytes,
                                     FunctionRef<void(void* to)> fill) override {
    std::lock_guard lock(mutex_);
    auto key = std::make_pair(constant.data(), layout);
    auto found = entries_.find(key);
    if (found != entries_.end()) return found->second.data;
    Tensor memory = Tensor::uninitialized(kU8, {static_cast<int64_t>(bytes)});
    fill(memory.mutable_data());
    std::shared_ptr<const void> data(memory.owner(), memory.data());
    entries_[key] = {constant, data};
    return data;
  }

 private:
  struct Entry {
    Tensor constant;  // keeps the address from being used again for another constant
    std::shared_ptr<const void> data;
  };
  std::mutex mutex_;
  std::map<std::pair<const void*, std::string>, Entry> entries_;
};

std::vector<const Engine*> engines_of(const ModelOptions& options) {
  std::vector<const Engine*> engines;
  for (const std::string& name : options.engines) {
    const Engine* engine = find_engine(name);
    if (!engine) fail(ErrorKind::invalid_argument, "", "no engine is called {}", name);
    engines.push_back(engine);
  }
  if (engines.empty())
    if (const Engine* cpu = find_engine("cpu")) engines.push_back(cpu);
  if (engines.empty() || engines.back() != &reference_engine()) engines.push_back(&reference_engine());
  return engines;
}

// Hands results to the caller: allocated up front when dims are known, else when they come.
class CallerSink final : public ResultSink {
 public:
  explicit CallerSink(OutputAllocator allocate) : allocate_(allocate) {}
  void* allocate(size_t result, DType dtype, const std::vector<int64_t>& dims) override { return allocate_(result, dtype, dims); }
  void take(size_t result, const HostValue& value) override {
    if (value.list) fail(ErrorKind::unsupported, "", "output {} is a list; only tensors can leave a model", result);
    const Tensor& tensor = value.tensor;
    void* target = allocate_(result, tensor.dtype(), tensor.dims());
    if (tensor.dtype().kind == DType::Kind::string)
      std::copy_n(tensor.values<std::string>().data(), tensor.count(), static_cast<std::string*>(target));
    else
      std::memcpy(target, tensor.data(), tensor.bytes());
  }

 private:
  OutputAllocator allocate_;
};

}  // namespace

struct Model::Impl {
  std::shared_ptr<const Module> module;
  std::vector<Port> inputs, outputs;
  PlanOptions plan_options;
  PackedConstants packer;
  std::unique_ptr<Program> program;
  std::shared_ptr<Executor> pool;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::make(Module module, const ModelOptions& options) {
  auto impl = std::make_unique<Impl>();
  if (options.optimise) optimise(module, {.disabled = options.disabled_passes});
  impl->module = std::make_shared<const Module>(std::move(module));
  const Function& main = impl->module->main();
  for (const auto& param : main.body.params) impl->inputs.push_back({param->name, param->type});
  for (size_t i = 0; i < main.body.results.size(); ++i) impl->outputs.push_back({main.result_names[i], main.body.results[i]->type});
  impl->pool = options.pool ? options.pool : make_pool(options.threads > 0 ? options.threads : available_threads());
  impl->plan_options = {engines_of(options), impl->pool->width(), options.reuse_memory};
  impl->program = std::make_unique<Program>(impl->module, clone(main), impl->plan_options, impl->packer);
  return std::shared_ptr<const Model>(new Model(std::move(impl)));
}

const Module& Model::module() const { return *impl_->module; }
const std::vector<Port>& Model::inputs() const { return impl_->inputs; }
const std::vector<Port>& Model::outputs() const { return impl_->outputs; }
int Model::threads() const { return impl_->pool->width(); }

std::shared_ptr<const Plan> Model::plan(std::span<const Dims> dims) const {
  if (dims.size() != impl_->inputs.size())
    fail(ErrorKind::invalid_argument, "", "the model has {} inputs, {} are given", impl_->inputs.size(), dims.size());
  return impl_->program->plan(dims);
}

void Model::run(std::span<const TensorRef> inputs, OutputAllocator allocate, const RunOptions& options) const {
  const Impl& impl = *impl_;
  if (inputs.size() != impl.inputs.size())
    fail(ErrorKind::invalid_argument, "", "the model has {} inputs, {} are given", impl.inputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype != impl.inputs[i].type.dtype)
      fail(ErrorKind::invalid_argument, impl.inputs[i].name, "input is {}, the model takes {}", to_string(inputs[i].dtype),
           to_string(impl.inputs[i].type.dtype));
  auto plan = impl.program->find([&](const std::vector<Dims>& dims) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!std::equal(dims[i].begin(), dims[i].end(), inputs[i].dims.begin(), inputs[i].dims.end())) return false;
    return true;
  });
  if (!plan) {
    std::vector<Dims> dims;
    for (const TensorRef& input : inputs) dims.emplace_back(input.dims.begin(), input.dims.end());
    plan = impl.program->plan(dims);
  }
  constexpr size_t kFew = 16;  // inputs whose pointers need no allocation
  const void* few[kFew];
  std::vector<const void*> many;
  std::vector<HostValue> objects;
  if (inputs.size() > kFew) many.resize(inputs.size());
  const void** pointers = inputs.size() > kFew ? many.data() : few;
  const auto& params = plan->function->body.params;
  for (size_t i = 0; i < inputs.size(); ++i) {
    pointers[i] = inputs[i].data;
    if (!is_host_object(params[i]->type)) continue;
    objects.reserve(inputs.size());  // addresses stay
    Dims dims(inputs[i].dims.begin(), inputs[i].dims.end());
    objects.push_back({Tensor::view(inputs[i].dtype, std::move(dims), inputs[i].data, nullptr), nullptr});
    pointers[i] = &objects.back();
  }
  RunOptions with_pool = options;
  if (!with_pool.executor) with_pool.executor = impl.pool.get();
  CallerSink sink(allocate);
  execute(*plan, {pointers, inputs.size()}, sink, *impl.module, with_pool);
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

const Engine* find_engine(const std::string& name) {
#if __has_include("engines/cpu/engine.h")
  if (name == "cpu") return &cpu_engine();
#endif
  if (name == "reference") return &reference_engine();
  if (name == "remote") return &remote_engine();
  if (name == "null") return &null_engine();
  return nullptr;
}

}  // namespace cairn
