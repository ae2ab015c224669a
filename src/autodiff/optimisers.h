// The optimisers by name, with their numbers and slots, over the formulas of updates.h.
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
  const char* unless_zero = nullptr;  // the number without which there is no such slot
  bool scalar = false;                // one number, not one for each element of the weight
};

class OptimiserStep;

/// One optimiser of the table.
struct Optimiser {
  const char* name;
  const char* summary;
  double rate;                          // usual learning rate
  std::vector<HyperParameter> numbers;  // besides the learning rate
  std::vector<Slot> slots;
  update::Result (*step)(const OptimiserStep&);
  /// Whether weight decay shrinks the weight by itself, else it is added to the gradient.
  enum class Decay : uint8_t { gradient, weight, own } decay = Decay::gradient;
};

std::span<const Optimiser> optimisers();
/// Throws Error not_found, naming the nearest.
const Optimiser& find_optimiser(std::string_view name);
/// The table as Markdown, for docs/reference/optimisers.md.
std::string describe_optimisers();

/// An optimiser with its numbers chosen.
class ChosenOptimiser {
 public:
  /// Throws Error not_found for a number that the optimiser does not have.
  ChosenOptimiser(const Optimiser& row, const std::map<std::string, double>& given, double weight_decay = 0);

  const Optimiser& row() const { return *row_; }
  double number(std::string_view name) const;
  double weight_decay() const { return decay_; }
  /// The slots that there are with these numbers.
  std::vector<Slot> slots() const;
  /// One step; `rate` and `count`, which is 1 in the first step, are scalars of any float type.
  update::Result step(update::Operands operands, Var rate, Var count) const;

 private:
  const Optimiser* row_;
  std::map<std::string, double, std::less<>> numbers_;
  double decay_;
};

/// What a row of the table sees.
class OptimiserStep {
 public:
  OptimiserStep(const ChosenOptimiser& chosen, const update::Operands& operands, Var rate, Var count)
      : operands(operands), rate(rate), count(count), chosen_(chosen) {}
  const update::Operands& operands;
  Var rate, count;  // of the weight's element type
  double known(std::string_view name) const { return chosen_.number(name); }
  Var number(std::string_view name) const { return operands.weight.number(known(name)); }
  double weight_decay() const { return chosen_.weight_decay(); }
  /// beta1, beta2, epsilon and their powers. Epsilon is scaled so that it is added to the root of the corrected v.
  update::AdamNumbers adam() const;

 private:
  const ChosenOptimiser& chosen_;
};

}  // namespace cairn
