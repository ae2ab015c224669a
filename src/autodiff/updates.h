// What one step of an optimiser makes of a weight and its slots: formulas of rows, in the order of the operations of
// TensorFlow's kernels, whose rows use them as `optimisers.h` does.
#pragma once

#include "ir/expression.h"

namespace cairn::update {

/// What a step reads.
struct Operands {
  Var weight, gradient;
  std::vector<Var> slots;  // in the order that each formula names
};
/// What it makes: a new value for each.
struct Result {
  Var weight;
  std::vector<Var> slots;
};

Result gradient_descent(const Operands& o, Var rate);
Result proximal_gradient_descent(const Operands& o, Var rate, Var l1, Var l2);
/// Slots: speed. The rate is applied to the speed.
Result momentum(const Operands& o, Var rate, Var share, bool nesterov);
/// Slots: speed. The rate is part of the speed, as Keras has it.
Result keras_momentum(const Operands& o, Var rate, Var share, bool nesterov);

/// `power1` and `power2` are beta1 and beta2 to the power of the step, which counts from 1.
struct AdamNumbers {
  Var power1, power2, rate, beta1, beta2, epsilon;
};
/// Slots: mean m, square v. Epsilon is added to the root of v as it is, without correction.
Result adam(const Operands& o, const AdamNumbers& n, bool nesterov);
/// Slots: m, v, largest v so far.
Result adam_with_maximum(const Operands& o, const AdamNumbers& n);
/// Slots: m, largest absolute gradient.
Result ada_max(const Operands& o, Var power1, Var rate, Var beta1, Var beta2, Var epsilon);
/// Slots: m, v, product of the schedule so far. `share` and `next_share` are the schedule's numbers of this step and the next.
Result nadam(const Operands& o, const AdamNumbers& n, Var share, Var next_share);

/// Slots: sum of squares, which stays as it is without `accumulate`.
Result adagrad(const Operands& o, Var rate, bool accumulate);
Result adagrad(const Operands& o, Var rate, Var epsilon, bool accumulate);
Result proximal_adagrad(const Operands& o, Var rate, Var l1, Var l2);
/// Slots: sum of gradients, sum of squares. The form of dual averaging.
Result adagrad_dual(const Operands& o, Var rate, Var l1, Var l2, Var steps);
/// Slots: mean of squared gradients, mean of squared updates.
Result adadelta(const Operands& o, Var rate, Var rho, Var epsilon);
/// Slots: mean of squares, speed. Epsilon is added to the mean of squares.
Result rms_prop(const Operands& o, Var rate, Var rho, Var share, Var epsilon);
/// Slots: mean, mean of squares, speed.
Result centered_rms_prop(const Operands& o, Var rate, Var rho, Var share, Var epsilon);
/// Slots: sum of squares, linear term. `power` is that of the rate's decay, usually -0.5.
Result ftrl(const Operands& o, Var rate, Var l1, Var l2, Var shrinkage, Var power, bool times_rate);
Result ftrl(const Operands& o, Var rate, Var l1, Var l2, Var power, bool times_rate);
/// Slots: mean.
Result add_sign(const Operands& o, Var rate, Var alpha, Var decay, Var beta);
Result power_sign(const Operands& o, Var rate, Var log_base, Var decay, Var beta);
/// Slots: mean.
Result lion(const Operands& o, Var rate, Var beta1, Var beta2);
/// Slots: m, v. Adam's corrected step plus `decay` times the weight, as long as the weight is.
Result lamb(const Operands& o, const AdamNumbers& n, Var decay);
/// Slots: speed. The rate of each weight follows the ratio of its length to its gradient's.
Result lars(const Operands& o, Var rate, Var share, Var decay, Var trust, Var epsilon);

}  // namespace cairn::update
