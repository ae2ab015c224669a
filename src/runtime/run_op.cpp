// One op on the caller's tensors: a module of one node, kept by op, types and attributes.
#include <list>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "ir/builder.h"
#include "ir/text.h"
#include "runtime/model.h"
#include "support/fork.h"

namespace cairn {

namespace {

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Inputs whose values decide the result's dims are part of the op here, as constants.
bool is_embedded(const OpDef& op, size_t input) { return op.role(input) == Role::shape; }

std::string key_of(const OpDef& op, const Attributes& attributes, std::span<const TensorRef> inputs,
                   const ModelOptions& options) {
  std::string key(op.name);
  append(key, options.threads);
  for (const std::string& engine : options.engines) key += "," + engine;
  for (const auto& [name, value] : attributes) key += fmt::format(";{}={}", name, to_string(value));
  for (size_t i = 0; i < inputs.size(); ++i) {
    append(key, inputs[i].dtype);
    append(key, inputs[i].dims.size());
    for (int64_t dim : inputs[i].dims) append(key, dim);
    if (is_embedded(op, i) && inputs[i].dtype.kind != DType::Kind::string)
      key.append(
          static_cast<const char*>(inputs[i].data),
          storage_bytes(inputs[i].dtype, element_count({inputs[i].dims.begin(), inputs[i].dims.end()}).value_or(0)));
  }
  return key;
}

std::shared_ptr<Executor> shared_pool(int threads) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<Executor>> pools;
  const ShieldedLock lock(mutex);
  auto& pool = pools[threads];
  if (!pool) pool = make_pool(threads);
  return pool;
}

std::shared_ptr<const Model> make_model(const OpDef& op, const Attributes& attributes,
                                        std::span<const TensorRef> inputs, ModelOptions options) {
  Module module;
  module.name = op.name;
  module.functions.push_back(std::make_unique<Function>());
  Function& main = *module.functions.back();
  main.name = "main";
  Builder builder(main.body);
  std::vector<Value*> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<int64_t> dims(inputs[i].dims.begin(), inputs[i].dims.end());
    if (is_embedded(op, i))
      values.push_back(builder.constant(Tensor::view(inputs[i].dtype, dims, inputs[i].data, nullptr).owned()));
    else
      values.push_back(main.body.add_param(Type::tensor(inputs[i].dtype, Shape::of(dims)), fmt::format("x{}", i)));
  }
  Node* node = builder.add_node(op, values, attributes);
  for (const auto& result : node->results) {
    main.body.results.push_back(result.get());
    main.result_names.push_back(fmt::format("y{}", result->index));
  }
  options.optimise = false;
  options.pool = shared_pool(options.threads > 0 ? options.threads : available_threads());
  return Model::make(std::move(module), options);
}

std::vector<Dims> dims_of(const OpDef& op, std::span<const TensorRef> inputs) {
  std::vector<Dims> dims;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!is_embedded(op, i)) dims.emplace_back(inputs[i].dims.begin(), inputs[i].dims.end());
  return dims;
}

/// Models of single ops, up to as many bytes as the plans of one model may take; the least recently used goes first.
class OpModels {
 public:
  std::shared_ptr<const Model> find(const std::string& key) {
    const ShieldedLock lock(mutex_);
    auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->model;
  }

  void add(std::string key, std::shared_ptr<const Model> model, size_t bytes) {
    constexpr size_t kModel = 16 << 10;  // about, without its plan
    const size_t most = PlanBudget::default_bytes();
    std::list<Entry> gone;  // freed without the lock
    const ShieldedLock lock(mutex_);
    if (places_.contains(key)) return;
    bytes += kModel + 2 * key.size();
    entries_.push_front({std::move(key), std::move(model), bytes});
    places_[entries_.front().key] = entries_.begin();
    bytes_ += bytes;
    while (bytes_ > most && entries_.size() > 1) {
      bytes_ -= entries_.back().bytes;
      places_.erase(entries_.back().key);
      gone.splice(gone.end(), entries_, std::prev(entries_.end()));
    }
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Model> model;
    size_t bytes;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // used last first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> places_;
  size_t bytes_ = 0;
};

}  // namespace

void run_op(const OpDef& op, const Attributes& attributes, std::span<const TensorRef> inputs, OutputAllocator allocate,
            const ModelOptions& options) {
  static auto& models = *new OpModels;  // outlives threads that still run
  std::string key = key_of(op, attributes, inputs, options);
  std::shared_ptr<const Model> model = models.find(key);
  if (!model) {
    model = make_model(op, attributes, inputs, options);
    auto plan = model->plan(dims_of(op, inputs));
    size_t bytes = model->plan_bytes();
    for (const auto& [space, arena] : plan->arena_bytes) bytes += arena;
    models.add(std::move(key), model, bytes);
  }
  std::vector<TensorRef> plain;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!is_embedded(op, i)) plain.push_back(inputs[i]);
  model->run(plain, allocate);
}

}  // namespace cairn
