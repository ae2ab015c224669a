#include "capi/handles.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "capi/options.h"
#include "passes/pipeline.h"
#include "passes/widen.h"
#include "support/fault.h"
#include "support/options.h"
#include "support/report.h"

namespace cairn::capi {

namespace {

struct Failure {
  CairnStatus status = CAIRN_OK;
  std::string where, message, report;
};
thread_local Failure last_failure;

constexpr std::pair<DType::Kind, CairnTypeCode> kCodes[] = {
    {DType::Kind::signed_int, CAIRN_INT},        {DType::Kind::unsigned_int, CAIRN_UINT},
    {DType::Kind::ieee_float, CAIRN_FLOAT},      {DType::Kind::brain_float, CAIRN_BFLOAT},
    {DType::Kind::complex_float, CAIRN_COMPLEX}, {DType::Kind::boolean, CAIRN_BOOL}};
constexpr CairnDType kText{CAIRN_TEXT, 8 * sizeof(CairnText), 1};

CairnStatus status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument: return CAIRN_INVALID_ARGUMENT;
    case ErrorKind::invalid_model: return CAIRN_INVALID_MODEL;
    case ErrorKind::unsupported: return CAIRN_UNSUPPORTED;
    case ErrorKind::not_found: return CAIRN_NOT_FOUND;
    case ErrorKind::io: return CAIRN_IO;
    case ErrorKind::out_of_memory: return CAIRN_OUT_OF_MEMORY;
    case ErrorKind::cancelled: return CAIRN_CANCELLED;
  }
  return CAIRN_INTERNAL;
}

bool row_major(const CairnTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t expected = 1;
  for (int32_t axis = tensor.ndim; axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

/// Copies the elements along an axis and all inner axes to row-major memory.
void gather(const CairnTensor& tensor, size_t size, int32_t axis, const char* from, char*& to) {
  if (axis == tensor.ndim) {
    std::memcpy(to, from, size);
    to += size;
    return;
  }
  for (int64_t i = 0; i < tensor.shape[axis]; ++i)
    gather(tensor, size, axis + 1, from + i * tensor.strides[axis] * static_cast<int64_t>(size), to);
}

/// The number of elements, or nothing for an impossible shape; does not allocate.
std::optional<int64_t> count_of(const CairnTensor& tensor) {
  __int128 count = 1;
  bool empty = false;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
    if (tensor.shape[axis] < 0) return std::nullopt;
    if (tensor.shape[axis] == 0)
      empty = true;
    else if ((count *= tensor.shape[axis]) > (int64_t{1} << 58))
      return std::nullopt;
  }
  return empty ? 0 : static_cast<int64_t>(count);
}

/// CairnText elements converted to std::string.
Tensor own_texts(const CairnTensor& tensor, std::span<const int64_t> dims, const char* data, size_t index) {
  Tensor texts = Tensor::zeros(kString, {dims.begin(), dims.end()});
  std::vector<CairnText> given(static_cast<size_t>(texts.count()));
  char* to = reinterpret_cast<char*>(given.data());
  if (row_major(tensor) && !given.empty())
    std::memcpy(to, data, given.size() * sizeof(CairnText));
  else if (!given.empty())
    gather(tensor, sizeof(CairnText), 0, data, to);
  auto own = texts.mutable_values<std::string>();
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].size > 0 && !given[i].data)
      fail(ErrorKind::invalid_argument, fmt::format("input {}", index), "has a text without data");
    own[i].assign(given[i].data ? given[i].data : "", given[i].size);
  }
  return texts;
}

TensorRef read_tensor(const CairnTensor& tensor, size_t index, Tensor& copy) {
  auto refuse = [&](ErrorKind kind, const std::string& message) {
    throw Error(kind, fmt::format("input {}", index), message);
  };
  if (tensor.device.type != 1 && tensor.device.type != 0)
    refuse(ErrorKind::unsupported, fmt::format("is on device {}, expected the CPU", tensor.device.type));
  if (tensor.ndim < 0 || tensor.ndim > 64 || (tensor.ndim > 0 && !tensor.shape))
    refuse(ErrorKind::invalid_argument, fmt::format("has {} dimensions, or no shape", tensor.ndim));
  DType dtype = from_c(tensor.dtype);
  auto count = count_of(tensor);
  if (!count) refuse(ErrorKind::invalid_argument, "has impossible dimensions");
  if (*count > 0 && !tensor.data) refuse(ErrorKind::invalid_argument, "has no data");
  alignas(64) static const char kNothing[64] = {};  // for a tensor without elements, whose data may be NULL
  const char* data = tensor.data ? static_cast<const char*>(tensor.data) + tensor.byte_offset : kNothing;
  std::span<const int64_t> dims(tensor.shape, static_cast<size_t>(tensor.ndim));
  if (dtype == kString) {
    copy = own_texts(tensor, dims, data, index);
    return {dtype, dims, copy.data()};
  }
  if (*count == 0 || row_major(tensor)) return {dtype, dims, data};
  if (dtype.bits < 8) refuse(ErrorKind::unsupported, "is a view with strides of a type narrower than a byte");
  copy = Tensor::uninitialized(dtype, {dims.begin(), dims.end()});
  char* to = static_cast<char*>(copy.mutable_data());
  gather(tensor, dtype.size(), 0, data, to);
  return {dtype, dims, copy.data()};
}

}  // namespace

Tensor texts_from_c(const CairnTensor& tensor, size_t index) {
  Tensor texts;
  read_tensor(tensor, index, texts);
  return texts;
}

CairnStatus remember(CairnStatus status, std::string where, std::string message, std::string report) {
  last_failure = {status, std::move(where), std::move(message), std::move(report)};
  return status;
}

CairnStatus remember_current_exception() {
  try {
    throw;
  } catch (const ReportError& error) {
    return remember(status_of(error.kind()), error.where(), error.message(), error.report().json());
  } catch (const Error& error) {
    return remember(status_of(error.kind()), error.where(), error.message());
  } catch (const std::bad_alloc&) {
    last_failure.status = CAIRN_OUT_OF_MEMORY;
    last_failure.where.clear();
    last_failure.message = "memory ran out";
    last_failure.report.clear();
    return CAIRN_OUT_OF_MEMORY;
  } catch (const std::system_error&) {
    const Error fault = current_fault();
    return remember(status_of(fault.kind()), fault.where(), fault.message());
  } catch (const std::exception& error) {
    return remember(CAIRN_INTERNAL, "", error.what());
  } catch (...) {
    return remember(CAIRN_INTERNAL, "", "unknown exception");
  }
}

char* copy_text(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

CairnDType to_c(DType dtype) {
  if (dtype == kString) return kText;
  for (auto [kind, code] : kCodes)
    if (kind == dtype.kind) return {static_cast<uint8_t>(code), dtype.bits, 1};
  CHECK(false, "kind {}", static_cast<int>(dtype.kind));
  return {};
}

DType from_c(CairnDType given) {
  if (given.code == CAIRN_TEXT && given.bits == kText.bits && given.lanes <= 1) return kString;
  constexpr DType kKnown[] = {kBool, kI8, kI16, kI32, kI64, kU8,  kU16,  kU32,
                              kU64,  kI4, kU4,  kF16, kF32, kF64, kBF16, kC64};
  for (auto [kind, code] : kCodes)
    for (DType dtype : kKnown)
      if (code == given.code && dtype == DType{kind, given.bits} && given.lanes <= 1) return dtype;
  fail(ErrorKind::unsupported, "", "element type code {}, {} bits, {} lanes is not supported", given.code, given.bits,
       given.lanes);
}

namespace {
thread_local std::vector<TensorRef> spare_refs;  // reused by the next call, so that repeated calls do not allocate
thread_local std::vector<Tensor> last_texts;     // text outputs of the last call, which the caller may still read
}  // namespace

Inputs::Inputs(const CairnTensor* tensors, size_t count) : refs_(std::move(spare_refs)) {
  if (count) require(tensors, "inputs");
  refs_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Tensor copy;
    refs_[i] = read_tensor(tensors[i], i, copy);
    if (copy.defined()) copies_.push_back(std::move(copy));
  }
}

Inputs::~Inputs() { spare_refs = std::move(refs_); }

Outputs::Outputs(CairnAllocate allocate, void* user) : allocate_(allocate), user_(user) {
  if (!allocate) fail(ErrorKind::invalid_argument, "allocate", "is NULL");
}

void* Outputs::operator()(size_t index, DType dtype, std::span<const int64_t> dims) {
  void* data = allocate_(user_, index, to_c(dtype), static_cast<int32_t>(dims.size()), dims.data());
  if (!data) fail(ErrorKind::out_of_memory, fmt::format("output {}", index), "has no memory from the caller");
  if (dtype != kString) return data;
  texts_.push_back({Tensor::zeros(kString, {dims.begin(), dims.end()}), static_cast<CairnText*>(data)});
  return texts_.back().own.mutable_data();
}

void Outputs::hand_over_texts() {
  last_texts.clear();
  for (const Texts& each : texts_) {
    CairnText* to = each.callers;
    for (const std::string& text : each.own.values<std::string>()) *to++ = {text.data(), text.size()};
    last_texts.push_back(each.own);
  }
}

namespace {

/// The names in an environment variable that sets a default for all models of the process (for experiments).
std::vector<std::string> list_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text ? split_list(text, ',') : std::vector<std::string>{};
}

/// CAIRN_TRUTH=f64: every model computes in float64 on the reference engine, as a reference for rounding errors.
bool in_float64() {
  const char* text = std::getenv("CAIRN_TRUTH");
  if (!text || !*text) return false;
  if (std::string_view(text) != "f64") fail(ErrorKind::invalid_argument, "CAIRN_TRUTH", "is {}, expected f64", text);
  return true;
}

std::vector<std::string> disabled_passes() {
  constexpr const char* kVariable = "CAIRN_DISABLE";
  if (in_float64()) return {"ALL"};
  std::vector<std::string> names = list_in(kVariable);
  if (names.empty()) return names;
  const std::vector<PassInfo> known = list_passes();
  for (const std::string& name : names)
    if (name != "ALL" && std::none_of(known.begin(), known.end(),
                                      [&](const PassInfo& pass) { return pass.name == name || pass.platform == name; }))
      fail(ErrorKind::not_found, kVariable, "no pass is called {}", name);
  return names;
}

}  // namespace

ModelOptions model_options(const CairnModelOptions* given) {
  CairnModelOptions known = checked(given, "options");
  ModelOptions options;
  options.disabled_passes = disabled_passes();
  options.threads = known.threads;
  if (known.threads < 0 || known.threads > 1024)
    fail(ErrorKind::invalid_argument, "threads", "is {}, expected 0 to 1024", known.threads);
  options.engines = known.engines ? split_list(known.engines, ',') : list_in("CAIRN_ENGINES");
  if (in_float64()) options.engines = {"reference"};
  options.optimise = !known.keep_graph;
  options.bind_state = known.bind_state != 0;
  options.deterministic = known.deterministic != 0;
  options.plan_bytes = static_cast<size_t>(known.plan_memory);
  // Plans are made for the executor's width. This executor is never run: each run passes its own.
  if (known.lent_threads) options.pool = make_lent_executor(nullptr, nullptr, std::max(known.threads, 1));
  return options;
}

void apply_precision(const CairnModelOptions* given, Module& module) {
  CairnModelOptions known = checked(given, "options");
  if (in_float64()) return widen_floats(module, false);
  auto text = [](const char* given_text) { return std::string(given_text ? given_text : ""); };
  std::vector<std::string> keep;
  if (known.keep_types && *known.keep_types) {
    const Json names = Json::parse(known.keep_types, nullptr, false);
    keep = texts(names, "keep_types");
  }
  const PrecisionOptions precision =
      read_precision(text(known.precision_mode), text(known.mixed_lists), std::move(keep), text(known.custom_types));
  if (precision.mode == PrecisionMode::keep && precision.custom.empty()) return;
  optimise(module, {.disabled = disabled_passes()});
  set_precision(module, precision);
}

}  // namespace cairn::capi

using cairn::capi::last_failure;

void cairn_last_error(CairnError* error) {
  if (!error) return;
  CairnError value{error->struct_size, last_failure.status, last_failure.where.c_str(), last_failure.message.c_str(),
                   last_failure.report.c_str()};
  std::memcpy(error, &value, std::min<size_t>(error->struct_size, sizeof value));
}

void cairn_free_text(char* text) { std::free(text); }
const char* cairn_version() { return CAIRN_VERSION; }
uint32_t cairn_abi_version() { return CAIRN_ABI_VERSION; }
