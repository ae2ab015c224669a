// Shared by the importers of all formats: the declared types of inputs, and names for unnamed dims.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "frontends/import.h"

namespace cairn {

class InputTypes {
 public:
  explicit InputTypes(const ImportOptions& options) : options_(options) {}

  /// The type of one input: the model's own, combined with the shape that the user gave under one of its names. Throws
  /// Error invalid_argument when the two contradict each other.
  Type type(const std::vector<std::string>& names, DType dtype, Shape own);
  /// Inputs that the outputs do not need: a shape given for one of them is noted instead of refused.
  void cut_off(const std::vector<std::string>& names);
  /// Throws Error invalid_argument when the user gave a shape for an input that does not exist.
  void refuse_unused(const std::string& file, const Block& body) const;

 private:
  const ImportOptions& options_;
  std::unordered_set<std::string> used_;
};

/// The type of an input in place of a result: its sizes are numbers or open. Throws Error unsupported for what is no tensor.
Type as_input(Type type);

/// Unknown dims of params get names, so that equal sizes are seen to be equal further down: "n" when there is only one.
void name_unknown_dims(Block& body);
/// The same of one, after its own name.
void name_unknown_dims(Value& param);

}  // namespace cairn
