#include "engines/cpu/widened_gradient.h"

#include "engines/cpu/groups.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/training.h"
#include "support/memory.h"

namespace cairn {

namespace {

constexpr size_t kMostOperands = 3;

/// The gradient alone as an operation on floats, and what it reads in the group in place of its operands.
struct Widened {
  std::vector<std::unique_ptr<Value>> operands;
  std::unique_ptr<Node> node;
  Group group;
  std::vector<const Value*> originals;
};

Refusal find_gradient(const Group& group, Widened& widened) {
  const auto found = as_contraction(group);
  if (!found || (!is_convolution(*found->node, ConvRole::input_gradient) &&
                 !is_convolution(*found->node, ConvRole::kernel_gradient)))
    return "is another operation";
  if (found->epilogue.bias || found->epilogue.residual || found->epilogue.activation) return "has an epilogue";
  std::unordered_map<const Value*, Value*> map;
  for (Value* value : found->node->inputs) {
    if (!map.try_emplace(value, value).second) continue;
    widened.originals.push_back(value);
    if (is_narrow(value->type.dtype)) {
      widened.operands.push_back(std::make_unique<Value>(Value{Type::tensor(kF32, value->type.shape)}));
      map[value] = widened.operands.back().get();
    }
    widened.group.inputs.push_back(map[value]);
  }
  if (widened.originals.size() > kMostOperands) return "has many operands";
  widened.node = clone(*found->node, map);
  widened.node->result()->type.dtype = kF32;
  widened.group.nodes = {widened.node.get()}, widened.group.outputs = {widened.node->result()};
  return refuses_depthwise_gradient(widened.group);
}

class WidenedStep final : public Step {
 public:
  WidenedStep(const Group& group, const Widened& widened, MakeContext& context)
      : step_(make_depthwise_gradient(widened.group, context)), result_(form_of(group.outputs[0]->type.dtype)) {
    for (const Value* value : widened.originals) {
      const bool is_float = value->type.dtype.is_float();
      operands_.push_back({index_of(group, value), count_of(value), is_float ? form_in(group, value) : Form::floats,
                           is_float ? precision_in(group, value) : Form::floats});
      workspace_ += operands_.back().bytes();
    }
    made_ = count_of(widened.group.outputs[0]);
    if (is_narrow(result_)) workspace_ += bytes_for(made_);
  }

  void run(const StepArgs& args) const override {
    auto* at = static_cast<char*>(args.workspace);
    const auto take = [&](size_t bytes) { return reinterpret_cast<float*>(std::exchange(at, at + bytes)); };
    std::array<const void*, kMostOperands> inputs{};
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& operand = operands_[i];
      inputs[i] = args.inputs[operand.index];
      if (!operand.bytes()) continue;
      const char* const from = input<char>(args, operand.index);
      float* const to = take(operand.bytes());
      for_ranges(args.executor, operand.count, 1, [&](int64_t first, int64_t last) {
        widen(operand.form, last - first, from + first * bytes_of(operand.form), to + first);
        if (is_narrow(operand.precision)) round_to(operand.precision, last - first, to + first);
      });
      inputs[i] = to;
    }
    void* made = is_narrow(result_) ? take(bytes_for(made_)) : args.outputs[0];
    step_->run({inputs.data(), &made, at, args.executor});
    if (!is_narrow(result_)) return;
    for_ranges(args.executor, made_, 1, [&](int64_t first, int64_t last) {
      narrow(result_, last - first, static_cast<float*>(made) + first, output<uint16_t>(args) + first);
    });
  }

  std::string kernel() const override { return step_->kernel() + ", widened"; }
  size_t workspace() const override { return workspace_ + step_->workspace(); }

 private:
  static int64_t count_of(const Value* value) { return *element_count(value->type.shape.sizes()); }
  static size_t bytes_for(int64_t floats) { return whole_lines(static_cast<size_t>(floats) * sizeof(float)); }
  struct Operand {
    size_t index;
    int64_t count;
    Form form, precision;
    size_t bytes() const { return is_narrow(form) || is_narrow(precision) ? bytes_for(count) : 0; }
  };

  std::unique_ptr<Step> step_;
  std::vector<Operand> operands_;
  Form result_;
  int64_t made_ = 0;
  size_t workspace_ = 0;
};

}  // namespace

Refusal refuses_widened_gradient(const Group& group) {
  Widened widened;
  return find_gradient(group, widened);
}

std::unique_ptr<Step> make_widened_gradient(const Group& group, MakeContext& context) {
  Widened widened;
  const Refusal refusal = find_gradient(group, widened);
  CHECK(!refusal, "{}", *refusal);
  return std::make_unique<WidenedStep>(group, widened, context);
}

}  // namespace cairn
