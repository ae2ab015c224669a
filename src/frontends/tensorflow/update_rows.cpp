// TensorFlow's optimisers: updates of variables as element-wise formulas on their contents, in the order of the
// operations of TensorFlow's kernels. A row gets its variables as handles (`Row::handles` counts them, they come first);
// it reads their contents, and the values that it assigns are the new ones.
#include <vector>

#include "frontends/tensorflow/training.h"
#include "frontends/values.h"

namespace cairn::tensorflow {
namespace {

/// The inputs of one update: variables and their slots, then numbers, then the gradient.
class Update {
 public:
  /// A sparse update has, behind the gradient, the rows that it is for; afterwards its inputs are those of a dense one.
  Update(OpContext& c, size_t inputs, size_t gradient) : c_(c) {
    const bool sparse = c.node().op.find("SparseApply") != std::string_view::npos;
    c.expect_inputs(inputs + sparse);
    if (!sparse) return;
    // Equal rows would be updated one after the other; TensorFlow's optimizers add up their gradients first.
    rows_ = c.b.add("require_distinct", {c.in[gradient + 1]});
    std::vector<Value*> dense = c.in;
    dense.erase(dense.begin() + static_cast<int64_t>(gradient) + 1);
    c.in = std::move(dense);
  }

  /// The content of a variable; of a sparse update its rows that the indices name.
  Formula read(size_t i) {
    Value* content = c_.b.add("read_variable", {c_.in[i]});
    if (rows_) content = c_.b.add("gather", {content, rows_}, {{"axis", int64_t{0}}});
    return {c_, content};
  }
  Formula in(size_t i) { return {c_, c_.in[i]}; }
  Formula write(size_t i, const Formula& value) {
    Value* content = value.value();
    if (rows_) {
      Value* all = c_.b.add("read_variable", {c_.in[i]});
      Value* places = c_.b.add("reshape", {rows_, c_.b.ints({-1, 1})});
      content = c_.b.add("scatter_update", {all, places, content});
    }
    c_.b.add_node(op_named("assign_variable"), {c_.in[i], content});
    return value;
  }
  bool flag(const char* name, bool fallback = false) { return c_.boolean(name, fallback); }
  /// The value of a number that is a constant.
  std::optional<double> known(size_t i) {
    const Tensor* constant = constant_of(c_.in[i]);
    if (constant == nullptr || constant->count() != 1) return std::nullopt;
    return real_numbers(*constant)[0];
  }
  /// An op on a TF1 reference hands the reference on.
  void done() {
    if (!c_.node().op.starts_with("Resource")) c_.out = {c_.in[0]};
  }

 private:
  OpContext& c_;
  Value* rows_ = nullptr;
};

Formula square(const Formula& x) { return x.of("square"); }
Formula root(const Formula& x) { return x.of("sqrt"); }
Formula inverse_root(const Formula& x) { return x.of("rsqrt"); }

void proximal_gradient_descent(OpContext& c) {
  Update u(c, 5, 4);
  const Formula rate = u.in(1), l1 = u.in(2), l2 = u.in(3);
  const Formula moved = u.read(0) - u.in(4) * rate;
  const Formula shrunk = (moved.of("abs") - (rate * l1).folded()).with("maximum", 0);
  u.write(0, moved.of("sign") * shrunk / (l2 * rate + 1).folded());
  u.done();
}

void momentum(OpContext& c) {
  Update u(c, 5, 3);
  const Formula rate = u.in(2), gradient = u.in(3), part = u.in(4);
  const Formula speed = u.write(1, u.read(1) * part + gradient);
  if (u.flag("use_nesterov"))
    u.write(0, u.read(0) - (gradient * rate + speed * part * rate));
  else
    u.write(0, u.read(0) - speed * rate);
  u.done();
}

void keras_momentum(OpContext& c) {
  Update u(c, 5, 3);
  const Formula rate = u.in(2), gradient = u.in(3), part = u.in(4);
  const Formula speed = u.write(1, u.read(1) * part - gradient * rate);
  u.write(0, u.flag("use_nesterov") ? u.read(0) + (speed * part - gradient * rate) : u.read(0) + speed);
  u.done();
}

/// m or v of the Adam family after one step.
Formula blended(const Formula& old, const Formula& fresh, const Formula& keep) {
  return old + (fresh - old) * (1 - keep).folded();
}

void adam(OpContext& c) {
  Update u(c, 10, 9);
  const Formula power1 = u.in(3), power2 = u.in(4), rate = u.in(5), beta1 = u.in(6), beta2 = u.in(7), epsilon = u.in(8),
                gradient = u.in(9);
  const Formula alpha = rate * root(1 - power2) / (1 - power1);
  const Formula m = u.write(1, blended(u.read(1), gradient, beta1));
  const Formula v = u.write(2, blended(u.read(2), square(gradient), beta2));
  const Formula step = u.flag("use_nesterov") ? (gradient * (1 - beta1).folded() + beta1 * m) * alpha : m * alpha;
  u.write(0, u.read(0) - step / (root(v) + epsilon));
  u.done();
}

void adam_with_maximum(OpContext& c) {
  Update u(c, 11, 10);
  const Formula power1 = u.in(4), power2 = u.in(5), rate = u.in(6), beta1 = u.in(7), beta2 = u.in(8), epsilon = u.in(9),
                gradient = u.in(10);
  const Formula alpha = rate * root(1 - power2) / (1 - power1);
  const Formula m = u.write(1, blended(u.read(1), gradient, beta1));
  const Formula v = u.write(2, blended(u.read(2), square(gradient), beta2));
  const Formula most = u.write(3, u.read(3).with("maximum", v));
  u.write(0, u.read(0) - m * alpha / (root(most) + epsilon));
  u.done();
}

void ada_max(OpContext& c) {
  Update u(c, 9, 8);
  const Formula power1 = u.in(3), rate = u.in(4), beta1 = u.in(5), beta2 = u.in(6), epsilon = u.in(7),
                gradient = u.in(8);
  const Formula m = u.write(1, blended(u.read(1), gradient, beta1));
  const Formula v = u.write(2, (beta2 * u.read(2)).with("maximum", gradient.of("abs")));
  u.write(0, u.read(0) - rate / (1 - power1) * (m / (v + epsilon)));
  u.done();
}

/// Sum of squares, left as it is when the slots are not updated.
Formula squares(Update& u, size_t slot, const Formula& gradient) {
  return u.flag("update_slots", true) ? u.write(slot, u.read(slot) + square(gradient)) : u.read(slot);
}

void adagrad(OpContext& c) {
  Update u(c, 4, 3);
  const Formula rate = u.in(2), gradient = u.in(3);
  u.write(0, u.read(0) - gradient * rate * inverse_root(squares(u, 1, gradient)));
  u.done();
}

void adagrad_v2(OpContext& c) {
  Update u(c, 5, 4);
  const Formula rate = u.in(2), epsilon = u.in(3), gradient = u.in(4);
  u.write(0, u.read(0) - gradient * rate / (root(squares(u, 1, gradient)) + epsilon));
  u.done();
}

void proximal_adagrad(OpContext& c) {
  Update u(c, 6, 5);
  const Formula l1 = u.in(3), l2 = u.in(4), gradient = u.in(5);
  const Formula rate = u.in(2) * inverse_root(u.write(1, u.read(1) + square(gradient)));
  const Formula moved = u.read(0) - gradient * rate;
  const Formula shrunk = (moved.of("abs") - rate * l1).with("maximum", 0);
  u.write(0, moved.of("sign") * shrunk / (l2 * rate + 1));
  u.done();
}

/// The dual averaging form: the gradient comes before the numbers, the global step last.
void adagrad_dual(OpContext& c) {
  Update u(c, 8, 3);
  const Formula gradient = u.in(3), rate = u.in(4), l1 = u.in(5), l2 = u.in(6);
  const Formula steps = {c, cast_to(c.in[7], gradient.value()->type.dtype, c.b)};
  const Formula sum = u.write(1, u.read(1) + gradient), sum_of_squares = u.write(2, u.read(2) + square(gradient));
  const Formula shrunk = (sum.of("abs") - steps * l1).with("maximum", 0);
  u.write(0, rate.of("neg") * sum.of("sign") * shrunk / (l2 * (steps * rate) + root(sum_of_squares)));
  u.done();
}

void adadelta(OpContext& c) {
  Update u(c, 7, 6);
  const Formula rate = u.in(3), rho = u.in(4), epsilon = u.in(5), gradient = u.in(6);
  const Formula rest = (1 - rho).folded();
  const Formula accum = u.write(1, u.read(1) * rho + square(gradient) * rest);
  const Formula step = root(u.read(2) + epsilon) * inverse_root(accum + epsilon) * gradient;
  u.write(2, u.read(2) * rho + square(step) * rest);
  u.write(0, u.read(0) - step * rate);
  u.done();
}

void rms_prop(OpContext& c) {
  Update u(c, 8, 7);
  const Formula rate = u.in(3), rho = u.in(4), part = u.in(5), epsilon = u.in(6), gradient = u.in(7);
  const Formula ms = u.write(1, blended(u.read(1), square(gradient), rho));
  const Formula speed = u.write(2, u.read(2) * part + gradient * rate / root(ms + epsilon));
  u.write(0, u.read(0) - speed);
  u.done();
}

void centered_rms_prop(OpContext& c) {
  Update u(c, 9, 8);
  const Formula rate = u.in(4), rho = u.in(5), part = u.in(6), epsilon = u.in(7), gradient = u.in(8);
  const Formula ms = u.write(2, blended(u.read(2), square(gradient), rho));
  const Formula mg = u.write(1, blended(u.read(1), gradient, rho));
  const Formula speed = u.write(3, u.read(3) * part + gradient * rate / root(ms - square(mg) + epsilon));
  u.write(0, u.read(0) - speed);
  u.done();
}

/// Ftrl and FtrlV2, whose gradient may be shrunk by the variable.
void ftrl(OpContext& c) {
  const bool second = c.node().op.ends_with("V2");
  Update u(c, second ? 9 : 8, 3);
  const Formula gradient = u.in(3), rate = u.in(4), l1 = u.in(5), l2 = u.in(6);
  const size_t power_at = second ? 8 : 7;
  const bool halves = u.known(power_at) == -0.5, times_rate = u.flag("multiply_linear_by_lr");
  auto power = [&](const Formula& x) { return halves ? root(x) : x.with("pow", u.in(power_at).of("neg").folded()); };
  const Formula var = u.read(0), accum = u.read(1);
  const Formula used = second ? gradient + (u.in(7) * 2).folded() * var : gradient;
  const Formula fresh = accum + square(gradient);
  const Formula gain = power(fresh) - power(accum);
  const Formula linear =
      u.write(2, times_rate ? u.read(2) + (used * rate - gain * var) : u.read(2) + (used - gain / rate * var));
  const Formula bound = times_rate ? (l1 * rate).folded() : l1;
  const Formula x = bound * linear.of("sign") - linear;
  const Formula y = times_rate ? power(fresh) + (l2 * rate * 2).folded() : power(fresh) / rate + (l2 * 2).folded();
  u.write(0, linear.of("abs").with("greater", bound).choose(x / y, x.number(0)));
  u.write(1, fresh);
  u.done();
}

Formula averaged(Update& u, const Formula& beta, const Formula& gradient) {
  return u.write(1, u.read(1) * beta + gradient * (1 - beta).folded());
}

void add_sign(OpContext& c) {
  Update u(c, 7, 6);
  const Formula rate = u.in(2), alpha = u.in(3), decay = u.in(4), gradient = u.in(6);
  const Formula agreement = gradient.of("sign") * averaged(u, u.in(5), gradient).of("sign");
  u.write(0, u.read(0) - rate * (alpha + decay * agreement) * gradient);
  u.done();
}

void power_sign(OpContext& c) {
  Update u(c, 7, 6);
  const Formula rate = u.in(2), base = u.in(3), decay = u.in(4), gradient = u.in(6);
  const Formula agreement = gradient.of("sign") * averaged(u, u.in(5), gradient).of("sign");
  u.write(0, u.read(0) - rate * ((base * decay).folded() * agreement).of("exp") * gradient);
  u.done();
}

/// AssignAdd and AssignSub; the resource forms have no result.
void assign_by(OpContext& c) {
  c.expect_inputs(2);
  Value* content = c.b.add(c.target, {c.b.add("read_variable", {c.in[0]}), c.in[1]});
  c.b.add_node(op_named("assign_variable"), {c.in[0], content});
  if (!c.node().op.ends_with("VariableOp")) c.out = {c.in[0]};
}

constexpr Row kUpdateRows[] = {
    {"ApplyAdaMax", ada_max, nullptr, 3},
    {"ApplyAdadelta", adadelta, nullptr, 3},
    {"ApplyAdagrad", adagrad, nullptr, 2},
    {"ApplyAdagradDA", adagrad_dual, nullptr, 3},
    {"ApplyAdagradV2", adagrad_v2, nullptr, 2},
    {"ApplyAdam", adam, nullptr, 3},
    {"ApplyAddSign", add_sign, nullptr, 2},
    {"ApplyCenteredRMSProp", centered_rms_prop, nullptr, 4},
    {"ApplyFtrl", ftrl, nullptr, 3},
    {"ApplyFtrlV2", ftrl, nullptr, 3},
    {"ApplyMomentum", momentum, nullptr, 2},
    {"ApplyPowerSign", power_sign, nullptr, 2},
    {"ApplyProximalAdagrad", proximal_adagrad, nullptr, 2},
    {"ApplyProximalGradientDescent", proximal_gradient_descent, nullptr, 1},
    {"ApplyRMSProp", rms_prop, nullptr, 3},
    {"ResourceApplyAdaMax", ada_max, nullptr, 3},
    {"ResourceApplyAdadelta", adadelta, nullptr, 3},
    {"ResourceApplyAdagrad", adagrad, nullptr, 2},
    {"ResourceApplyAdagradDA", adagrad_dual, nullptr, 3},
    {"ResourceApplyAdagradV2", adagrad_v2, nullptr, 2},
    {"ResourceApplyAdam", adam, nullptr, 3},
    {"ResourceApplyAdamWithAmsgrad", adam_with_maximum, nullptr, 4},
    {"ResourceApplyAddSign", add_sign, nullptr, 2},
    {"ResourceApplyCenteredRMSProp", centered_rms_prop, nullptr, 4},
    {"ResourceApplyFtrl", ftrl, nullptr, 3},
    {"ResourceApplyFtrlV2", ftrl, nullptr, 3},
    {"ResourceApplyKerasMomentum", keras_momentum, nullptr, 2},
    {"ResourceApplyMomentum", momentum, nullptr, 2},
    {"ResourceApplyPowerSign", power_sign, nullptr, 2},
    {"ResourceApplyProximalAdagrad", proximal_adagrad, nullptr, 2},
    {"ResourceApplyProximalGradientDescent", proximal_gradient_descent, nullptr, 1},
    {"ResourceApplyRMSProp", rms_prop, nullptr, 3},
    {"ResourceSparseApplyAdadelta", adadelta, nullptr, 3},
    {"ResourceSparseApplyAdagrad", adagrad, nullptr, 2},
    {"ResourceSparseApplyAdagradDA", adagrad_dual, nullptr, 3},
    {"ResourceSparseApplyAdagradV2", adagrad_v2, nullptr, 2},
    {"ResourceSparseApplyCenteredRMSProp", centered_rms_prop, nullptr, 4},
    {"ResourceSparseApplyFtrl", ftrl, nullptr, 3},
    {"ResourceSparseApplyFtrlV2", ftrl, nullptr, 3},
    {"ResourceSparseApplyKerasMomentum", keras_momentum, nullptr, 2},
    {"ResourceSparseApplyMomentum", momentum, nullptr, 2},
    {"ResourceSparseApplyProximalAdagrad", proximal_adagrad, nullptr, 2},
    {"ResourceSparseApplyProximalGradientDescent", proximal_gradient_descent, nullptr, 1},
    {"ResourceSparseApplyRMSProp", rms_prop, nullptr, 3},
    {"SparseApplyAdadelta", adadelta, nullptr, 3},
    {"SparseApplyAdagrad", adagrad, nullptr, 2},
    {"SparseApplyAdagradDA", adagrad_dual, nullptr, 3},
    {"SparseApplyAdagradV2", adagrad_v2, nullptr, 2},
    {"SparseApplyCenteredRMSProp", centered_rms_prop, nullptr, 4},
    {"SparseApplyFtrl", ftrl, nullptr, 3},
    {"SparseApplyFtrlV2", ftrl, nullptr, 3},
    {"SparseApplyMomentum", momentum, nullptr, 2},
    {"SparseApplyProximalAdagrad", proximal_adagrad, nullptr, 2},
    {"SparseApplyProximalGradientDescent", proximal_gradient_descent, nullptr, 1},
    {"SparseApplyRMSProp", rms_prop, nullptr, 3},
    {"AssignAdd", assign_by, "add", 1},
    {"AssignAddVariableOp", assign_by, "add", 1},
    {"AssignSub", assign_by, "sub", 1},
    {"AssignSubVariableOp", assign_by, "sub", 1},
};

}  // namespace

std::span<const Row> update_rows() { return kUpdateRows; }

}  // namespace cairn::tensorflow
