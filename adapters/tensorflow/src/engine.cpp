#include "engine.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <tuple>

namespace cairn_tf {

namespace {

constexpr size_t kMostShapes = 24;    // compiled sets of shapes of one program, if their bytes allow
constexpr size_t kMostPrograms = 16;  // kept without a user, for a session like the last one

template <class Function>
bool look_up(void* handle, const char* name, Function& function, std::string& why) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (!function)
    why = std::string("libcairn.so has no function ") + name + "; install the cairn package of this adapter's version";
  return function != nullptr;
}

std::string library_path() {
  if (const char* given = std::getenv("CAIRN_LIBRARY"); given && *given) return given;
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&argument_name), &self);
  std::string path = self.dli_fname ? self.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1) + "../cairn/libcairn.so";
}

bool load(Library& found, std::string& why) {
  const std::string path = library_path();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    why =
        std::string("the engine cannot be loaded: ") + dlerror() + "; install the package cairn, or set CAIRN_LIBRARY";
    return false;
  }
  auto one = [&](const char* name, auto& function) { return look_up(handle, name, function, why); };
  if (!one("cairn_abi_version", found.abi_version)) return false;
  if (found.abi_version() != CAIRN_ABI_VERSION) {
    why = "the engine " + path + " has interface version " + std::to_string(found.abi_version()) + ", expected " +
          std::to_string(CAIRN_ABI_VERSION);
    return false;
  }
  return one("cairn_version", found.version) && one("cairn_last_error", found.last_error) &&
         one("cairn_free_text", found.free_text) && one("cairn_cluster_refusals", found.cluster_refusals) &&
         one("cairn_module_from_cluster", found.module_from_cluster) && one("cairn_module_free", found.module_free) &&
         one("cairn_model_prepare", found.model_prepare) && one("cairn_model_free", found.model_free) &&
         one("cairn_model_input_count", found.model_input_count) && one("cairn_model_input", found.model_input) &&
         one("cairn_model_input_use", found.model_input_use) &&
         one("cairn_model_first_random_state", found.model_first_random_state) &&
         one("cairn_model_memory", found.model_memory) && one("cairn_model_run", found.model_run);
}

bool same_shapes(const std::vector<int64_t>& shapes, const CairnTensor* arguments, size_t count) {
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const CairnTensor& tensor = arguments[i];
    if (at >= shapes.size() || shapes[at++] != tensor.ndim) return false;
    for (int32_t axis = 0; axis < tensor.ndim; ++axis)
      if (shapes[at++] != tensor.shape[axis]) return false;
  }
  return at == shapes.size();
}

constexpr int64_t kMostFixed = 16;  // elements of an argument whose value the code holds

int64_t count_of(const CairnTensor& tensor) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) count *= tensor.shape[axis];
  return count;
}

/// Whether the value goes into the code: a few integers.
bool is_fixed(const CairnTensor& tensor) {
  const bool integers = tensor.dtype.code == CAIRN_INT && (tensor.dtype.bits == 32 || tensor.dtype.bits == 64);
  return integers && tensor.data != nullptr && count_of(tensor) <= kMostFixed;
}

int64_t value_at(const CairnTensor& tensor, int64_t i) {
  const char* data = static_cast<const char*>(tensor.data) + tensor.byte_offset;
  return tensor.dtype.bits == 32 ? reinterpret_cast<const int32_t*>(data)[i]
                                 : reinterpret_cast<const int64_t*>(data)[i];
}

}  // namespace

std::string argument_name(size_t index) { return "__argument_" + std::to_string(index); }

const Library* library(std::string& why) {
  struct Loaded {
    Library library;
    std::string why;
    bool ok = load(library, why);
  };
  static const Loaded loaded;
  why = loaded.why;
  return loaded.ok ? &loaded.library : nullptr;
}

Failure last_failure(const Library& library) {
  CairnError error{};
  error.struct_size = sizeof error;
  library.last_error(&error);
  Failure failure{error.status, error.where, error.message, error.report ? error.report : ""};
  return failure;
}

Compiled::Compiled(const Library& library, CairnModel* model) : library_(library), model_(model) {
  for (size_t i = 0; i < library.model_input_count(model); ++i) {
    if (!(library.model_input_use(model, i) & CAIRN_INPUT_RANDOM)) continue;
    CairnPort port{};
    port.struct_size = sizeof port;
    library.model_input(model, i, &port);
    Random random{port.name, false, {}};
    random.seeded = library.model_first_random_state(model, i, random.first) == CAIRN_OK;
    random_.push_back(std::move(random));
  }
}

Compiled::~Compiled() { library_.model_free(model_); }

bool Program::same_values(const std::vector<int64_t>& values, const CairnTensor* arguments) const {
  size_t at = 0;
  for (int i : source_.fixed)
    if (is_fixed(arguments[i]))
      for (int64_t k = 0; k < count_of(arguments[i]); ++k)
        if (at >= values.size() || values[at++] != value_at(arguments[i], k)) return false;
  return at == values.size();
}

std::string Program::import_options(const CairnTensor* arguments, size_t count) const {
  std::string json = "{\"input_shapes\":{";
  for (size_t i = 0; i < count; ++i) {
    json += (i ? ",\"" : "\"") + argument_name(i) + "\":[";
    for (int32_t axis = 0; axis < arguments[i].ndim; ++axis)
      json += (axis ? "," : "") + std::to_string(arguments[i].shape[axis]);
    json += "]";
  }
  json += "},\"input_values\":{";
  bool first = true;
  for (int i : source_.fixed) {
    if (!is_fixed(arguments[i])) continue;
    json += (first ? "\"" : ",\"") + argument_name(static_cast<size_t>(i)) + "\":[";
    for (int64_t k = 0; k < count_of(arguments[i]); ++k)
      json += (k ? "," : "") + std::to_string(value_at(arguments[i], k));
    json += "]";
    first = false;
  }
  return json + "}}";
}

bool Program::find(const CairnTensor* arguments, size_t count, int threads, std::shared_ptr<const Compiled>& code,
                   Failure& failure) const {
  std::shared_lock lock(mutex_);
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->threads != threads || !same_shapes(entry->shapes, arguments, count) ||
        !same_values(entry->values, arguments))
      continue;
    entry->used->store(++uses_, std::memory_order_relaxed);
    code = entry->code;
    if (!code) failure = entry->failure;
    return true;
  }
  return false;
}

std::shared_ptr<const Compiled> Program::compiled(const CairnTensor* arguments, size_t count, int threads,
                                                  Failure& failure) {
  std::shared_ptr<const Compiled> code;
  if (find(arguments, count, threads, code, failure)) return code;
  std::lock_guard one_at_a_time(compiling_);
  if (find(arguments, count, threads, code, failure)) return code;
  code = compile(arguments, count, threads, failure);
  Entry entry{{}, {}, threads, code, failure};
  for (size_t i = 0; i < count; ++i) {
    entry.shapes.push_back(arguments[i].ndim);
    entry.shapes.insert(entry.shapes.end(), arguments[i].shape, arguments[i].shape + arguments[i].ndim);
  }
  for (int i : source_.fixed)
    if (is_fixed(arguments[i]))
      for (int64_t k = 0; k < count_of(arguments[i]); ++k) entry.values.push_back(value_at(arguments[i], k));
  std::unique_lock lock(mutex_);
  entry.used->store(++uses_, std::memory_order_relaxed);
  entries_.push_back(std::move(entry));
  make_room();
  return code;
}

// All codes of a program together may keep what the engine allows one model; the one used longest ago goes first.
void Program::make_room() {
  const auto bytes_and_most = [&] {
    std::pair<size_t, size_t> sum{0, SIZE_MAX};
    for (const Entry& entry : entries_)
      if (entry.code) sum.first += entry.code->bytes(sum.second);
    return sum;
  };
  for (auto [bytes, most] = bytes_and_most(); entries_.size() > 1 && (bytes > most || entries_.size() > kMostShapes);
       std::tie(bytes, most) = bytes_and_most())
    entries_.erase(std::min_element(entries_.begin(), entries_.end() - 1,
                                    [](const Entry& a, const Entry& b) { return *a.used < *b.used; }));
}
std::shared_ptr<const Compiled> Program::compile(const CairnTensor* arguments, size_t count, int threads,
                                                 Failure& failure) const {
  CairnModule* module = nullptr;
  std::string options = import_options(arguments, count);
  std::vector<std::string> names;
  std::vector<const char*> frozen;
  std::vector<CairnTensor> contents;
  for (int i : source_.frozen) {
    names.push_back(argument_name(static_cast<size_t>(i)));
    contents.push_back(arguments[i]);
  }
  for (const std::string& each : names) frozen.push_back(each.c_str());
  if (library_.module_from_cluster(name_.c_str(), source_.graph.data(), source_.graph.size(), options.c_str(),
                                   frozen.data(), contents.data(), contents.size(), &module) != CAIRN_OK) {
    failure = last_failure(library_);
    return nullptr;
  }
  CairnModelOptions model_options{};
  model_options.struct_size = sizeof model_options;
  model_options.threads = threads;
  model_options.lent_threads = 1;
  model_options.bind_state = 1;
  model_options.precision_mode = source_.precision_mode.c_str();
  model_options.mixed_lists = source_.mixed_lists.c_str();
  model_options.custom_types = source_.custom_types.c_str();
  model_options.keep_types = source_.keep_types.c_str();
  CairnModel* model = nullptr;
  if (library_.model_prepare(module, &model_options, &model) != CAIRN_OK) failure = last_failure(library_);
  library_.module_free(module);
  return model ? std::make_shared<const Compiled>(library_, model) : nullptr;
}

std::shared_ptr<Program> program(const Library& library, const std::string& name, const Source& source) {
  static std::mutex mutex;
  static std::map<Source, std::weak_ptr<Program>> programs;
  static std::deque<std::shared_ptr<Program>> latest;
  if (!source.frozen.empty()) return std::make_shared<Program>(library, name, source);
  std::lock_guard lock(mutex);
  auto& entry = programs[source];
  auto found = entry.lock();
  if (!found) entry = found = std::make_shared<Program>(library, name, source);
  std::erase(latest, found);
  latest.push_back(found);
  if (latest.size() > kMostPrograms) latest.pop_front();
  if (programs.size() > 4 * kMostPrograms)
    std::erase_if(programs, [](const auto& each) { return each.second.expired(); });
  return found;
}

}  // namespace cairn_tf
