// One optimiser step on a weight and its slots, as formulas built from ops. The order of operations is that of
// TensorFlow's kernels: the frontend rows of TensorFlow's training ops use these formulas, and so does optimisers.h.
#pragma once

#include "ir/expression.h"

namespace cairn::update {

/// The operands of a step.
struct Operands {
  Var weight, gradient;
  std::vector<Var> slots;  // in the order that each formula names
};
/// The new values of weight and slots.
struct Result {
  Var weight;
  std::vector<Var> slots;
};

Result gradient_descent(const Operands& o, Var rate);
Result proximal_gradient_descent(const Operands& o, Var rate, Var l1, Var l2);
/// Slots: velocity. The rate multiplies the velocity.
Result momentum(const Operands& o, Var rate, Var share, bool nesterov);
/// Slots: velocity. The velocity includes the rate, as in Keras.
Result keras_momentum(const Operands& o, Var rate, Var share, bool nesterov);

/// `power1` and `power2` are beta1 and beta2 raised to the number of the step, counted from 1.
struct AdamNumbers {
  Var power1, power2, rate, beta1, beta2, epsilon;
};
/// Slots: first moment m, second moment v. Epsilon is added to the root of the uncorrected v.
Result adam(const Operands& o, const AdamNumbers& n, bool nesterov);
/// Slots: m, v, largest v so far.
Result adam_with_maximum(const Operands& o, const AdamNumbers& n);
/// Slots: m, the largest absolute gradient so far (decayed by beta2).
Result ada_max(const Operands& o, Var power1, Var rate, Var beta1, Var beta2, Var epsilon);
/// Slots: m, v, product of the momentum schedule so far. `share` and `next_share` are the schedule's values for this
/// step and the next.
Result nadam(const Operands& o, const AdamNumbers& n, Var share, Var next_share);

/// Slots: sum of squares, which is unchanged without `accumulate`.
Result adagrad(const Operands& o, Var rate, bool accumulate);
Result adagrad(const Operands& o, Var rate, Var epsilon, bool accumulate);
Result proximal_adagrad(const Operands& o, Var rate, Var l1, Var l2);
/// Slots: sum of gradients, sum of squares. AdaGrad with dual averaging.
Result adagrad_dual(const Operands& o, Var rate, Var l1, Var l2, Var steps);
/// Slots: mean of squared gradients, mean of squared updates.
Result adadelta(const Operands& o, Var rate, Var rho, Var epsilon);
/// Slots: mean of squares, velocity. Epsilon is added to the mean of squares.
Result rms_prop(const Operands& o, Var rate, Var rho, Var share, Var epsilon);
/// Slots: mean, mean of squares, velocity.
Result centered_rms_prop(const Operands& o, Var rate, Var rho, Var share, Var epsilon);
/// Slots: sum of squares, linear term. `power` is the exponent of the learning rate's decay, usually -0.5.
Result ftrl(const Operands& o, Var rate, Var l1, Var l2, Var shrinkage, Var power, bool times_rate);
Result ftrl(const Operands& o, Var rate, Var l1, Var l2, Var power, bool times_rate);
/// Slots: mean.
Result add_sign(const Operands& o, Var rate, Var alpha, Var decay, Var beta);
Result power_sign(const Operands& o, Var rate, Var log_base, Var decay, Var beta);
/// Slots: mean.
Result lion(const Operands& o, Var rate, Var beta1, Var beta2);
/// Slots: m, v. Adam's bias-corrected step plus `decay` times the weight, scaled to the norm of the weight.
Result lamb(const Operands& o, const AdamNumbers& n, Var decay);
/// Slots: velocity. Each weight's rate is scaled by the ratio of its norm to its gradient's norm.
Result lars(const Operands& o, Var rate, Var share, Var decay, Var trust, Var epsilon);

}  // namespace cairn::update
