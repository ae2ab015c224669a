// The input sizes that a model was converted for: profiles, or ranges of sizes. They are stored in the module's
// metadata, which every writer preserves, and are checked when a plan for new sizes is requested.
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
  /// The limits in the module's metadata; empty when there are none. Throws Error invalid_model when they are
  /// malformed.
  static InputLimits of(const Module& module);

  void write(Module& module) const;
  const std::vector<Alternative>& alternatives() const { return alternatives_; }
  /// Throws Error invalid_argument when no alternative allows these sizes. `names`: of the inputs.
  void check(std::span<const Dims> dims, std::span<const std::string> names) const;

 private:
  std::vector<Alternative> alternatives_;
};

}  // namespace cairn
