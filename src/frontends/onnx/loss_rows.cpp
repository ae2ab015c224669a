// ONNX's losses of classes, and the updates of its training operators.
#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

/// x with its dim 1 behind the others, or back.
Value* classes_last(Value* x, Builder& b) {
  std::vector<int64_t> order{0};
  for (size_t axis = 2; axis < x->type.shape.rank(); ++axis) order.push_back(static_cast<int64_t>(axis));
  if (x->type.shape.rank() > 1) order.push_back(1);
  return transposed(x, order, b);
}

/// The loss of log-probabilities [n, classes, ...] at the targets [n, ...], each with the weight of its class.
Value* likelihood_loss(OpContext& c, Value* logs) {
  Builder& b = c.b;
  const size_t rank = c.rank(0);
  if (rank < 2 || c.rank(1) + 1 != rank)
    fail(ErrorKind::invalid_model, "", "targets have {} dims and the input {}", c.rank(1), rank);
  const std::string reduction = c.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    fail(ErrorKind::invalid_model, "", "reduction '{}' is unknown", printable(reduction));
  Value* target = cast_to(c.in[1], kI64, b);
  const auto last = static_cast<int64_t>(rank) - 1;
  Value *ignored = nullptr, *weight = nullptr;
  if (c.has("ignore_index")) {
    ignored = b.add("equal", {target, b.constant(Tensor::scalar_i64(c.integer("ignore_index")))});
    target = b.add("select", {ignored, b.scalar_like(target, 0), target});
  }
  Value* at =
      b.add("gather", {classes_last(logs, b), expand_dims(target, {last}, b)}, {{"axis", last}, {"batch_dims", last}});
  Value* loss = b.add("neg", {squeeze(at, {last}, b)});
  if (c.given(2)) weight = b.add("gather", {c.in[2], target});
  if (ignored) {
    if (!weight) weight = b.add("broadcast_to", {b.scalar_like(loss, 1), b.add("shape_of", {loss})});
    weight = b.add("select", {ignored, b.scalar_like(weight, 0), weight});
    loss = b.add("select", {ignored, b.scalar_like(loss, 0), loss});
  }
  if (weight) loss = b.add("mul", {loss, weight});
  if (reduction == "none") return loss;
  std::vector<int64_t> axes(rank - 1);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  const auto sum = [&](Value* x) { return b.add("reduce_sum", {x}, {{"axes", axes}}); };
  if (reduction == "mean" && !weight) return b.add("reduce_mean", {loss}, {{"axes", axes}});
  return reduction == "sum" ? sum(loss) : b.add("div", {sum(loss), sum(weight)});
}

void negative_log_likelihood(OpContext& c) {
  c.expect_inputs(2, 3);
  c.out = {likelihood_loss(c, c.in[0])};
}

void softmax_cross_entropy(OpContext& c) {
  c.expect_inputs(2, 3);
  if (c.rank(0) < 2) fail(ErrorKind::invalid_model, "", "the scores have {} dims", c.rank(0));
  Value* logs = c.b.add("log_softmax", {c.in[0]}, {{"axis", int64_t{1}}});
  c.out = {likelihood_loss(c, logs), logs};
}

/// The operands of a training operator: rate and step, then `each` tensors for every state, grouped by kind.
struct Update {
  Var rate, step;
  std::vector<std::vector<Var>> states;  // of each tensor: x, gradient, ...
};
Update update_of(OpContext& c, size_t each) {
  if (c.in.size() < 2 + each || (c.in.size() - 2) % each != 0)
    fail(ErrorKind::invalid_model, "", "has {} inputs, expected 2 and {} for each tensor", c.in.size(), each);
  const size_t count = (c.in.size() - 2) / each;
  const auto scalar = [&](size_t i) { return Var(c.b, reshape_to(c.in[i], {}, c.b)); };
  Update update{scalar(0), scalar(1), {}};
  for (size_t i = 0; i < count; ++i) {
    auto& state = update.states.emplace_back();
    for (size_t kind = 0; kind < each; ++kind) state.emplace_back(c.b, c.in[2 + kind * count + i]);
  }
  return update;
}
/// Results grouped by kind as the inputs are.
void give(OpContext& c, const std::vector<std::vector<Var>>& made) {
  for (size_t kind = 0; kind < made[0].size(); ++kind)
    for (const auto& each : made) c.out.push_back(each[kind].value);
}
Var regularized(OpContext& c, const std::vector<Var>& state) {
  return state[1] + state[0] * c.real("norm_coefficient", 0);
}

void adagrad(OpContext& c) {
  const Update update = update_of(c, 3);
  std::vector<std::vector<Var>> made;
  for (const auto& state : update.states) {
    const Var x = state[0], gradient = regularized(c, state);
    const Var rate = update.rate / (1.0 + cast(update.step, x.dtype()) * c.real("decay_factor", 0));
    const Var squares = state[2] + square(gradient);
    made.push_back({x - rate * gradient / (sqrt(squares) + c.real("epsilon", 1e-6f)), squares});
  }
  give(c, made);
}

void adam(OpContext& c) {
  const Update update = update_of(c, 4);
  const double alpha = c.real("alpha", 0.9f), beta = c.real("beta", 0.999f);
  std::vector<std::vector<Var>> made;
  for (const auto& state : update.states) {
    const Var x = state[0], gradient = regularized(c, state);
    const Var mean = state[2] * alpha + gradient * (1 - alpha);
    const Var squares = state[3] * beta + square(gradient) * (1 - beta);
    const Var step = cast(update.step, x.dtype());
    const auto rest = [&](double base) { return 1.0 - step.number(base).apply("pow", {step}); };
    const Var corrected = select(step > 0, update.rate * sqrt(rest(beta)) / rest(alpha), update.rate);
    const Var y = x - corrected * mean / (sqrt(squares) + c.real("epsilon", 1e-6f));
    made.push_back({y * (1 - c.real("norm_coefficient_post", 0)), mean, squares});
  }
  give(c, made);
}

void momentum(OpContext& c) {
  const Update update = update_of(c, 3);
  const std::string mode = c.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(mode));
  const double alpha = c.real("alpha", 0);
  std::vector<std::vector<Var>> made;
  for (const auto& state : update.states) {
    const Var x = state[0], gradient = regularized(c, state);
    const Var beta = select(update.step > 0, x.number(c.real("beta", 1)), x.number(1));
    const Var next = state[2] * alpha + beta * gradient;
    made.push_back({x - update.rate * (mode == "nesterov" ? gradient + next * alpha : next), next});
  }
  give(c, made);
}

constexpr const char* kTraining = "ai.onnx.preview.training";
constexpr Row kLossRows[] = {
    {"Adagrad", adagrad, nullptr, kTraining},           {"Adam", adam, nullptr, kTraining},
    {"Momentum", momentum, nullptr, kTraining},         {"NegativeLogLikelihoodLoss", negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
};

}  // namespace

std::span<const Row> loss_rows() { return kLossRows; }

}  // namespace cairn::onnx
