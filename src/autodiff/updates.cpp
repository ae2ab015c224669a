#include "autodiff/updates.h"

#include <numeric>

namespace cairn::update {
namespace {

/// Exponential moving average; `keep` is the weight of the old value.
Var blended(Var old, Var fresh, Var keep) { return old + (fresh - old) * (1 - keep); }
Var weighted(Var old, Var fresh, Var keep) { return old * keep + fresh * (1 - keep); }

Var nonnegative(Var x) { return maximum(x, x.number(0)); }

/// Soft threshold by l1 (already scaled by the rate), then division by the factor that l2 gives.
Var shrunk(Var x, Var l1, Var divisor) { return sign(x) * nonnegative(abs(x) - l1) / divisor; }

Var adam_rate(const AdamNumbers& n) { return n.rate * sqrt(1 - n.power2) / (1 - n.power1); }

/// The Euclidean norm over all elements.
Var length(Var x) {
  std::vector<int64_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  return sqrt(reduce_sum(square(x), axes));
}

/// numerator / denominator where both are above 0, else 1.
Var ratio_or_one(Var numerator, Var denominator) {
  const Var zero = numerator.number(0);
  return select((numerator > zero).apply("and", {denominator > zero}), numerator / denominator, numerator.number(1));
}

/// FTRL. `used` is the gradient that changes the linear term; the sum of squares uses the plain gradient.
Result follow_regularised_leader(const Operands& o, Var used, Var rate, Var l1, Var l2, Var power, bool times_rate) {
  const Tensor* known = constant_of(power.value);
  const bool root = known != nullptr && known->count() == 1 && known->as_f64()[0] == -0.5;
  auto raised = [&](Var x) { return root ? sqrt(x) : x.apply("pow", {-power}); };
  const Var squares = o.slots[0] + square(o.gradient), gain = raised(squares) - raised(o.slots[0]);
  const Var linear =
      times_rate ? o.slots[1] + (used * rate - gain * o.weight) : o.slots[1] + (used - gain / rate * o.weight);
  const Var bound = times_rate ? l1 * rate : l1;
  const Var divisor = times_rate ? raised(squares) + l2 * rate * 2 : raised(squares) / rate + l2 * 2;
  const Var weight = (bound * sign(linear) - linear) / divisor;
  return {select(abs(linear) > bound, weight, weight.number(0)), {squares, linear}};
}

}  // namespace

Result gradient_descent(const Operands& o, Var rate) { return {o.weight - o.gradient * rate, {}}; }

Result proximal_gradient_descent(const Operands& o, Var rate, Var l1, Var l2) {
  return {shrunk(o.weight - o.gradient * rate, rate * l1, l2 * rate + 1), {}};
}

Result momentum(const Operands& o, Var rate, Var share, bool nesterov) {
  const Var speed = o.slots[0] * share + o.gradient;
  const Var step = nesterov ? o.gradient * rate + speed * share * rate : speed * rate;
  return {o.weight - step, {speed}};
}

Result keras_momentum(const Operands& o, Var rate, Var share, bool nesterov) {
  const Var speed = o.slots[0] * share - o.gradient * rate;
  return {o.weight + (nesterov ? speed * share - o.gradient * rate : speed), {speed}};
}

Result adam(const Operands& o, const AdamNumbers& n, bool nesterov) {
  const Var rate = adam_rate(n);
  const Var m = blended(o.slots[0], o.gradient, n.beta1), v = blended(o.slots[1], square(o.gradient), n.beta2);
  const Var step = nesterov ? (o.gradient * (1 - n.beta1) + n.beta1 * m) * rate : m * rate;
  return {o.weight - step / (sqrt(v) + n.epsilon), {m, v}};
}

Result adam_with_maximum(const Operands& o, const AdamNumbers& n) {
  const Var rate = adam_rate(n);
  const Var m = blended(o.slots[0], o.gradient, n.beta1), v = blended(o.slots[1], square(o.gradient), n.beta2);
  const Var most = maximum(o.slots[2], v);
  return {o.weight - m * rate / (sqrt(most) + n.epsilon), {m, v, most}};
}

Result ada_max(const Operands& o, Var power1, Var rate, Var beta1, Var beta2, Var epsilon) {
  const Var m = blended(o.slots[0], o.gradient, beta1), most = maximum(beta2 * o.slots[1], abs(o.gradient));
  return {o.weight - rate / (1 - power1) * (m / (most + epsilon)), {m, most}};
}

Result nadam(const Operands& o, const AdamNumbers& n, Var share, Var next_share) {
  const Var m = blended(o.slots[0], o.gradient, n.beta1), v = blended(o.slots[1], square(o.gradient), n.beta2);
  const Var product = o.slots[2] * share, correction = sqrt(1 - n.power2);
  const Var step = o.gradient * ((1 - share) / (1 - product)) + m * (next_share / (1 - product * next_share));
  return {o.weight - step * (n.rate * correction) / (sqrt(v) + n.epsilon), {m, v, product}};
}

Result adagrad(const Operands& o, Var rate, bool accumulate) {
  const Var squares = accumulate ? o.slots[0] + square(o.gradient) : o.slots[0];
  return {o.weight - o.gradient * rate * rsqrt(squares), {squares}};
}

Result adagrad(const Operands& o, Var rate, Var epsilon, bool accumulate) {
  const Var squares = accumulate ? o.slots[0] + square(o.gradient) : o.slots[0];
  return {o.weight - o.gradient * rate / (sqrt(squares) + epsilon), {squares}};
}

Result proximal_adagrad(const Operands& o, Var rate, Var l1, Var l2) {
  const Var squares = o.slots[0] + square(o.gradient), own_rate = rate * rsqrt(squares);
  return {shrunk(o.weight - o.gradient * own_rate, own_rate * l1, l2 * own_rate + 1), {squares}};
}

Result adagrad_dual(const Operands& o, Var rate, Var l1, Var l2, Var steps) {
  const Var sum = o.slots[0] + o.gradient, squares = o.slots[1] + square(o.gradient);
  const Var part = -rate * sign(sum) * nonnegative(abs(sum) - steps * l1);
  return {part / (l2 * (steps * rate) + sqrt(squares)), {sum, squares}};
}

Result adadelta(const Operands& o, Var rate, Var rho, Var epsilon) {
  const Var squares = weighted(o.slots[0], square(o.gradient), rho);
  const Var step = sqrt(o.slots[1] + epsilon) * rsqrt(squares + epsilon) * o.gradient;
  return {o.weight - step * rate, {squares, weighted(o.slots[1], square(step), rho)}};
}

Result rms_prop(const Operands& o, Var rate, Var rho, Var share, Var epsilon) {
  const Var squares = blended(o.slots[0], square(o.gradient), rho);
  const Var speed = o.slots[1] * share + o.gradient * rate / sqrt(squares + epsilon);
  return {o.weight - speed, {squares, speed}};
}

Result centered_rms_prop(const Operands& o, Var rate, Var rho, Var share, Var epsilon) {
  const Var squares = blended(o.slots[1], square(o.gradient), rho), mean = blended(o.slots[0], o.gradient, rho);
  const Var speed = o.slots[2] * share + o.gradient * rate / sqrt(squares - square(mean) + epsilon);
  return {o.weight - speed, {mean, squares, speed}};
}

Result ftrl(const Operands& o, Var rate, Var l1, Var l2, Var power, bool times_rate) {
  return follow_regularised_leader(o, o.gradient, rate, l1, l2, power, times_rate);
}

Result ftrl(const Operands& o, Var rate, Var l1, Var l2, Var shrinkage, Var power, bool times_rate) {
  return follow_regularised_leader(o, o.gradient + shrinkage * 2 * o.weight, rate, l1, l2, power, times_rate);
}

Result add_sign(const Operands& o, Var rate, Var alpha, Var decay, Var beta) {
  const Var mean = weighted(o.slots[0], o.gradient, beta);
  return {o.weight - rate * (alpha + decay * (sign(o.gradient) * sign(mean))) * o.gradient, {mean}};
}

Result power_sign(const Operands& o, Var rate, Var log_base, Var decay, Var beta) {
  const Var mean = weighted(o.slots[0], o.gradient, beta);
  return {o.weight - rate * exp(log_base * decay * (sign(o.gradient) * sign(mean))) * o.gradient, {mean}};
}

Result lion(const Operands& o, Var rate, Var beta1, Var beta2) {
  const Var step = sign(weighted(o.slots[0], o.gradient, beta1));
  return {o.weight - step * rate, {weighted(o.slots[0], o.gradient, beta2)}};
}

Result lamb(const Operands& o, const AdamNumbers& n, Var decay) {
  const Var m = blended(o.slots[0], o.gradient, n.beta1), v = blended(o.slots[1], square(o.gradient), n.beta2);
  const Var correction = sqrt(1 - n.power2) / (1 - n.power1);
  const Var step = m * correction / (sqrt(v) + n.epsilon) + decay * o.weight;
  return {o.weight - step * (n.rate * ratio_or_one(length(o.weight), length(step))), {m, v}};
}

Result lars(const Operands& o, Var rate, Var share, Var decay, Var trust, Var epsilon) {
  const Var weight = length(o.weight), gradient = length(o.gradient);
  const Var own_rate = rate * ratio_or_one(trust * weight, gradient + decay * weight + epsilon);
  const Var speed = o.slots[0] * share + (o.gradient + decay * o.weight) * own_rate;
  return {o.weight - speed, {speed}};
}

}  // namespace cairn::update
