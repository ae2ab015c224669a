// The text form of modules: one line a node, types at the end; parse(print(m)) prints the same again, exactly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace cairn {

struct PrintOptions {
  bool sources = true;          // "// tf:conv/Conv2D train.py:41" at line ends
  size_t inline_elements = 16;  // constants up to this many elements are written out, others as @weights[i]
};

/// The text, and the tensors that it calls @weights[0], @weights[1], ... (equal tensors share an entry).
struct ModuleText {
  std::string text;
  std::vector<Tensor> weights;
};
ModuleText print(const Module& module, const PrintOptions& options = {});
std::string print(const Function& function, const PrintOptions& options = {});
/// The node's line alone: for messages and `why`.
std::string print(const Node& node);
std::string to_string(const Attribute& attribute);

/// Throws Error invalid_model with `file` and line. Types given at line ends are checked against inference.
Module parse(std::string_view text, const std::vector<Tensor>& weights = {}, const std::string& file = "module");
/// One type or one attribute of the given kind, for tests and options.
Type parse_type(std::string_view text);
Attribute parse_attribute(std::string_view text, AttrKind kind);

/// Throws Error invalid_model at the first broken rule: operands defined before use in the same block, types as
/// inferred, attributes declared, names of functions known, region signatures.
void verify(const Module& module);

}  // namespace cairn
