// Functions and the calls between them, as differentiation needs them.
#pragma once

#include <string>

#include "ir/module.h"

namespace cairn {

/// The function that a node calls, or null. Throws Error invalid_model when the module has none of that name.
Function* callee_of(const Module& module, const Node& node);
/// Puts the bodies of called functions in place of plain calls (without `recompute` or `backward`), unless the callee calls
/// itself. The results of calls stay the same values.
void inline_plain_calls(const Module& module, Block& block);
/// A name that no function of the module has: `name`, or name_2, name_3, ...
std::string unused_name(const Module& module, const std::string& name);
/// Appends a param under a name that no other has: `name`, or name_2, name_3, ...
Value* append_named_param(Block& block, const Type& type, const std::string& name);
/// A copy of the function under an unused name, appended to the module.
Function& append_copy(Module& module, const Function& function, const std::string& name);

}  // namespace cairn
