#include "engines/cpu/program.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "engines/cpu/byte_table.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/move.h"
#include "engines/cpu/vector_loops.h"
#include "passes/facts.h"

namespace cairn {

namespace {

// Rows shorter than this are collected in tiles for generated code: a call of it costs as much as to spread 70 floats.
constexpr int64_t kShortRow = 96;

void halves_to_floats(int64_t count, const uint16_t* from, int64_t step, float* to) {
  if (step == 1) return widen(Form::halves, count, from, to);
  for (int64_t i = 0; i < count; ++i) to[i] = half_to_float(from[i * step]);
}
void brains_to_floats(int64_t count, const uint16_t* from, int64_t step, float* to) {
  if (step == 1) return widen(Form::brains, count, from, to);
  for (int64_t i = 0; i < count; ++i) to[i] = bfloat_to_float(from[i * step]);
}

CAIRN_VECTORISED(void, unsigned_to_floats, (int64_t count, const uint8_t* from, int64_t step, float* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i * step]);
}
CAIRN_VECTORISED(void, signed_to_floats, (int64_t count, const int8_t* from, int64_t step, float* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i * step]);
}
CAIRN_VECTORISED(void, flags_to_floats, (int64_t count, const uint8_t* from, float* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i] != 0);
}

}  // namespace

const ElementwiseProgram::Row ElementwiseProgram::kRows[] = {
#define CAIRN_VECTOR(name, instruction, f32) {name, Op::instruction},
#define CAIRN_VECTOR_WITH(name, instruction, low, high, f32) {name, Op::instruction, low, high},
#include "engines/cpu/element_table.h"
};

namespace {

bool is_number_or_bool(const Type& type) {
  return type.is_static() && (type.dtype == kF32 || type.dtype == kBool || is_narrow(type.dtype));
}

float zero_point(const Node& node) {
  const Tensor& zero = *constant_of(node.inputs[2]);
  return static_cast<float>(zero.dtype() == kU8 ? zero.values<uint8_t>()[0] : zero.values<int8_t>()[0]);
}

// Whether the node makes floats of integers of 8 bits, or these of floats, by one known zero point. Integers are multiplied by one
// scale or by one for each column; floats are divided by one known scale that is neither huge nor tiny.
bool is_quantisation(const Node& node) {
  const bool makes_floats = node.is("dequantize_linear");
  if (!makes_floats && !node.is("quantize_linear")) return false;
  const Value *x = node.inputs[0], *scale = node.inputs[1], *zero = node.inputs[2];
  if (!is_byte(zero->type.dtype) || !constant_of(zero) || constant_of(zero)->count() != 1) return false;
  if (!x->type.is_static() || !scale->type.is_static() || scale->type.dtype != kF32) return false;
  const auto dims = scale->type.shape.sizes();
  const int64_t scales = *element_count(dims);
  if (makes_floats) return scales == 1 || (dims.back() == scales && x->type.shape.sizes().back() == scales);
  if (scales != 1 || x->type.dtype != kF32 || !constant_of(scale)) return false;
  const float by = constant_of(scale)->values<float>()[0];
  return by > 1e-25F && by < 1e25F;
}

ElementInstruction quantisation_of(const Node& node) {
  const float zero = zero_point(node);
  if (node.is("dequantize_linear")) return {.op = ElementOp::dequantise, .low = zero};
  const bool is_signed = node.result()->type.dtype == kI8;
  return {.op = is_signed ? ElementOp::quantise_signed : ElementOp::quantise_unsigned,
          .low = (is_signed ? -128.F : 0.F) - zero,
          .high = 1 / constant_of(node.inputs[1])->values<float>()[0]};
}

// The operands of the instruction.
std::span<Value* const> operands_of(const Node& node) {
  return std::span(node.inputs).first(is_quantisation(node) ? 2 : node.inputs.size());
}

// Whether the instruction's result has to be rounded to the type of the node's.
bool rounds(const Node& node) {
  const DType to = node.result()->type.dtype;
  const auto has_that = [&](const Value* input) { return input->type.dtype == to || input->type.dtype == kBool; };
  return is_narrow(to) && !(makes_no_digits(node) && std::all_of(node.inputs.begin(), node.inputs.end(), has_that));
}

// The value of an attribute that is a number or a flag.
float number_of(const Node& node, const char* attribute) {
  const Attribute& value = node.attr().get(attribute);
  const bool* flag = std::get_if<bool>(&value);
  return flag ? static_cast<float>(*flag) : static_cast<float>(std::get<double>(value));
}

// The values that the element-wise nodes of a group read and do not make: inputs of the group, or parts of them.
std::vector<const Value*> operands_of(const Group& group) {
  std::vector<const Value*> operands, made;
  for (const Node* node : group.nodes)
    if (!ElementwiseProgram::reads_part(*node)) made.push_back(node->result());
  for (const Node* node : group.nodes)
    for (const Value* input : operands_of(*node)) {
      const auto is_in = [&](const auto& list) { return std::find(list.begin(), list.end(), input) != list.end(); };
      if (!ElementwiseProgram::reads_part(*node) && !is_in(made) && !is_in(operands)) operands.push_back(input);
    }
  return operands;
}

bool is_in(const Group& group, const Node* node) {
  return node && std::find(group.nodes.begin(), group.nodes.end(), node) != group.nodes.end();
}

}  // namespace

const ElementwiseProgram::Row* ElementwiseProgram::find(const Node& node) {
  static constexpr Row kCast = {"cast", Op::copy};
  if (node.is("cast") && node.result()->type.dtype != kBool) return &kCast;
  for (const Row& row : kRows)
    if (node.is(row.name)) return &row;
  return nullptr;
}

ElementInstruction ElementwiseProgram::instruction_of(const Node& node) {
  const Row& row = *find(node);
  return {
      .op = row.op, .low = row.low ? number_of(node, row.low) : 0, .high = row.high ? number_of(node, row.high) : 0};
}

bool ElementwiseProgram::takes(const Node& node) {
  if (!node.op->has(kElementwise) || !node.op->pure() || node.results.size() != 1 || node.inputs.empty()) return false;
  if (is_quantisation(node)) return true;
  const auto fits = [](const Value* value) { return is_number_or_bool(value->type); };
  return fits(node.result()) && std::all_of(node.inputs.begin(), node.inputs.end(), fits) && find(node) != nullptr;
}

size_t ElementwiseProgram::instructions_of(const Node& node) { return rounds(node) ? 2 : 1; }

bool ElementwiseProgram::reads_part(const Node& node) {
  constexpr int64_t kLeastRow = 4;  // floats, below which to look up an index for each costs more than a copy
  if (node.is("gather")) {
    const Value *x = node.inputs[0], *indices = node.inputs[1];
    if (!x->type.is_static() || !indices->type.is_static() || x->type.dtype != kF32) return false;
    if (indices->type.dtype != kI32 && indices->type.dtype != kI64) return false;
    const int64_t count = *element_count(indices->type.shape.sizes());
    return count > 0 && GatherRows(node).inner >= kLeastRow;
  }
  return node.is("slice") && is_number_or_bool(node.result()->type) && is_number_or_bool(node.inputs[0]->type) &&
         constant_of(node.inputs[1]);
}

std::optional<std::string> ElementwiseProgram::refuses(const Group& group) {
  if (group.outputs.empty()) return "has no result";
  const Type& result = group.outputs[0]->type;
  if (group.nodes.size() == 1 && is_quantisation(group.last())) return "is a quantisation alone";
  size_t instructions = 0;
  for (const Node* node : group.nodes) {
    if (reads_part(*node) && group.nodes.size() > 1) {
      if (node->is("gather") && node->result()->type != result) return "shapes differ inside the group";
      continue;
    }
    if (!is_quantisation(*node) && !find(*node)) return fmt::format("has no instruction for {}", node->op->name);
    if (node->results.size() != 1 || node->result()->type.shape != result.shape)
      return "shapes differ inside the group";
    instructions += instructions_of(*node);
    if (is_quantisation(*node)) continue;
    if (!is_number_or_bool(node->result()->type))
      return fmt::format("{} makes {}", node->op->name, to_string(node->result()->type));
    for (const Value* input : node->inputs)
      if (!is_number_or_bool(input->type))
        return fmt::format("input is {}, takes floats up to f32, and bool", to_string(input->type));
  }
  for (const Value* output : group.outputs)
    if (output->type.dtype == kBool) return "a result is bool, takes floats";
  const std::vector<const Value*> operands = operands_of(group);
  for (const Value* input : operands) {
    if (input->type.shape.rank() > result.shape.rank()) return "an input has more dims than the result";
  }
  if (operands.size() + instructions > static_cast<size_t>(kMostRegisters)) return "is too long";
  if (result.shape.rank() > Odometer::kMostDims) return "has too many dims";
  return std::nullopt;
}

ElementwiseProgram::Operand ElementwiseProgram::operand_of(size_t buffer, const Type& type,
                                                           const std::vector<int64_t>* given) const {
  Operand operand;
  operand.buffer = buffer;
  operand.form = form_of(type.dtype);
  const auto dims = type.shape.sizes();
  const bool strided = given && !given->empty();
  operand.full = dims == dims_ && !strided;
  operand.single = dims != dims_ && *element_count(dims) == 1;
  operand.strides.assign(dims_.size(), 0);
  int64_t stride = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    const size_t from_end = dims.size() - 1 - d;
    if (dims[from_end] != 1) operand.strides[dims_.size() - 1 - d] = strided ? (*given)[from_end] : stride;
    stride *= dims[from_end];
  }
  return operand;
}

ElementwiseProgram::Operand ElementwiseProgram::part_of(size_t buffer, const Node& slice) const {
  const auto begin = slice_begin(slice);
  const auto& steps = slice.attr().integers("steps");
  auto strides = row_major_strides(slice.inputs[0]->type.shape.sizes());
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += begin[i] * strides[i];
    if (!steps.empty()) strides[i] *= steps[i];
  }
  Operand operand = operand_of(buffer, slice.result()->type, &strides);
  operand.part = true, operand.offset = offset;
  return operand;
}

ElementwiseProgram::Operand ElementwiseProgram::gathered(const Group& group, const Node& node) const {
  Operand operand = operand_of(index_of(group, node.inputs[0]), node.result()->type, nullptr);
  operand.part = true;
  operand.gather.emplace(node);
  operand.indices = index_of(group, node.inputs[1]);
  return operand;
}

ElementwiseProgram::ElementwiseProgram(const Group& group, const GroupStrides& strides) {
  dims_ = group.outputs[0]->type.shape.sizes();
  count_ = *element_count(dims_);
  std::unordered_map<const Value*, int> registers;
  for (const Value* value : operands_of(group)) {
    registers.emplace(value, static_cast<int>(operands_.size()));
    if (is_in(group, value->producer) && value->producer->is("gather")) {
      operands_.push_back(gathered(group, *value->producer));
      continue;
    }
    if (is_in(group, value->producer)) {
      operands_.push_back(part_of(index_of(group, value->producer->inputs[0]), *value->producer));
      continue;
    }
    const size_t i = index_of(group, value);
    operands_.push_back(operand_of(i, value->type, strides.inputs.empty() ? nullptr : &strides.inputs[i]));
  }
  for (size_t i = 0; i < group.outputs.size(); ++i)
    targets_.push_back(operand_of(i, group.outputs[i]->type, strides.outputs.empty() ? nullptr : &strides.outputs[i]));
  int next = static_cast<int>(operands_.size());
  for (const Node* node : group.nodes) {
    if (reads_part(*node)) continue;
    ElementInstruction code = is_quantisation(*node) ? quantisation_of(*node) : instruction_of(*node);
    for (size_t i = 0; i < operands_of(*node).size(); ++i) code.sources[i] = registers.at(node->inputs[i]);
    code_.push_back(code);
    if (rounds(*node)) {
      const Op round = node->result()->type.dtype == kF16 ? Op::round_half : Op::round_brain;
      code_.push_back({.op = round, .sources = {next++, 0, 0}});
    }
    registers.emplace(node->result(), next++);
  }
  for (const Value* output : group.outputs) {
    const int target = registers.at(output);
    code_[static_cast<size_t>(target) - operands_.size()].output = static_cast<int>(outputs_.size());
    outputs_.push_back(target);
  }
  take_few_digits();
  merge_dims();
  find_rows();
  make_kernel();
  find_table();
}

// Functions whose results only sums, products and choices read before these are rounded to 16 bits need no more digits.
void ElementwiseProgram::take_few_digits() {
  constexpr std::pair<Op, Op> kFew[] = {
      {Op::sigmoid, Op::sigmoid_few}, {Op::tanh, Op::tanh_few}, {Op::gelu, Op::gelu_few}};
  constexpr Op kKeep[] = {Op::copy, Op::add,  Op::sub,  Op::mul,     Op::div,     Op::neg,
                          Op::abs,  Op::relu, Op::clip, Op::maximum, Op::minimum, Op::leaky_relu};
  std::vector<bool> few(code_.size(), false);  // whether all that reads the result is rounded
  for (size_t i = code_.size(); i-- > 0;) {
    const int result = static_cast<int>(operands_.size() + i);
    few[i] = code_[i].output < 0;
    for (size_t j = i + 1; j < code_.size() && few[i]; ++j) {
      if (std::ranges::find(code_[j].sources, result) == std::end(code_[j].sources)) continue;
      const bool keeps = std::ranges::find(kKeep, code_[j].op) != std::end(kKeep) && few[j];
      few[i] = keeps || code_[j].op == Op::round_half || code_[j].op == Op::round_brain;
    }
    for (auto [op, with_few] : kFew)
      if (few[i] && code_[i].op == op) code_[i].op = with_few;
  }
}

// Merges adjacent dims that are contiguous in every operand.
void ElementwiseProgram::merge_dims() {
  for (size_t d = dims_.size(); d-- > 1;) {
    const auto one_walk = [&](const Operand& operand) {
      return dims_[d] == 1 || dims_[d - 1] == 1 || operand.strides[d - 1] == operand.strides[d] * dims_[d];
    };
    if (!std::all_of(operands_.begin(), operands_.end(), one_walk) ||
        !std::all_of(targets_.begin(), targets_.end(), one_walk))
      continue;
    for (auto* list : {&operands_, &targets_})
      for (Operand& operand : *list)
        operand.strides.erase(operand.strides.begin() + static_cast<std::ptrdiff_t>(dims_[d] == 1 ? d : d - 1));
    dims_[d - 1] *= dims_[d];
    dims_.erase(dims_.begin() + static_cast<std::ptrdiff_t>(d));
  }
  for (Operand& operand : operands_)
    if (operand.part && !operand.gather && operand.strides == row_major_strides(dims_)) operand.full = true;
}

void ElementwiseProgram::merge_items(Operand& operand) const {
  std::vector<int64_t>&items = operand.items, &steps = operand.steps;
  for (size_t d = 0; d < dims_.size(); ++d) {
    if (!items.empty() && steps.back() == operand.strides[d] * dims_[d]) {
      items.back() *= dims_[d], steps.back() = operand.strides[d];
    } else {
      items.push_back(dims_[d]), steps.push_back(operand.strides[d]);
    }
  }
  const bool few = items.size() > 1 && steps.back() == 1 && (items.back() == 2 || items.back() == 4);
  if (!few || operand.form != Form::floats || inner() % items.back() != 0) return;
  operand.width = items.back();
  items.pop_back(), steps.pop_back();
}

void ElementwiseProgram::find_rows() {
  for (auto* list : {&operands_, &targets_})
    for (Operand& operand : *list) {
      merge_items(operand);
      operand.jumps.resize(operand.items.size() < 2 ? 0 : operand.items.size() - 2);
      int64_t back = 0;
      for (size_t d = operand.jumps.size(); d-- > 0; back += operand.steps[d] * (operand.items[d] - 1))
        operand.jumps[d] = operand.steps[d] - back;
      size_t first = 0;
      while (first < dims_.size() && operand.strides[first] == 0) ++first;
      int64_t period = 1;
      for (size_t d = first; d < dims_.size() && period <= kTile; ++d) period *= dims_[d];
      if (first > 0 && period <= kTile) operand.period = period;
    }
}

void ElementwiseProgram::make_kernel() {
  using Way = Operand::Way;
  ElementSpec spec{.single = {}, .code = code_};
  // Numbers that are spread over all elements are floats.
  const auto is_spread = [](const Operand& operand) {
    const bool one = operand.single || operand.strides.empty() || operand.strides.back() == 0;
    return operand.form == Form::bools || (operand.form != Form::floats && one);
  };
  for (Operand& operand : operands_) {
    const bool far =
        !operand.single && !operand.strides.empty() && operand.strides.back() != 0 && operand.strides.back() != 1;
    if (operand.gather)
      operand.way = Way::tile;
    else if (!operand.direct())
      operand.way = operand.period > 0 && !operand.single                                   ? Way::period
                    : is_spread(operand) || far || (!operand.single && inner() < kShortRow) ? Way::tile
                                                                                            : Way::row;
    by_tiles_ |= (operand.way == Way::tile || operand.way == Way::period) && !operand.single;
    by_rows_ |= operand.way == Way::row && !operand.single;
    spec.single.push_back(operand.single || (operand.way == Way::row && operand.strides.back() == 0));
    spec.inputs.push_back(operand.way == Way::direct || operand.way == Way::row ? operand.form : Form::floats);
  }
  for (Operand& target : targets_) {
    spec.outputs.push_back(target.full ? target.form : Form::floats);
    if (target.full) continue;
    target.way = target.strides.back() == 1 && inner() >= kShortRow ? Way::row : Way::tile;
    if (target.way == Way::row) spec.outputs.back() = target.form;
    by_tiles_ |= target.way == Way::tile;
    by_rows_ |= target.way == Way::row;
  }
  const auto repeats = [](const Operand& operand) { return operand.way == Way::period; };
  if (by_tiles_ && std::none_of(operands_.begin(), operands_.end(), repeats)) tile_ = kLargeTile;
  if (by_tiles_ && count_ > 0 && inner() < tile_) tile_ = tile_ / inner() * inner();
  kernel_ = ElementKernel::make(machine_isa(), spec);
}

bool ElementwiseProgram::gathers() const {
  return std::any_of(operands_.begin(), operands_.end(), [](const Operand& each) { return each.gather.has_value(); });
}

bool ElementwiseProgram::reads(size_t input) const {
  return std::any_of(operands_.begin(), operands_.end(), [&](const Operand& each) {
    return each.buffer == input || (each.gather && each.indices == input);
  });
}

std::vector<size_t> ElementwiseProgram::aligned_inputs() const {
  std::vector<size_t> inputs;
  for (const Operand& operand : operands_) {
    const auto lies_so = [&](const Operand& target) {
      if (bytes_of(target.form) != bytes_of(operand.form)) return false;
      return target.full ? operand.full : !operand.full && !operand.single && operand.strides == target.strides;
    };
    const auto reads_part = [&](const Operand& other) { return other.part && other.buffer == operand.buffer; };
    if (operand.form != Form::bools && !operand.gather &&
        std::none_of(operands_.begin(), operands_.end(), reads_part) &&
        std::all_of(targets_.begin(), targets_.end(), lies_so))
      inputs.push_back(operand.buffer);
  }
  return inputs;
}

bool ElementwiseProgram::reads_far() const {
  constexpr int64_t kMany = 2 << 10, kFar = 16;
  const auto far = [](const Operand& operand) {
    return !operand.full && !operand.single && std::abs(operand.strides.back()) >= kFar;
  };
  return count_ >= kMany &&
         (std::any_of(operands_.begin(), operands_.end(), far) || std::any_of(targets_.begin(), targets_.end(), far));
}

template <class Run>
void ElementwiseProgram::walk(const Operand& operand, int64_t first, int64_t count, Run&& run) const {
  if (operand.full) return run(first, Block{1, 0, count, 1});
  if (operand.single) return run(0, Block{1, 0, count, 0});
  if (operand.width > 1) first /= operand.width, count /= operand.width;
  const size_t rank = operand.items.size();
  const int64_t step = rank > 1 ? operand.steps[rank - 2] : 0, most = rank > 1 ? operand.items[rank - 2] : 1;
  const int64_t stride = operand.steps.back(), inner = operand.items.back();
  const int64_t whole = first / inner, outer = rank > 2 ? whole / most : 0;  // divisions are what short walks cost
  int64_t row = whole - outer * most, column = first - whole * inner;
  Odometer block({operand.items.data(), operand.jumps.size()}, outer);
  for (int64_t at = block.offset(operand.steps); count > 0;) {
    const int64_t columns = std::min(count, inner - column);
    const int64_t rows = columns < inner ? 1 : std::min(count / inner, most - row);
    run(at + row * step + column * stride, Block{rows, step, columns, stride});
    count -= rows * columns, row += rows, column = 0;
    if (row == most && count > 0 && rank > 2) row = 0, at += operand.jumps[block.next()];
  }
}

void ElementwiseProgram::load_gathered(const GatherRows& gather, const GatherSource& source, int64_t first,
                                       int64_t count, float* to) {
  int64_t offsets[kLargeTile];
  int64_t row = first / gather.inner, column = first - row * gather.inner;
  int64_t part = row / gather.picks, pick = row - part * gather.picks;
  while (count > 0) {
    const int64_t columns = std::min(count, gather.inner - column);
    const int64_t rows = columns < gather.inner ? 1 : std::min(count / columns, gather.picks - pick);
    gather.offsets(part, pick, rows, source.indices, offsets);
    vector_loops().copy_rows_at(rows, columns, source.rows + column, offsets, to);
    pick += rows, column = 0, to += rows * columns, count -= rows * columns;
    if (pick == gather.picks) pick = 0, ++part;
  }
}

void ElementwiseProgram::load(const Operand& operand, const void* data, int64_t first, int64_t count, float* to) const {
  if (operand.gather) return load_gathered(*operand.gather, *static_cast<const GatherSource*>(data), first, count, to);
  const VectorLoops& loops = vector_loops();
  const auto* floats = static_cast<const float*>(data);
  const auto* bytes = static_cast<const uint8_t*>(data);
  const auto* narrow = static_cast<const uint16_t*>(data);
  const bool is_float = operand.form == Form::floats;
  const auto collect = [&](int64_t at, int64_t many, int64_t step, float* values) {
    if (operand.form == Form::bools && step == 1)
      flags_to_floats(many, bytes + at, values);
    else if (operand.form == Form::halves)
      halves_to_floats(many, narrow + at, step, values);
    else if (operand.form == Form::brains)
      brains_to_floats(many, narrow + at, step, values);
    else if (operand.form == Form::unsigned_bytes)
      unsigned_to_floats(many, bytes + at, step, values);
    else if (operand.form == Form::signed_bytes)
      signed_to_floats(many, reinterpret_cast<const int8_t*>(bytes) + at, step, values);
    else if (!is_float)
      for (int64_t i = 0; i < many; ++i) values[i] = static_cast<float>(bytes[at + i * step] != 0);
    else
      for (int64_t i = 0; i < many; ++i) values[i] = floats[at + i * step];
  };
  const int64_t width = operand.width;
  walk(operand, first, count, [&](int64_t at, const Block& block) {
    float values[kLargeTile];
    if (block.stride == 0 && is_float && block.step == width) {
      loops.spread_rows(block.rows, block.columns, width, floats + at, to);
    } else if (block.stride == 0) {
      width == 1 ? collect(at, block.rows, block.step, values)
                 : loops.copy_rows(block.rows, width, floats + at, block.step, values);
      loops.spread_rows(block.rows, block.columns, width, values, to);
    } else if (block.stride == width && is_float) {
      loops.copy_rows(block.rows, block.columns * width, floats + at, block.step, to);
    } else if (block.stride == 1 && is_narrow(operand.form)) {
      widen_rows(operand.form, block.rows, block.columns, narrow + at, block.step, to);
    } else if (width > 1) {
      for (int64_t row = 0; row < block.rows; ++row)
        loops.copy_rows(block.columns, width, floats + at + row * block.step, block.stride,
                        to + row * block.columns * width);
    } else {
      for (int64_t row = 0; row < block.rows; ++row)
        collect(at + row * block.step, block.columns, block.stride, to + row * block.columns);
    }
    to += block.rows * block.columns * width;
  });
}

void ElementwiseProgram::store(const Operand& target, const float* from, int64_t first, int64_t count,
                               void* data) const {
  const auto put = [&](auto* to, auto convert) {
    walk(target, first, count, [&](int64_t at, const Block& block) {
      for (int64_t row = 0; row < block.rows; ++row, at += block.step)
        for (int64_t i = 0; i < block.columns; ++i)
          for (int64_t k = 0; k < target.width; ++k) to[at + i * block.stride + k] = convert(*from++);
    });
  };
  if (target.form == Form::floats) return put(static_cast<float*>(data), [](float value) { return value; });
  if (target.form == Form::halves) return put(static_cast<uint16_t*>(data), float_to_half);
  if (target.form == Form::brains) return put(static_cast<uint16_t*>(data), float_to_bfloat);
  put(static_cast<uint8_t*>(data), [](float value) { return static_cast<uint8_t>(static_cast<int32_t>(value)); });
}

void ElementwiseProgram::load_singles(const void* const* inputs, float* registers) const {
  for (size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i].single)
      load(operands_[i], inputs[i], 0, std::min(kTile, count_), registers + static_cast<int64_t>(i) * kTile);
}

void ElementwiseProgram::run_tile(const void* const* inputs, void* const* outputs, uint64_t direct, int64_t first,
                                  int64_t count, float* registers) const {
  const VectorLoops& loops = vector_loops();
  const float* sources[kMostRegisters];
  const bool whole = count == kTile;
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    const void* data = inputs[i];
    float* to = registers + static_cast<int64_t>(i) * kTile;
    sources[i] = to;
    if (operand.direct() && whole && operand.form == Form::floats)
      sources[i] = static_cast<const float*>(data) + first;
    else if (!operand.single)
      load(operand, data, first, count, to);
  }
  for (size_t i = 0; i < code_.size(); ++i) {
    const ElementInstruction& code = code_[i];
    const size_t target = operands_.size() + i;
    float* to = registers + static_cast<int64_t>(target) * kTile;
    if (whole && code.output >= 0 && direct >> code.output & 1) to = static_cast<float*>(outputs[code.output]) + first;
    const float *a = sources[code.sources[0]], *b = sources[code.sources[1]], *c = sources[code.sources[2]];
    loops.execute(code.op, code.low, code.high, a, b, c, to);
    sources[target] = to;
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const float* made = sources[outputs_[i]];
    auto* data = static_cast<float*>(outputs[i]);
    if (!targets_[i].full || targets_[i].form != Form::floats)
      store(targets_[i], made, first, count, data);
    else if (made != data + first)
      std::copy_n(made, count, data + first);
  }
}

void ElementwiseProgram::interpret(const void* const* inputs, void* const* outputs, int64_t first, int64_t last) const {
  alignas(64) float registers[kMostRegisters * kTile];
  uint64_t direct = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool is_last = outputs_[i] == static_cast<int>(operands_.size() + code_.size() - 1);
    const bool shared = std::find(inputs, inputs + operands_.size(), outputs[i]) != inputs + operands_.size();
    if (targets_[i].full && targets_[i].form == Form::floats && (is_last || !shared)) direct |= uint64_t{1} << i;
  }
  load_singles(inputs, registers);
  for (; first < last; first += kTile)
    run_tile(inputs, outputs, direct, first, std::min(kTile, last - first), registers);
}

void ElementwiseProgram::run_interpreted(Executor& executor, const void* const* inputs, void* const* outputs) const {
  const int64_t tiles = (count_ + kTile - 1) / kTile;
  const int64_t each = std::clamp<int64_t>(tiles / (executor.width() * 8), 16, kMostChunk / kTile) * kTile;
  executor.run(static_cast<int>((count_ + each - 1) / each),
               [&](int index, int) { interpret(inputs, outputs, index * each, std::min(count_, (index + 1) * each)); });
}

// Computes elements [first, last) with the generated code, in pieces in which every operand is contiguous or one
// number.
void ElementwiseProgram::run_chunk(const void* const* inputs, void* const* outputs, int64_t first, int64_t last) const {
  using Way = Operand::Way;
  alignas(64) float tiles[kMostRegisters * kLargeTile];
  const auto tile = [&](size_t i) { return tiles + static_cast<int64_t>(i) * kLargeTile; };
  const void* from[kMostRegisters];
  void* to[kMostRegisters];
  for (size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i].way == Way::period)
      load(operands_[i], inputs[i], 0, std::min(count_, operands_[i].period + kTile), tile(i));
  std::optional<Odometer> row;
  if (by_rows_) row.emplace(std::span(dims_).first(dims_.size() - 1), first / inner());
  for (int64_t at = first, many = 0, column = first % inner(); at < last; at += many) {
    many = last - at;
    if (by_tiles_) many = std::min(many, tile_);
    if (by_rows_) many = std::min(many, inner() - column);
    const auto in_row = [&](const Operand& operand) {
      return operand.single ? 0 : row->offset(operand.strides) + column * operand.strides.back();
    };
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& operand = operands_[i];
      const auto* data = static_cast<const char*>(inputs[i]);
      const int64_t bytes = bytes_of(operand.form);
      if (operand.way == Way::tile) load(operand, data, at, operand.single ? 1 : many, tile(i));
      from[i] = operand.way == Way::direct   ? static_cast<const void*>(data + at * bytes)
                : operand.way == Way::row    ? static_cast<const void*>(data + in_row(operand) * bytes)
                : operand.way == Way::period ? tile(i) + at % operand.period
                                             : tile(i);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Operand& target = targets_[i];
      auto* data = static_cast<char*>(outputs[i]);
      const int64_t bytes = bytes_of(target.form);
      to[i] = target.full              ? static_cast<void*>(data + at * bytes)
              : target.way == Way::row ? static_cast<void*>(data + in_row(target) * bytes)
                                       : tile(operands_.size() + i);
    }
    kernel_->function()(from, to, many);
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (!targets_[i].full && targets_[i].way == Operand::Way::tile)
        store(targets_[i], static_cast<const float*>(to[i]), at, many, outputs[i]);
    if (!by_rows_) continue;
    column += many;
    if (column == inner()) row->next(), column = 0;
  }
}

void ElementwiseProgram::run_generated(Executor& executor, const void* const* inputs, void* const* outputs) const {
  const int64_t wanted = (count_ / (executor.width() * 8) + tile_ - 1) / tile_;
  const int64_t each = std::clamp<int64_t>(wanted, 16, std::max<int64_t>(16, kMostChunk / tile_)) * tile_;
  executor.run(static_cast<int>((count_ + each - 1) / each),
               [&](int index, int) { run_chunk(inputs, outputs, index * each, std::min(count_, (index + 1) * each)); });
}

// Bytes made of one tensor of bytes and of single numbers: the program makes a table of all 256 in each run. To look one up costs as
// much as two instructions with AVX2.
void ElementwiseProgram::find_table() {
  constexpr int64_t kLeastElements = 1 << 10;
  constexpr size_t kLeastInstructions = 3;
  if (count_ < kLeastElements || code_.size() < kLeastInstructions || targets_.size() != 1 || !goes_by_elements())
    return;
  std::optional<size_t> bytes;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].single) continue;
    if (bytes || !is_byte(operands_[i].form)) return;
    bytes = i;
  }
  if (is_byte(targets_[0].form)) by_table_ = bytes;
}

void ElementwiseProgram::run_by_table(Executor& executor, const void* const* inputs, void* const* outputs) const {
  constexpr int64_t kAll = 256, kChunk = 32 << 10;
  uint8_t all[kAll], table[kAll];
  std::iota(all, all + kAll, uint8_t{0});
  const void* from[kMostRegisters];
  std::copy_n(inputs, operands_.size(), from);
  from[*by_table_] = all;
  void* const to = table;
  kernel_ ? run_chunk(from, &to, 0, kAll) : interpret(from, &to, 0, kAll);
  const auto* bytes = static_cast<const uint8_t*>(inputs[*by_table_]);
  executor.run(static_cast<int>((count_ + kChunk - 1) / kChunk), [&](int index, int) {
    const int64_t first = index * kChunk;
    look_up(std::min(kChunk, count_ - first), bytes + first, table, static_cast<uint8_t*>(outputs[0]) + first);
  });
}

bool ElementwiseProgram::goes_by_elements() const {
  const auto at_its_place = [](const Operand& each) { return (each.full || each.single) && !each.part; };
  return std::all_of(operands_.begin(), operands_.end(), at_its_place) &&
         std::all_of(targets_.begin(), targets_.end(), at_its_place);
}

void ElementwiseProgram::run_part(const void* const* inputs, void* const* outputs, int64_t first, int64_t last) const {
  const void* starts[kMostRegisters];  // by operand
  for (size_t i = 0; i < operands_.size(); ++i) starts[i] = inputs[operands_[i].buffer];
  kernel_ ? run_chunk(starts, outputs, first, last) : interpret(starts, outputs, first, last);
}

void ElementwiseProgram::run(Executor& executor, const void* const* inputs, void* const* outputs) const {
  const void* starts[kMostRegisters];  // by operand
  GatherSource gathered[kMostRegisters];
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    starts[i] = static_cast<const char*>(inputs[operand.buffer]) + operand.offset * bytes_of(operand.form);
    if (!operand.gather) continue;
    operand.gather->check(inputs[operand.indices]);
    gathered[i] = {static_cast<const float*>(inputs[operand.buffer]), inputs[operand.indices]};
    starts[i] = &gathered[i];
  }
  if (by_table_) return run_by_table(executor, starts, outputs);
  kernel_ ? run_generated(executor, starts, outputs) : run_interpreted(executor, starts, outputs);
}

}  // namespace cairn
