// Single operators at the C interface: found, prepared, run on the caller's tensors.
#include "runtime/single_op.h"

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "capi/attributes.h"
#include "capi/run_setup.h"
#include "capi/user_op.h"
#include "ir/collective.h"
#include "ir/user_ops.h"

using namespace cairn;
using namespace cairn::capi;

namespace {

const OpDef& row_of(const CairnOperator* found) { return *reinterpret_cast<const OpDef*>(found); }
const SingleOp& prepared(const CairnOp* op) { return *reinterpret_cast<const SingleOp*>(op); }

/// from_c() for the types that are whole bytes, without a search.
DType quick_dtype(CairnDType given) {
  using Kind = DType::Kind;
  constexpr Kind kKinds[] = {Kind::signed_int,  Kind::unsigned_int,  Kind::ieee_float, Kind::boolean,
                             Kind::brain_float, Kind::complex_float, Kind::boolean};
  constexpr uint8_t kWidths[] = {8 | 16 | 32 | 64, 8 | 16 | 32 | 64, 16 | 32 | 64, 0, 16, 64, 8};
  const bool known = given.code < std::size(kWidths) && std::has_single_bit(given.bits) &&
                     (kWidths[given.code] & given.bits) && given.lanes <= 1;
  return known ? DType{kKinds[given.code], given.bits} : from_c(given);
}

/// A list of operands with inline storage for as many as most operators have.
class Operands {
 public:
  explicit Operands(size_t count) : count_(count) {
    if (count > kInPlace) more_.resize(count);
  }
  Operand& operator[](size_t i) { return data()[i]; }
  std::span<const Operand> all() { return {data(), count_}; }
  /// Stores the value for the lifetime of this object.
  HostValue& keep(HostValue value) { return *kept_.emplace_back(std::make_unique<HostValue>(std::move(value))); }

 private:
  static constexpr size_t kInPlace = 8;
  Operand* data() { return more_.empty() ? few_.data() : more_.data(); }
  size_t count_;
  std::array<Operand, kInPlace> few_;
  std::vector<Operand> more_;
  std::vector<std::unique_ptr<HostValue>> kept_;  // texts, lists
};

[[noreturn]] void refuse(const char* what, size_t i, ErrorKind kind, const std::string& message) {
  throw Error(kind, fmt::format("{} {}", what, i), message);
}

void check_shape(const char* what, size_t i, const CairnTensor& tensor) {
  if (tensor.device.type != 1 && tensor.device.type != 0)
    refuse(what, i, ErrorKind::unsupported, fmt::format("is on device {}, expected the CPU", tensor.device.type));
  if (tensor.ndim < 0 || tensor.ndim > 64 || (tensor.ndim > 0 && !tensor.shape))
    refuse(what, i, ErrorKind::invalid_argument, fmt::format("has {} dimensions, or no shape", tensor.ndim));
  int64_t count = 1;
  bool bad = false, empty = false;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
    bad |= tensor.shape[axis] < 0;
    empty |= tensor.shape[axis] == 0;
    bad |= !empty && __builtin_mul_overflow(count, tensor.shape[axis], &count);
  }
  if (bad || (!empty && count > int64_t{1} << 58))
    refuse(what, i, ErrorKind::invalid_argument, "has impossible dimensions");
}

alignas(64) char nothing[64];  // for a tensor without elements, whose data may be NULL

void read(const CairnTensor& tensor, size_t i, Operands& operands) {
  check_shape("input", i, tensor);
  Operand& operand = operands[i];
  operand.dims = {tensor.shape, static_cast<size_t>(tensor.ndim)};
  if (tensor.dtype.code == CAIRN_LIST) {
    require(tensor.data, "list");
    operand.object = &operands.keep(static_cast<const CairnList*>(tensor.data)->value);
    return;
  }
  operand.dtype = quick_dtype(tensor.dtype);
  if (operand.dtype == kString) {
    HostValue& own = operands.keep({texts_from_c(tensor, i), nullptr});
    operand.data = own.tensor.mutable_data();
    return;
  }
  operand.strides = tensor.strides;
  operand.data = tensor.data ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
  if (operand.data) return;
  for (int64_t dim : operand.dims)
    if (dim == 0) operand.data = nothing;
  if (!operand.data) refuse("input", i, ErrorKind::invalid_argument, "has no data");
}

/// Reads output i: texts and outputs without data are left to the allocator; a list gets a HostValue.
void read_output(const CairnTensor& tensor, size_t i, Operands& operands) {
  Operand& operand = operands[i];
  if (tensor.dtype.code == CAIRN_LIST) {
    operand.object = &operands.keep({});
    return;
  }
  if (tensor.ndim < 0) return;
  check_shape("output", i, tensor);
  operand.dims = {tensor.shape, static_cast<size_t>(tensor.ndim)};
  operand.strides = tensor.strides;
  if (!tensor.data || tensor.dtype.code == CAIRN_TEXT) return;
  operand.dtype = quick_dtype(tensor.dtype);
  operand.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
}

Operands read_all(const CairnTensor* tensors, size_t count, void (*read_one)(const CairnTensor&, size_t, Operands&),
                  const char* name) {
  if (count) require(tensors, name);
  Operands operands(count);
  for (size_t i = 0; i < count; ++i) read_one(tensors[i], i, operands);
  return operands;
}

void add_text(OpKey& key, const CairnText& text) { key.bytes(text.data, text.data ? text.size : 0); }

void add_dtype(OpKey& key, CairnDType dtype) {
  key.word(static_cast<uint64_t>(dtype.code) << 32 | static_cast<uint64_t>(dtype.bits) << 16 | dtype.lanes);
}

void add_type(OpKey& key, const CairnType& type) {
  key.word(static_cast<uint64_t>(type.kind));
  add_dtype(key, type.dtype);
  key.word(static_cast<uint64_t>(type.ndim));
  for (int32_t axis = 0; type.dims && axis < type.ndim; ++axis) key.word(static_cast<uint64_t>(type.dims[axis]));
  key.word(type.element_count);
  for (size_t i = 0; type.elements && i < type.element_count; ++i) add_type(key, type.elements[i]);
}

/// Appends words that identify the attribute; it is validated when the operator is made.
void add_attribute(OpKey& key, const CairnAttribute& given) {
  const auto& value = given.value;
  const auto add_list = [&](const auto& list) {
    key.bytes(list.data, list.data ? list.count * sizeof(list.data[0]) : 0);
  };
  require(given.name, "attribute name");
  key.bytes(given.name, std::strlen(given.name));
  key.word(static_cast<uint64_t>(given.kind));
  switch (given.kind) {
    case CAIRN_ATTRIBUTE_BOOLEAN: return key.word(value.boolean != 0);
    case CAIRN_ATTRIBUTE_INTEGER: return key.word(static_cast<uint64_t>(value.integer));
    case CAIRN_ATTRIBUTE_NUMBER: return key.word(std::bit_cast<uint64_t>(value.number));
    case CAIRN_ATTRIBUTE_TEXT:
    case CAIRN_ATTRIBUTE_FUNCTION: return add_text(key, value.text);
    case CAIRN_ATTRIBUTE_INTEGERS: return add_list(value.integers);
    case CAIRN_ATTRIBUTE_NUMBERS: return add_list(value.numbers);
    case CAIRN_ATTRIBUTE_TEXTS:
      for (size_t i = 0; value.texts.data && i < value.texts.count; ++i) add_text(key, value.texts.data[i]);
      return key.word(value.texts.count);
    case CAIRN_ATTRIBUTE_DTYPE: return add_dtype(key, value.dtype);
    case CAIRN_ATTRIBUTE_TYPE: require(value.type, given.name); return add_type(key, *value.type);
    case CAIRN_ATTRIBUTE_TENSOR: {
      require(value.tensor, given.name);
      const Inputs elements(value.tensor, 1);
      const TensorRef& ref = elements.refs()[0];
      add_dtype(key, value.tensor->dtype);
      for (int64_t dim : ref.dims) key.word(static_cast<uint64_t>(dim));
      const Tensor view = Tensor::view(ref.dtype, {ref.dims.begin(), ref.dims.end()}, ref.data, nullptr);
      if (ref.dtype != kString) return key.bytes(view.data(), view.bytes());
      for (const std::string& text : view.values<std::string>()) key.bytes(text.data(), text.size());
    }
  }
}

void add_options(OpKey& key, const CairnModelOptions* given) {
  if (!given) return key.word(0);
  const CairnModelOptions known = checked(given, "options");
  key.word(uint64_t{1} << 63 | static_cast<uint64_t>(known.lent_threads != 0) << 32 |
           static_cast<uint32_t>(known.threads));
  key.bytes(known.engines, known.engines ? std::strlen(known.engines) : 0);
}

nlohmann::ordered_json describe(const SingleOp& op) {
  constexpr const char* kAccess[] = {"direct", "strided", "copied", "value"};
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
  for (size_t i = 0; i < op.input_count(); ++i) inputs.push_back(kAccess[static_cast<int>(op.access(i))]);
  const Cost cost = op.cost();
  return {{"operator", op.op().name}, {"kernel", op.kernel()}, {"inputs", inputs},
          {"flops", cost.flops},      {"bytes", cost.bytes},   {"memory", op.bytes()}};
}

}  // namespace

CairnStatus cairn_op_find(const char* name, const CairnOperator** found) {
  return guarded([&] {
    require(name, "name");
    require(found, "found");
    *found = nullptr;
    load_op_libraries_of_environment();
    const OpDef* row = find_op(name);
    if (!row) fail(ErrorKind::not_found, "", "{}", unknown_op(name));
    if (row->has(kControl)) fail(ErrorKind::unsupported, name, "has regions and cannot be run alone");
    *found = reinterpret_cast<const CairnOperator*>(row);
  });
}

CairnStatus cairn_op_prepare(const CairnOperator* found, const CairnAttribute* attributes, size_t attribute_count,
                             const CairnTensor* inputs, size_t input_count, const CairnTensor* outputs,
                             size_t output_count, const CairnModelOptions* options, const CairnOp** op) {
  return guarded([&] {
    require(op, "op");
    *op = nullptr;
    require(found, "found");
    if (attribute_count) require(attributes, "attributes");
    Operands from = read_all(inputs, input_count, read, "inputs");
    Operands to = read_all(outputs, outputs ? output_count : 0, read_output, "outputs");
    const auto key = [&](OpKey& words) {
      words.word(uint64_t{2} << 32 | attribute_count);
      for (size_t i = 0; i < attribute_count; ++i) add_attribute(words, attributes[i]);
      add_options(words, options);
    };
    const auto make_attributes = [&] { return attributes_from_c(row_of(found), attributes, attribute_count); };
    const auto make_options = [&] {
      start_watch_from_environment();
      return model_options(options);
    };
    SingleOpRef made = SingleOp::prepare({row_of(found), key, make_attributes, make_options}, from.all(), to.all());
    *op = reinterpret_cast<const CairnOp*>(made.detach());
  });
}

void cairn_op_free(const CairnOp* op) {
  if (op) prepared(op).release();
}

const CairnTensor* cairn_op_outputs(const CairnOp* op, size_t* count) {
  thread_local std::vector<CairnTensor> shown;
  shown.clear();
  if (op)
    for (const SingleOp::Result& result : prepared(op).results()) {
      CairnTensor tensor{nullptr, {1, 0}, -1, {CAIRN_LIST, 0, 1}, nullptr, nullptr, 0};
      if (!result.is_list) tensor.dtype = to_c(result.dtype);
      if (result.is_list) tensor.ndim = 0;
      if (result.dims) {
        tensor.ndim = static_cast<int32_t>(result.dims->size());
        tensor.shape = const_cast<int64_t*>(result.dims->data());
      }
      shown.push_back(tensor);
    }
  if (count) *count = shown.size();
  return shown.data();
}

double cairn_op_cost(const CairnOp* op, double* bytes) {
  const Cost cost = op ? prepared(op).cost() : Cost();
  if (bytes) *bytes = cost.bytes;
  return op && prepared(op).op().has(kCollective) ? HUGE_VAL : cost.flops;
}

CairnStatus cairn_op_describe(const CairnOp* op, char** description) {
  return guarded([&] {
    require(op, "op");
    require(description, "description");
    *description = copy_text(describe(prepared(op)).dump(1));
  });
}

CairnStatus cairn_op_run(const CairnOp* op, const CairnTensor* inputs, size_t input_count, CairnTensor* outputs,
                         size_t output_count, CairnAllocate allocate, void* user, const CairnRunOptions* options) {
  return guarded([&] {
    require(op, "op");
    const SingleOp& single = prepared(op);
    Operands from = read_all(inputs, input_count, read, "inputs");
    Operands to = read_all(outputs, output_count, read_output, "outputs");
    std::optional<Outputs> callers;
    std::optional<OutputAllocator> allocator;
    if (allocate) allocator.emplace(callers.emplace(allocate, user));
    const OutputAllocator* memory = allocator ? &*allocator : nullptr;
    if (!options && !dumping() && !profiling())
      single.run(from.all(), to.all(), memory);
    else
      single.run(from.all(), to.all(), memory, RunSetup(single.module(), options).options());
    if (callers) callers->hand_over_texts();
    for (size_t i = 0; i < output_count; ++i)
      if (outputs[i].dtype.code == CAIRN_LIST) outputs[i].data = new CairnList{std::move(*to[i].object)};
  });
}

CairnStatus cairn_list_create(const CairnTensor* elements, size_t count, CairnList** list) {
  return guarded([&] {
    require(list, "list");
    *list = nullptr;
    const Inputs read_elements(elements, count);
    auto made = std::make_unique<CairnList>();
    made->value.list = std::make_shared<List>();
    List& own = *made->value.list;
    for (size_t i = 0; i < count; ++i) {
      const TensorRef& ref = read_elements.refs()[i];
      Tensor element = Tensor::view(ref.dtype, {ref.dims.begin(), ref.dims.end()}, ref.data, nullptr).owned();
      if (i > 0 && own.element.dtype != element.dtype())
        fail(ErrorKind::invalid_argument, fmt::format("element {}", i), "is {}, those before it are {}",
             to_string(element.dtype()), to_string(own.element.dtype));
      own.element = i == 0 ? element.type() : join(own.element, element.type());
      own.elements.push_back(std::move(element));
    }
    *list = made.release();
  });
}

void cairn_list_free(CairnList* list) { delete list; }

size_t cairn_list_size(const CairnList* list) {
  return list && list->value.list ? list->value.list->elements.size() : 0;
}

CairnStatus cairn_list_element(const CairnList* list, size_t index, CairnTensor* element) {
  return guarded([&] {
    require(list, "list");
    require(element, "element");
    if (index >= cairn_list_size(list))
      fail(ErrorKind::invalid_argument, "index", "is {}, the list has {} elements", index, cairn_list_size(list));
    const auto& shared = list->value.list->elements[index];
    if (!shared) fail(ErrorKind::not_found, fmt::format("element {}", index), "was never set");
    if (shared->dtype() == kString) fail(ErrorKind::unsupported, fmt::format("element {}", index), "is text");
    *element = {const_cast<void*>(shared->data()),
                {1, 0},
                static_cast<int32_t>(shared->rank()),
                to_c(shared->dtype()),
                const_cast<int64_t*>(shared->dims().data()),
                nullptr,
                0};
  });
}
