// Losses by name: from what a model answers and what it should have answered to one number.
#pragma once

#include <map>
#include <span>
#include <string>

#include "ir/expression.h"

namespace cairn {

/// Loss of each row or element, before it is reduced, and what it is compared to.
struct LossOperands {
  Var answers, labels;
  std::map<std::string, double, std::less<>> numbers;  // of the row, those not given at their fallbacks
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
  Var (*of)(const LossOperands&);  // one number for each row or element
  /// The op that models often end in and that the loss contains: the answers are taken from before it.
  const char* contains = nullptr;
  /// What labels are.
  enum class Labels : uint8_t { like_answers, classes, classes_or_like, sequences } labels = Labels::like_answers;
  bool counts_hits = false;  // accuracy says something
};

std::span<const Loss> losses();
/// Throws Error not_found, naming the nearest.
const Loss& find_loss(std::string_view name);
/// The type of the labels for answers of this type.
Type label_type(const Loss& loss, const Type& answers, bool classes, int64_t axis = -1);
/// The mean over rows or elements. `axis` is that of the classes. Throws Error invalid_argument for a number that the loss
/// does not have, or answers that do not suit it.
Var loss_of(const Loss& loss, Var answers, Var labels, const std::map<std::string, double>& numbers = {},
            int64_t axis = -1);
/// The table as Markdown, for docs/reference/losses.md.
std::string describe_losses();

/// Share of rows whose largest answer, or whose sign for one answer, is the label.
Var accuracy_of(Var answers, Var labels, int64_t axis = -1);

}  // namespace cairn
