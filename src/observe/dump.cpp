#include "observe/dump.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

#include "formats/dump_data.h"
#include "formats/names.h"
#include "formats/npy.h"
#include "observe/dump_files.h"
#include "observe/on_in_process.h"
#include "observe/statistics.h"
#include "support/fault.h"

namespace cairn {

namespace observe {

std::atomic<bool> dump_on{false};

namespace {

struct DumpSession : OnInProcess<Dump> {
  std::vector<std::shared_ptr<Dump>> outer;  // dumps suspended by the current one
};

DumpSession& dump_session() {
  static DumpSession* instance = new DumpSession;  // never destroyed: threads may still run models at exit
  return *instance;
}

void tell_missing(Dump& dump) {
  for (const std::string& name : dump.layers_not_seen())
    cairn::note(fmt::format("dump: dump_layer: no operator {} ran", name));
}

void say_at_exit() {
  std::lock_guard lock(dump_session().mutex);
  if (!dumping()) return;
  dump_session().outer.push_back(dump_session().current);
  for (const auto& dump : dump_session().outer) {
    cairn::note(fmt::format("dump: {}", dump->summary()));
    tell_missing(*dump);
  }
  dump_session().outer.pop_back();
}

void after_fork_in_child_of_dump() {
  if (!dump_session().after_fork_in_child()) return;
  auto& outer = dump_session().outer;
  dump_session().inherited.insert(dump_session().inherited.begin(), outer.begin(), outer.end());
  outer.clear();
  dump_on.store(false, std::memory_order_relaxed);
}

}  // namespace
}  // namespace observe

using namespace observe;
using Json = nlohmann::ordered_json;

std::string start_dump(const DumpOptions& options) {
  auto dump = std::make_shared<Dump>(options);
  for (const std::string& note : options.notes) cairn::note(fmt::format("dump: {}", note));
  std::lock_guard lock(dump_session().mutex);
  if (dump_session().current) dump_session().outer.push_back(std::move(dump_session().current));
  dump_session().current = dump;
  dump_on.store(true, std::memory_order_relaxed);
  static bool registered = std::atexit(say_at_exit) == 0 &&
                           pthread_atfork([] { dump_session().before_fork(); }, [] { dump_session().after_fork(); },
                                          after_fork_in_child_of_dump) == 0;
  static_cast<void>(registered);
  return dump->root();
}

std::string stop_dump(bool whole) {
  std::lock_guard lock(dump_session().mutex);
  if (!dumping() && !dump_session().inherited.empty()) return dump_session().inherited.back()->root();
  if (!dumping()) fail(ErrorKind::invalid_argument, "dump", "none is on");
  std::shared_ptr<Dump> ended = std::move(dump_session().current);
  auto& outer = dump_session().outer;
  dump_session().current = outer.empty() ? nullptr : std::move(outer.back());
  if (!outer.empty()) outer.pop_back();
  dump_on.store(dump_session().current != nullptr, std::memory_order_relaxed);
  ended->summary();  // writes what is still buffered
  tell_missing(*ended);
  if (whole && ended->failed()) fail(ErrorKind::io, ended->root(), "the dump is not whole");
  return ended->root();
}

void start_dump_from_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* text = std::getenv("CAIRN_DUMP");
    if (text && *text) start_dump(parse_dump_options(text));
  });
}

struct RunDumper::Item {
  struct Value {
    Tensor tensor;
    bool input;
    ValueName name;

    const char* io() const { return input ? "input" : "output"; }
  };
  Origin origin;
  size_t task;
  std::string kernel;
  std::vector<const Source*> sources;
  std::vector<Value> values;
  std::string folder;
};

RunDumper::RunDumper(const Module& module, int64_t host_step, Observer* next) : module_(module), next_(next) {
  {
    std::lock_guard lock(dump_session().mutex);
    dump_ = dump_session().current;
  }
  if (!dump_) return;
  auto place = dump_->place(module.name, host_step);
  model_folder_ = place.model, step_ = place.step;
  wanted_ = dump_->options.wants_step(step_);
}

RunDumper::~RunDumper() {
  if (!statistics_.empty()) dump_->add_rows(*model_folder_, std::move(statistics_));
}

void RunDumper::plan_begins(const Plan& plan) {
  if (next_) next_->plan_begins(plan);
  if (dump_ && !dump_->options.layers.empty()) dump_->see(plan, module_);
}

bool RunDumper::is_wanted(const PlannedStep& step) const {
  return wanted_ && observe::is_wanted(step, module_, dump_->options);
}

/// Adds the step's rows to a statistics dump.
void RunDumper::add_rows(const Plan& plan, size_t step, void* const* buffers, bool inputs) {
  if (plan_ != &plan) plan_ = &plan, rows_ = &dump_->statistics_rows(plan, module_);
  if (!rows_->has(step, inputs)) return;
  if (statistics_.empty()) statistics_ = dump_->take_rows();
  rows_->add(statistics_, step, inputs, plan, buffers, step_, dump_->next_time());
}

std::unique_ptr<RunDumper::Item> RunDumper::item_of(const Plan& plan, size_t index) const {
  const PlannedStep& step = plan.steps[index];
  auto item = std::make_unique<Item>();
  item->origin = origin_of(module_, step);
  item->task = index;
  item->kernel = step.kernel;
  item->folder = fmt::format("{}/{}", *model_folder_, step_);
  for (const Node* node : step.group.nodes)
    for (SourceId id : node->sources)
      if (id < module_.sources.size() && std::ranges::none_of(item->sources, [&](const Source* each) {
            return each->framework == module_.sources[id].framework && each->name == module_.sources[id].name;
          }))
        item->sources.push_back(&module_.sources[id]);
  return item;
}

void RunDumper::add_inputs(Item& item, const Plan& plan, size_t index, void* const* buffers, bool copied) const {
  const PlannedStep& step = plan.steps[index];
  const StepNames& names = dump_->names(plan, module_)[index];
  for (size_t i = 0; i < step.inputs.size() && i < names.inputs.size(); ++i)
    if (auto tensor = tensor_at(plan, step.inputs[i], buffers)) {
      bool constant = plan.buffers[step.inputs[i]].kind == Buffer::Kind::constant;
      item.values.push_back({copied && !constant ? tensor->owned() : *tensor, true, names.inputs[i]});
    }
}

void RunDumper::add_outputs(Item& item, const Plan& plan, size_t index, void* const* buffers) const {
  const PlannedStep& step = plan.steps[index];
  const StepNames& names = dump_->names(plan, module_)[index];
  for (size_t i = 0; i < step.outputs.size() && i < names.outputs.size(); ++i) {
    auto tensor = tensor_at(plan, step.outputs[i], buffers);
    if (tensor && !names.outputs[i].places.empty()) item.values.push_back({*tensor, false, names.outputs[i]});
  }
}

void RunDumper::step_begins(const Plan& plan, size_t step, void* const* buffers) {
  if (next_) next_->step_begins(plan, step, buffers);
  if (!dump_) return;
  Open& open = open_.emplace_back(Open{buffers, nullptr});
  const DumpOptions& options = dump_->options;
  if (!options.tensors || !wanted_) return;
  if (options.statistics) return add_rows(plan, step, buffers, true);  // before the step may overwrite them
  if (!is_wanted(plan.steps[step])) return;
  open.item = item_of(plan, step);
  if (options.inputs) add_inputs(*open.item, plan, step, buffers, true);
}

void RunDumper::step_ends(const Plan& plan, size_t step, void* const* buffers) {
  if (next_) next_->step_ends(plan, step, buffers);
  if (dump_ && !open_.empty()) {
    const DumpOptions& options = dump_->options;
    std::unique_ptr<Item> item = std::move(open_.back().item);
    open_.pop_back();
    if (options.tensors && wanted_ && options.statistics) add_rows(plan, step, buffers, false);
    if (item) {
      if (options.outputs) add_outputs(*item, plan, step, buffers);
      write(*item);
    }
    if (options.overflow && is_wanted(plan.steps[step]) && begins_overflow(plan, plan.steps[step], buffers))
      tell_overflow(plan, step, buffers);
  }
}

/// Whether the step has outputs that are not finite although all its inputs are. An input that an output has
/// overwritten can no longer be checked and counts as finite.
bool RunDumper::begins_overflow(const Plan& plan, const PlannedStep& step, void* const* buffers) const {
  auto bad = [&](size_t buffer) {
    auto tensor = tensor_at(plan, buffer, buffers);
    return tensor && overflows(*tensor);
  };
  if (std::none_of(step.outputs.begin(), step.outputs.end(), bad)) return false;
  return std::none_of(step.inputs.begin(), step.inputs.end(), [&](size_t input) {
    bool shared = std::any_of(step.outputs.begin(), step.outputs.end(),
                              [&](size_t output) { return buffers[output] == buffers[input]; });
    return !shared && bad(input);
  });
}

/// "; it holds a, b (train.py:7), c": the operators that the kernel computes together, with lines other than its own.
std::string RunDumper::held_by(const Item& item) {
  constexpr size_t kMost = 8;
  if (item.sources.size() < 2) return "";
  std::string text;
  for (size_t i = 0; i < std::min(kMost, item.sources.size()); ++i) {
    text += (i ? ", " : "; it holds ") + item.sources[i]->name;
    const std::string line = script_line(*item.sources[i]);
    if (!line.empty() && line != item.origin.location) text += fmt::format(" ({})", line);
  }
  return item.sources.size() > kMost ? fmt::format("{} and {} more", text, item.sources.size() - kMost) : text;
}

void RunDumper::tell_overflow(const Plan& plan, size_t step, void* const* buffers) {
  auto item = item_of(plan, step);
  add_inputs(*item, plan, step, buffers, false);
  add_outputs(*item, plan, step, buffers);
  std::string place = item->origin.name;
  if (!item->origin.location.empty()) place += fmt::format(" ({})", item->origin.location);
  for (const Item::Value& value : item->values) {
    if (value.input || !overflows(value.tensor)) continue;
    Statistics found = statistics_of(value.tensor);
    cairn::note(fmt::format("overflow: step {}: {} ({}) makes {} NaN and {} infinite values of {} from finite inputs{}",
                            step_, place, item->origin.op, found.nan, found.plus_infinite + found.minus_infinite,
                            found.count, held_by(*item)));
    break;
  }
  // The device's record: model, stream, task, task type, three positions in its program, block, status.
  std::array<uint64_t, 9> record = {0, 0, step, 0, 0, 0, 0, 0, 1};
  DumpFile note;
  note.op_name = "Node_OpDebug", note.time = dump_->next_time();
  note.outputs.push_back(to_dump(Tensor::view(kU64, {9}, record.data(), nullptr)));
  std::string name = dump_file_name("Opdebug", "Node_OpDebug", static_cast<int64_t>(step), 0, note.time);
  Origin of = item->origin;
  of.op = "Opdebug";
  dump_->write(item->folder, name, sizeof record, manifest(*item, of, "overflow", 0),
               [&](const FileSink& sink) { send_dump(note, 2, sink); });
  write(*item);
}

void RunDumper::step_fails(const Plan& plan, size_t step, const Error& fault) {
  if (dump_ && !open_.empty()) {
    void* const* buffers = open_.back().buffers;
    open_.pop_back();
    if (dump_->options.exceptions && fault.kind() != ErrorKind::cancelled) {
      auto item = item_of(plan, step);
      item->folder = dump_->exception_folder();
      add_inputs(*item, plan, step, buffers, false);
      write(*item);
      cairn::note(fmt::format("dump: what {} read when it failed is in {}", item->origin.name, item->folder));
    }
  }
  if (next_) next_->step_fails(plan, step, fault);
}

void RunDumper::write(const Item& item) try {
  if (item.values.empty()) return;
  uint64_t time = dump_->next_time();
  if (dump_->options.npy)
    write_arrays(item, time);
  else
    write_file(item, time);
} catch (...) {  // a dump never ends the run that it observes
  cairn::note(fmt::format("dump: {}: {}", item.origin.name, current_fault().what()));
}

void RunDumper::write_arrays(const Item& item, uint64_t time) {
  for (const Item::Value& value : item.values) {
    const Origin& of = value.name.origin;
    std::string name = dump_file_name(of.op, of.name, static_cast<int64_t>(item.task), 0, time);
    std::string bytes = npy_bytes(value.tensor);
    for (size_t place : value.name.places)
      dump_->write(item.folder, fmt::format("{}.{}.{}.npy", name, value.io(), place), bytes.size(),
                   manifest(item, of, value.io(), place), [&](const FileSink& sink) { sink(bytes); });
  }
}

void RunDumper::write_file(const Item& item, uint64_t time) {
  DumpFile file;
  file.op_name = item.origin.name, file.time = time;
  size_t bytes = 0;
  for (const Item::Value& value : item.values) {
    DumpTensor tensor = to_dump(value.tensor);
    bytes += tensor.data.size();
    if (!value.input)
      tensor.original_name = value.name.origin.name,
      tensor.original_index = static_cast<int>(value.name.places.front());
    (value.input ? file.inputs : file.outputs).push_back(tensor);
  }
  dump_->write(item.folder, dump_file_name(item.origin.op, item.origin.name, static_cast<int64_t>(item.task), 0, time),
               bytes, manifest(item, item.origin, "dump", 0), [&](const FileSink& sink) { send_dump(file, 2, sink); });
}

/// The manifest line of a file, without the braces and the file's name.
std::string RunDumper::manifest(const Item& item, const Origin& of, const char* kind, size_t index) const {
  Json sources = Json::array();
  for (const Source* each : item.sources) sources.push_back(each->framework + ":" + each->name);
  Json line = {{"op", of.name},  {"type", of.op},      {"kind", kind},
               {"index", index}, {"sources", sources}, {"location", of.location},
               {"step", step_},  {"task", item.task},  {"kernel", item.kernel}};
  std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

}  // namespace cairn
