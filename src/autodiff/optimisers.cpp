#include "autodiff/optimisers.h"

#include <algorithm>

#include "support/nearest.h"

namespace cairn {
namespace {

using update::Operands;
using update::Result;

const HyperParameter kBeta1{"beta1", 0.9, "share of the old mean of gradients"};
const HyperParameter kBeta2{"beta2", 0.999, "share of the old mean of squared gradients"};

HyperParameter epsilon(double value) { return {"epsilon", value, "keeps divisors from 0"}; }
HyperParameter momentum(double value) { return {"momentum", value, "share of the old step"}; }

Result sgd(const OptimiserStep& s) {
  if (s.operands.slots.empty()) return update::gradient_descent(s.operands, s.rate);
  return update::momentum(s.operands, s.rate, s.number("momentum"), s.known("nesterov") != 0);
}

Result adam_of(const OptimiserStep& s) {
  if (s.known("amsgrad") == 0) return update::adam(s.operands, s.adam(), false);
  return update::adam_with_maximum(s.operands, s.adam());
}

/// Adam with the schedule of Nesterov's momentum (Dozat, "Incorporating Nesterov momentum into Adam", 2016).
Result nadam_of(const OptimiserStep& s) {
  auto share = [&](double ahead) {
    const Var base = s.count.number(0.96);
    const Var decayed = base.apply("pow", {(s.count + ahead) * s.known("momentum_decay")});
    return s.number("beta1") * (1 - decayed * 0.5);
  };
  return update::nadam(s.operands, s.adam(), share(0), share(1));
}

Result ada_max_of(const OptimiserStep& s) {
  const update::AdamNumbers n = s.adam();
  return update::ada_max(s.operands, n.power1, n.rate, n.beta1, n.beta2, s.number("epsilon"));
}

Result rms_prop_of(const OptimiserStep& s) {
  const Var rho = s.number("rho"), share = s.number("momentum"), small = s.number("epsilon");
  if (s.known("centered") == 0) return update::rms_prop(s.operands, s.rate, rho, share, small);
  return update::centered_rms_prop(s.operands, s.rate, rho, share, small);
}

Result adagrad_of(const OptimiserStep& s) { return update::adagrad(s.operands, s.rate, s.number("epsilon"), true); }

Result adadelta_of(const OptimiserStep& s) {
  return update::adadelta(s.operands, s.rate, s.number("rho"), s.number("epsilon"));
}

Result ftrl_of(const OptimiserStep& s) {
  return update::ftrl(s.operands, s.rate, s.number("l1"), s.number("l2"), s.number("shrinkage"), s.number("power"),
                      false);
}

Result lion_of(const OptimiserStep& s) {
  return update::lion(s.operands, s.rate, s.number("beta1"), s.number("beta2"));
}

Result lamb_of(const OptimiserStep& s) {
  return update::lamb(s.operands, s.adam(), s.operands.weight.number(s.weight_decay()));
}

Result lars_of(const OptimiserStep& s) {
  return update::lars(s.operands, s.rate, s.number("momentum"), s.operands.weight.number(s.weight_decay()),
                      s.number("trust"), s.number("epsilon"));
}

std::vector<Optimiser> make_optimisers() {
  using Decay = Optimiser::Decay;
  const HyperParameter amsgrad{"amsgrad", 0, "1: divides by the largest mean of squares so far"};
  const std::vector<HyperParameter> adam_numbers = {kBeta1, kBeta2, epsilon(1e-8), amsgrad};
  const std::vector<Slot> adam_slots = {{"m"}, {"v"}, {"largest", 0, "amsgrad"}};
  return {
      {"sgd",
       "stochastic gradient descent, with momentum when that is not 0",
       0.01,
       {momentum(0), {"nesterov", 0, "1: looks ahead by the momentum"}},
       {{"momentum", 0, "momentum"}},
       sgd},
      {"adam", "Adam (Kingma and Ba, 2015)", 0.001, adam_numbers, adam_slots, adam_of},
      {"adamw", "Adam whose weight decay is not part of the gradient", 0.001, adam_numbers, adam_slots, adam_of,
       Decay::weight},
      {"nadam",
       "Adam with Nesterov's momentum",
       0.002,
       {kBeta1, kBeta2, epsilon(1e-8), {"momentum_decay", 0.004, "how fast the momentum's schedule ends"}},
       {{"m"}, {"v"}, {"schedule", 1, nullptr, true}},
       nadam_of},
      {"adamax",
       "Adam by the largest absolute gradient",
       0.002,
       {kBeta1, kBeta2, epsilon(1e-8)},
       {{"m"}, {"largest"}},
       ada_max_of},
      {"adagrad",
       "steps divided by the root of the sum of squared gradients",
       0.01,
       {epsilon(1e-10), {"initial", 0, "sum of squares at the start"}},
       {{"squares"}},
       adagrad_of},
      {"adadelta",
       "Adadelta (Zeiler, 2012)",
       1,
       {{"rho", 0.9, "share of the old means"}, epsilon(1e-6)},
       {{"squares"}, {"updates"}},
       adadelta_of},
      {"rmsprop",
       "steps divided by the root of the mean of squared gradients, plus epsilon inside the root",
       0.01,
       {{"rho", 0.99, "share of the old mean"},
        momentum(0),
        epsilon(1e-8),
        {"centered", 0, "1: divides by the estimated variance instead"}},
       {{"mean", 0, "centered"}, {"squares"}, {"momentum"}},
       rms_prop_of},
      {"lamb",
       "Adam's step, as long as the weight is (You and others, 2020)",
       0.001,
       {kBeta1, kBeta2, epsilon(1e-6)},
       {{"m"}, {"v"}},
       lamb_of,
       Decay::own},
      {"lars",
       "momentum whose rate follows the ratio of each weight's length to its gradient's (You and others, 2017)",
       0.1,
       {momentum(0.9), {"trust", 0.001, "step as a share of the weight's length"}, epsilon(1e-8)},
       {{"momentum"}},
       lars_of,
       Decay::own},
      {"ftrl",
       "follow the regularised leader (McMahan and others, 2013)",
       0.001,
       {{"l1", 0, "weight of the absolute values"},
        {"l2", 0, "weight of the squares"},
        {"shrinkage", 0, "weight of the squares, in the gradient alone"},
        {"power", -0.5, "how the rate falls with the sum of squares"},
        {"initial", 0.1, "sum of squares at the start"}},
       {{"squares"}, {"linear"}},
       ftrl_of},
      {"lion",
       "the sign of a mean of gradients (Chen and others, 2023)",
       0.0001,
       {kBeta1, {"beta2", 0.99, "share of the old mean that is kept"}},
       {{"m"}},
       lion_of,
       Decay::weight},
  };
}

}  // namespace

std::span<const Optimiser> optimisers() {
  static const std::vector<Optimiser> rows = make_optimisers();
  return rows;
}

const Optimiser& find_optimiser(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Optimiser& row : optimisers()) {
    if (row.name == name) return row;
    known.emplace_back(row.name);
  }
  fail(ErrorKind::not_found, "optimizer", "none is called '{}'{}; there are {}", printable(name),
       did_you_mean(name, known), fmt::join(known, ", "));
}

std::string describe_optimisers() {
  std::string text =
      "\nWhat `cairn train --optimizer` takes, with the learning rate and the numbers (`--set name=value`) as they are "
      "when "
      "not given.\n\n"
      "| optimiser | what it does | learning rate | numbers |\n|---|---|---|---|\n";
  for (const Optimiser& row : optimisers()) {
    text += fmt::format("| `{}` | {} | {} |", row.name, row.summary, row.rate);
    for (const HyperParameter& number : row.numbers)
      text += fmt::format("{} `{}` = {}: {}", &number == row.numbers.data() ? "" : ";", number.name, number.fallback,
                          number.meaning);
    text += " |\n";
  }
  return text;
}

ChosenOptimiser::ChosenOptimiser(const Optimiser& row, const std::map<std::string, double>& given, double weight_decay)
    : row_(&row), decay_(weight_decay) {
  std::vector<std::string_view> known;
  for (const HyperParameter& number : row.numbers) {
    numbers_[number.name] = number.fallback;
    known.emplace_back(number.name);
  }
  for (const auto& [name, value] : given) {
    auto found = numbers_.find(name);
    if (found == numbers_.end())
      fail(ErrorKind::not_found, row.name, "has no number '{}'{}; it has {}", printable(name),
           did_you_mean(name, known), fmt::join(known, ", "));
    found->second = value;
  }
}

double ChosenOptimiser::number(std::string_view name) const {
  auto found = numbers_.find(name);
  CHECK(found != numbers_.end(), "{} has no number {}", row_->name, name);
  return found->second;
}

std::vector<Slot> ChosenOptimiser::slots() const {
  std::vector<Slot> slots;
  for (Slot slot : row_->slots) {
    if (slot.unless_zero && number(slot.unless_zero) == 0) continue;
    if (std::string_view(slot.name) == "squares")
      if (auto initial = numbers_.find("initial"); initial != numbers_.end()) slot.initial = initial->second;
    slots.push_back(slot);
  }
  return slots;
}

Result ChosenOptimiser::step(Operands operands, Var rate, Var count) const {
  const DType dtype = operands.weight.dtype();
  rate = cast(rate, dtype), count = cast(count, dtype);
  if (decay_ != 0 && row_->decay == Optimiser::Decay::gradient)
    operands.gradient = operands.gradient + operands.weight * decay_;
  if (decay_ != 0 && row_->decay == Optimiser::Decay::weight) operands.weight = operands.weight * (1 - rate * decay_);
  return row_->step(OptimiserStep(*this, operands, rate, count));
}

update::AdamNumbers OptimiserStep::adam() const {
  const Var beta1 = number("beta1"), beta2 = number("beta2");
  const Var power1 = beta1.apply("pow", {count}), power2 = beta2.apply("pow", {count});
  return {power1, power2, rate, beta1, beta2, number("epsilon") * sqrt(1 - power2)};
}

}  // namespace cairn
