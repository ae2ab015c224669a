// The optimisers by name, with their hyperparameters and slots; the formulas are in updates.h.
#pragma once

#include <map>
#include <span>

#include "autodiff/updates.h"

namespace cairn {

struct HyperParameter {
  const char* name;
  double fallback;
  const char* meaning;
};

struct Slot {
  const char* name;
  double initial = 0;
  const char* unless_zero = nullptr;  // the hyperparameter that removes this slot when it is 0
  bool scalar = false;                // a single number instead of one per element of the weight
};

class OptimiserStep;

/// One optimiser of the table.
struct Optimiser {
  const char* name;
  const char* summary;
  double rate;                          // usual learning rate
  std::vector<HyperParameter> numbers;  // without the learning rate
  std::vector<Slot> slots;
  update::Result (*step)(const OptimiserStep&);
  /// How weight decay acts: added to the gradient, shrinking the weight directly, or handled by `step` itself.
  enum class Decay : uint8_t { gradient, weight, own } decay = Decay::gradient;
};

std::span<const Optimiser> optimisers();
/// Throws Error not_found, which suggests the nearest name.
const Optimiser& find_optimiser(std::string_view name);
/// The table as Markdown, for docs/reference/optimisers.md.
std::string describe_optimisers();

/// An optimiser with values for its hyperparameters.
class ChosenOptimiser {
 public:
  /// Throws Error not_found for a hyperparameter that the optimiser does not have.
  ChosenOptimiser(const Optimiser& row, const std::map<std::string, double>& given, double weight_decay = 0);

  const Optimiser& row() const { return *row_; }
  double number(std::string_view name) const;
  double weight_decay() const { return decay_; }
  /// The slots that are needed with these hyperparameters.
  std::vector<Slot> slots() const;
  /// One step; `rate` and `count`, which is 1 in the first step, are scalars of any float type.
  update::Result step(update::Operands operands, Var rate, Var count) const;

 private:
  const Optimiser* row_;
  std::map<std::string, double, std::less<>> numbers_;
  double decay_;
};

/// The operands and hyperparameters that the `step` of a row gets.
class OptimiserStep {
 public:
  OptimiserStep(const ChosenOptimiser& chosen, const update::Operands& operands, Var rate, Var count)
      : operands(operands), rate(rate), count(count), chosen_(chosen) {}
  const update::Operands& operands;
  Var rate, count;  // in the weight's element type
  double known(std::string_view name) const { return chosen_.number(name); }
  Var number(std::string_view name) const { return operands.weight.number(known(name)); }
  double weight_decay() const { return chosen_.weight_decay(); }
  /// beta1, beta2, epsilon and their powers. Epsilon is scaled so that it is added to the root of the corrected v.
  update::AdamNumbers adam() const;

 private:
  const ChosenOptimiser& chosen_;
};

}  // namespace cairn
