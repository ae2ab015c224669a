// Stand-ins for the results of nodes that cannot be imported, so that the nodes below them are imported as well and one
// report has all problems of a model. A module with stand-ins is always refused.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace cairn {

class Unknowns {
 public:
  /// `dtype` is empty if the model does not tell the element type.
  Value* add(std::optional<DType> dtype, Shape shape);
  bool is_stand_in(const Value* value) const { return known_dtype_.contains(value); }
  bool contains(const Value* value) const {
    return value != nullptr && (is_stand_in(value) || (doubt_ && constant_of(value) == nullptr));
  }

  using Build = std::function<std::vector<Value*>(std::vector<Value*> inputs)>;
  /// The results of a node with an unknown input; they are stand-ins too, unless the node itself determines their
  /// types. Tries `build` with the inputs as they are, then (unless `once`) with other types for the unknown ones.
  /// Returns nothing if all attempts fail and the reasons differ or ask for a constant, since then the unknown input
  /// may be the cause. Throws Error if `build` fails for the same reason each time.
  std::vector<Value*> results(const std::vector<Value*>& inputs, bool once, const Build& build);

 private:
  std::vector<Value*> with_types(const std::vector<Value*>& inputs, std::optional<DType> dtype, const Shape& shape);
  bool tells_dtypes(const std::vector<Value*>& inputs) const;

  std::vector<std::unique_ptr<Value>> own_;
  std::unordered_map<const Value*, bool> known_dtype_;  // for each stand-in
  bool doubt_ = false;  // inside a region that was entered with unknown types, all computed values are unknown
};

/// Drops nodes and params that the results do not need. False, and nothing is dropped, where they need a stand-in.
bool keep_needed(Block& block);

}  // namespace cairn
