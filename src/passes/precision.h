// Lower precision on request: operands and results of the chosen operators are rounded to 16 bits, while the arithmetic
// stays in f32. On every engine this gives the bits of 16-bit storage with f32 accumulation, but where an engine keeps inner values
// of one step (scores of attention, what passes between chained convolutions) in f32. In inference a value that one operator
// alone reads within a step is not rounded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "support/precision_modes.h"

namespace cairn {

/// Types of one operator's inputs and outputs; kF32, like a missing entry, leaves a value unchanged.
struct CustomTypes {
  std::string node;  // as in PrecisionOptions::keep
  std::vector<DType> inputs, outputs;
};

struct PrecisionOptions {
  PrecisionMode mode = PrecisionMode::keep;
  DType low = kF16;  // or kBF16
  void set(const NamedPrecision& named) { mode = named.mode, low = named.brain ? kBF16 : kF16; }
  /// Changes to the lists, as operator types: the platform's ("ReduceSumD"), the source's ("Sum") or ours
  /// ("reduce_sum").
  std::vector<std::string> white, black, gray;
  /// Nodes that keep their types: by name (also of a node fused into another), or "OpType::T".
  std::vector<std::string> keep;
  std::vector<std::string> precise;  // the same for nodes that are to be accurate
  bool builtin = false;              // `precise` is the platform's list, so unused entries are normal
  std::vector<CustomTypes> custom;
};

/// The first name of the mode in the table; empty when the model keeps its types.
std::string_view precision_name(const PrecisionOptions& options);

struct PrecisionReport {
  size_t lowered = 0, widened = 0;
  std::vector<std::string> unused;  // entries of the lists that match no node
};

/// Changes all functions of the module, which stays valid.
PrecisionReport set_precision(Module& module, const PrecisionOptions& options);

/// Whether `type` (the platform's, the source's or our name of an operator type) applies to this node.
bool is_of_type(const Module& module, const Node& node, const std::string& type);

/// Operator types for which the platform has both an accurate and a fast kernel.
const std::vector<std::string>& types_with_variants();

}  // namespace cairn
