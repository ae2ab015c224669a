#include "engine.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "report.h"

namespace cairn_tf {

namespace {

constexpr size_t kMostEntries = 24;      // codes of one program, if their bytes allow
constexpr double kMostReference = 0.05;  // of the work that open sizes may add to the reference engine's
constexpr std::chrono::milliseconds kBetweenQuestions{50};
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
         one("cairn_cluster_operators", found.cluster_operators) &&
         one("cairn_module_from_cluster", found.module_from_cluster) && one("cairn_module_free", found.module_free) &&
         one("cairn_model_prepare", found.model_prepare) && one("cairn_model_free", found.model_free) &&
         one("cairn_model_input_count", found.model_input_count) && one("cairn_model_input", found.model_input) &&
         one("cairn_model_input_use", found.model_input_use) &&
         one("cairn_model_first_random_state", found.model_first_random_state) &&
         one("cairn_model_memory", found.model_memory) && one("cairn_model_planning", found.model_planning) &&
         one("cairn_watching", found.watching) && one("cairn_model_plan", found.model_plan) &&
         one("cairn_model_run", found.model_run) && one("cairn_limit_begin", found.limit_begin) &&
         one("cairn_limit_end", found.limit_end);
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

std::string size_name(int like) { return "\"s" + std::to_string(like) + "\""; }

/// The work of the steps that a plan leaves to the reference engine and `other` does not, of all its work.
double more_reference(const nlohmann::json& plan, const nlohmann::json& other) {
  const auto reference = [](const nlohmann::json& step) {
    const auto kernel = step["kernel"].get<std::string>();
    return kernel.rfind("reference/", 0) == 0 ? kernel : "";
  };
  std::multiset<std::string> known;
  for (const auto& step : other["steps"]) known.insert(reference(step));
  double more = 0, all = 1;
  for (const auto& step : plan["steps"]) {
    const double work = step["flops"].get<double>() + step["bytes"].get<double>();
    all += work;
    const std::string kernel = reference(step);
    if (kernel.empty()) continue;
    if (auto found = known.find(kernel); found != known.end())
      known.erase(found);
    else
      more += work;
  }
  return more / all;
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

Compiled::Compiled(const Library& library, CairnModel* model, std::vector<ToldByDims> told)
    : library_(library), model_(model), told_(std::move(told)) {
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

void Compiled::tell_values(CairnTensor* arguments, std::vector<int64_t>& dims) const {
  size_t room = 0;
  for (const ToldByDims& told : told_) room += 1 + told.elements.size();
  dims.resize(room);
  int64_t* next = dims.data();
  for (const ToldByDims& told : told_) {
    CairnTensor& argument = arguments[told.argument];
    int64_t* shape = next;
    *next++ = 0;
    for (int64_t i : told.elements) *next++ = value_at(argument, i);
    argument.shape = shape;
    argument.ndim = static_cast<int32_t>(next - shape);
  }
}

bool Program::Entry::fits(const Sizes& other) const {
  if (like.empty()) return other == sizes;
  if (other.size() != sizes.size()) return false;
  for (size_t i = 0; i < other.size(); ++i)
    if (like[i] < 0 ? other[i] != sizes[i] : other[i] < 0 || other[i] != other[static_cast<size_t>(like[i])])
      return false;
  return true;
}

bool Program::Entry::widen(const Sizes& other, const std::vector<bool>& may_vary) {
  if (other.size() != sizes.size()) return false;
  like.resize(sizes.size(), -1);
  std::map<std::tuple<int, int64_t, int64_t>, int> first;  // of those that were equal and are equal
  for (size_t i = 0; i < other.size(); ++i) {
    if (like[i] < 0 && other[i] == sizes[i]) continue;
    if (!may_vary[i] || other[i] < 0 || sizes[i] < 0) return false;
    like[i] = first.try_emplace({like[i], like[i] < 0 ? sizes[i] : 0, other[i]}, static_cast<int>(i)).first->second;
  }
  return true;
}

void Program::read_sizes(const Call& call) const {
  call.sizes.clear();
  for (size_t i = 0; i < call.count; ++i) {
    const CairnTensor& argument = call.arguments[i];
    call.sizes.push_back(argument.ndim);
    call.sizes.insert(call.sizes.end(), argument.shape, argument.shape + argument.ndim);
  }
  for (int i : source_.fixed)
    if (is_fixed(call.arguments[i]))
      for (int64_t k = 0; k < count_of(call.arguments[i]); ++k) call.sizes.push_back(value_at(call.arguments[i], k));
}

std::vector<bool> Program::may_vary(const Call& call) const {
  std::vector<bool> may, values;
  for (size_t i = 0; i < call.count; ++i) {
    const CairnTensor& argument = call.arguments[i];
    const auto among = [i](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), static_cast<int>(i)) != list.end();
    };
    const bool fixed = among(source_.fixed) && is_fixed(argument);
    may.push_back(false);
    may.insert(may.end(), static_cast<size_t>(argument.ndim), !fixed && !among(source_.frozen));
  }
  for (int i : source_.fixed)
    if (is_fixed(call.arguments[i]))
      values.insert(values.end(), static_cast<size_t>(count_of(call.arguments[i])), call.arguments[i].ndim < 2);
  may.insert(may.end(), values.begin(), values.end());
  return may;
}

std::string Program::import_options(const Call& call, const Entry& entry, std::vector<ToldByDims>& told) const {
  size_t at = 0;
  const auto next = [&] {
    const size_t i = at++;
    const bool open = !entry.like.empty() && entry.like[i] >= 0;
    return open ? size_name(entry.like[i]) : std::to_string(call.sizes[i]);
  };
  std::vector<std::string> shapes(call.count);
  for (std::string& shape : shapes)
    for (int64_t axis = 0, rank = call.sizes[at++]; axis < rank; ++axis) shape += (axis ? "," : "") + next();
  std::string values;
  for (int i : source_.fixed) {
    const CairnTensor& argument = call.arguments[i];
    if (!is_fixed(argument)) continue;
    ToldByDims open{static_cast<size_t>(i), {}};
    std::string list, names = "0";
    for (int64_t k = 0; k < count_of(argument); ++k) {
      const std::string value = next();
      list += (k ? "," : "") + value;
      if (value[0] != '"') continue;
      open.elements.push_back(k);
      names += "," + value;
    }
    const bool bare = !open.elements.empty() && argument.ndim == 0;
    values +=
        (values.empty() ? "\"" : ",\"") + argument_name(open.argument) + (bare ? "\":" + list : "\":[" + list + "]");
    if (open.elements.empty()) continue;
    shapes[open.argument] = names;
    told.push_back(std::move(open));
  }
  std::string json = "{\"input_shapes\":{";
  for (size_t i = 0; i < call.count; ++i) json += (i ? ",\"" : "\"") + argument_name(i) + "\":[" + shapes[i] + "]";
  return json + "},\"input_values\":{" + values + "}}";
}

bool Program::find(const Sizes& sizes, int threads, std::shared_ptr<const Compiled>& code, Failure& failure) const {
  std::shared_lock lock(mutex_);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_)
    if (entry.threads == threads && (!found || entry.like.empty()) && entry.fits(sizes)) found = &entry;
  if (!found) return false;
  found->used->store(++uses_, std::memory_order_relaxed);
  code = found->code;
  if (!code) failure = found->failure;
  return true;
}

std::shared_ptr<const Compiled> Program::compiled(const Call& call, int threads, Failure& failure, double& spent) {
  std::shared_ptr<const Compiled> code;
  if (find(call.sizes, threads, code, failure)) return code;
  std::unique_lock one_at_a_time(compiling_, std::defer_lock);
  while (!one_at_a_time.try_lock_for(kBetweenQuestions)) {
    if (!call.ended()) continue;
    failure = {CAIRN_CANCELLED, "", "the step ended while another one compiled its code"};
    return nullptr;
  }
  if (find(call.sizes, threads, code, failure)) return code;
  const Clock clock;
  Entry entry{call.sizes, {}, threads};
  library_.limit_begin(0, nullptr, call.interrupted, call.interrupted_user);
  if (!make_open(call, entry)) compile(call, entry);
  library_.limit_end();
  spent = clock.ns();
  if (!entry.code) failure = entry.failure;
  if (failure.status == CAIRN_CANCELLED) return nullptr;  // a later step compiles
  std::unique_lock lock(mutex_);
  entry.used->store(++uses_, std::memory_order_relaxed);
  if (!entry.like.empty())
    std::erase_if(entries_, [&](const Entry& narrower) {
      return !narrower.like.empty() && narrower.threads == threads && entry.fits(narrower.sizes);
    });
  entries_.push_back(std::move(entry));
  make_room();
  return entries_.back().code;
}

void Program::tell_choices() {
  if (const std::string news = choice_.news(); !news.empty() && report_wanted()) report_new_sizes(name_, news);
  if (const std::string news = doubt_.news(); !news.empty() && report_wanted()) report_in_doubt(name_, news);
}

bool Program::make_open(const Call& call, Entry& entry) {
  if (per_set_) return false;
  const std::vector<bool> vary = may_vary(call);
  bool found = false;
  Entry open;
  for (const Entry& known : entries_) {  // only who holds compiling_ changes them
    if (known.threads != entry.threads || !known.code || (found && known.like.empty())) continue;
    Entry wider{known.sizes, known.like, entry.threads};
    if (!wider.widen(call.sizes, vary)) continue;
    open = std::move(wider);
    found = true;
  }
  if (!found) return false;
  compile(call, open);
  const std::string why = open.code ? why_not_open(open, call) : open.failure.node + ": " + open.failure.message;
  if (call.ended()) return false;  // which says nothing about open sizes
  per_set_ = !why.empty();
  if (report_wanted()) report_open_sizes(name_, compilations_, why);
  if (!per_set_) entry = std::move(open);
  return !per_set_;
}

nlohmann::json Program::plan(const Compiled& code, std::vector<CairnTensor> arguments) const {
  std::vector<int64_t> dims;
  code.tell_values(arguments.data(), dims);
  int64_t three = 3;
  for (size_t i = 0; i < code.random().size(); ++i)
    arguments.push_back({nullptr, {1, 0}, 1, {CAIRN_UINT, 64, 1}, &three, nullptr, 0});
  char* text = nullptr;
  if (library_.model_plan(code.model(), arguments.data(), arguments.size(), &text) != CAIRN_OK) return nullptr;
  auto plan = nlohmann::json::parse(text);
  library_.free_text(text);
  return plan;
}

/// Judged by the code of one set of sizes: what it has fast kernels for, the open one must have too.
std::string Program::why_not_open(const Entry& open, const Call& call) const {
  std::vector<CairnTensor> arguments(call.arguments, call.arguments + call.count);
  const nlohmann::json mine = plan(*open.code, arguments);
  if (mine.is_null()) return last_failure(library_).message;
  for (const Entry& entry : entries_) {
    if (!entry.code || !entry.like.empty() || entry.threads != open.threads || !open.fits(entry.sizes)) continue;
    Sizes sizes = entry.sizes;
    int64_t* at = sizes.data();
    for (CairnTensor& argument : arguments) {
      argument.ndim = static_cast<int32_t>(*at++);
      argument.shape = at;
      at += argument.ndim;
    }
    const nlohmann::json fixed = plan(*entry.code, arguments);
    if (fixed.is_null()) return {};
    if (fixed["complete"] && !mine["complete"]) return "operators follow on sizes that only a run tells";
    const double more = more_reference(mine, fixed);
    return more > kMostReference ? "open sizes leave " + std::to_string(more) + " of the work to the reference engine"
                                 : "";
  }
  return {};
}

// All codes of a program together may keep what the engine allows one model; the one used longest ago goes first.
void Program::make_room() {
  const auto bytes_and_most = [&] {
    std::pair<size_t, size_t> sum{0, SIZE_MAX};
    for (const Entry& entry : entries_)
      if (entry.code) sum.first += entry.code->bytes(sum.second);
    return sum;
  };
  for (auto [bytes, most] = bytes_and_most(); entries_.size() > 1 && (bytes > most || entries_.size() > kMostEntries);
       std::tie(bytes, most) = bytes_and_most())
    entries_.erase(std::min_element(entries_.begin(), entries_.end() - 1,
                                    [](const Entry& a, const Entry& b) { return *a.used < *b.used; }));
}

void Program::compile(const Call& call, Entry& entry) {
  ++compilations_;
  CairnModule* module = nullptr;
  std::vector<ToldByDims> told;
  std::string options = import_options(call, entry, told);
  std::vector<std::string> names;
  std::vector<const char*> frozen;
  std::vector<CairnTensor> contents;
  for (int i : source_.frozen) {
    names.push_back(argument_name(static_cast<size_t>(i)));
    contents.push_back(call.arguments[i]);
  }
  for (const std::string& each : names) frozen.push_back(each.c_str());
  if (library_.module_from_cluster(name_.c_str(), source_.graph.data(), source_.graph.size(), options.c_str(),
                                   frozen.data(), contents.data(), contents.size(), &module) != CAIRN_OK) {
    entry.failure = last_failure(library_);
    return;
  }
  CairnModelOptions model_options{};
  model_options.struct_size = sizeof model_options;
  model_options.threads = entry.threads;
  model_options.lent_threads = 1;
  model_options.bind_state = 1;
  model_options.precision_mode = source_.precision_mode.c_str();
  model_options.mixed_lists = source_.mixed_lists.c_str();
  model_options.custom_types = source_.custom_types.c_str();
  model_options.keep_types = source_.keep_types.c_str();
  model_options.deterministic = source_.deterministic;
  CairnModel* model = nullptr;
  if (library_.model_prepare(module, &model_options, &model) != CAIRN_OK) entry.failure = last_failure(library_);
  library_.module_free(module);
  if (model) entry.code = std::make_shared<const Compiled>(library_, model, std::move(told));
}

std::shared_ptr<Program> program(const Library& library, const std::string& name, const Source& source, Rules rules) {
  static std::mutex mutex;
  static std::map<Source, std::weak_ptr<Program>> programs;
  static std::deque<std::shared_ptr<Program>> latest;
  if (!source.frozen.empty()) return std::make_shared<Program>(library, name, source, rules);
  std::lock_guard lock(mutex);
  auto& entry = programs[source];
  auto found = entry.lock();
  if (!found) entry = found = std::make_shared<Program>(library, name, source, rules);
  std::erase(latest, found);
  latest.push_back(found);
  if (latest.size() > kMostPrograms) latest.pop_front();
  if (programs.size() > 4 * kMostPrograms)
    std::erase_if(programs, [](const auto& each) { return each.second.expired(); });
  return found;
}

}  // namespace cairn_tf
