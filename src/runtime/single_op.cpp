// Prepares single operators: makes a module of one node, its plan, and direct access to the plan's step.
#include "runtime/single_op.h"

#include <algorithm>
#include <map>

#include "engines/cpu/move.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "runtime/op_cache.h"
#include "runtime/single_op_parts.h"
#include "support/fork.h"

namespace cairn {

namespace {

std::shared_ptr<Executor> shared_pool(int threads) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<Executor>> pools;
  const ShieldedLock lock(mutex);
  auto& pool = pools[threads];
  if (!pool) pool = make_pool(threads);
  return pool;
}

void add_type(OpKey& key, const Type& type) {
  key.word(static_cast<uint64_t>(type.kind) << 32 | static_cast<uint64_t>(type.dtype.kind) << 8 | type.dtype.bits);
  key.word(type.shape.ranked ? type.shape.rank() : SIZE_MAX);
  for (const Dim& dim : type.shape.dims) key.word(static_cast<uint64_t>(dim.size));
  for (const Type& element : type.elements) add_type(key, element);
}

void add_strides(OpKey& key, const Operand& operand) {
  for (size_t axis = 0; axis < operand.dims.size(); ++axis)
    key.word(operand.dims[axis] == 1 ? 0 : static_cast<uint64_t>(operand.strides[axis]));
}

void add_elements(OpKey& key, const Operand& operand) {
  if (operand.dtype == kString) {
    const auto* texts = static_cast<const std::string*>(operand.data);
    for (int64_t i = 0; i < count_of(operand); ++i) key.bytes(texts[i].data(), texts[i].size());
    return;
  }
  if (is_row_major(operand)) return key.bytes(operand.data, bytes_of(operand));
  const Tensor elements = gathered(operand);
  key.bytes(elements.data(), elements.bytes());
}

void add_input(OpKey& key, const OpDef& op, size_t i, const Operand& input) {
  const bool strided = !is_row_major(input);
  key.word(static_cast<uint64_t>(input.object != nullptr) << 33 | static_cast<uint64_t>(strided) << 32 |
           input.dims.size() << 16 | static_cast<uint64_t>(input.dtype.kind) << 8 | input.dtype.bits);
  for (int64_t dim : input.dims) key.word(static_cast<uint64_t>(dim));
  if (input.object && input.object->list) add_type(key, input.object->list->element);
  if (is_embedded(op, i))
    add_elements(key, input);
  else if (strided)
    add_strides(key, input);
}

void make_key(OpKey& key, const OpRequest& request, std::span<const Operand> inputs, std::span<const Operand> outputs) {
  key.clear();
  key.word(reinterpret_cast<uint64_t>(&request.op));
  request.key(key);
  key.word(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) add_input(key, request.op, i, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_row_major(outputs[i])) continue;
    key.word(i);
    add_strides(key, outputs[i]);
  }
}

Dims strides_of(const Operand& operand) {
  if (is_row_major(operand)) return {};
  Dims strides(operand.strides, operand.strides + operand.dims.size());
  for (size_t axis = 0; axis < strides.size(); ++axis)
    if (operand.dims[axis] == 1) strides[axis] = 0;
  return strides;
}

/// The attribute that makes a matrix product transpose its operand i, or null.
const char* transposing_attribute(const OpDef& op, size_t i) {
  const char* name = i == 0 ? "transpose_a" : "transpose_b";
  return i < 2 && op.has(kContraction) && op.find_attribute(name) ? name : nullptr;
}

/// Whether the operand is row-major except that its last two dims are swapped.
bool is_transposed(const Operand& operand) {
  const size_t rank = operand.dims.size();
  if (rank < 2 || is_row_major(operand)) return false;
  Dims dims(operand.dims.begin(), operand.dims.end()), strides(operand.strides, operand.strides + rank);
  std::swap(dims[rank - 1], dims[rank - 2]);
  std::swap(strides[rank - 1], strides[rank - 2]);
  return is_row_major({operand.dtype, dims, strides.data()});
}

}  // namespace

void add_attribute(OpKey& key, const Attribute& value) {
  key.word(value.index());
  const auto add_numbers = [&](const auto& list) { key.bytes(list.data(), list.size() * sizeof(list[0])); };
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) return add_numbers(*integers);
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) return add_numbers(*numbers);
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    add_type(key, tensor->type());
    return key.bytes(tensor->data(), tensor->bytes());
  }
  const std::string text = to_string(value);
  key.bytes(text.data(), text.size());
}

SingleOp::SingleOp() = default;

SingleOp::~SingleOp() { drop_memory(); }

SingleOpRef::SingleOpRef(const SingleOpRef& other) : op_(other.op_) {
  if (op_) op_->retain();
}
SingleOpRef::~SingleOpRef() {
  if (op_) op_->release();
}

SingleOpRef SingleOp::prepare(const OpRequest& request, std::span<const Operand> inputs,
                              std::span<const Operand> outputs) {
  thread_local OpKey key;
  make_key(key, request, inputs, outputs);
  if (const SingleOp* known = OpCache::instance().find(key)) {
    known->retain();
    return SingleOpRef(known);
  }
  // Shields the tables that are built at first use. Not for operators from users: their code might wait for the thread
  // that forks.
  std::optional<ForkShield> shield;
  if (!request.op.user) shield.emplace();
  std::unique_ptr<SingleOp> made(new SingleOp);
  made->key_.assign(key.words().begin(), key.words().end());  // copied: the code below may prepare other operators
  made->hash_ = key.hash();
  made->op_ = &request.op;
  const Attributes attributes = request.attributes();
  made->make_model(attributes, inputs, request.options());
  made->read_signature(inputs, outputs);
  made->make_direct();
  return OpCache::instance().add(SingleOpRef(made.release()));
}

void SingleOp::make_model(const Attributes& attributes, std::span<const Operand> inputs, ModelOptions options) {
  if (op_->has(kControl)) fail(ErrorKind::unsupported, op_->name, "has regions and cannot be run alone");
  if (options.pool)
    pool_ = options.pool;
  else
    pool_ = options.pool = shared_pool(options.threads > 0 ? options.threads : available_threads());
  options.optimise = false;
  std::vector<bool> transposed(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) transposed[i] = transposing_attribute(*op_, i) && is_transposed(inputs[i]);
  while (true) {
    inputs_.clear();
    Module module;
    module.name = op_->name;
    module.functions.push_back(std::make_unique<Function>());
    Function& main = *module.functions.back();
    main.name = "main";
    Builder builder(main.body);
    Attributes own = attributes;
    std::vector<Value*> values;
    std::vector<Dims> dims;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Input& input = inputs_.emplace_back(inputs[i]);
      if (is_embedded(*op_, i)) {
        input.value = gathered(inputs[i]).owned();
        values.push_back(builder.constant(input.value));
        continue;
      }
      Dims taken = input.dims;
      if (transposed[i]) {
        std::swap(taken[taken.size() - 1], taken[taken.size() - 2]);
        input.layout = strides_of(inputs[i]);
        const char* flag = transposing_attribute(*op_, i);
        own.set(flag, !AttributeView(*op_, own).boolean(flag));
      }
      input.param = dims.size();
      const bool is_rng = op_->input(i).accepts == Accepts::rng;
      const Type type = is_rng                              ? Type::rng()
                        : input.is_list && inputs[i].object ? Type::list(inputs[i].object->list->element)
                                                            : Type::tensor(input.dtype, Shape::of(taken));
      values.push_back(main.body.add_param(type, fmt::format("x{}", i)));
      dims.push_back(type.is_tensor() ? taken : Dims());
    }
    Node* node = builder.add_node(*op_, values, own);
    for (const auto& result : node->results) {
      main.body.results.push_back(result.get());
      main.result_names.push_back(fmt::format("y{}", result->index));
    }
    model_ = Model::make(std::move(module), options);
    plan_ = model_->plan(dims);
    const bool any = std::count(transposed.begin(), transposed.end(), true) > 0;
    const auto slow = [](const PlannedStep& step) { return step.kernel.starts_with("reference/"); };
    if (!any || std::none_of(plan_->steps.begin(), plan_->steps.end(), slow)) return;
    std::fill(transposed.begin(), transposed.end(), false);  // copy the operands instead
  }
}

void SingleOp::read_signature(std::span<const Operand> inputs, std::span<const Operand> outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) inputs_[i].strides = strides_of(inputs[i]);
  const auto& ports = model_->outputs();
  if (outputs.size() > ports.size())
    fail(ErrorKind::invalid_argument, op_->name, "has {} results, {} outputs are given", ports.size(), outputs.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const Type& type = plan_->rest ? ports[i].type : plan_->function->body.results[i]->type;
    Output& output = outputs_.emplace_back();
    Result& result = results_.emplace_back();
    result.is_list = type.kind == Type::Kind::list;
    output.is_rng = type.kind == Type::Kind::rng;
    result.dtype = output.is_rng ? kU64 : type.dtype;
    if (output.is_rng)
      result.dims = Dims{3};
    else if (type.is_static())
      result.dims = type.shape.sizes();
    if (i < outputs.size()) output.strides = strides_of(outputs[i]);
    if (result.dims) output.bytes = storage_bytes(result.dtype, *element_count(*result.dims));
    if (!output.strides.empty() && (!result.dims || result.dims->size() != output.strides.size()))
      fail(ErrorKind::invalid_argument, op_->name, "output {} has {} dims, the result has {}", i, output.strides.size(),
           result.dims ? fmt::to_string(result.dims->size()) : "others at each run");
  }
}

size_t SingleOp::input_count() const { return inputs_.size(); }

std::string SingleOp::kernel() const {
  if (direct_ && direct_->step) return direct_->step->kernel();
  std::string names;
  for (const PlannedStep& step : plan_->steps) names += (names.empty() ? "" : ", ") + step.kernel;
  return names;
}

SingleOp::Access SingleOp::access(size_t i) const {
  const Input& input = inputs_[i];
  if (input.value.defined()) return Access::value;
  if (input.strides == input.layout) return input.strides.empty() ? Access::direct : Access::strided;
  return direct_ && direct_->reads_strides ? Access::strided : Access::copied;
}

Cost SingleOp::cost() const {
  Cost cost;
  for (const PlannedStep& step : plan_->steps) cost.flops += step.cost.flops, cost.bytes += step.cost.bytes;
  return cost;
}

size_t SingleOp::bytes() const {
  constexpr size_t kOwn = 16 << 10;  // approximate size of the model without its plan
  size_t bytes = kOwn + 2 * key_.size() * 8 + model_->plan_bytes() + (direct_ ? direct_->memory : 0);
  for (const auto& [space, arena] : plan_->arena_bytes) bytes += arena;
  return bytes;
}

SingleOpRef prepare_op(const OpDef& op, const Attributes& attributes, std::span<const Operand> inputs,
                       std::span<const Operand> outputs, const ModelOptions& options) {
  const auto key = [&](OpKey& to) {
    for (const auto& [name, value] : attributes) {
      to.bytes(name.data(), name.size());
      add_attribute(to, value);
    }
    to.word(static_cast<uint64_t>(options.threads));
    for (const std::string& engine : options.engines) to.bytes(engine.data(), engine.size());
  };
  return SingleOp::prepare({op, key, [&] { return attributes; }, [&] { return options; }}, inputs, outputs);
}

void run_op(const OpDef& op, const Attributes& attributes, std::span<const TensorRef> inputs, OutputAllocator allocate,
            const ModelOptions& options) {
  std::vector<Operand> operands;
  for (const TensorRef& input : inputs)
    operands.push_back({input.dtype, input.dims, nullptr, const_cast<void*>(input.data)});
  prepare_op(op, attributes, operands, {}, options)->run(operands, {}, &allocate);
}

}  // namespace cairn
