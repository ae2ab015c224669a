// The planner: cuts off the segment, makes a step of each item, assigns buffers.
#include "plan/plan.h"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "ir/collective.h"
#include "ir/control.h"
#include "plan/at_once.h"
#include "plan/context.h"
#include "plan/decompose.h"
#include "plan/exchanges.h"
#include "plan/items.h"
#include "plan/memory.h"
#include "plan/reference_steps.h"
#include "plan/scans.h"
#include "plan/sibling.h"
#include "support/code_memory.h"
#include "support/memory.h"
#include "support/stop.h"

namespace cairn {

namespace {

bool has_dynamic_dims(const Type& type) { return type.is_tensor() && !type.shape.known(); }

// Whether the node's result needs more memory than what it reads beside params and constants.
bool grows(const Node& node) {
  if (!node.op->has(kElementwise) || !node.op->pure() || node.results.size() != 1 || !node.result()->type.is_static())
    return false;
  size_t read = 0;
  for (const Value* input : node.inputs) {
    if (!input->type.is_static()) return false;
    if (input->producer && !constant_of(input)) read += storage_bytes(input->type);
  }
  return read < storage_bytes(node.result()->type);
}

// The nodes that depend on values with dynamic dims, and those that they alone read and that grow(), such as a decayed moment of which
// some rows are updated: so they may work in a variable's memory.
std::unordered_set<const Node*> late_nodes(const Block& body) {
  PointerSet<const Value*> late;  // values with dynamic dims, and results of nodes that use late values
  std::unordered_set<const Node*> nodes;
  for (const auto& node : body.nodes) {
    bool is_late = std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) { return late.count(v); });
    for (const auto& result : node->results)
      if (is_late || has_dynamic_dims(result->type)) late.insert(result.get());
    if (is_late) nodes.insert(node.get());
  }
  if (nodes.empty()) return nodes;
  const Uses uses(body);
  for (const auto& node : body.nodes | std::views::reverse) {
    const auto is_late = [&](const Node* user) { return nodes.count(user) != 0; };
    if (grows(*node) && !uses.is_result(node->result()) && std::ranges::all_of(uses.users(node->result()), is_late))
      nodes.insert(node.get());
  }
  return nodes;
}

// Moves the nodes that depend on values with dynamic dims into a function of its own, the rest; null when there are
// none. Afterwards the results of `function` are the inputs of the rest.
std::unique_ptr<Function> cut_rest(Function& function) {
  const std::unordered_set<const Node*> late = late_nodes(function.body);
  std::vector<std::unique_ptr<Node>> early, rest_nodes;
  for (auto& node : function.body.nodes) (late.count(node.get()) ? rest_nodes : early).push_back(std::move(node));
  function.body.nodes = std::move(early);
  if (rest_nodes.empty()) return nullptr;

  auto rest = std::make_unique<Function>();
  rest->name = function.name;
  rest->result_names = function.result_names;
  std::unordered_map<const Value*, Value*> map;
  std::vector<Value*> passed;
  std::unordered_set<const Value*> inside;
  for (const auto& node : rest_nodes)
    for (const auto& result : node->results) inside.insert(result.get());
  auto pass = [&](Value* value) {
    if (map.count(value) || inside.count(value)) return;
    if (constant_of(value)) {
      rest->body.nodes.push_back(clone(*value->producer, map));
      return;
    }
    map[value] = rest->body.add_param(value->type, fmt::format("v{}", passed.size()));
    passed.push_back(value);
  };
  for (const auto& node : rest_nodes) std::for_each(node->inputs.begin(), node->inputs.end(), pass);
  std::for_each(function.body.results.begin(), function.body.results.end(), pass);
  for (const auto& node : rest_nodes) rest->body.nodes.push_back(clone(*node, map));
  for (const Value* result : function.body.results) rest->body.results.push_back(map.at(result));
  for (auto [result, param] : function.updates)
    if (auto inner = map.find(function.body.params[param].get()); inner != map.end())
      rest->updates.emplace_back(result, inner->second->index);
  function.updates.clear();
  function.body.results = std::move(passed);
  return rest;
}

class Planner {
 public:
  Planner(std::shared_ptr<const Module> module, std::unique_ptr<Function> function, const PlanOptions& options,
          Packer& packer, const Plan* earlier)
      : module_(std::move(module)), options_(options), packer_(packer), earlier_(earlier),
        plan_(std::make_shared<Plan>()),
        exchanges_(
            *plan_, [this](size_t i) { return memory_of(i); }, [this](size_t i) { return updated_by(i); }) {
    plan_->function = std::move(function);
    plan_->every_value = options.every_value;
  }

  /// Null: `like_sibling`, and that cannot be.
  std::shared_ptr<Plan> make(bool like_sibling) {
    const size_t code_before = code_made_on_this_thread();
    auto rest = cut_rest(*plan_->function);
    body_ = &plan_->function->body;
    uses_.emplace(*body_);
    choose_items(like_sibling);
    if (like_sibling && !sibling_) return nullptr;
    has_rest_ = rest != nullptr;
    if (rest) {
      plan_->rest = std::make_unique<Program>(module_, std::move(rest), options_for_body(SIZE_MAX), packer_);
      if (earlier_ && earlier_->rest) plan_->rest->follow(*earlier_->rest);
    }
    plan_->steps.reserve(items_.list.size());
    plan_->buffers.reserve(3 * items_.list.size());
    find_roots();
    make_outputs();
    start_in_outputs();
    for (size_t i = 0; i < items_.list.size(); ++i) {
      stop_point();
      make_step(i);
    }
    finish_outputs();
    exchanges_.end();
    run_scans_at_once(*plan_, [this](size_t i) { return memory_of(i); });
    place_buffers();
    number_arguments();
    estimate();
    plan_->own_bytes = own_bytes() + code_made_on_this_thread() - code_before;
    const Function& function = *plan_->function;
    const bool trains = !earlier_ && !function.updates.empty() && function.body.params.size() > function.updates.size();
    plan_->contexts = std::make_unique<ContextPool>(options_.budget, plan_->own_bytes, trains);
    return std::move(plan_);
  }

 private:
  void choose_items(bool like_sibling) {
    if (earlier_) sibling_ = Sibling::find(*earlier_, *plan_->function);
    auto items = sibling_ ? sibling_->items() : std::nullopt;
    if (!items) sibling_.reset();
    if (!items && like_sibling) return;
    items_ = items ? std::move(*items) : make_items(*module_, *plan_->function, *uses_, options_);
    if (sibling_) plan_->sibling = earlier_->function;
    plan_->workers = sibling_ ? earlier_->workers : std::make_shared<WorkerChoice>();
  }

  void estimate() {
    constexpr double kFlops = 50, kBytes = 20;  // ns; per ns
    bool control = false;
    for (const PlannedStep& step : plan_->steps) {
      plan_->flops += step.cost.flops;
      plan_->time += step.cost.flops / kFlops + step.cost.bytes / kBytes;
      control = control || step.control;
    }
    plan_->brief = !control && plan_->time < options_.brief;
  }

  // The plan's approximate size: averages per node and step, plus the constants that were folded for these dims.
  size_t own_bytes() const {
    constexpr size_t kNode = 1024, kStep = 2048, kBuffer = 256;
    size_t bytes = body_->nodes.size() * kNode + plan_->steps.size() * kStep + plan_->buffers.size() * kBuffer;
    for (const auto& node : body_->nodes)
      if (const Tensor* constant = node->results.size() == 1 ? constant_of(node->result()) : nullptr)
        if (node->sources.empty()) bytes += constant->bytes();
    return bytes;
  }

  const Value* root(const Value* value) const {
    auto found = root_.find(value);
    return found == root_.end() ? value : found->second;
  }

  void find_roots() {
    for (const auto& node : body_->nodes)
      if (!items_.nodes.count(node.get()) && is_view(*node)) root_[node->result()] = root(node->inputs[0]);
  }

  size_t add_buffer(Buffer buffer) {
    plan_->buffers.push_back(std::move(buffer));
    return plan_->buffers.size() - 1;
  }

  // The buffer of a value in the memory space where it is computed; created at the first call.
  size_t buffer_of(const Value* value, MemorySpace* space = &host_memory()) {
    value = root(value);
    auto found = buffer_.find(value);
    if (found != buffer_.end()) return found->second;
    Buffer buffer;
    buffer.value = value;
    if (!value->producer) {
      buffer.kind = Buffer::Kind::input;
      buffer.index = value->index;
    } else if (const Tensor* constant = constant_of(value)) {
      buffer.kind = is_host_object(value->type) ? Buffer::Kind::object : Buffer::Kind::constant;
      buffer.constant = *constant;
    } else if (is_host_object(value->type)) {
      buffer.kind = Buffer::Kind::object;
    } else {
      buffer.space = space;
      buffer.first = plan_->steps.size();
    }
    if (buffer.kind == Buffer::Kind::object) buffer.index = plan_->objects++;
    if (!is_host_object(value->type)) buffer.bytes = storage_bytes(value->type);
    return buffer_[value] = add_buffer(std::move(buffer));
  }

  // Chooses the results that steps on the host write directly to the caller's memory. The memory of an updated state is
  // that of its param: the result goes there directly only if no later step reads the param.
  void make_outputs() {
    for (auto [result, param] : plan_->function->updates) replaces_[result] = body_->params[param].get();
    if (has_rest_) return;
    const auto& results = body_->results;
    PointerSet<const Value*> handed_out;
    for (const Value* result : results) handed_out.insert(root(result));
    for (size_t i = 0; i < results.size(); ++i) {
      const Value* value = root(results[i]);
      if (!value->producer || constant_of(value) || is_host_object(value->type)) continue;
      auto replaced = replaces_.find(i);
      if (replaced != replaces_.end() && value->producer->op->has(kCollective)) continue;  // it may fail half-way
      if (replaced == replaces_.end() ||
          (!handed_out.count(replaced->second) && read_last_by_writer(value, replaced->second)))
        direct_.try_emplace(value, i);
    }
  }

  bool read_last_by_writer(const Value* made, const Value* param) const {
    auto readers = items_.readers.find(param);
    if (readers == items_.readers.end()) return true;
    size_t last = *std::max_element(readers->second.begin(), readers->second.end());
    for (size_t i = 0; i < last; ++i)
      for (const Value* output : items_.list[i].group.outputs)
        if (root(output) == made) return false;
    return true;
  }

  // If a step updates its operand in place to give a result, the operand is computed in the result's buffer as well,
  // unless that buffer is a param's that another step still reads.
  void start_in_outputs() {
    PointerMap<const Value*, size_t> maker;
    for (size_t i = 0; i < items_.list.size(); ++i)
      for (const Value* output : items_.list[i].group.outputs) maker[output] = i;
    for (size_t i = items_.list.size(); i-- > 0;) {
      const Group& group = items_.list[i].group;
      const OpDef& op = *group.last().op;  // element-wise ops are fused instead
      if (group.nodes.size() != 1 || !op.has(kInPlace) || op.has(kElementwise) || group.outputs.size() != 1) continue;
      auto direct = direct_.find(group.outputs[0]);
      const Value* start = group.last().inputs[0];
      if (direct == direct_.end() || !maker.count(start) || direct_.count(start) || !uses_->single(start) ||
          start->type != group.outputs[0]->type)
        continue;
      auto replaced = replaces_.find(direct->second);
      auto readers = replaced == replaces_.end() ? items_.readers.end() : items_.readers.find(replaced->second);
      const bool read_before =
          readers == items_.readers.end() || std::all_of(readers->second.begin(), readers->second.end(),
                                                         [&](size_t reader) { return reader <= maker.at(start); });
      if (read_before) direct_[start] = direct->second;
    }
  }

  // The step of a direct result may also read from that result's buffer (the param's old content, or an operand placed
  // there by start_in_outputs). If the step cannot work in place, the result gets a buffer of its own and is copied at
  // the end.
  void keep_apart(const Group& group, const PlannedStep& step) {
    for (const Value* output : group.outputs) {
      auto direct = direct_.find(root(output));
      if (direct == direct_.end()) continue;
      auto replaced = replaces_.find(direct->second);
      std::vector<size_t> same;
      std::optional<size_t> begun;  // the operand's buffer, if start_in_outputs placed it in the result's
      for (size_t j = 0; j < group.inputs.size(); ++j) {
        const Buffer& buffer = plan_->buffers[step.inputs[j]];
        const bool begins = buffer.kind == Buffer::Kind::output && buffer.index == direct->second;
        if (begins) begun = step.inputs[j];
        if (begins || (replaced != replaces_.end() && root(group.inputs[j]) == replaced->second)) same.push_back(j);
      }
      if (same.empty()) continue;
      std::vector<size_t> able = step.step ? step.step->in_place() : std::vector<size_t>();
      const bool fits = same.size() == 1 && std::count(able.begin(), able.end(), same[0]);
      if (!fits)
        direct_.erase(direct);
      else if (begun)
        buffer_[root(output)] = *begun;
    }
  }

  // The param whose new content is written to the buffer, or null.
  const Value* updated_by(size_t buffer) const {
    auto replaced = replaces_.find(plan_->buffers[buffer].index);
    return plan_->buffers[buffer].kind != Buffer::Kind::output || replaced == replaces_.end() ? nullptr
                                                                                              : replaced->second;
  }

  // Equal for buffers that share memory: that of an updated state is its param's.
  const void* memory_of(size_t buffer) const {
    const Buffer& own = plan_->buffers[buffer];
    if (own.kind == Buffer::Kind::input) return body_->params[own.index].get();
    const Value* param = updated_by(buffer);
    return param ? static_cast<const void*>(param) : &own;
  }

  size_t output_buffer(const Value* value, MemorySpace* space) {
    auto direct = direct_.find(root(value));
    if (direct != direct_.end() && space->is_host() && !buffer_.count(root(value))) {
      Buffer buffer;
      buffer.kind = Buffer::Kind::output;
      buffer.value = root(value);
      buffer.index = direct->second;
      buffer.bytes = storage_bytes(value->type);
      return buffer_[root(value)] = add_buffer(std::move(buffer));
    }
    return buffer_of(value, space);
  }

  void add_copy(size_t from, size_t to) {
    PlannedStep copy;
    copy.inputs = {from};
    copy.outputs = {to};
    copy.kernel = "copy";
    touch(from);
    touch(to);
    exchanges_.wait(copy);
    plan_->steps.push_back(std::move(copy));
  }

  void touch(size_t buffer) { plan_->buffers[buffer].last = plan_->steps.size(); }

  // The buffer of the value in `space`; adds a copy step when the value is in another space.
  size_t in_space(const Value* value, MemorySpace* space) {
    size_t home = buffer_of(value);
    if (is_host_object(value->type) || plan_->buffers[home].space == space) return home;
    auto key = std::make_pair(root(value), space);
    auto found = copies_.find(key);
    if (found != copies_.end()) return found->second;
    Buffer buffer;
    buffer.value = root(value);
    buffer.space = space;
    buffer.bytes = plan_->buffers[home].bytes;
    buffer.first = plan_->steps.size();
    size_t copy = add_buffer(std::move(buffer));
    add_copy(home, copy);
    return copies_[key] = copy;
  }

  void make_step(size_t number) {
    Item& item = items_.list[number];
    PlannedStep step;
    MemorySpace* space = item.engine ? &item.engine->memory() : &host_memory();
    step.engine = item.engine;
    if (item.engine) {
      const auto stays = [&](const Value* value) {
        const Value* made = root(value);
        return !made->producer && made->index >= options_.first_that_stays;
      };
      MakeContext context{packer_, options_.threads, stays, options_.winograd && !options_.every_value};
      const bool served = sibling_ && earlier_->every_value == options_.every_value && sibling_->serves(number);
      step.step = served ? sibling_->step(number).step : item.engine->make(item.group, context);
      step.kernel = step.step->kernel();
      step.cost = served ? sibling_->step(number).cost : cost_of(item.group);
      for (size_t i = 0; i < item.group.inputs.size(); ++i)
        step.inputs.push_back(input_buffer(*step.step, item.group, i, space));
    } else {
      make_control(item, step, sibling_ ? &sibling_->step(number) : nullptr);
      for (const Value* input : step.control->inputs) step.inputs.push_back(in_space(input, space));
    }
    for (size_t buffer : step.inputs) touch(buffer);
    exchanges_.wait(step);
    keep_apart(item.group, step);
    if (step.step) share_in_place(item.group, step);
    if (item.engine) {
      for (const Value* output : item.group.outputs) step.outputs.push_back(output_buffer(output, space));
    } else {
      for (const auto& output : step.control->results) step.outputs.push_back(output_buffer(output.get(), space));
    }
    for (size_t buffer : step.outputs) touch(buffer);
    if (!step.bodies.empty()) make_room_for_bodies(step);
    if (step.step && step.step->workspace()) step.workspace = scratch_buffer(step.step->workspace());
    if (step.step && step.step->kept()) step.kept = scratch_buffer(step.step->kept());
    step.group = std::move(item.group);
    exchanges_.wait(step);
    exchanges_.begin(step);
    plan_->steps.push_back(std::move(step));
  }

  // A buffer whose live range is this step.
  size_t scratch_buffer(size_t bytes) {
    Buffer buffer;
    buffer.bytes = bytes;
    buffer.first = buffer.last = plan_->steps.size();
    return add_buffer(std::move(buffer));
  }

  // Allocates the arenas of a step's regions, and for loops a second buffer per carried value: iterations alternate
  // between it and the result's buffer. The regions never run at the same time and share one arena, but for loops, whose
  // body keeps some of its own, and scans whose turns run at the same time.
  void make_room_for_bodies(PlannedStep& step) {
    size_t bytes = 0;
    for (const auto& body : step.bodies) {
      step.body_offsets.push_back(is_loop(*step.control) || step.scan ? bytes : 0);
      for (const auto& [space, arena] : body->arena_bytes)
        bytes = std::max(bytes, step.body_offsets.back() + whole_lines(arena));
    }
    step.workspace = scratch_buffer(bytes);
    if (!is_loop(*step.control) && !step.scan) return;
    const auto& results = step.control->results;
    for (size_t i = 0; i < (step.scan ? step.scan->carried : results.size()); ++i) {
      const auto& result = results[i];
      if (!is_host_object(result->type)) {
        step.spare.push_back(scratch_buffer(storage_bytes(result->type)));
        continue;
      }
      Buffer buffer;
      buffer.kind = Buffer::Kind::object;
      buffer.index = plan_->objects++;
      step.spare.push_back(add_buffer(std::move(buffer)));
    }
    if (!step.scan) step.spare.push_back(scratch_buffer(1));
  }

  // The buffer of input i; a constant that the step has packed needs no plain copy.
  size_t input_buffer(const Step& step, const Group& group, size_t i, MemorySpace* space) {
    const Value* value = group.inputs[i];
    if (step.reads(i) || !constant_of(root(value))) return in_space(value, space);
    Buffer none;
    none.kind = Buffer::Kind::constant;
    none.value = value;
    return add_buffer(std::move(none));
  }

  void make_control(const Item& item, PlannedStep& step, const PlannedStep* earlier) {
    const auto add_program = [&](std::unique_ptr<Function> function, size_t changing) {
      step.programs.push_back(
          std::make_unique<Program>(module_, std::move(function), options_for_body(changing, step.scan), packer_));
      if (earlier) step.programs.back()->follow(*earlier->programs[step.programs.size() - 1]);
    };
    step.control = &item.group.last();
    step.kernel = step.control->op->name;
    step.scan = scan_of(*step.control);
    for (const auto& region : step.control->regions) {
      auto function = std::make_unique<Function>();
      function->name = step.control->op->name;
      std::unordered_map<const Value*, Value*> map;  // clone() copies whole nodes; only the region is kept
      for (const Value* input : step.control->inputs) map.emplace(input, nullptr);
      auto copy = clone(*step.control, map);
      function->body = std::move(*copy->regions[static_cast<size_t>(&region - step.control->regions.data())]);
      function->result_names.assign(function->body.results.size(), "");
      const size_t changing = step.scan                ? step.scan->carried + step.scan->scanned
                              : is_loop(*step.control) ? step.control->results.size()
                                                       : SIZE_MAX;
      add_program(std::move(function), changing);
    }
    if (is_call(*step.control)) {
      const Function* function = module_->find(callee_name(*step.control));
      CHECK(function, "callee");
      add_program(clone(*function), SIZE_MAX);
    } else if (step.scan) {
      plan_scan(step);
    } else {
      plan_bodies(step);
    }
  }

  PlanOptions options_for_body(size_t first_that_stays, const std::optional<Scan>& scan = {}) const {
    PlanOptions options = options_;
    options.first_that_stays = first_that_stays;
    if (scan && runs_at_once(*scan)) options.threads = 1;
    // In turns that follow each other workers stay awake: handing over costs 0.3 to 0.8 us. By this estimate, which reads weights
    // from memory, half of a step's product (128 units: 16e3) takes longer; 64 units (4e3) were slower by two workers.
    if (scan) options.brief = 8e3;
    return options;
  }

  // Whether workers run turns at the same time, each alone, and have about equally many.
  bool runs_at_once(const Scan& scan) const {
    constexpr int64_t kMany = 8;
    const int64_t workers = options_.threads;
    return scan.at_once && workers > 1 && scan.turns >= workers &&
           (scan.turns % workers == 0 || scan.turns >= kMany * workers);
  }

  void plan_scan(PlannedStep& step) const {
    const Block& body = *step.control->regions[0];
    Scan& scan = *step.scan;
    std::vector<Dims> dims;
    for (const auto& param : body.params) dims.push_back(param->type.is_tensor() ? param->type.shape.sizes() : Dims());
    step.bodies.assign(runs_at_once(scan) ? static_cast<size_t>(options_.threads) : 1, step.programs[0]->plan(dims));
    step.cost.flops = static_cast<double>(scan.turns) * step.bodies[0]->flops;
    for (size_t i = 0; i < scan.first.size(); ++i) {
      const Value* row =
          i < scan.scanned ? body.params[scan.carried + i].get() : body.results[scan.carried + i - scan.scanned];
      scan.first[i] *= static_cast<int64_t>(storage_bytes(row->type));
      scan.step[i] *= static_cast<int64_t>(storage_bytes(row->type));
    }
    std::vector<Type> types;
    for (const Value* result : body.results) types.push_back(result->type);
    CHECK(runs_inside(*step.bodies[0], types), "the body of a scan");
  }

  // Where the types of a region depend on the run, it is planned then. So is one that cannot be planned: it may never run.
  void plan_bodies(PlannedStep& step) const {
    const Node& node = *step.control;
    const size_t first = first_region_input(node);
    std::vector<Dims> dims;
    for (size_t i = first; i < node.inputs.size(); ++i) {
      const Type& type = node.inputs[i]->type;
      if (has_dynamic_dims(type)) return;
      dims.push_back(type.is_tensor() ? type.shape.sizes() : Dims());
    }
    if (first > 0 && is_host_object(node.inputs[0]->type)) return;
    std::vector<std::shared_ptr<const Plan>> bodies;
    try {
      for (const auto& program : step.programs) bodies.push_back(program->plan(dims));
    } catch (const Error& fault) {
      if (fault.kind() == ErrorKind::cancelled) throw;
      return;
    }
    for (const auto& body : bodies) {
      const bool condition = is_loop(node) && body == bodies.front();
      if (!runs_inside(*body, condition ? std::vector<Type>{Type::tensor(kBool, Shape())} : types_of(node.results)))
        return;
    }
    step.bodies = std::move(bodies);
  }

  static std::vector<Type> types_of(const std::vector<std::unique_ptr<Value>>& values) {
    std::vector<Type> types;
    for (const auto& value : values) types.push_back(value->type);
    return types;
  }

  // Whether the plan needs host memory only and yields exactly these types, without dynamic dims.
  static bool runs_inside(const Plan& body, const std::vector<Type>& types) {
    if (body.rest) return false;
    for (const auto& [space, bytes] : body.arena_bytes)
      if (!space->is_host()) return false;
    for (size_t i = 0; i < types.size(); ++i) {
      const Type& made = body.function->body.results[i]->type;
      if (has_dynamic_dims(made) || (made.is_tensor() ? made != types[i] : made.kind != types[i].kind)) return false;
    }
    return true;
  }

  bool needed_later(const Value* value, const Group& group) const {
    const Value* mine = root(value);
    std::unordered_set<const Node*> inside(group.nodes.begin(), group.nodes.end());
    auto unfinished = [&](const Value* each) {
      if (uses_->is_result(each)) return true;
      for (const Node* user : uses_->users(each))
        if (!inside.count(user) && !done_.count(user) && !(is_view(*user) && !items_.nodes.count(user))) return true;
      return false;
    };
    if (unfinished(mine)) return true;
    for (const auto& [view, target] : root_)
      if (target == mine && unfinished(view)) return true;
    return false;
  }

  // Lets outputs reuse the buffers of inputs whose live range ends at this step, if the step can work in place.
  void share_in_place(const Group& group, const PlannedStep& step) {
    for (const Node* node : group.nodes) done_.insert(node);
    std::vector<size_t> able = step.step->in_place();
    for (const Value* each : group.outputs) {
      const Value* output = root(each);
      if (able.empty()) return;
      if (is_host_object(output->type) || buffer_.count(output) || direct_.count(output)) continue;
      const auto taken = std::find_if(able.begin(), able.end(), [&](size_t i) { return dies(i, group, step, output); });
      if (taken == able.end()) continue;
      buffer_[output] = step.inputs[*taken];
      able.erase(taken);
    }
  }

  bool dies(size_t i, const Group& group, const PlannedStep& step, const Value* output) const {
    const size_t shared = step.inputs[i];
    const Buffer& buffer = plan_->buffers[shared];
    return buffer.kind == Buffer::Kind::arena && buffer.space == &step.engine->memory() &&
           buffer.bytes == storage_bytes(output->type) && !copies_.count({root(group.inputs[i]), buffer.space}) &&
           !needed_later(group.inputs[i], group) && !exchanges_.under_way(shared) &&
           std::count(step.inputs.begin(), step.inputs.end(), shared) == 1;
  }

  // Adds the copies to outputs at the end; copies that overwrite a param follow those that may read it.
  void finish_outputs() {
    const auto& results = body_->results;
    plan_->outputs.resize(results.size());
    if (!has_rest_) set_params_aside();
    for (bool replacing : {false, true})
      for (size_t i = 0; i < results.size(); ++i)
        if (replaces_.count(i) == replacing) plan_->outputs[i] = finished_output(i);
    for (const Value* result : results)
      plan_->output_dims.push_back(result->type.is_static() ? result->type.shape.sizes() : Dims());
    for (size_t buffer : plan_->outputs) touch(buffer);
  }

  // When a param becomes the new content of another one, copies it to a temporary before any param is overwritten.
  void set_params_aside() {
    for (auto [i, param] : replaces_) {
      const Value* value = root(body_->results[i]);
      if (value->producer || value == param || is_host_object(value->type)) continue;
      size_t from = buffer_of(value);
      Buffer buffer;
      buffer.value = value;
      buffer.bytes = plan_->buffers[from].bytes;
      buffer.first = plan_->steps.size();
      size_t to = add_buffer(std::move(buffer));
      add_copy(from, to);
      set_aside_[i] = to;
    }
  }

  size_t finished_output(size_t i) {
    const Value* result = body_->results[i];
    auto replaced = replaces_.find(i);
    bool unchanged = replaced != replaces_.end() && root(result) == replaced->second;
    if (unchanged && !has_rest_) return buffer_of(result);
    if (has_rest_) return in_space(result, &host_memory());
    size_t buffer = set_aside_.count(i) ? set_aside_.at(i) : buffer_of(result);
    const Buffer& made = plan_->buffers[buffer];
    if ((made.kind == Buffer::Kind::output && made.index == i) || is_host_object(result->type)) return buffer;
    Buffer target;
    target.kind = Buffer::Kind::output;
    target.value = result;
    target.index = i;
    target.bytes = made.bytes;
    size_t to = add_buffer(std::move(target));
    add_copy(buffer, to);
    return to;
  }

  void place_buffers() {
    for (const PlannedStep& step : plan_->steps)
      if (step.kept) plan_->buffers[*step.kept].first = 0, plan_->buffers[*step.kept].last = plan_->steps.size();
    std::map<MemorySpace*, std::vector<Buffer*>> by_space;
    for (Buffer& buffer : plan_->buffers)
      if (buffer.kind == Buffer::Kind::arena) by_space[buffer.space].push_back(&buffer);
    for (auto& [space, buffers] : by_space) {
      Placement placement = place(std::move(buffers), options_.reuse_memory);
      plan_->arena_bytes[space] = placement.bytes;
      if (space->is_host()) plan_->live_bytes = placement.live_bytes;
    }
  }

  void number_arguments() {
    size_t next = 0, inner = 0;
    for (PlannedStep& step : plan_->steps) {
      step.first_argument = next;
      step.first_inner = inner;
      next += step.inputs.size() + step.outputs.size();
      inner += step.bodies.size();
    }
  }

  std::shared_ptr<const Module> module_;
  const PlanOptions& options_;
  Packer& packer_;
  const Plan* earlier_;
  std::optional<Sibling> sibling_;  // `earlier_`, where it serves
  std::shared_ptr<Plan> plan_;
  Block* body_ = nullptr;
  std::optional<Uses> uses_;
  bool has_rest_ = false;
  Items items_;
  PointerSet<const Node*> done_;
  PointerMap<const Value*, const Value*> root_;
  PointerMap<const Value*, size_t> buffer_;
  std::unordered_map<const Value*, size_t> direct_;  // value written directly to an output -> that output
  std::map<std::pair<const Value*, MemorySpace*>, size_t> copies_;
  std::map<size_t, const Value*> replaces_;  // result -> the param whose new content it is
  std::map<size_t, size_t> set_aside_;       // such a result -> its temporary buffer (set_params_aside)
  Exchanges exchanges_;
};

}  // namespace

std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Module> module, std::unique_ptr<Function> function,
                                      const PlanOptions& options, Packer& packer, const Plan* sibling) {
  Decomposed decomposed;
  const bool rewritten = prepare(*module, *function, options, decomposed);
  auto plan = Planner(module, std::move(function), options, packer, sibling).make(false);
  plan->rewritten = rewritten;
  plan->decomposed = std::move(decomposed);
  tell_reference_steps(*plan, *module, options);
  return plan;
}

std::shared_ptr<const Plan> make_plan_like(const Plan& sibling, std::shared_ptr<const Module> module,
                                           std::unique_ptr<Function> function, const PlanOptions& options,
                                           Packer& packer) {
  Decomposed decomposed;
  if (sibling.rewritten) prepare(*module, *function, options, decomposed, &sibling.decomposed);
  auto plan = Planner(module, std::move(function), options, packer, &sibling).make(true);
  if (plan) tell_reference_steps(*plan, *module, options);
  return plan;
}

}  // namespace cairn
