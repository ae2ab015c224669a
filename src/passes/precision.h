// Lower precision where it is asked for: values are rounded to 16 bits in front of and behind chosen operators, whose
// arithmetic stays in f32. That is what 16-bit storage with f32 accumulation computes, to the bit, on any engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "support/precision_modes.h"

namespace cairn {

/// Types of one operator's inputs and outputs; kF32 leaves a value as it is. What is not listed stays.
struct CustomTypes {
  std::string node;  // as in PrecisionOptions::keep
  std::vector<DType> inputs, outputs;
};

struct PrecisionOptions {
  PrecisionMode mode = PrecisionMode::keep;
  DType low = kF16;  // or kBF16
  void set(const NamedPrecision& named) { mode = named.mode, low = named.brain ? kBF16 : kF16; }
  /// Changes to the lists, by operator type: of the platform ("ReduceSumD"), of the source ("Sum"), ours ("reduce_sum").
  std::vector<std::string> white, black, gray;
  /// Nodes that keep their types: by name (also of a node fused into another), or "OpType::T".
  std::vector<std::string> keep;
  std::vector<std::string> precise;  // the same for nodes that are to be accurate
  bool builtin = false;              // `precise` is the platform's list, of which a model has few
  std::vector<CustomTypes> custom;
};

/// The first name of such a mode; empty for the model's own types.
std::string_view precision_name(const PrecisionOptions& options);

struct PrecisionReport {
  size_t lowered = 0, widened = 0;
  std::vector<std::string> unused;  // entries of any list that fit no node
};

/// Works on main and every other function; valid in, valid out.
PrecisionReport set_precision(Module& module, const PrecisionOptions& options);

/// True when a type's name on the platform, of the source or ours means this node.
bool is_of_type(const Module& module, const Node& node, const std::string& type);

/// Operator types that the platform has an accurate and a fast kernel of.
const std::vector<std::string>& types_with_variants();

}  // namespace cairn
