// Calls between functions, inlining and unique names, as differentiation needs them.
#pragma once

#include <string>

#include "ir/module.h"

namespace cairn {

/// The function that a node calls, or null. Throws Error invalid_model when the module has none of that name.
Function* callee_of(const Module& module, const Node& node);
/// Inlines plain calls (without `recompute` or `backward`), except those of recursive functions. The Value objects of
/// the calls' results are kept.
void inline_plain_calls(const Module& module, Block& block);
/// A name that no function of the module has: `name`, or name_2, name_3, ...
std::string unused_name(const Module& module, const std::string& name);
/// Appends a param with a name that no other param of the block has: `name`, or name_2, name_3, ...
Value* append_named_param(Block& block, const Type& type, const std::string& name);
/// A copy of the function under an unused name, appended to the module.
Function& append_copy(Module& module, const Function& function, const std::string& name);

}  // namespace cairn
