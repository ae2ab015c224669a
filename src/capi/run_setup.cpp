#include "capi/run_setup.h"

#include <time.h>
#include <algorithm>

#include <utility>

namespace cairn::capi {

namespace {

int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

/// Name and script line of the step's source node, as in error messages: of the product or convolution in it, else of the first.
std::string place_of(const Module& module, const PlannedStep& step) {
  if (step.control) return where(module, *step.control);
  const auto& nodes = step.group.nodes;
  if (nodes.empty()) return step.kernel;
  const auto product =
      std::find_if(nodes.begin(), nodes.end(), [](const Node* node) { return node->op->has(kContraction); });
  return where(module, product == nodes.end() ? *nodes.front() : **product);
}

}  // namespace

void Watcher::step_begins(const Plan&, size_t, void* const*) { begins_.push_back(now()); }

void Watcher::step_ends(const Plan& plan, size_t index, void* const* buffers) {
  int64_t end = now();
  int64_t begin = begins_.back();
  begins_.pop_back();
  const PlannedStep& step = plan.steps[index];
  std::vector<CairnTensor> outputs;
  std::vector<Dims> dims;
  dims.reserve(step.outputs.size());
  for (size_t buffer : step.outputs) outputs.push_back(tensor(plan.buffers[buffer], buffers[buffer], dims));
  std::string place = place_of(module_, step);
  CairnStep told{sizeof told, index,           step.kernel.c_str(), place.c_str(),  begin,
                 end,         step.cost.flops, step.cost.bytes,     outputs.data(), outputs.size()};
  observe_(user_, &told);
}

/// A plain host buffer as CairnTensor; host objects and buffers in other memory have no data.
CairnTensor Watcher::tensor(const Buffer& buffer, void* data, std::vector<Dims>& dims) {
  CairnTensor out{};
  out.device.type = 1;
  if (!buffer.value || buffer.kind == Buffer::Kind::object || !buffer.value->type.is_static() ||
      !buffer.space->is_host())
    return out;
  dims.push_back(buffer.value->type.shape.sizes());
  out.data = data;
  out.dtype = to_c(buffer.value->type.dtype);
  out.ndim = static_cast<int32_t>(dims.back().size());
  out.shape = dims.back().data();
  return out;
}

Executor& Lent::executor(const CairnRunOptions& options) {
  std::swap(mine_, kept());
  const bool known = mine_.executor && mine_.schedule == options.schedule && mine_.host == options.host &&
                     mine_.width == options.width;
  if (!known)
    mine_ = {options.schedule, options.host, options.width,
             make_lent_executor(options.host, options.schedule, options.width)};
  return *mine_.executor;
}

Lent::~Lent() {
  if (mine_.executor) kept() = std::move(mine_);
}

Lent::Entry& Lent::kept() {
  thread_local Entry last;
  return last;
}

RunSetup::RunSetup(const Module& module, const CairnRunOptions* given) {
  const CairnRunOptions options = checked(given, "options");
  if (options.schedule) {
    if (options.width < 1 || options.width > 256)
      fail(ErrorKind::invalid_argument, "width", "is {}, expected 1 to 256", options.width);
    options_.executor = &lent_.executor(options);
  } else if (options.width == 1) {
    options_.executor = &serial_executor();
  }
  if (options.observe) options_.observer = &watcher_.emplace(module, options.observe, options.observe_user);
  if (options.cancel) options_.cancel = &options.cancel->flag;
  question_ = {options.interrupted, options.interrupted_user};
  if (question_.asked) interruption_.emplace(StopRequest{.interrupted = &Question::ask, .user = &question_});
  options_.observer = watch_.emplace(module, options.step, options_.observer).observer();
}

}  // namespace cairn::capi
