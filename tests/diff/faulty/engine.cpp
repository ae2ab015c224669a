// An engine with a fault, for tests alone: libcairn.so with a cairn_model_run that spoils what one operator makes. The
// adapter loads it when CAIRN_LIBRARY names it; all other functions are those of the library behind it.
// CAIRN_FAULT is kind@node@run or kind@node@run@pass: from that run (0: the first) of a model that has the node. With a pass it
// is there while CAIRN_DISABLE does not leave out the pass, as if the pass were wrong; without one it is the fast engine's.
#include <cairn/cairn.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Fault {
  std::string kind, node, pass;
  int64_t from = 0;
  bool disabled = false;
};

bool is_disabled(const std::string& pass) {
  const char* given = std::getenv("CAIRN_DISABLE");
  const std::string list = std::string(",") + (given ? given : "") + ",";
  return list == ",ALL," || list.find("," + pass + ",") != std::string::npos;
}

const Fault& fault() {
  static const Fault parsed = [] {
    const char* given = std::getenv("CAIRN_FAULT");
    std::string text = given ? given : "";
    std::replace(text.begin(), text.end(), '@', ' ');
    std::istringstream words(text);
    Fault read;
    words >> read.kind >> read.node >> read.from >> read.pass;
    read.disabled = !read.pass.empty() && is_disabled(read.pass);
    return read;
  }();
  return parsed;
}

int64_t count_of(const CairnTensor& tensor) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) count *= tensor.shape[axis];
  return count;
}

void transpose(float* values, int64_t rows, int64_t columns) {
  std::vector<float> old(values, values + rows * columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) values[c * rows + r] = old[static_cast<size_t>(r * columns + c)];
}

void spoil(const std::string& kind, float* values, const CairnTensor& tensor) {
  int64_t count = count_of(tensor);
  auto each = [&](auto&& change) { std::transform(values, values + count, values, change); };
  if (kind == "scale") each([](float v) { return 2 * v; });
  if (kind == "bias") each([](float v) { return v + 0.1f; });
  if (kind == "element") values[count / 2] += 3;
  if (kind == "nan") values[0] = NAN;
  if (kind == "epsilon") each([](float v) { return 0.97f * v; });
  if (kind == "fusion") each([](float v) { return v > 0 ? 0.8f * v : 0.2f * (v - 0.1f); });  // another activation
  if (kind == "overflow") *std::max_element(values, values + count) = INFINITY;
  if (kind == "transposed" && tensor.ndim >= 2)
    transpose(values, count / tensor.shape[tensor.ndim - 1], tensor.shape[tensor.ndim - 1]);
}

/// The same of elements of 16 bits.
void spoil_narrow(const std::string& kind, const CairnTensor& tensor) {
  const bool brain = tensor.dtype.code == CAIRN_BFLOAT;
  auto* words = static_cast<uint16_t*>(tensor.data);
  std::vector<float> wide(static_cast<size_t>(count_of(tensor)));
  for (size_t i = 0; i < wide.size(); ++i)
    wide[i] =
        brain ? std::bit_cast<float>(uint32_t{words[i]} << 16) : static_cast<float>(std::bit_cast<_Float16>(words[i]));
  spoil(kind, wide.data(), tensor);
  for (size_t i = 0; i < wide.size(); ++i)
    words[i] = brain ? static_cast<uint16_t>(std::bit_cast<uint32_t>(wide[i]) >> 16)
                     : std::bit_cast<uint16_t>(static_cast<_Float16>(wide[i]));
}

struct Run {
  bool active;
  bool seen = false, spoilt = false;
};

void look(void* user, const CairnStep* step) {
  Run& run = *static_cast<Run*>(user);
  std::string node(step->node);
  node = node.substr(0, node.find(" ("));
  if (node != fault().node) return;
  run.seen = true;
  run.spoilt = !fault().disabled && (!fault().pass.empty() || std::string(step->kernel).rfind("reference", 0) != 0);
  if (!run.active || !run.spoilt || fault().kind == "stale") return;
  for (size_t i = 0; i < step->output_count; ++i) {
    const CairnTensor& made = step->outputs[i];
    if (!made.data || count_of(made) == 0) continue;
    if (made.dtype.code == CAIRN_FLOAT && made.dtype.bits == 32)
      spoil(fault().kind, static_cast<float*>(made.data), made);
    else if (made.dtype.bits == 16 && (made.dtype.code == CAIRN_FLOAT || made.dtype.code == CAIRN_BFLOAT))
      spoil_narrow(fault().kind, made);
  }
}

template <class Function>
Function* behind(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" CAIRN_API CairnStatus cairn_model_run(const CairnModel* model, const CairnTensor* inputs, size_t count,
                                                 CairnAllocate allocate, void* user, const CairnRunOptions* given) {
  static auto* real = behind<decltype(cairn_model_run)>("cairn_model_run");
  static auto* use = behind<decltype(cairn_model_input_use)>("cairn_model_input_use");
  static std::mutex mutex;
  static std::map<const CairnModel*, int64_t> runs;  // of models that have the node
  CairnRunOptions options = *given;
  Run run{false};
  {
    std::lock_guard lock(mutex);
    run.active = runs[model] >= fault().from;
  }
  options.observe = look;
  options.observe_user = &run;
  std::vector<std::pair<void*, std::string>> before;
  if (fault().kind == "stale" && run.active)
    for (size_t i = 0; i < count; ++i)
      if (use(model, i) & CAIRN_INPUT_UPDATED && inputs[i].dtype.code == CAIRN_FLOAT && inputs[i].ndim > 0)
        before.emplace_back(inputs[i].data, std::string(static_cast<const char*>(inputs[i].data),
                                                        static_cast<size_t>(count_of(inputs[i])) * 4));
  CairnStatus status = real(model, inputs, count, allocate, user, &options);
  if (run.spoilt && !before.empty()) std::memcpy(before[0].first, before[0].second.data(), before[0].second.size());
  std::lock_guard lock(mutex);
  runs[model] += run.seen;
  return status;
}
