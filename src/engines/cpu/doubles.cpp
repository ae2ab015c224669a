#include "engines/cpu/doubles.h"

#include "engines/cpu/double_loops.h"
#include "engines/cpu/elements.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/odometer.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

constexpr int64_t kTile = 128;         // elements of a register
constexpr size_t kMostRegisters = 64;  // 64 KiB of a thread's stack

struct Row {
  const char* name;
  ElementOp op;
  const char *low = nullptr, *high = nullptr;  // names of the attributes that the formula uses
};
constexpr Row kRows[] = {
#define CAIRN_VECTOR(name, instruction, f32) {name, ElementOp::instruction},
#define CAIRN_VECTOR_WITH(name, instruction, low, high, f32) {name, ElementOp::instruction, low, high},
#define CAIRN_NARROW(name, instruction, f32)
#include "engines/cpu/element_table.h"
};

const Row* row_of(const Node& node) {
  static constexpr Row kCast = {"cast", ElementOp::copy};
  if (node.is("cast")) return node.result()->type.dtype == kF64 ? &kCast : nullptr;
  for (const Row& row : kRows)
    if (node.is(row.name)) return &row;
  return nullptr;
}

bool is_double_or_bool(const Value* value) {
  return value->type.is_static() && (value->type.dtype == kF64 || value->type.dtype == kBool);
}

bool is_widened(const Node& node) {
  const DType from = node.inputs[0]->type.dtype;
  return node.is("cast") && node.inputs[0]->type.is_static() && (from == kF32 || from == kI32 || from == kI64);
}

double number_of(const Node& node, const char* attribute) {
  if (!attribute) return 0;
  const Attribute& value = node.attr().get(attribute);
  const bool* flag = std::get_if<bool>(&value);
  return flag ? static_cast<double>(*flag) : std::get<double>(value);
}

class Program {
 public:
  Program(const Group& group, const GroupStrides* given) {
    const Dims to = group.outputs[0]->type.shape.sizes();
    count_ = count_of(to);
    for (const Node* node : group.nodes) add(*node, group, given, to);
    for (const Value* value : group.outputs) {
      const size_t i = targets_.size();
      targets_.push_back({.buffer = i, .strides = walked_strides(to, given ? given->outputs[i] : Dims(), to)});
      results_.push_back(register_of_.at(value));
    }
    merge_dims(to);
    register_of_.clear();
  }

  size_t instructions() const { return code_.size(); }
  /// Inputs of which each element is read where it is written.
  std::vector<size_t> aligned_inputs() const {
    std::vector<size_t> aligned;
    if (!std::all_of(targets_.begin(), targets_.end(), [](const Operand& target) { return target.full; }))
      return aligned;
    for (const Operand& operand : operands_)
      if (operand.dtype == kF64 && operand.full) aligned.push_back(operand.buffer);
    return aligned;
  }

  void run(const StepArgs& args) const {
    for_ranges(args.executor, (count_ + kTile - 1) / kTile, kTile * static_cast<int64_t>(code_.size()),
               [&](int64_t first, int64_t last) {
                 alignas(64) double registers[kMostRegisters * kTile];
                 for (const Operand& operand : operands_)
                   if (operand.single) load(operand, args, 0, kTile, at(registers, operand.place));
                 for (int64_t tile = first; tile < last; ++tile)
                   run_tile(args, registers, tile * kTile, std::min(kTile, count_ - tile * kTile));
               });
  }

 private:
  struct Operand {
    size_t buffer = 0;  // index into the group's inputs, or outputs
    DType dtype = kF64;
    size_t place = 0;  // its register
    Dims strides;      // in elements, over dims_
    bool full = false, single = false;
  };
  struct Instruction {
    DoubleLoop loop;
    double low, high;
    std::array<size_t, 3> from;
  };

  static double* at(double* registers, size_t place) { return registers + static_cast<int64_t>(place) * kTile; }

  void add(const Node& node, const Group& group, const GroupStrides* given, const Dims& to) {
    Instruction made{
        double_loop(row_of(node)->op), number_of(node, row_of(node)->low), number_of(node, row_of(node)->high), {}};
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Value* value = node.inputs[k];
      const auto known = register_of_.find(value);
      if (known != register_of_.end()) {
        made.from[k] = known->second;
        continue;
      }
      Operand operand{.buffer = index_of(group, value), .dtype = value->type.dtype, .place = registers_++};
      operand.strides = walked_strides(value->type.shape.sizes(), given ? given->inputs[operand.buffer] : Dims(), to);
      register_of_.emplace(value, made.from[k] = operand.place);
      operands_.push_back(std::move(operand));
    }
    for (size_t k = node.inputs.size(); k < 3; ++k) made.from[k] = made.from[0];
    made_at_.push_back(registers_);
    register_of_.emplace(node.result(), registers_++);
    code_.push_back(made);
  }

  /// Joins adjacent dims that every operand and result walks through as one.
  void merge_dims(const Dims& to) {
    std::vector<Operand*> all;
    for (Operand& operand : operands_) all.push_back(&operand);
    for (Operand& target : targets_) all.push_back(&target);
    std::vector<Dims> merged(all.size());
    for (size_t d = 0; d < to.size(); ++d) {
      if (to[d] == 1) continue;
      bool adjoins = !dims_.empty();
      for (size_t k = 0; k < all.size(); ++k) adjoins = adjoins && merged[k].back() == all[k]->strides[d] * to[d];
      for (size_t k = 0; k < all.size(); ++k) {
        if (adjoins) merged[k].pop_back();
        merged[k].push_back(all[k]->strides[d]);
      }
      adjoins ? void(dims_.back() *= to[d]) : dims_.push_back(to[d]);
    }
    if (dims_.empty()) {
      dims_.push_back(1);
      for (Dims& strides : merged) strides.push_back(1);
    }
    const Dims whole = strides_of(dims_);
    for (size_t k = 0; k < all.size(); ++k) {
      all[k]->strides = std::move(merged[k]);
      all[k]->full = all[k]->strides == whole;
      all[k]->single =
          count_ > 1 && std::all_of(all[k]->strides.begin(), all[k]->strides.end(), [](int64_t s) { return s == 0; });
    }
  }

  /// Calls part(place of the first, its stride, many) for the runs along the last dim of elements [first, first + count).
  template <class Part>
  void walk_rows(const Operand& operand, int64_t first, int64_t count, Part&& part) const {
    const int64_t inner = dims_.back(), step = operand.strides.back();
    Odometer row({dims_.data(), dims_.size() - 1}, first / inner);
    int64_t column = first % inner;
    for (int64_t many = 0; count > 0; count -= many, column = 0, row.next()) {
      many = std::min(inner - column, count);
      part(row.offset(operand.strides) + column * step, step, many);
    }
  }

  template <class T>
  void load_elements(const Operand& operand, const T* from, int64_t first, int64_t count, double* to) const {
    if (operand.single) return void(std::fill_n(to, count, static_cast<double>(from[0])));
    walk_rows(operand, first, count, [&](int64_t place, int64_t step, int64_t many) {
      if (step == 0)
        std::fill_n(to, many, static_cast<double>(from[place]));
      else
        for (int64_t i = 0; i < many; ++i) to[i] = static_cast<double>(from[place + i * step]);
      to += many;
    });
  }

  void load(const Operand& operand, const StepArgs& args, int64_t first, int64_t count, double* to) const {
    const void* from = args.inputs[operand.buffer];
    const auto as = [&](auto tag) {
      load_elements(operand, static_cast<const decltype(tag)*>(from), first, count, to);
    };
    if (operand.dtype == kF64) as(double());
    if (operand.dtype == kF32) as(float());
    if (operand.dtype == kI32) as(int32_t());
    if (operand.dtype == kI64) as(int64_t());
    if (operand.dtype == kBool) as(bool());
  }

  void run_tile(const StepArgs& args, double* registers, int64_t first, int64_t count) const {
    const int64_t vectors = (count + kDoubles - 1) / kDoubles;
    const bool whole = count == vectors * kDoubles;
    std::array<const double*, kMostRegisters> read;
    for (size_t i = 0; i < registers_; ++i) read[i] = at(registers, i);
    for (const Operand& operand : operands_) {
      if (operand.single) continue;
      if (whole && operand.full && operand.dtype == kF64) {
        read[operand.place] = input<double>(args, operand.buffer) + first;
        continue;
      }
      double* to = at(registers, operand.place);
      std::fill(to + count, to + vectors * kDoubles, 0.0);
      load(operand, args, first, count, to);
    }
    // The last instruction may write to its result's memory, which an input may share.
    const bool direct = whole && targets_.back().full && results_.back() == made_at_.back();
    for (size_t i = 0; i < code_.size(); ++i) {
      const Instruction& each = code_[i];
      double* to = direct && i + 1 == code_.size() ? output<double>(args, targets_.size() - 1) + first
                                                   : at(registers, made_at_[i]);
      each.loop(vectors, each.low, each.high, read[each.from[0]], read[each.from[1]], read[each.from[2]], to);
    }
    for (size_t i = 0; i + (direct ? 1 : 0) < targets_.size(); ++i) {
      const double* from = at(registers, results_[i]);
      walk_rows(targets_[i], first, count, [&](int64_t place, int64_t step, int64_t many) {
        double* to = output<double>(args, i) + place;
        for (int64_t k = 0; k < many; ++k) to[k * step] = *from++;
      });
    }
  }

  Dims dims_;
  int64_t count_ = 0;
  std::vector<Operand> operands_, targets_;
  std::vector<Instruction> code_;
  std::vector<size_t> made_at_, results_;  // registers of the instructions' results, and of the group's
  size_t registers_ = 0;
  std::unordered_map<const Value*, size_t> register_of_;  // while it is made
};

std::unique_ptr<Step> step_of(Program program) {
  CallOptions options{.in_place = program.aligned_inputs()};
  std::string name = fmt::format("doubles {}", program.instructions());
  return call(
      std::move(name), [program = std::move(program)](const StepArgs& args) { program.run(args); }, std::move(options));
}

}  // namespace

bool takes_doubles(const Node& node) {
  if (!node.op->has(kElementwise) || !node.op->pure() || node.results.size() != 1 || node.inputs.empty()) return false;
  if (node.inputs.size() > 3 || !is_double_or_bool(node.result())) return false;
  if (!is_widened(node) && !std::all_of(node.inputs.begin(), node.inputs.end(), is_double_or_bool)) return false;
  return row_of(node) != nullptr;
}

Refusal refuses_doubles(const Group& group) {
  if (group.outputs.empty()) return "has no result";
  const Type& result = group.outputs[0]->type;
  for (const Node* node : group.nodes) {
    if (!takes_doubles(*node)) return "is no operation on f64 with a loop";
    if (node->result()->type.shape != result.shape) return "shapes differ inside the group";
  }
  for (const Value* output : group.outputs)
    if (output->type.dtype != kF64) return "a result is no f64";
  if (group.inputs.size() + group.nodes.size() > kMostRegisters) return "is too long";
  if (result.shape.rank() > Odometer::kMostDims) return "has too many dims";
  return std::nullopt;
}

std::unique_ptr<Step> make_doubles(const Group& group, MakeContext&) { return step_of(Program(group, nullptr)); }

std::unique_ptr<Step> make_strided_doubles(const Group& group, const GroupStrides& strides) {
  return step_of(Program(group, &strides));
}

}  // namespace cairn
