#include "engines/cpu/row_slices.h"

#include <array>
#include <unordered_set>
#include <variant>

#include "engines/cpu/call_step.h"
#include "engines/cpu/engine.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/program.h"
#include "ops/kernels.h"
#include "support/memory.h"

namespace cairn {

namespace {

constexpr size_t kMostArguments = 48;  // of one inner step
constexpr int64_t kLeastBytes = 128 << 10, kMostRowBytes = 512 << 10, kSliceBytes = 96 << 10;

Dims sizes_of_value(const Value* value) { return value->type.shape.sizes(); }

/// The rows of a chain: its tensors have the dims `dims`, or 1, and the rows go along the first `axes`. Slices are cut
/// along the last of these.
struct RowChain {
  Dims dims;
  size_t axes = 0;
  int64_t rows = 0;  // of a slice, which depends on dims alone

  int64_t outer() const { return count_between(dims, 0, axes - 1); }
  int64_t along() const { return dims[axes - 1]; }
};

std::variant<RowChain, std::string> read_chain(const Group& group) {
  if (group.nodes.size() < 2) return "is one operation";
  RowChain chain;
  const Node* combining = nullptr;
  for (const Node* node : group.nodes)
    if (const auto axes = row_axes(*node); axes && (!combining || *axes < chain.axes))
      combining = node, chain.axes = *axes;
  if (!combining) return "combines no elements of rows";
  const Type& like = combining->inputs[0]->type;
  chain.dims = like.shape.sizes();
  while (chain.axes > 1 && chain.along() == 1) --chain.axes;
  std::unordered_set<const Value*> whole;  // of all rows and their elements
  const auto count = [&](const Value* value) {
    if (sizes_of_value(value) == chain.dims) whole.insert(value);
  };
  for (const Node* node : group.nodes) {
    if (!goes_by_rows(*node, like, chain.axes)) return fmt::format("{} does not go by rows", node->op->name);
    if (node->inputs.size() + 1 > kMostArguments) return "has too many operands";
    std::for_each(node->inputs.begin(), node->inputs.end(), count);
    count(node->result());
  }
  const auto row_bytes = [&] {
    return count_between(chain.dims, chain.axes, chain.dims.size()) * 4 * std::ssize(whole);
  };
  // Several rows along inner axes are one row where a slice has room for them.
  while (chain.axes > 1 && chain.outer() > 1 && 4 * chain.along() * row_bytes() <= kSliceBytes) {
    --chain.axes;
    while (chain.along() == 1) --chain.axes;
  }
  const int64_t row = row_bytes();
  if (count_of(chain.dims) * 4 < kLeastBytes) return "is small";
  if (row > kMostRowBytes || chain.along() < 2) return "has few rows";
  chain.rows = std::clamp<int64_t>(kSliceBytes / row, 1, chain.along());
  return chain;
}

/// The chain's nodes for one slice of so many rows, and their groups in an order in which they can run.
struct Sliced {
  Block block;
  std::vector<Group> groups;
};

Type type_in_slice(const RowChain& chain, Type type, int64_t rows) {
  auto& dims = type.shape.dims;
  for (size_t i = 0; i < dims.size(); ++i)
    if (const size_t axis = i + chain.dims.size() - dims.size(); axis < chain.axes && dims[i] != 1)
      dims[i] = axis + 1 == chain.axes ? rows : 1;
  return type;
}

// Nothing where a group has no kernel.
std::unique_ptr<Sliced> slice_chain(const Group& group, const RowChain& chain, int64_t rows) {
  auto sliced = std::make_unique<Sliced>();
  Block& block = sliced->block;
  std::unordered_map<const Value*, Value*> map;
  for (const Value* input : group.inputs)
    map[input] = block.add_param(type_in_slice(chain, input->type, rows), input->name);
  for (const Node* node : group.nodes) {
    auto copy = clone(*node, map);
    copy->results[0]->type = infer_types(*copy->op, copy->inputs, copy->attributes)[0];
    block.nodes.push_back(std::move(copy));
  }
  for (const Value* output : group.outputs) block.results.push_back(map.at(output));
  const Uses uses(block);
  std::vector<Group> groups = cpu_engine().propose(block, uses);
  std::unordered_set<const Node*> taken;
  for (const Group& each : groups) taken.insert(each.nodes.begin(), each.nodes.end());
  for (const auto& node : block.nodes)
    if (!taken.count(node.get())) groups.push_back(make_group({node.get()}, uses));
  std::unordered_set<const Value*> made;
  const auto ready = [&](const Group& each) {
    return std::all_of(each.inputs.begin(), each.inputs.end(),
                       [&](const Value* input) { return !input->producer || made.count(input); });
  };
  while (!groups.empty()) {
    const auto next = std::find_if(groups.begin(), groups.end(), ready);
    if (next == groups.end() || cpu_engine().refuses(*next) ||
        next->inputs.size() + next->outputs.size() > kMostArguments)
      return nullptr;
    made.insert(next->outputs.begin(), next->outputs.end());
    sliced->groups.push_back(std::move(*next));
    groups.erase(next);
  }
  return sliced;
}

class RowSlicesStep final : public Step {
 public:
  RowSlicesStep(const Group& group, RowChain chain, MakeContext& context)
      : chain_(std::move(chain)), workers_(context.threads) {
    for (const Value* input : group.inputs) inputs_.push_back(row_strides(input));
    for (const Value* output : group.outputs) outputs_.push_back(row_strides(output));
    whole_ = part_of(group, chain_.rows, context);
    if (const int64_t rest = chain_.along() % chain_.rows) rest_ = part_of(group, rest, context);
  }

  void run(const StepArgs& args) const override {
    const int64_t each = (chain_.along() + chain_.rows - 1) / chain_.rows;
    Executor& executor = executor_for(args, workers_);
    executor.run(static_cast<int>(chain_.outer() * each), [&](int slice, int worker) {
      const int64_t first = slice % each * chain_.rows;
      const Part& part = first + chain_.rows > chain_.along() ? rest_ : whole_;
      run_part(part, args, slice / each, first,
               static_cast<char*>(args.workspace) + scratch() * static_cast<size_t>(worker));
    });
  }

  std::string kernel() const override {
    std::string name = fmt::format("cpu/slices of {} rows:", chain_.rows);
    for (const auto& step : whole_.steps) name += " " + step->kernel().substr(4) + ",";
    name.pop_back();
    return name;
  }
  size_t workspace() const override { return scratch() * static_cast<size_t>(workers_); }

 private:
  struct Place {
    enum class Kind : uint8_t { input, output, scratch } kind;
    size_t at;  // index, or offset in bytes
  };
  struct Part {
    std::vector<std::unique_ptr<Step>> steps;
    std::vector<std::vector<Place>> inputs, outputs;  // of each step
    size_t scratch = 0, workspace = 0;                // bytes; the steps' workspace follows the values
  };

  /// Of a tensor outside of the step: bytes between neighbours along each axis of the rows, 0 where it is broadcast.
  Dims row_strides(const Value* value) const {
    const Dims dims = sizes_of_value(value), strides = strides_of(dims);
    const auto element = static_cast<int64_t>(value->type.dtype.size());
    Dims steps(chain_.axes, 0);
    for (size_t i = 0; i < dims.size(); ++i)
      if (const size_t axis = i + chain_.dims.size() - dims.size(); axis < chain_.axes && dims[i] != 1)
        steps[axis] = strides[i] * element;
    return steps;
  }

  Part part_of(const Group& group, int64_t rows, MakeContext& context) const {
    const auto sliced = slice_chain(group, chain_, rows);
    CHECK(sliced, "slices of {} rows", rows);
    Part part;
    std::unordered_map<const Value*, Place> places;
    for (const auto& param : sliced->block.params) places[param.get()] = {Place::Kind::input, param->index};
    for (size_t i = 0; i < sliced->block.results.size(); ++i)
      places[sliced->block.results[i]] = {Place::Kind::output, i};
    for (const Group& each : sliced->groups) {
      MakeContext inner{context.packer, 1};
      part.steps.push_back(cpu_engine().make(each, inner));
      part.workspace = std::max(part.workspace, whole_lines(part.steps.back()->workspace()));
      part.inputs.emplace_back(), part.outputs.emplace_back();
      for (const Value* input : each.inputs) part.inputs.back().push_back(places.at(input));
      for (const Value* output : each.outputs) {
        const auto [place, is_new] = places.try_emplace(output, Place{Place::Kind::scratch, part.scratch});
        if (is_new) part.scratch += whole_lines(storage_bytes(output->type));
        part.outputs.back().push_back(place->second);
      }
    }
    return part;
  }

  size_t scratch() const { return std::max(whole_.scratch + whole_.workspace, rest_.scratch + rest_.workspace); }

  int64_t offset(const Dims& strides, int64_t outer, int64_t first) const {
    int64_t at = first * strides[chain_.axes - 1];
    for (size_t axis = chain_.axes - 1; axis-- > 0; outer /= chain_.dims[axis])
      at += outer % chain_.dims[axis] * strides[axis];
    return at;
  }

  void run_part(const Part& part, const StepArgs& args, int64_t outer, int64_t first, char* scratch) const {
    const auto find = [&](Place place) -> char* {
      if (place.kind == Place::Kind::scratch) return scratch + place.at;
      if (place.kind == Place::Kind::output)
        return static_cast<char*>(args.outputs[place.at]) + offset(outputs_[place.at], outer, first);
      return static_cast<char*>(const_cast<void*>(args.inputs[place.at])) + offset(inputs_[place.at], outer, first);
    };
    std::array<const void*, kMostArguments> inputs;
    std::array<void*, kMostArguments> outputs;
    for (size_t i = 0; i < part.steps.size(); ++i) {
      std::transform(part.inputs[i].begin(), part.inputs[i].end(), inputs.begin(), find);
      std::transform(part.outputs[i].begin(), part.outputs[i].end(), outputs.begin(), find);
      part.steps[i]->run({inputs.data(), outputs.data(), scratch + part.scratch, serial_executor()});
    }
  }

  RowChain chain_;
  int workers_;
  std::vector<Dims> inputs_, outputs_;  // row_strides()
  Part whole_, rest_;
};

}  // namespace

std::optional<size_t> row_axes(const Node& node) {
  const bool reduces = node.op->has(kReduction) && std::string_view(node.op->name).starts_with("reduce_");
  if (!reduces && !node.is("softmax") && !node.is("log_softmax") && !node.is("layer_norm")) return std::nullopt;
  if (!node.result()->type.is_static() || (reduces && !node.attr().boolean("keep_dims"))) return std::nullopt;
  const auto rank = static_cast<int64_t>(node.inputs[0]->type.shape.rank());
  int64_t least = rank;
  const Dims axes = reduces ? node.attr().integers("axes") : Dims{node.attr().integer("axis")};
  for (int64_t axis : axes) least = std::min(least, axis < 0 ? axis + rank : axis);
  if (least == 0 || least == rank) return std::nullopt;
  return static_cast<size_t>(least);
}

bool goes_by_rows(const Node& node, const Type& like, size_t axes) {
  if (node.results.size() != 1 || !node.result()->type.is_static()) return false;
  const auto& dims = node.result()->type.shape.dims;
  if (dims.size() != like.shape.rank()) return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != like.shape.dims[i] && (i < axes || dims[i] != 1)) return false;
  if (const auto own = row_axes(node))
    return *own >= axes && node.inputs[0]->type.dtype == kF32 && node.inputs[0]->type.shape.rank() == dims.size();
  const auto is_of_bytes = [](const Value* value) { return is_byte(value->type.dtype); };
  return ElementwiseProgram::takes(node) && std::none_of(node.inputs.begin(), node.inputs.end(), is_of_bytes);
}

Refusal refuses_row_slices(const Group& group) {
  const auto chain = read_chain(group);
  if (auto* reason = std::get_if<std::string>(&chain)) return *reason;
  for (const Value* output : group.outputs)
    if (output->type.dtype == kBool) return "result is bool, takes floats";
  const auto& found = std::get<RowChain>(chain);
  if (!slice_chain(group, found, found.rows)) return "a part has no kernel";
  return std::nullopt;
}

std::unique_ptr<Step> make_row_slices(const Group& group, MakeContext& context) {
  return std::make_unique<RowSlicesStep>(group, std::get<RowChain>(read_chain(group)), context);
}

}  // namespace cairn
