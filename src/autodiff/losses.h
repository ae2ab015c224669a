// Losses by name: each maps a model's answers and the labels to one number.
#pragma once

#include <map>
#include <span>
#include <string>

#include "ir/expression.h"

namespace cairn {

/// The operands of a loss: what the model answers, and the labels that it is compared with.
struct LossOperands {
  Var answers, labels;
  std::map<std::string, double, std::less<>> numbers;  // the loss's parameters, with defaults filled in
  double number(std::string_view name) const { return numbers.find(name)->second; }
};

struct LossNumber {
  const char* name;
  double fallback;
  const char* meaning;
};

/// One loss of the table.
struct Loss {
  const char* name;
  const char* summary;
  std::vector<LossNumber> numbers;
  Var (*of)(const LossOperands&);  // the loss of each row or element, not reduced
  /// The op, often a model's last, that the loss includes: the answers are then taken from its operand.
  const char* contains = nullptr;
  /// The form of the labels.
  enum class Labels : uint8_t { like_answers, classes, classes_or_like, sequences } labels = Labels::like_answers;
  bool counts_hits = false;  // accuracy is meaningful
};

std::span<const Loss> losses();
/// Throws Error not_found, which suggests the nearest name.
const Loss& find_loss(std::string_view name);
/// The type of the labels for answers of this type.
Type label_type(const Loss& loss, const Type& answers, bool classes, int64_t axis = -1);
/// The loss as the mean over rows or elements. `axis` is the axis of the classes. Throws Error invalid_argument for a
/// parameter that the loss does not have and for answers that do not suit it.
Var loss_of(const Loss& loss, Var answers, Var labels, const std::map<std::string, double>& numbers = {},
            int64_t axis = -1);
/// The table as Markdown, for docs/reference/losses.md.
std::string describe_losses();

/// The share of rows whose largest answer (with a single answer: its sign) matches the label.
Var accuracy_of(Var answers, Var labels, int64_t axis = -1);

}  // namespace cairn
