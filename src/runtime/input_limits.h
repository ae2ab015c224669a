// The input sizes that a model was converted for: profiles, or ranges of sizes. They stand in the module's metadata, so
// that they survive every writer, and are checked when a plan for new sizes is asked for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "support/shape_options.h"

namespace cairn {

class InputLimits {
 public:
  /// A list of alternatives, each the sizes of every input.
  using Alternative = std::vector<std::vector<SizeRange>>;

  InputLimits() = default;
  explicit InputLimits(std::vector<Alternative> alternatives) : alternatives_(std::move(alternatives)) {}
  /// Of the module's metadata; none when there are none. Throws Error invalid_model.
  static InputLimits of(const Module& module);

  void write(Module& module) const;
  const std::vector<Alternative>& alternatives() const { return alternatives_; }
  /// Throws Error invalid_argument when no alternative holds all sizes; `names` are the inputs'.
  void check(std::span<const Dims> dims, std::span<const std::string> names) const;

 private:
  std::vector<Alternative> alternatives_;
};

}  // namespace cairn
