// TensorFlow's optimisers: each row reads its variables (the first inputs), passes them with the gradient and the
// hyperparameters to the formula, and assigns the new values.
#include "autodiff/updates.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

/// The inputs of one update: the weight and its slots as handles, then numbers and the gradient.
class Update {
 public:
  /// A sparse update has the indices of its rows after the gradient; this input is removed, so that the inputs equal
  /// those of a dense update.
  Update(OpContext& c, size_t inputs, size_t gradient) : c_(c), gradient_(gradient) {
    const bool sparse = traits_of(c.node().op).has(Trait::rows);
    c.expect_inputs(inputs + sparse);
    if (!sparse) return;
    // TensorFlow would update equal rows one after the other; its optimizers add up their gradients first, so they are
    // distinct.
    rows_ = c.b.add("require_distinct", {c.in[gradient + 1]});
    std::vector<Value*> dense = c.in;
    dense.erase(dense.begin() + static_cast<int64_t>(gradient) + 1);
    c.in = std::move(dense);
  }

  update::Operands operands(size_t slots) {
    update::Operands operands{read(0), in(gradient_), {}};
    for (size_t i = 1; i <= slots; ++i) operands.slots.push_back(read(i));
    return operands;
  }
  Var in(size_t i) const { return {c_.b, c_.in[i]}; }
  bool flag(const char* name, bool fallback = false) const { return c_.boolean(name, fallback); }

  /// Assigns the values that changed. An op on a TF1 reference returns the reference.
  void assign(const update::Operands& before, const update::Result& after) {
    for (size_t i = 0; i < after.slots.size(); ++i)
      if (after.slots[i].value != before.slots[i].value) write(i + 1, after.slots[i]);
    write(0, after.weight);
    if (!c_.node().op.starts_with("Resource")) c_.out = {c_.in[0]};
  }

 private:
  /// The content of a variable; for a sparse update only the rows at the indices.
  Var read(size_t i) {
    Value* content = c_.b.add("read_variable", {c_.in[i]});
    if (rows_) content = c_.b.add("gather", {content, rows_}, {{"axis", int64_t{0}}});
    return {c_.b, content};
  }
  void write(size_t i, Var value) {
    Value* content = value.value;
    if (rows_) {
      Value* all = c_.b.add("read_variable", {c_.in[i]});
      Value* places = c_.b.add("reshape", {rows_, c_.b.ints({-1, 1})});
      content = c_.b.add("scatter_update", {all, places, content});
    }
    c_.b.add_node(op_named("assign_variable"), {c_.in[i], content});
  }

  OpContext& c_;
  size_t gradient_;
  Value* rows_ = nullptr;
};

/// A row with so many slots behind the weight and so many inputs, the gradient among them, whose formula is kFormula.
template <size_t kSlots, size_t kInputs, size_t kGradient,
          update::Result (*kFormula)(const Update&, const update::Operands&)>
void updated(OpContext& c) {
  Update u(c, kInputs, kGradient);
  const update::Operands operands = u.operands(kSlots);
  u.assign(operands, kFormula(u, operands));
}

using update::Operands;
using update::Result;

Result momentum_step(const Update& u, const Operands& o) {
  return update::momentum(o, u.in(2), u.in(4), u.flag("use_nesterov"));
}
Result keras_momentum_step(const Update& u, const Operands& o) {
  return update::keras_momentum(o, u.in(2), u.in(4), u.flag("use_nesterov"));
}
/// The six numbers of Adam from input `at` on: powers, rate, betas, epsilon.
update::AdamNumbers adam_numbers(const Update& u, size_t at) {
  return {u.in(at), u.in(at + 1), u.in(at + 2), u.in(at + 3), u.in(at + 4), u.in(at + 5)};
}
Result adam_step(const Update& u, const Operands& o) {
  return update::adam(o, adam_numbers(u, 3), u.flag("use_nesterov"));
}
Result maximum_step(const Update& u, const Operands& o) { return update::adam_with_maximum(o, adam_numbers(u, 4)); }
Result ada_max_step(const Update& u, const Operands& o) {
  return update::ada_max(o, u.in(3), u.in(4), u.in(5), u.in(6), u.in(7));
}
Result adagrad_step(const Update& u, const Operands& o) {
  return update::adagrad(o, u.in(2), u.flag("update_slots", true));
}
Result adagrad_step_v2(const Update& u, const Operands& o) {
  return update::adagrad(o, u.in(2), u.in(3), u.flag("update_slots", true));
}
/// The gradient comes before the numbers, the global step last.
Result dual_step(const Update& u, const Operands& o) {
  return update::adagrad_dual(o, u.in(4), u.in(5), u.in(6), cast(u.in(7), o.gradient.dtype()));
}
Result proximal_adagrad_step(const Update& u, const Operands& o) {
  return update::proximal_adagrad(o, u.in(2), u.in(3), u.in(4));
}
Result proximal_step(const Update& u, const Operands& o) {
  return update::proximal_gradient_descent(o, u.in(1), u.in(2), u.in(3));
}
Result adadelta_step(const Update& u, const Operands& o) { return update::adadelta(o, u.in(3), u.in(4), u.in(5)); }
Result rms_prop_step(const Update& u, const Operands& o) {
  return update::rms_prop(o, u.in(3), u.in(4), u.in(5), u.in(6));
}
Result centered_step(const Update& u, const Operands& o) {
  return update::centered_rms_prop(o, u.in(4), u.in(5), u.in(6), u.in(7));
}
Result ftrl_step(const Update& u, const Operands& o) {
  return update::ftrl(o, u.in(4), u.in(5), u.in(6), u.in(7), u.flag("multiply_linear_by_lr"));
}
Result ftrl_step_v2(const Update& u, const Operands& o) {
  return update::ftrl(o, u.in(4), u.in(5), u.in(6), u.in(7), u.in(8), u.flag("multiply_linear_by_lr"));
}
Result add_sign_step(const Update& u, const Operands& o) {
  return update::add_sign(o, u.in(2), u.in(3), u.in(4), u.in(5));
}
Result power_sign_step(const Update& u, const Operands& o) {
  return update::power_sign(o, u.in(2), u.in(3), u.in(4), u.in(5));
}

constexpr auto ada_max = updated<2, 9, 8, ada_max_step>;
constexpr auto adadelta = updated<2, 7, 6, adadelta_step>;
constexpr auto adagrad = updated<1, 4, 3, adagrad_step>;
constexpr auto adagrad_v2 = updated<1, 5, 4, adagrad_step_v2>;
constexpr auto adagrad_dual = updated<2, 8, 3, dual_step>;
constexpr auto adam = updated<2, 10, 9, adam_step>;
constexpr auto adam_with_maximum = updated<3, 11, 10, maximum_step>;
constexpr auto add_sign = updated<1, 7, 6, add_sign_step>;
constexpr auto centered_rms_prop = updated<3, 9, 8, centered_step>;
constexpr auto ftrl = updated<2, 8, 3, ftrl_step>;
constexpr auto ftrl_v2 = updated<2, 9, 3, ftrl_step_v2>;
constexpr auto keras_momentum = updated<1, 5, 3, keras_momentum_step>;
constexpr auto momentum = updated<1, 5, 3, momentum_step>;
constexpr auto power_sign = updated<1, 7, 6, power_sign_step>;
constexpr auto proximal_adagrad = updated<1, 6, 5, proximal_adagrad_step>;
constexpr auto proximal_gradient_descent = updated<0, 5, 4, proximal_step>;
constexpr auto rms_prop = updated<2, 8, 7, rms_prop_step>;

/// AssignAdd and AssignSub; the resource forms have no result.
void assign_by(OpContext& c) {
  c.expect_inputs(2);
  Value* content = c.b.add(c.target, {c.b.add("read_variable", {c.in[0]}), c.in[1]});
  c.b.add_node(op_named("assign_variable"), {c.in[0], content});
  if (!c.node().op.ends_with("VariableOp")) c.out = {c.in[0]};
}

constexpr Traits writes_rows(int8_t handles) { return writes(handles) | Trait::rows; }

constexpr Row kUpdateRows[] = {
    {"ApplyAdaMax", ada_max, writes(3)},
    {"ApplyAdadelta", adadelta, writes(3)},
    {"ApplyAdagrad", adagrad, writes(2)},
    {"ApplyAdagradDA", adagrad_dual, writes(3)},
    {"ApplyAdagradV2", adagrad_v2, writes(2)},
    {"ApplyAdam", adam, writes(3)},
    {"ApplyAddSign", add_sign, writes(2)},
    {"ApplyCenteredRMSProp", centered_rms_prop, writes(4)},
    {"ApplyFtrl", ftrl, writes(3)},
    {"ApplyFtrlV2", ftrl_v2, writes(3)},
    {"ApplyMomentum", momentum, writes(2)},
    {"ApplyPowerSign", power_sign, writes(2)},
    {"ApplyProximalAdagrad", proximal_adagrad, writes(2)},
    {"ApplyProximalGradientDescent", proximal_gradient_descent, writes(1)},
    {"ApplyRMSProp", rms_prop, writes(3)},
    {"ResourceApplyAdaMax", ada_max, writes(3)},
    {"ResourceApplyAdadelta", adadelta, writes(3)},
    {"ResourceApplyAdagrad", adagrad, writes(2)},
    {"ResourceApplyAdagradDA", adagrad_dual, writes(3)},
    {"ResourceApplyAdagradV2", adagrad_v2, writes(2)},
    {"ResourceApplyAdam", adam, writes(3)},
    {"ResourceApplyAdamWithAmsgrad", adam_with_maximum, writes(4)},
    {"ResourceApplyAddSign", add_sign, writes(2)},
    {"ResourceApplyCenteredRMSProp", centered_rms_prop, writes(4)},
    {"ResourceApplyFtrl", ftrl, writes(3)},
    {"ResourceApplyFtrlV2", ftrl_v2, writes(3)},
    {"ResourceApplyKerasMomentum", keras_momentum, writes(2)},
    {"ResourceApplyMomentum", momentum, writes(2)},
    {"ResourceApplyPowerSign", power_sign, writes(2)},
    {"ResourceApplyProximalAdagrad", proximal_adagrad, writes(2)},
    {"ResourceApplyProximalGradientDescent", proximal_gradient_descent, writes(1)},
    {"ResourceApplyRMSProp", rms_prop, writes(3)},
    {"ResourceSparseApplyAdadelta", adadelta, writes_rows(3)},
    {"ResourceSparseApplyAdagrad", adagrad, writes_rows(2)},
    {"ResourceSparseApplyAdagradDA", adagrad_dual, writes_rows(3)},
    {"ResourceSparseApplyAdagradV2", adagrad_v2, writes_rows(2)},
    {"ResourceSparseApplyCenteredRMSProp", centered_rms_prop, writes_rows(4)},
    {"ResourceSparseApplyFtrl", ftrl, writes_rows(3)},
    {"ResourceSparseApplyFtrlV2", ftrl_v2, writes_rows(3)},
    {"ResourceSparseApplyKerasMomentum", keras_momentum, writes_rows(2)},
    {"ResourceSparseApplyMomentum", momentum, writes_rows(2)},
    {"ResourceSparseApplyProximalAdagrad", proximal_adagrad, writes_rows(2)},
    {"ResourceSparseApplyProximalGradientDescent", proximal_gradient_descent, writes_rows(1)},
    {"ResourceSparseApplyRMSProp", rms_prop, writes_rows(3)},
    {"SparseApplyAdadelta", adadelta, writes_rows(3)},
    {"SparseApplyAdagrad", adagrad, writes_rows(2)},
    {"SparseApplyAdagradDA", adagrad_dual, writes_rows(3)},
    {"SparseApplyAdagradV2", adagrad_v2, writes_rows(2)},
    {"SparseApplyCenteredRMSProp", centered_rms_prop, writes_rows(4)},
    {"SparseApplyFtrl", ftrl, writes_rows(3)},
    {"SparseApplyFtrlV2", ftrl_v2, writes_rows(3)},
    {"SparseApplyMomentum", momentum, writes_rows(2)},
    {"SparseApplyProximalAdagrad", proximal_adagrad, writes_rows(2)},
    {"SparseApplyProximalGradientDescent", proximal_gradient_descent, writes_rows(1)},
    {"SparseApplyRMSProp", rms_prop, writes_rows(3)},
    {"AssignAdd", assign_by, "add", writes(1)},
    {"AssignAddVariableOp", assign_by, "add", writes(1)},
    {"AssignSub", assign_by, "sub", writes(1)},
    {"AssignSubVariableOp", assign_by, "sub", writes(1)},
};

}  // namespace

std::span<const Row> update_rows() { return kUpdateRows; }

}  // namespace cairn::tensorflow
